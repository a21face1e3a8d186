package httpapi_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"treeline/internal/artifact"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/dispatch/httpapi"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// newLibrary is a site that keeps uploads, skills, results and artifacts.
func newLibrary(t *testing.T) *site {
	t.Helper()
	f := dispatchtest.New(t)
	f.Work(t)
	return serve(t, f, func(c *httpapi.Config) { c.Stores = httpapi.NewStores(f.Pool, workspace.DefaultLimits()) })
}

// count gives how many rows a table has.
func (s *site) count(t *testing.T, table string) int {
	t.Helper()
	var n int
	if err := s.Pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func zipped(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUploadsAndPassages(t *testing.T) {
	s := newLibrary(t)
	r := s.do(t, "PUT", "/v1/uploads/up-1?collection=col%201&name=a%2Fb.csv", portalKey, "n\n1\n").want(t, 201, "").json(t)
	if r["id"] != "up-1" || r["collection"] != "col 1" || r["name"] != "a/b.csv" || r["bytes"] != 4.0 {
		t.Errorf("put %v", r)
	}
	s.do(t, "PUT", "/v1/uploads/up-1?collection=c&name=a.csv", portalKey, "n\n2\n").want(t, 200, "")
	s.do(t, "PUT", "/v1/uploads/up-2", portalKey, "").want(t, 201, "")
	if r := s.do(t, "PUT", "/v1/uploads/up-1/passages", portalKey, `[{"text":"a"},{"text":"b","page":2}]`).want(t, 200, "").json(t); r["passages"] != 2.0 {
		t.Errorf("put %v", r)
	}
	before := s.count(t, "contents WHERE due_at IS NULL")
	for _, body := range []string{`{"text":"a"}`, `["a"]`, `[{"page":1}]`, `[{"text":1}]`, ``, `null`, `[{"text":"a"}`, "\xff"} {
		s.do(t, "PUT", "/v1/uploads/up-1/passages", portalKey, body).want(t, 422, "invalid_arguments")
	}
	s.do(t, "PUT", "/v1/uploads/none/passages", portalKey, `[]`).want(t, 404, "not_found")
	s.do(t, "PUT", "/v1/uploads/up-3?name=a%00b", portalKey, "x").want(t, 422, "invalid_arguments")
	s.do(t, "PUT", "/v1/uploads/up-3?collection=%zz", portalKey, "x").want(t, 422, "invalid_arguments")
	s.do(t, "PUT", "/v1/uploads/up.3", portalKey, "x").want(t, 422, "invalid_arguments")
	s.do(t, "PUT", "/v1/uploads/up-3", viewerKey, "x").want(t, 403, "read_only")
	if n := s.count(t, "uploads"); n != 2 {
		t.Errorf("%d uploads, want 2", n)
	}
	if after := s.count(t, "contents WHERE due_at IS NULL"); after != before {
		t.Errorf("%d contents in use after what was refused, %d before", after, before)
	}
}

func TestALargeUploadPassesThrough(t *testing.T) {
	s := newLibrary(t)
	const size = 20 << 20
	r, err := http.NewRequest("PUT", s.url+"/v1/uploads/big?collection=c&name=big.bin", io.LimitReader(pattern{}, size))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+portalKey)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 201 || !strings.Contains(string(body), fmt.Sprintf(`"bytes":%d`, size)) {
		t.Errorf("%d %s, error %v", resp.StatusCode, body, err)
	}
	if n := s.count(t, "content_pieces"); n != 20 {
		t.Errorf("%d pieces, want 20", n)
	}
}

type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

func TestSkills(t *testing.T) {
	s := newLibrary(t)
	good := zipped(t, "SKILL.md", "# S", "scripts/x.py", "print(1)")
	r := s.do(t, "PUT", "/v1/skills/sk", portalKey, good).want(t, 201, "").json(t)
	if fmt.Sprint(r) != "map[bytes:11 files:[map[bytes:3 path:SKILL.md] map[bytes:8 path:scripts/x.py]] mountable:true name:sk]" {
		t.Errorf("put %v", r)
	}
	s.do(t, "PUT", "/v1/skills/sk", portalKey, good).want(t, 200, "")
	var tiny []string
	for i := range 10_000 {
		tiny = append(tiny, fmt.Sprintf("f%d", i), "")
	}
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no zip":                 {"SKILL.md", 422, "invalid_arguments"},
		"nothing":                {"", 422, "invalid_arguments"},
		"no SKILL.md":            {zipped(t, "README.md", "x"), 422, "invalid_arguments"},
		"traversal":              {zipped(t, "SKILL.md", "x", "../../x", "x"), 422, "invalid_arguments"},
		"case-colliding":         {zipped(t, "SKILL.md", "x", "skill.md", "x"), 422, "invalid_arguments"},
		"twice":                  {zipped(t, "SKILL.md", "x", "SKILL.md", "y"), 422, "invalid_arguments"},
		"a bomb":                 {zipped(t, "SKILL.md", "x", "zeros", strings.Repeat("\x00", 40<<20)), 413, "skill_too_large"},
		"ten thousand entries":   {zipped(t, append(tiny, "SKILL.md", "x")...), 413, "skill_too_large"},
		"a body that is too big": {strings.Repeat("x", 37<<20), 413, "skill_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, "PUT", "/v1/skills/other", portalKey, c.body).want(t, c.status, c.code)
		})
	}
	if skills, files := s.count(t, "skills"), s.count(t, "skill_files"); skills != 1 || files != 2 {
		t.Errorf("%d skills with %d files, want 1 with 2", skills, files)
	}
	s.do(t, "PUT", "/v1/skills/a.b", portalKey, good).want(t, 422, "invalid_arguments")
}

