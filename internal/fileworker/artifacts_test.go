package fileworker

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/turn"
)

func (b *bench) saved(r call.Result) savedData {
	b.t.Helper()
	if r.Status != call.OK {
		b.t.Fatalf("%s: %s: %s", r.Tool, r.Code, call.TextOf(r.Content))
	}
	var d savedData
	if err := json.Unmarshal(r.Data, &d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

func (b *bench) get(id string, version int) (artifact.Details, string) {
	b.t.Helper()
	s := artifact.New(b.db.Pool)
	d, err := s.Get(b.t.Context(), id, version)
	if err != nil {
		b.t.Fatal(err)
	}
	content, err := store.ContentBytes(b.t.Context(), b.Ledger.Queries(), d.Content)
	if err != nil {
		b.t.Fatal(err)
	}
	return d, string(content)
}

func (b *bench) put(id string, kind artifact.Kind, owner, content string, shares ...artifact.Share) {
	b.t.Helper()
	s := artifact.New(b.db.Pool)
	_, _, err := s.Put(b.t.Context(), artifact.Put{ID: id, Kind: kind, Title: "T", Owner: owner, Department: "d9"}, strings.NewReader(content))
	if err == nil {
		err = s.SetShares(b.t.Context(), id, shares)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestSaveChangeSaveAsANewVersion(t *testing.T) {
	b := newBench(t)
	b.run("first()", "r.csv", "a,b\n")
	one := b.saved(b.call("save_artifact", map[string]any{"path": "r.csv", "title": "R"}))
	if one.Version != 1 || one.Kind != artifact.File || one.Title != "R" || one.Bytes != 4 || !call.ValidID(one.ArtifactID) {
		t.Errorf("saved %+v", one)
	}
	b.run("second()", "r.csv", "a,b\n1,2\n")
	two := b.saved(b.call("save_artifact", map[string]any{"path": "r.csv", "artifactId": one.ArtifactID}))
	if two.Version != 2 || two.ArtifactID != one.ArtifactID || two.Title != "R" {
		t.Errorf("saved %+v", two)
	}
	for version, want := range map[int]string{1: "a,b\n", 2: "a,b\n1,2\n", 0: "a,b\n1,2\n"} {
		d, content := b.get(one.ArtifactID, version)
		if content != want || d.Owner != "u1" || d.MadeBy != "u1" || d.Department != "d1" || d.Bytes != int64(len(want)) || d.Conversation != "k1" {
			t.Errorf("version %d: %q, %+v", version, content, d)
		}
	}
}

func TestAnArtifactCarriesItsSource(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "n\n1\n")
	b.write("build.py", "print(1)")
	b.run("make('out.txt')", "out.txt", "2")
	b.ok("move_file", map[string]any{"from": "out.txt", "to": "report.txt"})
	saved := b.saved(b.call("save_artifact", map[string]any{"path": "report.txt", "sources": []string{"in.csv", "build.py", "in.csv"}}))
	// What comes after does not change what it was made from, and neither does the end of the conversation.
	b.ok("delete_file", map[string]any{"path": "in.csv"})
	if _, err := b.Ledger.Delete(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	d, content := b.get(saved.ArtifactID, 1)
	if content != "2" || string(d.Code) != "make('out.txt')" || d.CallTool != "run_code" || d.CallID != "c3" || d.Title != "report.txt" {
		t.Errorf("%q, %+v", content, d)
	}
	files, err := artifact.New(b.db.Pool).Sources(t.Context(), saved.ArtifactID, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		c, err := store.ContentBytes(t.Context(), b.Ledger.Queries(), f.Content)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Path+"="+string(c))
	}
	if want := []string{"build.py=print(1)", "in.csv=n\n1\n"}; !slices.Equal(got, want) {
		t.Errorf("sources %q, want %q", got, want)
	}
}

func TestKinds(t *testing.T) {
	b := newBench(t)
	for path, want := range map[string]artifact.Kind{"a.md": artifact.Document, "b.HTML": artifact.Web, "c.txt": artifact.Text, "Makefile": artifact.Text,
		"d.vl.json": artifact.Chart, "e.json": artifact.File, "f.csv": artifact.File, "g.py": artifact.File} {
		b.write(path, "text")
		if d := b.saved(b.call("save_artifact", map[string]any{"path": path})); d.Kind != want {
			t.Errorf("%s is saved as %s, want %s", path, d.Kind, want)
		}
	}
	b.run("...", "binary.md", "\xff")
	if d := b.saved(b.call("save_artifact", map[string]any{"path": "binary.md"})); d.Kind != artifact.File {
		t.Errorf("bytes that are no text are saved as %s", d.Kind)
	}
	b.put("ar-d", artifact.Document, "u1", "# Plan")
	if d := b.saved(b.call("save_artifact", map[string]any{"path": "c.txt", "artifactId": "ar-d"})); d.Kind != artifact.Document {
		t.Errorf("a document becomes %s", d.Kind)
	}
	if d := b.saved(b.call("save_artifact", map[string]any{"path": "binary.md", "artifactId": "ar-d"})); d.Kind != artifact.File {
		t.Errorf("bytes that are no text become %s", d.Kind)
	}
}

func TestWhatMayNotBeSaved(t *testing.T) {
	b := newBench(t)
	b.write("a.md", "# A")
	b.put("ar-read", artifact.Document, "u9", "# Read", artifact.Share{User: "u1", Right: "read"})
	b.put("ar-change", artifact.Document, "u9", "# Change", artifact.Share{Department: "d1", Right: "change"})
	b.put("ar-other", artifact.Document, "u9", "# Other", artifact.Share{User: "u2", Right: "change"})
	refused := map[string]bool{}
	for _, c := range []struct {
		name string
		args map[string]any
		code call.Code
	}{
		{"a new version of one shared to read", map[string]any{"path": "a.md", "artifactId": "ar-read"}, call.ArtifactReadOnly},
		{"of one shared to change", map[string]any{"path": "a.md", "artifactId": "ar-change"}, ""},
		{"of one that is not shared", map[string]any{"path": "a.md", "artifactId": "ar-other"}, call.InputNotFound},
		{"of one that is not there", map[string]any{"path": "a.md", "artifactId": "ar-none"}, call.InputNotFound},
		{"a file that is not there", map[string]any{"path": "b.md"}, call.PathNotFound},
		{"a source that is not there", map[string]any{"path": "a.md", "sources": []string{"b.md"}}, call.PathNotFound},
		{"a title of two lines", map[string]any{"path": "a.md", "title": "a\nb"}, call.InvalidArguments},
		{"a title with U+0000", map[string]any{"path": "a.md", "title": "a\x00b"}, call.InvalidArguments},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := b.call("save_artifact", c.args)
			if r.Code != c.code {
				t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
			}
			if r.Code == call.InputNotFound {
				refused[strings.ReplaceAll(call.TextOf(r.Content), c.args["artifactId"].(string), "ID")] = true
			}
		})
	}
	if len(refused) != 1 {
		t.Errorf("what is another's and what is not there are refused differently: %v", refused)
	}
	var artifacts, versions int
	err := b.db.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM artifacts), (SELECT count(*) FROM artifact_versions)").Scan(&artifacts, &versions)
	if err != nil || artifacts != 3 || versions != 4 {
		t.Errorf("%d artifacts and %d versions, error %v", artifacts, versions, err)
	}
	if d, _ := b.get("ar-change", 2); d.Owner != "u9" || d.MadeBy != "u1" || d.Department != "d1" {
		t.Errorf("%+v", d)
	}
}

