package fileworker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

type args = map[string]any

// dataOf reads a result's data.
func dataOf[T any](t *testing.T, r call.Result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.Data, &v); err != nil {
		t.Fatalf("data %s: %v", r.Data, err)
	}
	return v
}

func (b *bench) refused(code call.Code, tool string, arguments any) call.Result {
	b.t.Helper()
	r := b.call(tool, arguments)
	if r.Status != call.Refused || r.Code != code || !r.Changes.Empty() {
		b.t.Errorf("%s: %s %s: %s; want it refused as %s", tool, r.Status, r.Code, call.TextOf(r.Content), code)
	}
	return r
}

func TestWriteReadSearchEditMoveDelete(t *testing.T) {
	b := newBench(t)
	r := b.ok("write_file", args{"files": []args{{"path": "a.txt", "content": "one\ntwo\n"}, {"path": "docs/b.txt", "content": "two\nthree"}}})
	expectChanges(t, r.Changes, []string{"a.txt", "docs/b.txt"}, nil, nil)
	if d := dataOf[changeData](t, r); d.Revisions["a.txt"] != r.Seq || d.Revisions["docs/b.txt"] != r.Seq || !strings.Contains(d.Diff, "+one") {
		t.Errorf("data %+v", d)
	}
	r = b.ok("read_file", args{"path": "a.txt", "startLine": 2})
	if got := call.TextOf(r.Content); !strings.Contains(got, "2\ttwo") || strings.Contains(got, "one") {
		t.Errorf("read %q", got)
	}
	r = b.ok("search_files", args{"queries": []string{"two"}})
	found := dataOf[struct {
		Matches []struct {
			Path         string
			Line, Column int
		}
	}](t, r).Matches
	if len(found) != 2 || found[0].Path != "a.txt" || found[0].Line != 2 || found[1].Path != "docs/b.txt" || found[1].Line != 1 {
		t.Errorf("found %+v", found)
	}
	r = b.ok("edit_file", args{"path": "a.txt", "edits": []args{{"find": "one", "replace": "1"}}})
	expectChanges(t, r.Changes, nil, []string{"a.txt"}, nil)
	r = b.ok("move_file", args{"from": "a.txt", "to": "docs/c.txt"})
	expectChanges(t, r.Changes, []string{"docs/c.txt"}, nil, []string{"a.txt"})
	if d := dataOf[changeData](t, r); len(d.Revisions) != 1 || d.Revisions["docs/c.txt"] != r.Seq {
		t.Errorf("data %+v", d)
	}
	b.refused(call.PathClash, "move_file", args{"from": "docs/b.txt", "to": "docs/c.txt"})
	b.refused(call.NoChange, "move_file", args{"from": "docs/b.txt", "to": "docs/b.txt"})
	b.refused(call.PathNotFound, "move_file", args{"from": "a.txt", "to": "x"})
	r = b.ok("move_file", args{"from": "docs/c.txt", "to": "docs/C.txt"}) // by case alone
	expectChanges(t, r.Changes, []string{"docs/C.txt"}, nil, []string{"docs/c.txt"})
	b.expectTree(map[string]string{"docs/C.txt": "1\ntwo\n", "docs/b.txt": "two\nthree"})
	r = b.ok("delete_file", args{"paths": []string{"docs/b.txt", "docs/C.txt"}})
	expectChanges(t, r.Changes, nil, nil, []string{"docs/C.txt", "docs/b.txt"})
	b.expectTree(map[string]string{})
	conv, err := b.Ledger.Conversation(t.Context(), "k1")
	if err != nil || conv.Bytes != 0 || conv.Files != 0 || conv.Open != 0 {
		t.Errorf("the conversation counts %d bytes, %d files, %d open; %v", conv.Bytes, conv.Files, conv.Open, err)
	}
}

func TestABatchIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	b.write("a", "old")
	b.refused(call.PathClash, "write_file", args{"files": []args{{"path": "new", "content": "x"}, {"path": "a/b", "content": "x"}}})
	b.refused(call.PathNotFound, "delete_file", args{"paths": []string{"a", "none"}})
	b.refused(call.SourceNotFound, "write_file", args{"files": []args{{"path": "new", "content": "x"}, {"path": "c", "source": args{"toolResult": "none"}}}})
	b.expectTree(map[string]string{"a": "old"})
}