func TestStoredResults(t *testing.T) {
	s := newLibrary(t)
	s.do(t, "PUT", "/v1/conversations/k1", portalKey, "").want(t, 201, "")
	put := func(ref, body string) reply {
		return s.do(t, "PUT", "/v1/conversations/k1/results/"+ref, portalKey, body)
	}
	put("r-a", `{"toolName":"fetch","isError":false,"output":{"n":1, "s":"<\u0000>"}}`).want(t, 201, "")
	put("r-a", `{"output":{"s":"<\u0000>","n":1.0},"toolName":"fetch","isError":false}`).want(t, 200, "")
	put("r-a", `{"toolName":"fetch","isError":true,"output":{"n":1, "s":"<\u0000>"}}`).want(t, 409, "result_exists")
	put("r-a", `{"toolName":"fetch","isError":false,"output":{"n":2}}`).want(t, 409, "result_exists")
	put("r-null", `{"toolName":"fetch","isError":false,"output":null}`).want(t, 201, "")
	got, there, err := store.Result(context.Background(), db.New(s.Pool), "k1", "r-a")
	if err != nil || !there || string(got.Output) != `{"n":1, "s":"<\u0000>"}` || got.ToolName != "fetch" {
		t.Errorf("kept %s, error %v", got.Output, err)
	}
	for _, body := range []string{``, `[]`, `{"toolName":"a","isError":false}`, `{"toolName":1,"isError":false,"output":1}`,
		`{"toolName":"a\u0000","isError":false,"output":1}`, `{"toolName":"a","isError":false,"output":1,"more":1}`,
		`{"toolName":"a","toolName":"b","isError":false,"output":1}`, `{"toolName":"a","isError":false,"output":"` + "\xff" + `"}`} {
		put("r-bad", body).want(t, 422, "invalid_arguments")
	}
	put("tl-mine", `{"toolName":"a","isError":false,"output":1}`).want(t, 422, "invalid_arguments")
	put("r.b", `{"toolName":"a","isError":false,"output":1}`).want(t, 422, "invalid_arguments")
	put("r-big", `{"toolName":"a","isError":false,"output":"`+strings.Repeat("x", 16<<20)+`"}`).want(t, 413, "too_large")
	put("r-fits", `{"toolName":"a","isError":false,"output":"`+strings.Repeat("x", 5<<20)+`"}`).want(t, 201, "")
	s.do(t, "PUT", "/v1/conversations/none/results/r", portalKey, `{"toolName":"a","isError":false,"output":1}`).want(t, 404, "not_found")
	if n := s.count(t, "results"); n != 3 {
		t.Errorf("%d results, want 3", n)
	}
	s.do(t, "DELETE", "/v1/conversations/k1", portalKey, "").want(t, 204, "")
	put("r-late", `{"toolName":"a","isError":false,"output":1}`).want(t, 409, "conversation_deleted")
	if n := s.count(t, "results"); n != 0 {
		t.Errorf("%d results of a deleted conversation", n)
	}
}

