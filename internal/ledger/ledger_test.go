package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// bench is one conversation with one turn on a database of the test's own.
type bench struct {
	*Ledger
	t    *testing.T
	turn turn.Turn
	url  string
}

func newBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	d := devtest.Postgres(t, store.Migrate)
	pool, err := store.Open(t.Context(), d.URL, 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &bench{Ledger: New(pool, cfg), t: t, url: d.URL}
	b.turn = b.newTurn("k1", "t1")
	return b
}

func (b *bench) newTurn(conversation, id string) turn.Turn {
	b.t.Helper()
	if _, err := b.PutConversation(b.t.Context(), conversation); err != nil {
		b.t.Fatal(err)
	}
	_, hash := turn.NewToken()
	tn := turn.Turn{ID: id, Conversation: conversation, Generation: 1, Caller: turn.Caller{User: "u", Department: "d"}}
	if err := b.OpenTurn(b.t.Context(), tn, hash); err != nil {
		b.t.Fatal(err)
	}
	return tn
}

func newCall(id string) NewCall {
	return NewCall{ID: id, Tool: "write_file", Kind: "workspace_write", Lane: "file", Arguments: []byte(`{"path":"a"}`),
		Digest: sha256.Sum256([]byte(id)), Paths: []string{"a"}}
}

func (b *bench) accept(ids ...string) []Accepted {
	b.t.Helper()
	calls := make([]NewCall, len(ids))
	for i, id := range ids {
		calls[i] = newCall(id)
	}
	got, err := b.Accept(b.t.Context(), b.turn, calls)
	if err != nil {
		b.t.Fatalf("accept %v: %v", ids, err)
	}
	return got
}

func (b *bench) look(id string) (Work, State) {
	b.t.Helper()
	w, s, err := b.Look(b.t.Context(), Event{Conversation: b.turn.Conversation, Turn: b.turn.ID, Call: id}, false)
	if err != nil {
		b.t.Fatalf("look at %s: %v", id, err)
	}
	return w, s
}

func (b *bench) claim(id string) Work {
	b.t.Helper()
	w, _ := b.look(id)
	w, err := b.Claim(b.t.Context(), w)
	if err != nil {
		b.t.Fatalf("claim %s: %v", id, err)
	}
	return w
}

func (b *bench) finish(w Work, o Outcome) Finished {
	b.t.Helper()
	f, err := b.Finish(b.t.Context(), w, o)
	if err != nil {
		b.t.Fatalf("finish %s: %v", w.Key.Call, err)
	}
	return f
}

func done(text string) Outcome {
	return Outcome{Status: call.OK, Content: []call.Content{call.Text(text)}}
}

func writes(path, content string, seq int64) Outcome {
	o := done("written")
	e := workspace.NewEntry(path, []byte(content), seq)
	o.Changes = []Change{{Path: path, After: &e, Content: []byte(content), MIMEType: "text/plain"}}
	return o
}

func codeOf(t *testing.T, err error) call.Code {
	t.Helper()
	var r *call.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("want a refusal, got %v", err)
	}
	return r.Code
}

func TestCallsOfAConversationAreReleasedOneAtATimeInOrder(t *testing.T) {
	b := newBench(t, DefaultConfig())
	got := b.accept("c1", "c2", "c3")
	for i, a := range got {
		if a.Seq != int64(i+1) || (a.Event != nil) != (i == 0) {
			t.Errorf("call %d: seq %d, event %v; want seq %d and an event for the first alone", i+1, a.Seq, a.Event, i+1)
		}
	}
	for i, id := range []string{"c1", "c2", "c3"} {
		if _, s := b.look(id); s != Released {
			t.Fatalf("%s is %s when its turn has come", id, s)
		}
		f := b.finish(b.claim(id), done("done"))
		if i < 2 && (f.Next == nil || f.Next.Seq != int64(i+2)) {
			t.Errorf("finishing %s released %v, want seq %d", id, f.Next, i+2)
		}
		if i == 2 && f.Next != nil {
			t.Errorf("finishing the last call released %v", f.Next)
		}
	}
}

func TestACallSentAgainIsAnsweredWithWhatBecameOfIt(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	again := b.accept("c1")[0]
	if !again.Duplicate || again.Seq != 1 || again.Event == nil {
		t.Errorf("a waiting head sent again: %+v; want a duplicate with its event, which may have been lost", again)
	}
	b.finish(b.claim("c1"), done("the answer"))
	again = b.accept("c1")[0]
	if again.Result == nil || again.Result.Content[0].Text != "the answer" {
		t.Errorf("a finished call sent again: %+v; want its stored result", again)
	}
	other := newCall("c1")
	other.Digest = sha256.Sum256([]byte("other arguments"))
	_, err := b.Accept(t.Context(), b.turn, []NewCall{other})
	if got := codeOf(t, err); got != call.CallIDReused {
		t.Errorf("the id with other arguments: %s", got)
	}
	conv, _ := b.Conversation(t.Context(), "k1")
	if conv.LastSeq != 1 || conv.Open != 0 {
		t.Errorf("duplicates moved the counts: last seq %d, open %d", conv.LastSeq, conv.Open)
	}
}

