package role_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/codeworker"
	"treeline/internal/devenv/devtest"
	"treeline/internal/fileworker"
	"treeline/internal/role"
	"treeline/internal/sandbox/local"
	"treeline/internal/store"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	devtest.Main(m)
}

const portalKey = "portal-key-of-tests"

// site is every role at work on a database and a queue of the test's own, with small limits, and a client of it.
type site struct {
	t    *testing.T
	url  string
	made atomic.Int64
}

func newSite(t *testing.T) *site {
	t.Helper()
	cfg := role.DefaultConfig()
	cfg.DatabaseURL, cfg.NATSURL, cfg.SweepEvery = devtest.Postgres(t, store.Migrate).URL, devtest.NATS(t).URL(), 100*time.Millisecond
	cfg.Grace = time.Second
	l := &cfg.Ledger.Limits
	l.WaitingCalls, l.WorkspaceBytes, l.HistoryBytes, l.InputBytes, l.SkillBytes = 3, 100_000, 20_000, 10_000, 1_000
	driver, err := role.OpenSandbox(role.SandboxConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan string, 1)
	var working sync.WaitGroup
	run := func(name string, fn func() error) {
		working.Go(func() {
			if err := fn(); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
				cancel()
			}
		})
	}
	run("dispatcher", func() error {
		return role.Dispatcher(ctx, cfg, role.DispatcherConfig{Listen: "127.0.0.1:0", PortalKey: portalKey, Ready: func(addr string) { ready <- addr }})
	})
	run("file worker", func() error { return role.FileWorker(ctx, cfg, fileworker.DefaultConfig()) })
	code := codeworker.DefaultConfig()
	code.Slots, code.Grace = 1, time.Second
	run("code worker", func() error { return role.CodeWorker(ctx, cfg, code, driver) })
	t.Cleanup(func() {
		cancel()
		working.Wait()
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case addr := <-ready:
		return &site{t: t, url: "http://" + addr}
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	t.Fatal("the roles are not ready")
	return nil
}

type object = map[string]any

// do sends a request, with a body of its own or one in JSON, and gives the status and the answer.
func (s *site) do(t *testing.T, method, path, token string, body any, headers ...string) (int, object) {
	t.Helper()
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequest(method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := object{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &answer); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, b)
		}
	}
	return resp.StatusCode, answer
}

// talk is one conversation with a turn.
type talk struct {
	*site
	t               *testing.T
	id, turn, token string
}

var everyTool = []string{"list_files", "read_file", "search_files", "write_file", "edit_file", "delete_file", "move_file", "run_code", "calculate",
	"save_artifact", "edit_artifact", "load_skill", "read_result"}

func (s *site) talk(t *testing.T, offered ...string) *talk {
	t.Helper()
	c := &talk{site: s, t: t, id: fmt.Sprintf("k%d", s.made.Add(1))}
	if len(offered) == 0 {
		offered = everyTool
	}
	c.portal(201, "PUT", "/v1/conversations/"+c.id, nil)
	opened := c.portal(201, "POST", "/v1/conversations/"+c.id+"/turns", object{"caller": object{"user": "ann", "department": "sales"}, "tools": offered,
		"knowledge": []string{"large-upload"}, "skills": []string{"large-skill"}})
	c.turn, c.token = opened["turnId"].(string), opened["token"].(string)
	return c
}

