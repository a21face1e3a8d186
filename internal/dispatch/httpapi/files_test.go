package httpapi_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"treeline/internal/dispatch/httpapi"
)

const k1 = "/v1/conversations/k1"

func (s *site) conversation(t *testing.T) {
	t.Helper()
	s.do(t, "PUT", k1, portalKey, "{}").want(t, 201, "")
}

// A path below .../files/ is decoded once and judged by the rules of paths, never redirected to another one.
func TestTheFilesPathIsTakenAsItIs(t *testing.T) {
	s := newSite(t, nil)
	s.conversation(t)
	for _, c := range []struct{ path, stored, code string }{
		{"a.txt", "a.txt", ""},
		{"d/e.txt", "d/e.txt", ""},
		{"f%2Fg.txt", "f/g.txt", ""},
		{"foo..bar", "foo..bar", ""},
		{"...", "...", ""},
		{"%252F", "%2F", ""},
		{"a%20b+c", "a b+c", ""},
		{"e%CC%81", "é", ""}, // composed
		{"q%3Fx=%23", "q?x=#", ""},
		{"semi;colon", "semi;colon", ""},
		{"", "", "path_invalid"},
		{"a//b", "", "path_invalid"},
		{"a%2F%2Fb", "", "path_invalid"},
		{"/a", "", "path_invalid"},
		{"%2Fa", "", "path_invalid"},
		{"a/", "", "path_invalid"},
		{"../a", "", "path_invalid"},
		{"%2E%2E/a", "", "path_invalid"},
		{"..", "", "path_invalid"},
		{"x/../a", "", "path_invalid"},
		{"./a", "", "path_invalid"},
		{"a/.", "", "path_invalid"},
		{"a%5Cb", "", "path_invalid"},
		{"a%00b", "", "path_invalid"},
		{"a%0Ab", "", "path_invalid"},
		{"a%FFb", "", "path_invalid"},
		{strings.Repeat("x", 256), "", "path_invalid"},
		{"workspace/a.txt", "", "path_in_sandbox_form"},
		{"%2Fworkspace%2Fa.txt", "", "path_in_sandbox_form"},
	} {
		path := k1 + "/files/" + c.path
		if c.code != "" {
			for _, method := range []string{"PUT", "GET", "DELETE"} {
				s.do(t, method, path, portalKey, "").want(t, 422, c.code)
			}
			continue
		}
		put := s.do(t, "PUT", path, portalKey, "bytes of "+c.path).want(t, 201, "").json(t)
		if put["path"] != c.stored {
			t.Errorf("%s is stored as %v, want %s", c.path, put["path"], c.stored)
		}
		if got := s.do(t, "GET", path, portalKey, "").want(t, 200, ""); string(got.body) != "bytes of "+c.path {
			t.Errorf("%s has %q", c.path, got.body)
		}
	}
}

func TestWhatPeopleDoIsRefusedByStatus(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) { c.Limits.WorkspaceBytes = 3 << 20 })
	s.conversation(t)
	s.do(t, "PUT", k1+"/files/a", portalKey, "1").want(t, 201, "")
	s.do(t, "PUT", k1+"/files/d/e", portalKey, "1").want(t, 201, "")
	s.do(t, "PUT", k1+"/files/a/b", portalKey, "1").want(t, 409, "path_clash")
	s.do(t, "PUT", k1+"/files/d", portalKey, "1").want(t, 409, "path_clash")
	s.do(t, "PUT", k1+"/files/A", portalKey, "1").want(t, 409, "path_lookalike")
	s.do(t, "DELETE", k1+"/files/d", portalKey, "").want(t, 422, "path_is_folder")
	s.do(t, "GET", k1+"/files/d", portalKey, "").want(t, 404, "path_not_found")
	s.do(t, "PUT", k1+"/files/large", portalKey, strings.Repeat("x", 3<<20)).want(t, 201, "")
	s.do(t, "PUT", k1+"/files/larger", portalKey, strings.Repeat("x", 3<<20+1)).want(t, 413, "workspace_full")
	// Of a body without a length it is found on the way.
	r, err := http.NewRequest("PUT", s.url+k1+"/files/larger", io.MultiReader(strings.NewReader(strings.Repeat("x", 8<<20))))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+portalKey)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	reply{resp, body}.want(t, 413, "workspace_full")
	s.wantNothingStaged(t)
}

func (s *site) wantNothingStaged(t *testing.T) {
	t.Helper()
	var n int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM staged").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("%d pieces are left staged", n)
	}
}

func TestABigFileComesBackByteForByte(t *testing.T) {
	s := newSite(t, nil)
	s.conversation(t)
	for name, size := range map[string]int{"none": 0, "one": 1, "piece": 1 << 20, "more": 1<<20 + 1, "much": 5<<20 + 777} {
		content := make([]byte, size)
		r := rand.NewChaCha8([32]byte{byte(size)})
		_, _ = r.Read(content)
		sum := sha256.Sum256(content)
		put := s.do(t, "PUT", k1+"/files/"+name, portalKey, string(content)).want(t, 201, "").json(t)
		if put["bytes"] != float64(size) || put["sha256"] != hex.EncodeToString(sum[:]) || put["revision"] != put["seq"] {
			t.Errorf("%s: %v", name, put)
		}
		got := s.do(t, "GET", k1+"/files/"+name, viewerKey, "").want(t, 200, "")
		if !bytes.Equal(got.body, content) || got.ContentLength != int64(size) {
			t.Errorf("%s: %d bytes came back that differ", name, len(got.body))
		}
		head := s.do(t, "HEAD", k1+"/files/"+name, viewerKey, "").want(t, 200, "")
		if head.ContentLength != int64(size) || len(head.body) != 0 {
			t.Errorf("%s: HEAD says %d", name, head.ContentLength)
		}
	}
	much := s.do(t, "GET", k1+"/files/much", portalKey, "")
	part := s.do(t, "GET", k1+"/files/much", portalKey, "", "Range: bytes=1048570-2097160").want(t, 206, "")
	if !bytes.Equal(part.body, much.body[1048570:2097161]) {
		t.Error("a range over three pieces differs")
	}
	s.do(t, "GET", k1+"/files/much", portalKey, "", "If-None-Match: "+much.Header.Get("ETag")).want(t, 304, "")
	s.wantNothingStaged(t)
}

