package fileworker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/turn"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// bench is one file worker on a database of the test's own; calls are handed to it without a queue.
type bench struct {
	*Worker
	t         *testing.T
	db        *devtest.Database
	catalogue *catalogue.Catalogue
	turn      turn.Turn
	calls     int
}

func newBench(t *testing.T, change ...func(*ledger.Config)) *bench {
	t.Helper()
	return newBenchOf(t, DefaultConfig(), change...)
}

func newBenchOf(t *testing.T, own Config, change ...func(*ledger.Config)) *bench {
	t.Helper()
	cfg := ledger.DefaultConfig()
	for _, c := range change {
		c(&cfg)
	}
	tools, err := catalogue.Load()
	if err != nil {
		t.Fatal(err)
	}
	d := devtest.Postgres(t, store.Migrate)
	b := &bench{t: t, db: d, catalogue: tools, Worker: New(ledger.New(d.Pool, cfg), nil, nil, own, zerolog.Nop())}
	b.turn = b.open("k1", "t1", turn.Caller{User: "u1", Department: "d1"})
	return b
}

func (b *bench) open(conversation, id string, who turn.Caller) turn.Turn {
	b.t.Helper()
	if _, err := b.Ledger.PutConversation(b.t.Context(), conversation); err != nil {
		b.t.Fatal(err)
	}
	_, hash := turn.NewToken()
	t := turn.Turn{ID: id, Conversation: conversation, Generation: 1, Caller: who}
	if err := b.Ledger.OpenTurn(b.t.Context(), t, hash); err != nil {
		b.t.Fatal(err)
	}
	return t
}

// accept accepts a call.
func (b *bench) accept(t turn.Turn, tool string, arguments any) ledger.Work {
	b.t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		b.t.Fatal(err)
	}
	checked, refusal := b.catalogue.Check(tool, raw)
	if refusal != nil {
		b.t.Fatalf("%s is refused at the door: %v", tool, refusal)
	}
	b.calls++
	id := fmt.Sprintf("c%d", b.calls)
	_, err = b.Ledger.Accept(b.t.Context(), t, []ledger.NewCall{{ID: id, Tool: tool, Kind: "k", Lane: "file", Actor: "ann",
		Arguments: checked.Arguments, Digest: checked.Digest, Paths: checked.Paths}})
	if err != nil {
		b.t.Fatal(err)
	}
	w, state, err := b.Ledger.Look(b.t.Context(), ledger.Event{Conversation: t.Conversation, Turn: t.ID, Call: id}, true)
	if err != nil || state != ledger.Released {
		b.t.Fatalf("look: %s, %v", state, err)
	}
	return w
}

// begin accepts a call and does it up to its outcome, which is not finished.
func (b *bench) begin(t turn.Turn, tool string, arguments any) (ledger.Work, ledger.Outcome) {
	b.t.Helper()
	w := b.accept(t, tool, arguments)
	o, err := b.do(b.t.Context(), w)
	if err != nil {
		b.t.Fatal(err)
	}
	return w, o
}

func (b *bench) finish(w ledger.Work, o ledger.Outcome) call.Result {
	b.t.Helper()
	f, err := b.Ledger.Finish(b.t.Context(), w, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return f.Result
}

func (b *bench) callAs(t turn.Turn, tool string, arguments any) call.Result {
	b.t.Helper()
	return b.finish(b.begin(t, tool, arguments))
}

// call makes a call in the bench's turn; one of the portal's in the conversation's portal turn.
func (b *bench) call(tool string, arguments any) call.Result {
	b.t.Helper()
	if row, _ := b.catalogue.Tool(tool); !row.Portal {
		return b.callAs(b.turn, tool, arguments)
	}
	t, err := b.Ledger.PortalTurn(b.t.Context(), b.turn.Conversation)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.callAs(t, tool, arguments)
}

func (b *bench) ok(tool string, arguments any) call.Result {
	b.t.Helper()
	r := b.call(tool, arguments)
	if r.Status != call.OK {
		b.t.Fatalf("%s: %s: %s", tool, r.Code, call.TextOf(r.Content))
	}
	return r
}

func (b *bench) write(path, content string) int64 {
	b.t.Helper()
	return b.ok("write_file", map[string]any{"path": path, "content": content}).Seq
}

// run stands for code that leaves a file.
func (b *bench) run(code, path, content string) int64 {
	b.t.Helper()
	b.calls++
	id := fmt.Sprintf("c%d", b.calls)
	raw, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.Ledger.Accept(b.t.Context(), b.turn, []ledger.NewCall{{ID: id, Tool: "run_code", Kind: "code", Lane: "code", Arguments: raw}}); err != nil {
		b.t.Fatal(err)
	}
	w, _, err := b.Ledger.Look(b.t.Context(), ledger.Event{Conversation: b.turn.Conversation, Turn: b.turn.ID, Call: id}, true)
	if err != nil {
		b.t.Fatal(err)
	}
	j := &job{Work: w, tree: w.Tree}
	o := ok("ran", nil)
	o.Changes = []ledger.Change{b.change(j, path, []byte(content))}
	return b.finish(w, o).Seq
}

// tree gives what is in the workspace, by path.
func (b *bench) tree() map[string]string {
	b.t.Helper()
	tree, err := store.Tree(b.t.Context(), b.Ledger.Queries(), b.turn.Conversation)
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range tree.All() {
		c, err := store.NewBlobs(b.Ledger.Queries(), 0).Get(b.t.Context(), b.turn.Conversation, e.SHA256)
		if err != nil {
			b.t.Fatal(err)
		}
		got[e.Path] = string(c)
	}
	return got
}

func (b *bench) expectTree(want map[string]string) {
	b.t.Helper()
	if got := b.tree(); !maps.Equal(got, want) {
		b.t.Errorf("the tree is %q, want %q", got, want)
	}
}

func expectChanges(t *testing.T, got call.Changes, created, modified, deleted []string) {
	t.Helper()
	want := call.Changes{Created: created, Modified: modified, Deleted: deleted}.Normal()
	if !slices.Equal(got.Created, want.Created) || !slices.Equal(got.Modified, want.Modified) || !slices.Equal(got.Deleted, want.Deleted) {
		t.Errorf("changes %+v, want %+v", got, want)
	}
}

func TestACallThatNobodyHandlesFailsAtOnce(t *testing.T) {
	b := newBench(t)
	o, err := b.do(t.Context(), ledger.Work{Tool: "fax_file"})
	if err != nil || o.Status != call.Failed || o.Code != call.Internal {
		t.Errorf("got %+v, %v, want it failed", o, err)
	}
}