func TestArtifactsOverHTTP(t *testing.T) {
	s := newLibrary(t)
	put := func(id, query, body string) reply {
		return s.do(t, "PUT", "/v1/artifacts/"+id+"?"+query, portalKey, body)
	}
	r := put("ar-1", "kind=document&title=My%20plan&owner=u1&department=d1", "# Plan").want(t, 201, "").json(t)
	if r["version"] != 1.0 || r["kind"] != "document" || r["title"] != "My plan" || r["bytes"] != 6.0 || r["artifactId"] != "ar-1" {
		t.Errorf("put %v", r)
	}
	put("ar-1", "kind=document&title=My%20plan&owner=u1&department=d1", "# Plan").want(t, 200, "") // sent again: no new version
	if r := put("ar-1", "owner=u1", "# Plan 2").want(t, 200, "").json(t); r["version"] != 2.0 || r["title"] != "My plan" || r["kind"] != "document" {
		t.Errorf("put %v", r)
	}
	put("ar-1", "kind=document&owner=u2&department=d1", "# Theirs").want(t, 409, "owner_fixed")
	for _, query := range []string{"", "kind=document&owner=u1", "kind=document&department=d1", "owner=u1&department=d1", "kind=picture&owner=u1&department=d1",
		"kind=file&owner=u1&department=d1&title=a%0Ab", "kind=file&owner=%00&department=d1", "kind=%zz"} {
		put("ar-bad", query, "x").want(t, 422, "invalid_arguments")
	}
	put("ar-bad", "kind=text&owner=u1&department=d1", "\xff").want(t, 422, "invalid_arguments")
	put("ar-bad", "kind=text&owner=u1&department=d1", strings.Repeat("é", 700_000)+"\x00").want(t, 422, "invalid_arguments")
	put("ar-text", "kind=text&owner=u1&department=d1", "x"+strings.Repeat("é", 1_200_000)).want(t, 201, "")
	put("ar-f", "kind=file&title=x.xlsx&owner=u1&department=d1", "PK\x03\x04").want(t, 201, "")

	got := s.do(t, "GET", "/v1/artifacts/ar-1", viewerKey, "").want(t, 200, "")
	if string(got.body) != "# Plan 2" || got.Header.Get("Content-Disposition") != `attachment; filename="My plan.md"` || got.Header.Get("Content-Type") != "text/markdown" ||
		got.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "sandbox") || got.Header.Get("Treeline-Version") != "2" {
		t.Errorf("%q with %v", got.body, got.Header)
	}
	if got := s.do(t, "GET", "/v1/artifacts/ar-1?version=1", portalKey, "").want(t, 200, ""); string(got.body) != "# Plan" {
		t.Errorf("%q", got.body)
	}
	if got := s.do(t, "GET", "/v1/artifacts/ar-f", portalKey, "", "Range: bytes=2-3").want(t, 206, ""); string(got.body) != "\x03\x04" ||
		got.Header.Get("Content-Disposition") != `attachment; filename="x.xlsx"` {
		t.Errorf("%q with %v", got.body, got.Header)
	}
	s.do(t, "HEAD", "/v1/artifacts/ar-text", portalKey, "").want(t, 200, "")
	for _, version := range []string{"0", "-1", "x", "", "99999999999"} {
		s.do(t, "GET", "/v1/artifacts/ar-1?version="+version, portalKey, "").want(t, 422, "invalid_arguments")
	}
	s.do(t, "GET", "/v1/artifacts/ar-1?version=3", portalKey, "").want(t, 404, "not_found")
	s.do(t, "GET", "/v1/artifacts/none", portalKey, "").want(t, 404, "not_found")
	if artifacts, versions, contents := s.count(t, "artifacts"), s.count(t, "artifact_versions"), s.count(t, "contents"); artifacts != 3 || versions != 4 || contents != 4 {
		t.Errorf("%d artifacts in %d versions with %d contents, want 3, 4 and 4", artifacts, versions, contents)
	}
}

