package fileworker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/store"
)

// trialCall is one call that a model made while it brought twenty changes into three files, and how it ended.
type trialCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Status    call.Status     `json:"status"`
	Code      call.Code       `json:"code"`
}

const trial = "testdata/trial"

func trialFile(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{trial}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What a model once did to a deck, a table with CRLF and a module, slips included, ends as it did then.
func TestATrialOfTwentyChanges(t *testing.T) {
	fleet := dispatchtest.New(t)
	fleet.Work(t)
	_, token := fleet.Turn(t, "trial", "list_files", "read_file", "search_files", "write_file", "edit_file", "move_file", "calculate")
	sent := 0
	send := func(tool string, arguments json.RawMessage) call.Result {
		sent++
		a, err := fleet.Dispatcher.Call(t.Context(), token,
			dispatch.Request{CallID: fmt.Sprintf("c%d", sent), Tool: tool, Arguments: arguments}, time.Minute)
		if err != nil || a.Result == nil {
			t.Fatalf("call %d, %s: %+v, %v", sent, tool, a, err)
		}
		return *a.Result
	}
	for _, path := range []string{"deck.html", "customers.csv", "invoices.py"} {
		arguments, err := json.Marshal(map[string]string{"path": path, "content": trialFile(t, path)})
		if err != nil {
			t.Fatal(err)
		}
		if r := send("write_file", arguments); r.Status != call.OK {
			t.Fatalf("%s: %s", path, call.TextOf(r.Content))
		}
	}
	var calls []trialCall
	if err := json.Unmarshal([]byte(trialFile(t, "calls.json")), &calls); err != nil {
		t.Fatal(err)
	}
	for i, c := range calls {
		r := send(c.Tool, c.Arguments)
		text := call.TextOf(r.Content)
		if r.Status != c.Status || r.Code != c.Code {
			t.Fatalf("call %d, %s: %s %s, want %s %s:\n%s", i+1, c.Tool, r.Status, r.Code, c.Status, c.Code, text)
		}
		if c.Tool == "edit_file" {
			checkEditText(t, i+1, r, text)
		}
	}
	checkTrialTree(t, fleet)
}

// checkEditText holds what an edit tells a model to its bounds: short, and without the "\r" of line endings.
func checkEditText(t *testing.T, n int, r call.Result, text string) {
	t.Helper()
	var data struct{ Diff string }
	if err := json.Unmarshal(r.Data, &data); r.Status == call.OK && err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(text, "\n") + 1
	cut := strings.HasSuffix(text, "[cut here: the diff goes on; read_file shows the file as it is now]")
	if long := strings.Count(data.Diff, "\n") > 60; cut != long || lines > 62 {
		t.Errorf("call %d: %d lines, cut %v, of a diff of %d", n, lines, cut, strings.Count(data.Diff, "\n"))
	}
	if strings.Contains(text, "\r") {
		t.Errorf("call %d: the text has a carriage return:\n%q", n, text)
	}
}

func checkTrialTree(t *testing.T, fleet *dispatchtest.Fleet) {
	t.Helper()
	queries := fleet.Ledger.Queries()
	tree, err := store.Tree(t.Context(), queries, "trial")
	if err != nil {
		t.Fatal(err)
	}
	blobs := store.NewBlobs(queries, 0)
	var paths []string
	for _, e := range tree.All() {
		paths = append(paths, e.Path)
		got, err := blobs.Get(t.Context(), "trial", e.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if want := trialFile(t, "after", e.Path); string(got) != want {
			t.Errorf("%s is\n%q\nwant\n%q", e.Path, got, want)
		}
	}
	if want := []string{"billing.py", "customers.csv", "deck.html"}; !slices.Equal(paths, want) {
		t.Errorf("the tree has %q, want %q", paths, want)
	}
}