func (c *talk) portal(status int, method, path string, body any) object {
	c.t.Helper()
	got, answer := c.do(c.t, method, path, portalKey, body)
	if got != status {
		c.t.Fatalf("%s %s: %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

// put is a person's upload.
func (c *talk) put(path, content string) {
	c.t.Helper()
	if got, answer := c.do(c.t, "PUT", "/v1/conversations/"+c.id+"/files/"+path, portalKey, []byte(content)); got != 201 && got != 200 {
		c.t.Fatalf("put %s: %d %v", path, got, answer)
	}
}

// call gives the code and the text of a call's answer.
func (c *talk) call(tool string, arguments any, headers ...string) (string, string) {
	c.t.Helper()
	status, answer := c.do(c.t, "POST", "/v1/tools/"+tool, c.token, arguments, headers...)
	switch status {
	case 202:
		return "", ""
	case 200:
		var text string
		for _, block := range answer["content"].([]any) {
			text += block.(object)["text"].(string)
		}
		code := answer["code"].(string)
		if want := map[bool]string{true: "ok", false: "refused"}[code == ""]; answer["status"] != want || answer["isError"] != (code != "") {
			c.t.Errorf("%s is answered %v %v, isError %v", tool, answer["status"], code, answer["isError"])
		}
		return code, text
	}
	return problem(answer)
}

func problem(answer object) (string, string) {
	code, _ := answer["code"].(string)
	detail, _ := answer["detail"].(string)
	return code, detail
}

func (c *talk) ok(tool string, arguments any) {
	c.t.Helper()
	if code, text := c.call(tool, arguments); code != "" {
		c.t.Fatalf("%s: %s: %s", tool, code, text)
	}
}

func byText(find, replace string) object { return object{"find": find, "replace": replace} }

func byLine(start, end int, anchor, text string) object {
	return object{"startLine": start, "endLine": end, "anchor": anchor, "text": text}
}

func edit(path string, edits ...object) object { return object{"path": path, "edits": edits} }

// numbered is a text of n lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line number %d\n", i+1)
	}
	return b.String()
}

// refusals has a way to each code that HTTP can answer a call, or a person, with.
var refusals = []struct {
	code call.Code
	do   func(c *talk) (code, text string)
	// says are the facts that the text carries, hides what it must not.
	says, hides []string
}{
	{call.TurnUnknown, func(c *talk) (string, string) { c.token = "nobody"; return c.call("list_files", object{}) }, []string{"token"}, []string{"nobody"}},
	{call.TurnClosed, func(c *talk) (string, string) {
		c.portal(204, "POST", "/v1/turns/"+c.turn+"/close", object{})
		return c.call("list_files", object{})
	}, []string{"closed", "Nothing was done"}, nil},
	{call.ToolNotOffered, func(c *talk) (string, string) {
		c.token = c.talk(c.t, "list_files").token
		return c.call("write_file", object{"path": "a", "content": "x"})
	}, []string{"write_file"}, []string{"list_files", "exist"}},
	{call.ToolNotOffered, func(c *talk) (string, string) { return c.call("fax_file", object{}) }, []string{"fax_file"}, []string{"list_files", "exist"}},
	{call.ConversationDeleted, func(c *talk) (string, string) {
		c.portal(204, "DELETE", "/v1/conversations/"+c.id, nil)
		return c.call("list_files", object{})
	}, []string{"deleted"}, nil},
	{call.InvalidArguments, func(c *talk) (string, string) { return c.call("list_files", object{"path": 7}) }, []string{"path", "string", "number 7", "Example"}, nil},
	{call.InvalidArguments, func(c *talk) (string, string) { return c.call("list_files", object{"colour": "red"}) }, []string{"colour"}, nil},
	{call.TooLarge, func(c *talk) (string, string) {
		return c.call("write_file", object{"path": "a", "content": strings.Repeat("x", 1<<20)})
	}, []string{"run_code", "1048576"}, nil},
	{call.Busy, func(c *talk) (string, string) {
		c.call("run_code", object{"code": "import time; time.sleep(60)"}, "Prefer", "wait=0", "Idempotency-Key", "run")
		for range 3 {
			c.call("list_files", object{}, "Prefer", "wait=0")
		}
		defer c.call("list_files", object{}, "Prefer", "wait=0")
		defer c.do(c.t, "POST", "/v1/calls/run/cancel", c.token, nil)
		return c.call("list_files", object{}, "Prefer", "wait=0")
	}, []string{"3", "again"}, nil},
	{call.CallIDReused, func(c *talk) (string, string) {
		c.call("list_files", object{}, "Idempotency-Key", "same")
		return c.call("list_files", object{"path": "docs"}, "Idempotency-Key", "same")
	}, []string{"same", "list_files", "new id"}, nil},
	{call.PathInvalid, func(c *talk) (string, string) { return c.call("write_file", object{"path": "../a", "content": ""}) }, []string{`"../a"`, ".."}, nil},
	{call.PathInSandboxForm, func(c *talk) (string, string) { return c.call("read_file", object{"path": "workspace/deck.html"}) }, []string{"deck.html"}, nil},
	{call.PathClash, func(c *talk) (string, string) {
		c.ok("write_file", object{"path": "a", "content": "x"})
		return c.call("write_file", object{"path": "a/b", "content": "x"})
	}, []string{`"a/b"`, `"a"`}, nil},
	{call.PathLookalike, func(c *talk) (string, string) {
		c.ok("write_file", object{"path": "deck.html", "content": "x"})
		return c.call("write_file", object{"path": "Deck.html", "content": "x"})
	}, []string{"Deck.html", "deck.html"}, nil},
	{call.PathNotFound, func(c *talk) (string, string) {
		c.ok("write_file", object{"path": "deck.html", "content": "x"})
		return c.call("read_file", object{"path": "dekc.html"})
	}, []string{"dekc.html", "deck.html"}, nil},
	{call.PathIsFolder, func(c *talk) (string, string) {
		c.ok("write_file", object{"path": "docs/a.txt", "content": "x"})
		return c.call("delete_file", object{"path": "docs"})
	}, []string{"docs", "a.txt"}, nil},
	{call.NotText, func(c *talk) (string, string) {
		c.put("a.bin", "abc\xff")
		return c.call("edit_file", edit("a.bin", byText("a", "b")))
	}, []string{"offset 3", "0xFF", "run_code"}, nil},
	{call.ContentAndSource, func(c *talk) (string, string) {
		return c.call("write_file", object{"path": "a", "content": "x", "source": object{"toolResult": "r"}})
	}, []string{"content", "source"}, nil},
	{call.BatchMalformed, func(c *talk) (string, string) { return c.call("write_file", object{"files": "[{"}) }, []string{"path", "content"}, nil},
	{call.SourceNotFound, func(c *talk) (string, string) {
		return c.call("write_file", object{"path": "a", "source": object{"toolResult": "none"}})
	}, []string{"none"}, nil},
	{call.SourceNotText, func(c *talk) (string, string) {
		c.portal(201, "PUT", "/v1/conversations/"+c.id+"/results/r1", object{"toolName": "find", "isError": false, "output": object{"n": 1}})
		return c.call("write_file", object{"path": "a", "source": object{"toolResult": "r1", "pointer": "/n"}})
	}, []string{"r1", "/n"}, nil},
	{call.WholeFileReplacement, func(c *talk) (string, string) {
		c.put("long.txt", numbered(400))
		return c.call("write_file", object{"path": "long.txt", "content": "x"})
	}, []string{"long.txt", "edit_file", "400"}, nil},
	{call.TrimmedContent, func(c *talk) (string, string) {
		return c.call("write_file", object{"path": "a", "content": "x", "trimmed": true, "fullLength": 900})
	}, []string{"read", "edit"}, nil},
	{call.MixedEditKinds, func(c *talk) (string, string) {
		c.put("a", numbered(3))
		return c.call("edit_file", edit("a", byText("1", "2"), byLine(1, 1, "line number 1", "x")))
	}, []string{"find", "startLine"}, nil},
	{call.RangesOverlap, func(c *talk) (string, string) {
		c.put("a", numbered(9))
		return c.call("edit_file", edit("a", byLine(2, 4, "line number 2", "x"), byLine(4, 5, "line number 4", "y")))
	}, []string{"4"}, nil},
	{call.TextNotFound, func(c *talk) (string, string) {
		c.put("a", "alpha\nbeta\n")
		return c.call("edit_file", edit("a", byText("alpha\ngamma", "x")))
	}, []string{"1"}, nil},
	{call.TextNotUnique, func(c *talk) (string, string) {
		c.put("a", "same\nother\nsame\n")
		return c.call("edit_file", edit("a", byText("same", "x")))
	}, []string{"1", "3", "2"}, nil},
	{call.EmptyFind, func(c *talk) (string, string) {
		c.put("a", "x\n")
		return c.call("edit_file", edit("a", byText("", "x")))
	}, []string{"find"}, nil},
	{call.RangeOutOfFile, func(c *talk) (string, string) {
		c.put("a", numbered(17))
		return c.call("edit_file", edit("a", byLine(40, 41, "x", "y")))
	}, []string{"17", "40"}, nil},
	{call.AnchorMoved, func(c *talk) (string, string) {
		c.put("a", "one\ntwo\nthree\ntwo\n")
		return c.call("edit_file", edit("a", byLine(3, 3, "two", "y")))
	}, []string{"three", "2", "4"}, nil},
	{call.AnchorIsLastLine, func(c *talk) (string, string) {
		c.put("a", "one\ntwo\nthree\n")
		return c.call("edit_file", edit("a", byLine(1, 2, "two", "y")))
	}, []string{"line 2", "line 1", "\tone"}, nil},
	{call.RepeatsNextLine, func(c *talk) (string, string) {
		c.put("a", "one\ntwo\nthree\n")
		return c.call("edit_file", edit("a", byLine(1, 1, "one", "uno\ntwo")))
	}, []string{"two", "endLine"}, nil},
	{call.NoChange, func(c *talk) (string, string) {
		c.put("a", "one\n")
		return c.call("write_file", object{"path": "a", "content": "one\n"})
	}, []string{"a"}, nil},
	{call.ReadFirst, func(c *talk) (string, string) {
		c.put("long.txt", numbered(400))
		return c.call("edit_file", edit("long.txt", byLine(1, 400, "line number 1", "x")))
	}, []string{"read_file", "long.txt"}, nil},
	{call.DeleteAfterRefusedWrite, func(c *talk) (string, string) {
		c.put("long.txt", numbered(400))
		c.call("write_file", object{"path": "long.txt", "content": "x"})
		return c.call("delete_file", object{"path": "long.txt"})
	}, []string{"long.txt", "edit_file"}, nil},
	{call.WorkspaceFull, func(c *talk) (string, string) {
		c.put("a", strings.Repeat("x", 90_000))
		return c.call("write_file", object{"path": "b", "content": strings.Repeat("y", 20_000)})
	}, []string{"100000", "90000", "110000"}, nil},
	{call.InputNotFound, func(c *talk) (string, string) {
		return c.call("run_code", object{"code": "1", "files": []object{{"id": "nothing"}}})
	}, []string{"nothing"}, nil},
	{call.InputNotFound, func(c *talk) (string, string) { return c.call("read_result", object{"resultRef": "nothing"}) }, []string{"nothing"}, nil},
	{call.InputsTooLarge, func(c *talk) (string, string) {
		c.do(c.t, "PUT", "/v1/uploads/large-upload?name=a.csv", portalKey, bytes.Repeat([]byte("x"), 20_000))
		return c.call("run_code", object{"code": "1", "files": []object{{"id": "large-upload"}}})
	}, []string{"20000", "10000"}, nil},
	{call.SkillTooLarge, func(c *talk) (string, string) {
		c.do(c.t, "PUT", "/v1/skills/large-skill", portalKey, archive(c.t))
		return c.call("run_code", object{"code": "1", "skills": []string{"large-skill"}})
	}, []string{"large-skill", "1000"}, nil},
	{call.ArtifactReadOnly, func(c *talk) (string, string) {
		c.do(c.t, "PUT", "/v1/artifacts/theirs?kind=text&title=T&owner=bob&department=hr", portalKey, []byte("text"))
		c.do(c.t, "PUT", "/v1/artifacts/theirs/shares", portalKey, []object{{"user": "ann", "right": "read"}})
		return c.call("edit_artifact", object{"artifactId": "theirs", "find": "text", "replace": "x"})
	}, []string{"theirs"}, []string{"bob", "hr"}},
	{call.ArtifactNotText, func(c *talk) (string, string) {
		c.do(c.t, "PUT", "/v1/artifacts/file?kind=file&title=T&owner=ann&department=sales", portalKey, []byte("PK\x03\x04"))
		return c.call("edit_artifact", object{"artifactId": "file", "find": "P", "replace": "x"})
	}, []string{"run_code", "save_artifact"}, nil},
	{call.HistoryGone, func(c *talk) (string, string) {
		for i := range 4 {
			c.put("a", strings.Repeat(fmt.Sprint(i), 15_000))
		}
		revert := func() (string, string) {
			_, answer := c.do(c.t, "POST", "/v1/conversations/"+c.id+"/revert", portalKey, object{"beforeSeq": 2})
			return problem(answer)
		}
		code, text := revert()
		for deadline := time.Now().Add(30 * time.Second); code != string(call.HistoryGone) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			code, text = revert()
		}
		return code, text
	}, []string{"2"}, nil},
}