func TestShares(t *testing.T) {
	s := newLibrary(t)
	s.do(t, "PUT", "/v1/artifacts/ar-1?kind=text&owner=u1&department=d1", portalKey, "x").want(t, 201, "")
	put := func(body string) reply { return s.do(t, "PUT", "/v1/artifacts/ar-1/shares", portalKey, body) }
	put(`[{"user":"u2","right":"read"},{"department":"d2","right":"change"},{"department":"u2","right":"read"}]`).want(t, 200, "")
	for _, body := range []string{`[{"right":"read"}]`, `[{"user":"","right":"read"}]`, `[{"user":"","department":"","right":"read"}]`, `[{"user":"u3"}]`,
		`[{"user":"u3","right":"write"}]`, `[{"user":"u3","department":"d3","right":"read"}]`, `[{"user":"u3","right":"read"},{"user":"u3","right":"change"}]`,
		`[{"user":"u3","right":"read","until":"x"}]`, `{"user":"u3","right":"read"}`, `[{"user":"a\u0000b","right":"read"}]`, `[null]`, ``, `null`} {
		put(body).want(t, 422, "invalid_arguments")
		if n := s.count(t, "artifact_shares"); n != 3 {
			t.Fatalf("%s: %d shares, want the 3 that were there", body, n)
		}
	}
	s.do(t, "PUT", "/v1/artifacts/none/shares", portalKey, `[]`).want(t, 404, "not_found")
	put(`[]`).want(t, 200, "")
	if n := s.count(t, "artifact_shares"); n != 0 {
		t.Errorf("%d shares are left", n)
	}
}

func TestTheSourceOfAnArtifact(t *testing.T) {
	s := newLibrary(t)
	_, token := s.Turn(t, "k1", "write_file", "save_artifact")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"in/a.csv","content":"1\n"}`).want(t, 200, "")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"r.md","content":"# R"}`, "Idempotency-Key: made").want(t, 200, "")
	r := s.do(t, "POST", "/v1/tools/save_artifact", token, `{"path":"r.md","sources":["in/a.csv"]}`).want(t, 200, "").json(t)
	data, _ := r["data"].(map[string]any)
	if r["status"] != "ok" || data["version"] != 1.0 || data["kind"] != string(artifact.Document) {
		t.Fatalf("saved %v", r)
	}
	body := s.do(t, "GET", fmt.Sprintf("/v1/artifacts/%s/source", data["artifactId"]), portalKey, "").want(t, 200, "").body
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(content)
	}
	if len(got) != 2 || got["files/in/a.csv"] != "1\n" || !strings.Contains(got["source.json"], `"callId": "made"`) {
		t.Errorf("the source is %q", got)
	}
}

func TestRevertOverHTTP(t *testing.T) {
	s := newLibrary(t)
	_, token := s.Turn(t, "k1", "write_file")
	for _, content := range []string{"1", "2"} {
		s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"a","content":"`+content+`"}`).want(t, 200, "")
	}
	revert := func(body string) reply {
		return s.do(t, "POST", "/v1/conversations/k1/revert", portalKey, body, "Treeline-Actor: ann")
	}
	if r := revert(`{"beforeSeq":2}`).want(t, 200, "").json(t); r["seq"] != 3.0 {
		t.Errorf("answered %v", r)
	}
	file := func() string {
		return string(s.do(t, "GET", "/v1/conversations/k1/files/a", portalKey, "").want(t, 200, "").body)
	}
	if got := file(); got != "1" {
		t.Errorf("the file is %q", got)
	}
	revert(`{"beforeSeq":3,"path":"a"}`).want(t, 200, "")
	if got := file(); got != "2" {
		t.Errorf("the file is %q", got)
	}
	for _, body := range []string{`{}`, `{"beforeSeq":0}`, `{"beforeSeq":-1}`, `{"beforeSeq":1.5}`, `{"beforeSeq":"1"}`, `{"beforeSeq":100}`, `{"beforeSeq":1e30}`, `[]`} {
		revert(body).want(t, 422, "invalid_arguments")
	}
	revert(`{"beforeSeq":1,"path":"none"}`).want(t, 404, "path_not_found")
	revert(`{"beforeSeq":1,"path":"../a"}`).want(t, 422, "path_invalid")
	changes := s.do(t, "GET", "/v1/conversations/k1/changes", portalKey, "").want(t, 200, "").json(t)
	list, _ := changes["changes"].([]any)
	if len(list) != 4 || !strings.Contains(fmt.Sprint(list[2]), "actor:ann") || !strings.Contains(fmt.Sprint(list[2]), "tool:portal_revert") {
		t.Errorf("changes %v", list)
	}
	s.do(t, "DELETE", "/v1/conversations/k1", portalKey, "").want(t, 204, "")
	s.do(t, "POST", "/v1/conversations/k1/restore", portalKey, "").want(t, 200, "")
	revert(`{"beforeSeq":1}`).want(t, 409, "history_gone")
}
