package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

const soon = 20 * time.Second

// swept is a conversation on a real database and a real queue, with a sweeper that sweeps when it is told to.
type swept struct {
	*ledger.Ledger
	t       *testing.T
	server  *devenv.NATS
	queue   *queue.Queue
	sweeper *ledger.Sweeper
	turn    turn.Turn
	events  <-chan ledger.Event // all that were published
	results <-chan call.Result
}

func newSwept(t *testing.T, change ...func(*ledger.Config)) *swept {
	t.Helper()
	cfg := ledger.DefaultConfig()
	cfg.Lease = 300 * time.Millisecond
	for _, c := range change {
		c(&cfg)
	}
	pool, err := store.Open(t.Context(), devtest.Postgres(t, store.Migrate).URL, 10)
	if err != nil {
		t.Fatal(err)
	}
	s := &swept{Ledger: ledger.New(pool, cfg), t: t, server: devtest.NATS(t)}
	s.queue, err = queue.Connect(context.Background(), queue.Options{URL: s.server.URL(), Name: "test"}, queue.DefaultConfig(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	teller := ledger.NewTeller(s.Ledger, s.queue, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- teller.Run(ctx) }()
	s.sweeper = ledger.NewSweeper(s.Ledger, s.queue, teller, zerolog.Nop())
	s.events, s.results = heard[ledger.Event](s, "treeline.calls.>"), heard[call.Result](s, "treeline.results.>")
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.queue.Close()
		pool.Close()
	})
	s.turn = s.open("k1", "t1")
	return s
}

// heard gives what is published below a subject.
func heard[T any](s *swept, subject string) <-chan T {
	s.t.Helper()
	got := make(chan T, 10_000)
	sub, err := s.queue.Conn().Subscribe(subject, func(m *nats.Msg) {
		var v T
		if err := json.Unmarshal(m.Data, &v); err != nil {
			s.t.Errorf("%s: %v", m.Data, err)
		}
		got <- v
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = sub.Unsubscribe() })
	return got
}

func (s *swept) open(conversation, id string) turn.Turn {
	s.t.Helper()
	if _, err := s.PutConversation(s.t.Context(), conversation); err != nil {
		s.t.Fatal(err)
	}
	_, hash := turn.NewToken()
	tn := turn.Turn{ID: id, Conversation: conversation, Caller: turn.Caller{User: "u", Department: "d"}}
	if err := s.OpenTurn(s.t.Context(), tn, hash); err != nil {
		s.t.Fatal(err)
	}
	return tn
}

func (s *swept) accept(tn turn.Turn, ids ...string) {
	s.t.Helper()
	var calls []ledger.NewCall
	for _, id := range ids {
		calls = append(calls, ledger.NewCall{ID: id, Tool: "write_file", Kind: "workspace_write", Lane: "file",
			Arguments: []byte(`{}`), Digest: sha256.Sum256([]byte(id))})
	}
	if _, err := s.Accept(s.t.Context(), tn, calls); err != nil {
		s.t.Fatal(err)
	}
}

func (s *swept) key(id string) call.Key {
	return call.Key{Conversation: s.turn.Conversation, Turn: s.turn.ID, Call: id}
}

