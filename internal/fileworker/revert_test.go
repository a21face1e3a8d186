package fileworker

import (
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/ledger"
)

func (b *bench) revert(beforeSeq int64, path string) call.Result {
	b.t.Helper()
	args := map[string]any{"beforeSeq": beforeSeq}
	if path != "" {
		args["path"] = path
	}
	return b.call("portal_revert", args)
}

func TestAWholeTreeIsPutBackAndBackAgain(t *testing.T) {
	b := newBench(t)
	b.write("kept.txt", "kept")
	b.write("gone.txt", "gone")
	before := b.tree()
	seq := b.write("new/file.txt", "new")
	b.ok("edit_file", map[string]any{"path": "kept.txt", "edits": []any{map[string]any{"find": "kept", "replace": "changed"}}})
	b.ok("delete_file", map[string]any{"path": "gone.txt"})
	b.ok("move_file", map[string]any{"from": "new/file.txt", "to": "moved.txt"})
	after := b.tree()

	r := b.revert(seq, "")
	expectChanges(t, r.Changes, []string{"gone.txt"}, []string{"kept.txt"}, []string{"moved.txt"})
	b.expectTree(before)
	if want := `{"revisions":{"gone.txt":7,"kept.txt":7}}`; string(r.Data) != want || r.Seq != 7 {
		t.Errorf("seq %d, data %s, want %s", r.Seq, r.Data, want)
	}
	undo := b.revert(r.Seq, "")
	expectChanges(t, undo.Changes, []string{"moved.txt"}, []string{"kept.txt"}, []string{"gone.txt"})
	b.expectTree(after)
	b.revert(undo.Seq, "")
	b.expectTree(before)
	b.revert(1, "")
	b.expectTree(map[string]string{})
}

func TestOnePathIsPutBack(t *testing.T) {
	b := newBench(t)
	b.write("a", "1")
	b.write("b", "1")
	b.write("a", "2")
	b.write("b", "2")
	expectChanges(t, b.revert(3, "a").Changes, nil, []string{"a"}, nil)
	b.expectTree(map[string]string{"a": "1", "b": "2"})
	expectChanges(t, b.revert(2, "b").Changes, nil, nil, []string{"b"})
	b.expectTree(map[string]string{"a": "1"})
}

func TestRestoredFilesAreMeasured(t *testing.T) {
	b := newBench(t)
	b.write("t.csv", "a\r\nb\n")
	b.run("...", "t.csv", "\xff\x00")
	b.revert(2, "")
	r := b.ok("list_files", map[string]any{})
	if !strings.Contains(string(r.Data), `{"path":"t.csv","bytes":5,"lines":2,"revision":3}`) {
		t.Errorf("data %s", r.Data)
	}
	var mime string
	if err := b.db.Pool.QueryRow(t.Context(), "SELECT mime_type FROM files").Scan(&mime); err != nil || mime != "text/csv" {
		t.Errorf("type %q, error %v", mime, err)
	}
}

func TestNothingToPutBack(t *testing.T) {
	b := newBench(t)
	b.write("a", "1")
	b.write("b", "1")
	for _, path := range []string{"", "a"} {
		r := b.revert(2, path)
		if path == "a" && (r.Status != call.OK || !r.Changes.Empty()) {
			t.Errorf("%s: %s %+v", path, r.Code, r.Changes)
		}
	}
	if r := b.revert(3, ""); r.Status != call.OK {
		t.Errorf("%s: %v", r.Code, r.Content)
	}
}

func TestRevertsThatAreRefused(t *testing.T) {
	b := newBench(t)
	b.write("a/x", "1")
	b.ok("delete_file", map[string]any{"path": "a/x"})
	b.write("a", "file")
	b.write("dir/y", "1")
	want := b.tree()
	for _, c := range []struct {
		name   string
		before int64
		path   string
		code   call.Code
	}{
		{"before a call that has not been", 100, "", call.InvalidArguments},
		{"before itself", 6, "", call.InvalidArguments},
		{"a path that never was", 1, "none", call.PathNotFound},
		{"a folder", 1, "dir", call.PathIsFolder},
		{"below what is a file now", 2, "a/x", call.PathClash},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := b.revert(c.before, c.path)
			if r.Status != call.Refused || r.Code != c.code {
				t.Errorf("%s %s: %s", r.Status, r.Code, call.TextOf(r.Content))
			}
			b.expectTree(want)
		})
	}
	for _, arguments := range []string{`{"beforeSeq":0}`, `{"beforeSeq":-1}`, `{}`, `{"beforeSeq":1,"path":"../x"}`} {
		if _, refusal := b.catalogue.Check("portal_revert", []byte(arguments)); refusal == nil {
			t.Errorf("%s is let in at the door", arguments)
		}
	}
}

func TestLimitsHoldForReverts(t *testing.T) {
	b := newBench(t, func(c *ledger.Config) { c.Limits.WorkspaceBytes = 100 })
	b.write("a", strings.Repeat("a", 80))
	b.ok("delete_file", map[string]any{"path": "a"})
	b.write("b", strings.Repeat("b", 80))
	r := b.revert(2, "a")
	if r.Code != call.WorkspaceFull {
		t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
	}
	if r := b.revert(2, ""); r.Status != call.OK {
		t.Errorf("the whole tree: %s: %s", r.Code, call.TextOf(r.Content))
	}
	b.expectTree(map[string]string{"a": strings.Repeat("a", 80)})
}

func TestNoGuardHoldsAPersonBack(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("a line\n", 1000)
	b.run("...", "a", long)
	b.run("...", "a", long+"more\n")
	if r := b.revert(2, "a"); r.Status != call.OK {
		t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
	}
	b.expectTree(map[string]string{"a": long})
}

func TestHistoryThatIsGone(t *testing.T) {
	b := newBench(t)
	b.write("a", "1")
	b.write("a", "2")
	b.write("a", "3")
	prune := func() {
		t.Helper()
		_, err := b.db.Pool.Exec(t.Context(), `WITH gone AS (DELETE FROM changes WHERE seq <= 2)
			UPDATE conversations SET history_floor = 2`)
		if err != nil {
			t.Fatal(err)
		}
	}
	w, o := b.begin(b.turn, "portal_revert", map[string]any{"beforeSeq": 2})
	prune() // between the plan and its finish
	if r := b.finish(w, o); r.Code != call.HistoryGone {
		t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
	}
	for seq, want := range map[int64]call.Code{1: call.HistoryGone, 2: call.HistoryGone, 3: ""} {
		if r := b.revert(seq, ""); r.Code != want {
			t.Errorf("before %d: %q: %s", seq, r.Code, call.TextOf(r.Content))
		}
	}
	b.expectTree(map[string]string{"a": "2"})
}

func TestADeletedConversationHasNoHistory(t *testing.T) {
	b := newBench(t)
	b.write("a", "1")
	if _, err := b.Ledger.Delete(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Ledger.Restore(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	if r := b.revert(1, ""); r.Code != call.HistoryGone {
		t.Errorf("%s: %s", r.Code, call.TextOf(r.Content))
	}
}