func TestTheSameCallSentAtOnceByManyIsWrittenOnce(t *testing.T) {
	b := newBench(t, DefaultConfig())
	var wg sync.WaitGroup
	seqs := make([]int64, 20)
	for i := range seqs {
		wg.Go(func() {
			got, err := b.Accept(context.Background(), b.turn, []NewCall{newCall("same")})
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			seqs[i] = got[0].Seq
		})
	}
	wg.Wait()
	for _, s := range seqs {
		if s != 1 {
			t.Errorf("seqs %v, want 1 everywhere", seqs)
			break
		}
	}
}

func TestMoreWaitingCallsThanTheLimitAreBusyAndStoreNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Limits.WaitingCalls = 2
	b := newBench(t, cfg)
	b.accept("c1", "c2", "c3") // one at work, two waiting
	_, err := b.Accept(t.Context(), b.turn, []NewCall{newCall("c4")})
	if got := codeOf(t, err); got != call.Busy {
		t.Fatalf("the third waiting call: %s", got)
	}
	b.finish(b.claim("c1"), done(""))
	if got := b.accept("c4")[0]; got.Duplicate || got.Seq != 4 {
		t.Errorf("after room was made: %+v, want a fresh call with seq 4", got)
	}
}

func TestOnlyTheHolderOfTheLeaseFinishes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Lease = 50 * time.Millisecond
	b := newBench(t, cfg)
	b.accept("c1")
	lost := b.claim("c1")
	time.Sleep(80 * time.Millisecond)
	row, err := b.q.TakeBack(t.Context(), db.TakeBackParams{TurnID: "t1", CallID: "c1", Seen: lost.token})
	if err != nil || row.Seq != 1 {
		t.Fatalf("take back: %v", err)
	}
	mine := b.claim("c1")
	if mine.Attempt != 2 {
		t.Errorf("attempt %d, want 2", mine.Attempt)
	}
	if _, err := b.Finish(t.Context(), lost, writes("a", "stale", 1)); !errors.Is(err, ErrFenced) {
		t.Errorf("the one who lost the lease finished: %v", err)
	}
	if _, err := b.Heartbeat(t.Context(), lost); !errors.Is(err, ErrFenced) {
		t.Errorf("the one who lost the lease extended it: %v", err)
	}
	b.finish(mine, writes("a", "fresh", 1))
	if _, err := b.Finish(t.Context(), mine, done("")); !errors.Is(err, ErrFenced) {
		t.Errorf("finished twice: %v", err)
	}
	tree, err := store.Tree(t.Context(), b.q, "k1")
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := tree.Get("a"); !ok || e.Bytes != int64(len("fresh")) {
		t.Errorf("the file is %+v, want the holder's", e)
	}
}

// A lease that ran out decides who may take over, never whether a run that nobody took over may commit.
func TestAnExpiredLeaseThatNobodyTookOverMayFinish(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Lease = 20 * time.Millisecond
	b := newBench(t, cfg)
	b.accept("c1")
	w := b.claim("c1")
	time.Sleep(60 * time.Millisecond)
	b.finish(w, done("late, and still the only one"))
}

func TestAnUnclaimedFirstDeliveryIsVoidedByAClaim(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	unclaimed, _ := b.look("c1")
	b.claim("c1")
	if _, err := b.Finish(t.Context(), unclaimed, done("")); !errors.Is(err, ErrFenced) {
		t.Errorf("finished beside a claim: %v", err)
	}
}

func TestCancellingAWaitingCallReleasesTheNextOnlyIfItWasTheHead(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1", "c2", "c3")
	c, err := b.Cancel(t.Context(), "k1", "t1", "c2")
	if err != nil || c.Result == nil || c.Result.Code != call.Cancelled || c.Result.Status != call.Failed || c.Next != nil {
		t.Fatalf("cancelling one in the queue: %+v, %v", c, err)
	}
	c, err = b.Cancel(t.Context(), "k1", "t1", "c1")
	if err != nil || c.Next == nil || c.Next.Call != "c3" {
		t.Fatalf("cancelling the head: %+v, %v; want c3 released", c, err)
	}
	c, err = b.Cancel(t.Context(), "k1", "t1", "c1")
	if err != nil || c.Told != nil || c.Result.Code != call.Cancelled {
		t.Errorf("cancelling what is done: %+v, %v; want its result and nothing new", c, err)
	}
	if _, err = b.Cancel(t.Context(), "k1", "t1", "nope"); !errors.Is(err, ErrNotThere) {
		t.Errorf("cancelling what is not there: %v", err)
	}
}