func (s *swept) work(id string) ledger.Work {
	s.t.Helper()
	w, _, err := s.Look(s.t.Context(), ledger.Event{Conversation: s.turn.Conversation, Turn: s.turn.ID, Call: id}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *swept) claim(id string) ledger.Work {
	s.t.Helper()
	w, err := s.Claim(s.t.Context(), s.work(id))
	if err != nil {
		s.t.Fatalf("claim %s: %v", id, err)
	}
	return w
}

func (s *swept) row(id string) db.Call {
	s.t.Helper()
	c, err := s.Queries().Call(s.t.Context(), db.CallParams{TurnID: s.turn.ID, CallID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// due makes everything that the sweeper looks at due now.
func (s *swept) due() {
	s.t.Helper()
	s.exec(`UPDATE calls SET next_at = clock_timestamp() - interval '1 second'`)
}

// lapse has every lease run out.
func (s *swept) lapse() {
	s.t.Helper()
	s.exec(`UPDATE calls SET next_at = clock_timestamp() - interval '1 second', lease_until = clock_timestamp() - interval '1 second' WHERE state = 'running'`)
}

func (s *swept) exec(sql string) {
	s.t.Helper()
	if _, err := s.Pool().Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *swept) sweep() {
	s.t.Helper()
	if err := s.sweeper.Sweep(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func quiet[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%+v came", v)
	case <-time.After(150 * time.Millisecond):
	}
}

func (s *swept) until(what string, fn func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(soon); !fn(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %s: %s", soon, what)
		}
	}
}

func TestALostEventIsPublishedAgainAndLessAndLessOften(t *testing.T) {
	s := newSwept(t, func(c *ledger.Config) { c.Lease = 30 * time.Second })
	s.accept(s.turn, "c1", "c2")
	s.sweep()
	quiet(t, s.events) // its own event is on its way
	s.due()
	s.sweep()
	if e := next(t, s.events); e != (ledger.Event{Conversation: "k1", Turn: "t1", Call: "c1", Lane: "file", Seq: 1, Generation: 1}) {
		t.Errorf("published %+v: want the head, not as fresh", e)
	}
	s.sweep()
	quiet(t, s.events) // it is due again later
	var waits []float64
	for range 8 {
		s.due()
		s.sweep()
		next(t, s.events)
		var wait float64
		if err := s.Pool().QueryRow(t.Context(), `SELECT extract(epoch FROM next_at - clock_timestamp())::float8 FROM calls WHERE call_id = 'c1'`).Scan(&wait); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	for i, want := range []float64{4, 8, 16, 32, 60, 60, 60, 60} {
		if waits[i] > want || waits[i] < want-3 {
			t.Errorf("look %d is %.1f s off, want %.0f", i+1, waits[i], want)
		}
	}
}

// Whoever takes an event and dies keeps its call from being taken for no longer than a lease.
func TestALostEventIsPublishedAgainWithinALease(t *testing.T) {
	s := newSwept(t, func(c *ledger.Config) { c.Lease = 400 * time.Millisecond })
	s.accept(s.turn, "c1", "c2")
	for _, id := range []string{"c1", "c2"} { // accepted as the head, and released as the next
		var due float64
		err := s.Pool().QueryRow(t.Context(), `SELECT extract(epoch FROM next_at - clock_timestamp())::float8 FROM calls WHERE call_id = $1`, id).Scan(&due)
		if err != nil || due > 0.4 {
			t.Errorf("the event of %s is looked for in %.2f s, %v; want at most 0.4", id, due, err)
		}
		time.Sleep(450 * time.Millisecond)
		s.sweep()
		if e := next(t, s.events); e.Call != id {
			t.Fatalf("published the event of %s, want %s", e.Call, id)
		}
		s.finished(id)
	}
}

func TestEventsOfManyConversationsAreAllPublishedInOneSweep(t *testing.T) {
	s := newSwept(t)
	for i := range 450 {
		s.accept(s.open(fmt.Sprintf("many%d", i), fmt.Sprintf("turn%d", i)), "c1")
	}
	s.due()
	s.sweep()
	got := map[string]bool{}
	for range 450 {
		got[next(t, s.events).Conversation] = true
	}
	if len(got) != 450 {
		t.Errorf("events of %d conversations came, want 450", len(got))
	}
}

func TestACallWhoseWorkerDiedIsReleasedAgainAndAtLastFails(t *testing.T) {
	s := newSwept(t)
	s.accept(s.turn, "c1", "c2")
	for attempt := 1; attempt <= 3; attempt++ {
		if w := s.claim("c1"); w.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", w.Attempt, attempt)
		}
		s.sweep()
		quiet(t, s.events) // the lease runs
		s.lapse()
		s.sweep()
		e := next(t, s.events)
		want := ledger.Event{Conversation: "k1", Turn: "t1", Call: "c1", Lane: "file", Seq: 1, Generation: 1}
		if attempt == 3 {
			want.Call, want.Seq, want.Fresh = "c2", 2, true
		}
		if e != want {
			t.Errorf("after attempt %d %+v is published, want %+v", attempt, e, want)
		}
	}
	r := next(t, s.results)
	if r.CallID != "c1" || r.Status != call.Failed || r.Code != call.WorkerLost || r.Attempt != 3 || !r.IsError {
		t.Errorf("told %+v", r)
	}
	if c := s.row("c1"); c.State != "done" || c.Code != "worker_lost" || c.Attempt != 3 {
		t.Errorf("kept as %s %s after %d attempts", c.State, c.Code, c.Attempt)
	}
	if f, err := s.Finish(t.Context(), s.claim("c2"), ledger.Outcome{Status: call.OK}); err != nil || f.Result.Seq != 2 {
		t.Errorf("the next call: %+v, %v", f.Result, err)
	}
}

func TestACancelledCallWhoseWorkerDiedIsCancelled(t *testing.T) {
	s := newSwept(t)
	s.accept(s.turn, "c1", "c2")
	s.claim("c1")
	if c, err := s.Cancel(t.Context(), "k1", "t1", "c1"); err != nil || !c.Running {
		t.Fatalf("%+v, %v", c, err)
	}
	s.lapse()
	s.sweep()
	if r := next(t, s.results); r.CallID != "c1" || r.Code != call.Cancelled || r.Status != call.Failed {
		t.Errorf("told %+v", r)
	}
	if e := next(t, s.events); e.Call != "c2" {
		t.Errorf("published %+v", e)
	}
}

func TestASweeperThatPausesWhileTheCallEndsDoesNothingTwice(t *testing.T) {
	for _, c := range []struct {
		name      string
		attempts  int
		meanwhile func(s *swept, w ledger.Work)
		state     string
		attempt   int32
	}{
		{"it is finished", 3, func(s *swept, w ledger.Work) {
			if _, err := s.Finish(s.t.Context(), w, ledger.Outcome{Status: call.OK}); err != nil {
				s.t.Error(err)
			}
		}, "done", 1},
		{"it is finished on its last attempt", 1, func(s *swept, w ledger.Work) {
			if _, err := s.Finish(s.t.Context(), w, ledger.Outcome{Status: call.OK}); err != nil {
				s.t.Error(err)
			}
		}, "done", 1},
		{"its lease is extended", 3, func(s *swept, w ledger.Work) {
			if _, err := s.Heartbeat(s.t.Context(), w); err != nil {
				s.t.Error(err)
			}
		}, "running", 1},
		{"its lease is extended on its last attempt", 1, func(s *swept, w ledger.Work) {
			if _, err := s.Heartbeat(s.t.Context(), w); err != nil {
				s.t.Error(err)
			}
		}, "running", 1},
		{"it is handed back and claimed by another", 3, func(s *swept, w ledger.Work) {
			if _, err := s.HandBack(s.t.Context(), w); err != nil {
				s.t.Error(err)
			}
			s.claim("c1")
			s.lapse() // another's lease, and of another token
		}, "running", 1},
		{"its conversation is deleted", 3, func(s *swept, _ ledger.Work) {
			if _, err := s.Delete(s.t.Context(), "k1"); err != nil {
				s.t.Error(err)
			}
		}, "done", 1},
		{"its conversation is deleted on its last attempt", 1, func(s *swept, _ ledger.Work) {
			if _, err := s.Delete(s.t.Context(), "k1"); err != nil {
				s.t.Error(err)
			}
		}, "done", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwept(t, func(cfg *ledger.Config) { cfg.MaxAttempts, cfg.Lease = c.attempts, 30*time.Second })
			s.accept(s.turn, "c1", "c2")
			w := s.claim("c1")
			s.lapse()
			paused := 0
			s.sweeper.BetweenReadAndWrite = func(call.Key) { paused++; c.meanwhile(s, w) }
			s.sweep()
			if row := s.row("c1"); paused != 1 || row.State != c.state || row.Attempt != c.attempt || row.Code == "worker_lost" {
				t.Errorf("paused %d times; the call is %s %s at attempt %d, want %s at %d", paused, row.State, row.Code, row.Attempt, c.state, c.attempt)
			}
			conv, err := s.Conversation(t.Context(), "k1")
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int32{"done": 1, "running": 2}[c.state]
			if strings.Contains(c.name, "deleted") {
				want = 0
			}
			if conv.Open != want {
				t.Errorf("%d calls are open, want %d", conv.Open, want)
			}
		})
	}
}

func TestOneConversationThatIsHeldKeepsNoOtherWaiting(t *testing.T) {
	s := newSwept(t, func(c *ledger.Config) { c.MaxAttempts = 1 })
	other := s.open("a0", "other") // before k1 in every order
	s.accept(other, "c1")
	if _, err := s.Claim(t.Context(), ledger.Work{Key: call.Key{Conversation: "a0", Turn: "other", Call: "c1"}, Generation: 1}); err != nil {
		t.Fatal(err)
	}
	s.lapse()
	time.Sleep(10 * time.Millisecond)
	s.accept(s.turn, "c1")
	s.claim("c1")
	s.exec(`UPDATE calls SET next_at = clock_timestamp(), lease_until = clock_timestamp() WHERE call_id = 'c1' AND turn_id = 't1'`)
	held, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.Background()) }()
	if _, err := held.Exec(t.Context(), `SELECT 1 FROM conversations WHERE id = 'a0' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := s.sweeper.Sweep(t.Context()); err == nil {
		t.Error("the sweep said nothing of the call that it could not end")
	}
	if c := s.row("c1"); c.Code != "worker_lost" {
		t.Errorf("the other conversation's call is %s %s", c.State, c.Code)
	}
}

func TestAStuckConversationIsReleased(t *testing.T) {
	s := newSwept(t)
	s.accept(s.turn, "c1", "c2")
	s.exec(`UPDATE calls SET state = 'queued'`) // as no transaction of ours leaves it
	s.sweep()
	if e := next(t, s.events); e.Call != "c1" || !e.Fresh {
		t.Errorf("published %+v", e)
	}
	if c1, c2 := s.row("c1"), s.row("c2"); c1.State != "released" || c2.State != "queued" {
		t.Errorf("c1 is %s, c2 %s", c1.State, c2.State)
	}
}

func TestHistoryIsKeptWithinItsBoundAndItsBytesGo(t *testing.T) {
	s := newSwept(t, func(c *ledger.Config) { c.Limits.HistoryBytes = 10_000 })
	var before *workspace.Entry
	for i := range 10 {
		id := fmt.Sprintf("c%d", i)
		s.accept(s.turn, id)
		content := []byte(strings.Repeat(fmt.Sprint(i), 3000))
		w := s.claim(id)
		e := workspace.NewEntry("a", content, w.Seq)
		_, err := s.Finish(t.Context(), w, ledger.Outcome{Status: call.OK,
			Changes: []ledger.Change{{Path: "a", Before: before, After: &e, Content: content, MIMEType: "text/plain"}}})
		if err != nil {
			t.Fatal(err)
		}
		before = &e
	}
	s.sweep()
	conv, err := s.Conversation(t.Context(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	var changes, blobs, sum int64
	err = s.Pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM changes), (SELECT count(*) FROM blobs), (SELECT coalesce(sum(before_bytes), 0) FROM changes)`).
		Scan(&changes, &blobs, &sum)
	if err != nil {
		t.Fatal(err)
	}
	// Nine changes replaced 3,000 bytes each; three of them fit.
	if conv.HistoryBytes != 9000 || sum != 9000 || changes != 3 || blobs != 4 || conv.HistoryFloor != 7 || conv.Bytes != 3000 {
		t.Errorf("history %d bytes (%d by its rows) of %d changes with %d contents, floor %d, workspace %d bytes", conv.HistoryBytes, sum, changes,
			blobs, conv.HistoryFloor, conv.Bytes)
	}
}

func TestStagedBytesThatNobodyCameForAreDropped(t *testing.T) {
	s := newSwept(t)
	s.exec(`INSERT INTO staged (id, piece, data, created_at) VALUES ('new', 0, 'x', clock_timestamp() - interval '23 hours'), ('old', 0, 'x', clock_timestamp() - interval '25 hours')`)
	s.sweep()
	var left []string
	if err := s.Pool().QueryRow(t.Context(), `SELECT array_agg(id) FROM staged`).Scan(&left); err != nil || len(left) != 1 || left[0] != "new" {
		t.Errorf("staged are %v, %v; want the new alone", left, err)
	}
}

func TestSweepersTakeTurns(t *testing.T) {
	s := newSwept(t)
	s.accept(s.turn, "c1")
	s.claim("c1")
	s.lapse()
	other := ledger.NewSweeper(s.Ledger, s.queue, nil, zerolog.Nop())
	s.sweeper.BetweenReadAndWrite = func(call.Key) {
		began := time.Now()
		if err := other.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the other one waited %s", took)
		}
		if c := s.row("c1"); c.State != "running" {
			t.Errorf("the other one made the call %s", c.State)
		}
	}
	s.sweep()
	if e := next(t, s.events); e.Call != "c1" {
		t.Errorf("published %+v", e)
	}
	quiet(t, s.events)
}