func TestEditArtifact(t *testing.T) {
	b := newBench(t)
	b.put("ar-d", artifact.Document, "u1", "# Plan\r\nDraft of May\r\nend end\r\n")
	b.put("ar-f", artifact.File, "u1", "PK\x03\x04")
	b.put("ar-read", artifact.Text, "u9", "x", artifact.Share{User: "u1", Right: "read"})
	b.put("ar-other", artifact.Text, "u9", "x")

	d := b.saved(b.call("edit_artifact", map[string]any{"artifactId": "ar-d", "find": "Draft of May\nend end", "replace": "Final\nend"}))
	if d.Version != 2 || d.Kind != artifact.Document || !strings.Contains(d.Diff, "+Final") {
		t.Errorf("%+v", d)
	}
	if _, content := b.get("ar-d", 0); content != "# Plan\r\nFinal\r\nend\r\n" {
		t.Errorf("content %q", content)
	}
	for _, c := range []struct {
		id, find, replace string
		code              call.Code
		says              string
	}{
		{"ar-d", "not there", "x", call.TextNotFound, ""},
		{"ar-d", "n", "x", call.TextNotUnique, "there 3 times"},
		{"ar-d", "Final", "Final", call.NoChange, ""},
		{"ar-f", "PK", "x", call.ArtifactNotText, "run_code"},
		{"ar-f", "PK", "x", call.ArtifactNotText, "save_artifact"},
		{"ar-read", "x", "y", call.ArtifactReadOnly, ""},
		{"ar-other", "x", "y", call.InputNotFound, ""},
		{"ar-none", "x", "y", call.InputNotFound, ""},
	} {
		r := b.call("edit_artifact", map[string]any{"artifactId": c.id, "find": c.find, "replace": c.replace})
		if r.Code != c.code || !strings.Contains(call.TextOf(r.Content), c.says) || strings.Contains(call.TextOf(r.Content), "all: true") {
			t.Errorf("%s %q: %s: %s", c.id, c.find, r.Code, call.TextOf(r.Content))
		}
	}
	if d, _ := b.get("ar-d", 0); d.Version != 2 {
		t.Errorf("version %d after refused edits", d.Version)
	}
	b.expectTree(map[string]string{})
}