func TestARunningCallThatIsCancelledCommitsAsCancelledAndKeepsNothing(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1", "c2")
	w := b.claim("c1")
	if c, err := b.Cancel(t.Context(), "k1", "t1", "c1"); err != nil || !c.Running {
		t.Fatalf("cancel: %+v, %v", c, err)
	}
	if cancel, err := b.Heartbeat(t.Context(), w); err != nil || !cancel {
		t.Errorf("the heartbeat says %v, %v; want that cancelling was asked for", cancel, err)
	}
	f := b.finish(w, writes("a", "kept?", 1))
	if f.Result.Code != call.Cancelled || !f.Result.Changes.Empty() || f.Next == nil || f.Next.Call != "c2" {
		t.Errorf("finished as %+v, next %v", f.Result, f.Next)
	}
	tree, _ := store.Tree(t.Context(), b.q, "k1")
	if tree.Len() != 0 {
		t.Errorf("a cancelled call left %d files", tree.Len())
	}
}

func TestHandingBackCostsNoAttempt(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	e, err := b.HandBack(t.Context(), b.claim("c1"))
	if err != nil || e.Call != "c1" || e.Fresh {
		t.Fatalf("handed back as %+v, %v", e, err)
	}
	if w := b.claim("c1"); w.Attempt != 1 {
		t.Errorf("attempt %d after a hand-back, want 1", w.Attempt)
	}
}

func TestAWriteThatDoesNotFitIsRefusedInItsOwnTransaction(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Limits.WorkspaceBytes = 10
	b := newBench(t, cfg)
	b.accept("c1", "c2")
	b.finish(b.claim("c1"), writes("a", "12345678", 1))
	f := b.finish(b.claim("c2"), writes("b", "123", 2))
	if f.Result.Status != call.Refused || f.Result.Code != call.WorkspaceFull || !f.Result.Changes.Empty() {
		t.Errorf("finished as %+v", f.Result)
	}
	c, _ := b.Conversation(t.Context(), "k1")
	if c.Bytes != 8 || c.Files != 1 || c.Open != 0 {
		t.Errorf("the conversation has %d bytes in %d files, %d open", c.Bytes, c.Files, c.Open)
	}
}

func TestDeletingEndsWhatIsUnfinishedAndDropsEveryByte(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1", "c2", "c3")
	b.finish(b.claim("c1"), writes("a", "x", 1))
	running := b.claim("c2")
	d, err := b.Delete(t.Context(), "k1")
	if err != nil || len(d.Ended) != 2 {
		t.Fatalf("deleting ended %v, %v; want c2 and c3", d.Ended, err)
	}
	if _, err := b.Finish(t.Context(), running, writes("b", "y", 2)); !errors.Is(err, ErrFenced) {
		t.Errorf("a run outlived the deletion: %v", err)
	}
	_, err = b.Accept(t.Context(), b.turn, []NewCall{newCall("c4")})
	if got := codeOf(t, err); got != call.ConversationDeleted {
		t.Errorf("a call after the deletion: %s", got)
	}
	var bytes int
	err = b.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM files) + (SELECT count(*) FROM blobs) + (SELECT count(*) FROM changes)
		+ (SELECT count(*) FROM calls WHERE result IS NOT NULL OR output IS NOT NULL OR arguments <> '')`).Scan(&bytes)
	if err != nil || bytes != 0 {
		t.Errorf("%d rows still hold bytes, %v", bytes, err)
	}
	if err := b.Restore(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Accept(t.Context(), b.turn, []NewCall{newCall("c4")})
	if got := codeOf(t, err); got != call.TurnClosed {
		t.Errorf("a call of the old turn after the restore: %s", got)
	}
	b.turn = b.newTurn2("t2")
	if a := b.accept("c1")[0]; a.Seq != 4 || a.Duplicate {
		t.Errorf("the first call after the restore: %+v; want seq 4, for the order is never reset", a)
	}
}

func (b *bench) newTurn2(id string) turn.Turn {
	b.t.Helper()
	_, hash := turn.NewToken()
	tn := turn.Turn{ID: id, Conversation: "k1"}
	if err := b.OpenTurn(b.t.Context(), tn, hash); err != nil {
		b.t.Fatal(err)
	}
	return tn
}