func TestWritingFromStoredResults(t *testing.T) {
	b := newBench(t)
	for ref, output := range map[string]string{
		"text": `"line 1\nline 2"`, "fields": `{"body":"the body","a/b":{"~":["zero","one"]},"n":1,"nothing":null,"empty":""}`, "list": `["first"]`, "number": `7`,
	} {
		if _, err := b.Ledger.Queries().PutResult(t.Context(), db.PutResultParams{ConversationID: "k1", Ref: ref, ToolName: "find", Output: []byte(output)}); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("many words ", 2_000)
	b.run("x", "src.txt", long)
	own := b.ok("list_files", args{})
	for i, c := range []struct {
		source args
		want   string
		code   call.Code
	}{
		{args{"toolResult": "text"}, "line 1\nline 2", ""},
		{args{"toolResult": "text", "pointer": ""}, "line 1\nline 2", ""},
		{args{"toolResult": "fields", "pointer": "/body"}, "the body", ""},
		{args{"toolResult": "fields", "pointer": "/a~1b/~0/1"}, "one", ""},
		{args{"toolResult": "fields", "pointer": "/empty"}, "", ""},
		{args{"toolResult": "list", "pointer": "/0"}, "first", ""},
		{args{"toolResult": own.ResultRef}, call.TextOf(own.Content), ""},
		{args{"toolResult": own.ResultRef, "pointer": "/text"}, call.TextOf(own.Content), ""},
		{args{"toolResult": "none"}, "", call.SourceNotFound},
		{args{"toolResult": "tl-none"}, "", call.SourceNotFound},
		{args{"toolResult": "fields", "pointer": "/none"}, "", call.SourceNotFound},
		{args{"toolResult": "list", "pointer": "/1"}, "", call.SourceNotFound},
		{args{"toolResult": "list", "pointer": "/00"}, "", call.SourceNotFound},
		{args{"toolResult": "fields"}, "", call.SourceNotText},
		{args{"toolResult": "number"}, "", call.SourceNotText},
		{args{"toolResult": "fields", "pointer": "/n"}, "", call.SourceNotText},
		{args{"toolResult": "fields", "pointer": "/nothing"}, "", call.SourceNotText},
	} {
		path := fmt.Sprintf("out%d", i)
		r := b.call("write_file", args{"path": path, "source": c.source})
		if r.Code != c.code {
			t.Errorf("%v: %q: %s, want %q", c.source, r.Code, call.TextOf(r.Content), c.code)
			continue
		}
		if got, there := b.tree()[path]; there != (c.code == "") || got != c.want {
			t.Errorf("%v: wrote %q, want %q", c.source, got, c.want)
		}
	}
	// Results of another conversation are not there.
	if _, err := b.Ledger.Queries().PutResult(t.Context(), db.PutResultParams{ConversationID: b.open("k2", "t2", turn.Caller{}).Conversation, Ref: "theirs",
		ToolName: "find", Output: []byte(`"x"`)}); err != nil {
		t.Fatal(err)
	}
	b.refused(call.SourceNotFound, "write_file", args{"path": "x", "source": args{"toolResult": "theirs"}})
}

// stage puts bytes where a person's upload waits.
func (b *bench) stage(content []byte) args {
	b.t.Helper()
	up, err := store.NewPortal(b.Ledger.Queries()).Stage(b.t.Context(), bytes.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return args{"path": "a", "staged": up.ID, "bytes": len(content), "sha256": hex.EncodeToString(sum[:])}
}

func (b *bench) stagedPieces() (n int) {
	b.t.Helper()
	if err := b.db.Pool.QueryRow(b.t.Context(), `SELECT count(*) FROM staged`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func TestAPersonUploadsAndDeletes(t *testing.T) {
	b := newBench(t)
	for _, content := range [][]byte{{}, []byte("text\n"), bytes.Repeat([]byte{0, 1, 2, 3}, 700_000), []byte("text again\n")} {
		r := b.ok("portal_put", b.stage(content))
		if d := dataOf[changeData](t, r); d.Revisions["a"] != r.Seq {
			t.Errorf("data %+v", d)
		}
		b.expectTree(map[string]string{"a": string(content)})
		if n := b.stagedPieces(); n != 0 {
			t.Errorf("%d pieces are still staged", n)
		}
	}
	r := b.ok("portal_delete", args{"path": "a"})
	expectChanges(t, r.Changes, nil, nil, []string{"a"})
	b.refused(call.PathNotFound, "portal_delete", args{"path": "a"})
	b.write("dir/file", "x")
	b.refused(call.PathClash, "portal_put", func() args { a := b.stage([]byte("x")); a["path"] = "dir"; return a }())
	b.refused(call.PathLookalike, "portal_put", func() args { a := b.stage([]byte("x")); a["path"] = "DIR/file"; return a }())
}

func TestAnUploadWhoseBytesAreGoneOrOthersFails(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(a args){
		"bytes that are gone": func(a args) { a["staged"] = "gone" },
		"another size":        func(a args) { a["bytes"] = 3 },
		"another hash":        func(a args) { a["sha256"] = strings.Repeat("0", 64) },
	} {
		a := b.stage([]byte("text"))
		change(a)
		if r := b.call("portal_put", a); r.Status != call.Failed || r.Code != call.Internal {
			t.Errorf("%s: %s %s", name, r.Status, r.Code)
		}
	}
	b.expectTree(map[string]string{})
}

func gray(t *testing.T, width, height int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPicturesAreShownToWhoCanSee(t *testing.T) {
	b := newBench(t)
	b.run("x", "small.txt", gray(t, 20, 10)) // by bytes, not by name
	b.run("x", "large.png", gray(t, 3000, 100))
	b.run("x", "broken.png", gray(t, 20, 10)[:40])
	sighted := turn.Turn{ID: "seeing", Conversation: "k1", Vision: true}
	_, hash := turn.NewToken()
	if err := b.Ledger.OpenTurn(t.Context(), sighted, hash); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path                 string
		width, height, shown int
	}{{"small.txt", 20, 10, 20}, {"large.png", 3000, 100, 1568}, {"broken.png", 0, 0, 0}} {
		for _, vision := range []bool{true, false} {
			who := b.turn
			if vision {
				who = sighted
			}
			r := b.callAs(who, "read_file", args{"path": c.path})
			i := slices.IndexFunc(r.Content, func(c call.Content) bool { return c.Type == "image" })
			if (i >= 0) != (vision && c.shown > 0) {
				t.Errorf("%s, vision %v: block %d is a picture", c.path, vision, i)
			}
			if i >= 0 {
				cfg, _, err := image.DecodeConfig(bytes.NewReader(r.Content[i].Data))
				if err != nil || cfg.Width != c.shown || r.Content[i].MIMEType != "image/png" {
					t.Errorf("%s is shown %d wide as %s, %v", c.path, cfg.Width, r.Content[i].MIMEType, err)
				}
			}
			d := dataOf[struct {
				Files []struct {
					MimeType      string
					Width, Height int
					Bytes         int64
				}
			}](t, r)
			if r.Status != call.OK || len(d.Files) != 1 || c.shown > 0 && (d.Files[0].Width != c.width || d.Files[0].Height != c.height || d.Files[0].MimeType != "image/png") {
				t.Errorf("%s, vision %v: %s %+v", c.path, vision, r.Status, d)
			}
			if text := call.TextOf(r.Content); !strings.Contains(text, "picture") {
				t.Errorf("%s, vision %v: %q", c.path, vision, text)
			}
		}
	}
}

func TestATreeOfAsManyFilesAsMayBe(t *testing.T) {
	b := newBench(t)
	b.calls++
	raw := []byte(`{"code":"x"}`)
	id := fmt.Sprintf("c%d", b.calls)
	if _, err := b.Ledger.Accept(t.Context(), b.turn, []ledger.NewCall{{ID: id, Tool: "run_code", Kind: "code", Lane: "code", Arguments: raw}}); err != nil {
		t.Fatal(err)
	}
	w, _, err := b.Ledger.Look(t.Context(), ledger.Event{Conversation: "k1", Turn: "t1", Call: id}, true)
	if err != nil {
		t.Fatal(err)
	}
	j, o := &job{Work: w, tree: w.Tree}, ok("ran", nil)
	for i := range 2000 {
		o.Changes = append(o.Changes, b.change(j, fmt.Sprintf("d%02d/f%04d.txt", i/100, i), []byte(fmt.Sprintf("file %d\n", i))))
	}
	b.finish(w, o)
	began := time.Now()
	r := b.ok("list_files", args{})
	d := dataOf[struct {
		Files      []struct{ Path string }
		TotalFiles int
		TotalBytes int64
	}](t, r)
	if len(d.Files) != 1000 || d.TotalFiles != 2000 || d.TotalBytes != 2000*10-1110 || d.Files[0].Path != "d00/f0000.txt" || d.Files[999].Path != "d09/f0999.txt" {
		t.Errorf("%d files are named of %d with %d bytes", len(d.Files), d.TotalFiles, d.TotalBytes)
	}
	r = b.ok("search_files", args{"queries": []string{"file 1999"}})
	s := dataOf[struct {
		Searched int
		Matches  []struct{ Path string }
	}](t, r)
	if s.Searched != 2000 || len(s.Matches) != 1 || s.Matches[0].Path != "d19/f1999.txt" {
		t.Errorf("searched %d, found %v", s.Searched, s.Matches)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	b.refused(call.WorkspaceFull, "write_file", args{"path": "one-more", "content": ""})
	b.ok("write_file", args{"path": "d00/f0000.txt", "content": "replaced"})
	b.ok("delete_file", args{"path": "d00/f0001.txt"})
	b.ok("write_file", args{"path": "one-more", "content": ""})
}