// archive is a skill that is larger than runs mount.
func archive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range map[string]string{"SKILL.md": "# How", "data.txt": strings.Repeat("0123456789", 200)} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEveryRefusalIsReachedAndSaysWhatItMust(t *testing.T) {
	s := newSite(t)
	reached := map[string]bool{}
	for _, r := range refusals {
		reached[string(r.code)] = true
		t.Run(string(r.code), func(t *testing.T) {
			code, text := r.do(s.talk(t))
			if code != string(r.code) {
				t.Fatalf("answered %q: %s", code, text)
			}
			for _, fact := range r.says {
				if !strings.Contains(text, fact) {
					t.Errorf("does not say %q: %s", fact, text)
				}
			}
			for _, secret := range r.hides {
				if strings.Contains(text, secret) {
					t.Errorf("tells %q: %s", secret, text)
				}
			}
			if len(text) > 2_000 {
				t.Errorf("is %d bytes long", len(text))
			}
		})
	}
	for _, code := range slices.Sorted(maps.Keys(listed(t))) {
		if !reached[code] {
			t.Errorf("no row reaches %s", code)
		}
	}
}

// listed are the codes of refusals, as internal/call has them: those of its first list.
func listed(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../call/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, decl := range file.Decls {
		list, ok := decl.(*ast.GenDecl)
		if !ok || list.Tok != token.CONST {
			continue
		}
		for _, spec := range list.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				codes[strings.Trim(value.(*ast.BasicLit).Value, `"`)] = true
			}
		}
		break
	}
	if len(codes) < 40 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	return codes
}