// Two calls plan the same next version; both are kept, under numbers of their own, and each is told its own.
func TestVersionsThatMeet(t *testing.T) {
	b := newBench(t)
	b.put("ar", artifact.Text, "u1", "one two three")
	b.write("a.txt", "saved")
	other := b.open("k2", "t2", turn.Caller{User: "u1", Department: "d2"})
	w, o := b.begin(b.turn, "save_artifact", map[string]any{"path": "a.txt", "artifactId": "ar"})
	if d := b.saved(b.callAs(other, "edit_artifact", map[string]any{"artifactId": "ar", "find": "two", "replace": "2"})); d.Version != 2 {
		t.Fatalf("%+v", d)
	}
	d := b.saved(b.finish(w, o))
	if _, content := b.get("ar", 3); d.Version != 3 || content != "saved" {
		t.Errorf("%+v, %q", d, content)
	}

	b.put("ar", artifact.Text, "u1", "one two three") // version 4
	w, o = b.begin(b.turn, "edit_artifact", map[string]any{"artifactId": "ar", "find": "one", "replace": "1"})
	b.saved(b.callAs(other, "edit_artifact", map[string]any{"artifactId": "ar", "find": "three", "replace": "3"}))
	r := b.finish(w, o)
	if d := b.saved(r); d.Version != 6 || !strings.Contains(call.TextOf(r.Content), "version 6") {
		t.Errorf("%+v, %s", d, call.TextOf(r.Content))
	}
	if _, content := b.get("ar", 6); content != "1 two 3" {
		t.Errorf("content %q: an edit was lost", content)
	}

	w, o = b.begin(b.turn, "edit_artifact", map[string]any{"artifactId": "ar", "find": "two", "replace": "2"})
	b.saved(b.callAs(other, "edit_artifact", map[string]any{"artifactId": "ar", "find": "two", "replace": "deux"}))
	if r := b.finish(w, o); r.Code != call.TextNotFound {
		t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
	}
}

func TestManySaversOfOneArtifact(t *testing.T) {
	b := newBench(t)
	b.put("ar", artifact.Text, "u1", "start")
	type planned struct {
		w ledger.Work
		o ledger.Outcome
	}
	var all []planned
	for i := range 3 {
		tn := b.open("s"+string(rune('0'+i)), "ts"+string(rune('0'+i)), turn.Caller{User: "u1", Department: "d1"})
		if r := b.callAs(tn, "write_file", map[string]any{"path": "a.txt", "content": tn.ID}); r.Status != call.OK {
			t.Fatal(r.Code)
		}
		w, o := b.begin(tn, "save_artifact", map[string]any{"path": "a.txt", "artifactId": "ar"})
		all = append(all, planned{w, o})
	}
	versions := make([]int, len(all))
	var group sync.WaitGroup
	for i, p := range all {
		group.Go(func() { versions[i] = b.saved(b.finish(p.w, p.o)).Version })
	}
	group.Wait()
	slices.Sort(versions)
	if want := []int{2, 3, 4}; !slices.Equal(versions, want) {
		t.Errorf("versions %v, want %v", versions, want)
	}
}