func TestAPageThatAModelWroteIsNoPage(t *testing.T) {
	s := newSite(t, nil)
	s.conversation(t)
	s.do(t, "PUT", k1+"/files/p.html", portalKey, "<script>alert(1)</script>").want(t, 201, "")
	for _, path := range []string{"/files/p.html", "/archive"} {
		h := s.do(t, "GET", k1+path, portalKey, "").want(t, 200, "").Header
		if !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Content-Security-Policy") != "sandbox" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestArchive(t *testing.T) {
	s := newSite(t, nil)
	s.conversation(t)
	empty := s.do(t, "GET", k1+"/archive", portalKey, "").want(t, 200, "")
	if z, err := zip.NewReader(bytes.NewReader(empty.body), int64(len(empty.body))); err != nil || len(z.File) != 0 {
		t.Errorf("the archive of nothing: %v", err)
	}
	want := map[string]string{"a.txt": "one\n", "d/é 中.bin": "\x00\xff" + strings.Repeat("z", 2<<20), "none": ""}
	for path, content := range want {
		s.do(t, "PUT", k1+"/files/"+strings.ReplaceAll(path, " ", "%20"), portalKey, content).want(t, 201, "")
	}
	got := s.do(t, "GET", k1+"/archive", viewerKey, "").want(t, 200, "")
	if got.Header.Get("Content-Type") != "application/zip" || got.Header.Get("Content-Disposition") != `attachment; filename="k1.zip"` {
		t.Errorf("headers %v", got.Header)
	}
	z, err := zip.NewReader(bytes.NewReader(got.body), int64(len(got.body)))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != len(want) {
		t.Errorf("%d files, want %d", len(z.File), len(want))
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil || string(b) != want[f.Name] {
			t.Errorf("%s differs: %v", f.Name, err)
		}
		r.Close()
	}
	if head := s.do(t, "HEAD", k1+"/archive", viewerKey, "").want(t, 200, ""); len(head.body) != 0 {
		t.Error("HEAD has a body")
	}
}

func TestStepsAndChangesComeInPages(t *testing.T) {
	s := newSite(t, nil)
	turnID, token := s.Turn(t, "k1", "write_file")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"files":[{"path":"a","content":"1"},{"path":"b","content":"2"}]}`, "Idempotency-Key: c1").want(t, 200, "")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"../x","content":"1"}`, "Idempotency-Key: c2").want(t, 200, "")
	s.do(t, "PUT", k1+"/files/b", portalKey, "3", "Treeline-Actor: Bob É").want(t, 200, "")
	s.do(t, "DELETE", k1+"/files/a", portalKey, "").want(t, 200, "")

	var changes []map[string]any
	for path := k1 + "/changes?limit=1"; ; {
		page := s.do(t, "GET", path, viewerKey, "").want(t, 200, "").json(t)
		list, _ := page["changes"].([]any)
		for _, c := range list {
			changes = append(changes, c.(map[string]any))
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		if len(list) != 1 {
			t.Fatalf("a page of %d", len(list))
		}
		path = k1 + "/changes?limit=1&after=" + next
	}
	want := []struct {
		seq                         float64
		path, op, tool, actor, user string
		before, after               bool
	}{
		{1, "a", "created", "write_file", "", "ann", false, true},
		{1, "b", "created", "write_file", "", "ann", false, true},
		{2, "b", "modified", "portal_put", "Bob É", "", true, true},
		{3, "a", "deleted", "portal_delete", "", "", true, false},
	}
	if len(changes) != len(want) {
		t.Fatalf("%d changes, want %d: %v", len(changes), len(want), changes)
	}
	text := func(v any) string { s, _ := v.(string); return s }
	for i, w := range want {
		c := changes[i]
		if c["seq"] != w.seq || c["path"] != w.path || c["op"] != w.op || c["tool"] != w.tool || text(c["actor"]) != w.actor ||
			text(c["user"]) != w.user || (c["before"] != nil) != w.before || (c["after"] != nil) != w.after || c["at"] == nil {
			t.Errorf("change %d is %v, want %v", i, c, w)
		}
	}

	steps := map[string]map[string]any{}
	var order []string
	for path := k1 + "/steps?limit=3"; ; {
		page := s.do(t, "GET", path, viewerKey, "").want(t, 200, "").json(t)
		for _, v := range page["steps"].([]any) {
			step := v.(map[string]any)
			steps[step["callId"].(string)] = step
			order = append(order, step["tool"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		path = k1 + "/steps?limit=3&after=" + next
	}
	if strings.Join(order, " ") != "write_file write_file portal_put portal_delete" {
		t.Errorf("steps %v", order)
	}
	if c := steps["c2"]; c["status"] != "refused" || c["code"] != "path_invalid" || c["kind"] != "workspace_write" || c["seq"] != 0.0 || c["state"] != "done" {
		t.Errorf("the refused step is %v", c)
	}
	own := s.do(t, "GET", k1+"/steps?turn="+turnID, viewerKey, "").want(t, 200, "").json(t)
	if list := own["steps"].([]any); len(list) != 2 {
		t.Errorf("%d steps of the turn, want 2", len(list))
	}
}
