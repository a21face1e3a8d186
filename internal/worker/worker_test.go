package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
	"treeline/internal/worker"
)

func TestMain(m *testing.M) { devtest.Main(m) }

const soon = 30 * time.Second

// bench is a worker of lane file, whose calls do what the test says, on a real database and a real queue.
type bench struct {
	*worker.Worker
	t       *testing.T
	nats    *devenv.NATS
	turn    turn.Turn
	results <-chan call.Result
	events  <-chan ledger.Event

	mu     sync.Mutex
	doing  worker.Do
	begun  chan ledger.Work
	stop   func()
	config ledger.Config
}

type option func(b *bench, url *string)

func on(address string) option { return func(_ *bench, url *string) { *url = address } }
func lease(d time.Duration) option {
	return func(b *bench, _ *string) { b.config.Lease = d }
}

// newBench makes a worker whose calls are ok, and do not come from the queue before start.
func newBench(t *testing.T, options ...option) *bench {
	t.Helper()
	b := &bench{t: t, nats: devtest.NATS(t), begun: make(chan ledger.Work, 1000), config: ledger.DefaultConfig()}
	url := ""
	for _, o := range options {
		o(b, &url)
	}
	if url == "" {
		url = devtest.Postgres(t, store.Migrate).URL
	}
	pool, err := store.Open(t.Context(), url, 10)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.Connect(context.Background(), queue.Options{URL: b.nats.URL(), Name: "test"}, queue.DefaultConfig(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(pool, b.config)
	b.Worker = &worker.Worker{Ledger: l, Queue: q, Teller: ledger.NewTeller(l, q, zerolog.Nop()), Log: zerolog.Nop(), Lane: "file", Do: b.do}
	b.doing = func(context.Context, ledger.Work) (ledger.Outcome, error) {
		return ledger.Outcome{Status: call.OK}, nil
	}
	b.results, b.events = listen[call.Result](b, "treeline.results.>"), listen[ledger.Event](b, "treeline.calls.>")
	t.Cleanup(func() { q.Close(); pool.Close() })
	b.turn = turn.Turn{ID: "t1", Conversation: "k1", Caller: turn.Caller{User: "u", Department: "d"}}
	if _, err := l.PutConversation(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	_, hash := turn.NewToken()
	if err := l.OpenTurn(t.Context(), b.turn, hash); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) do(ctx context.Context, w ledger.Work) (ledger.Outcome, error) {
	b.mu.Lock()
	doing := b.doing
	b.mu.Unlock()
	b.begun <- w
	return doing(ctx, w)
}

// does says what calls do from now on.
func (b *bench) does(doing worker.Do) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doing = doing
}

// start takes calls from the queue until the test ends.
func (b *bench) start(slots int) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Queue.Consume(ctx, ctx.Done(), "file", slots, b.Handle); err != nil {
			b.t.Errorf("consume: %v", err)
		}
	})
	b.stop = func() { cancel(); running.Wait() }
	b.t.Cleanup(b.stop)
}

func listen[T any](b *bench, subject string) <-chan T {
	b.t.Helper()
	got := make(chan T, 1000)
	sub, err := b.Queue.Conn().Subscribe(subject, func(m *nats.Msg) {
		var v T
		if err := json.Unmarshal(m.Data, &v); err != nil {
			b.t.Errorf("%s: %v", m.Data, err)
		}
		got <- v
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = sub.Unsubscribe() })
	return got
}

// accept accepts calls and gives their events, which are not published.
func (b *bench) accept(lane string, ids ...string) []ledger.Event {
	b.t.Helper()
	var calls []ledger.NewCall
	for _, id := range ids {
		calls = append(calls, ledger.NewCall{ID: id, Tool: "write_file", Kind: "k", Lane: lane, Arguments: []byte(`{}`), Digest: sha256.Sum256([]byte(id))})
	}
	accepted, err := b.Ledger.Accept(b.t.Context(), b.turn, calls)
	if err != nil {
		b.t.Fatal(err)
	}
	var events []ledger.Event
	for i, a := range accepted {
		events = append(events, ledger.Event{Conversation: "k1", Turn: "t1", Call: ids[i], Lane: lane, Seq: a.Seq, Generation: 1, Fresh: true})
	}
	return events
}

func (b *bench) handle(e ledger.Event, first bool) {
	b.t.Helper()
	if err := b.Handle(b.t.Context(), queue.Delivery{Event: e, First: first}); err != nil {
		b.t.Fatalf("%+v: %v", e, err)
	}
}

func (b *bench) row(id string) db.Call {
	b.t.Helper()
	c, err := b.Ledger.Queries().Call(b.t.Context(), db.CallParams{TurnID: "t1", CallID: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bench) states(ids ...string) string {
	var s string
	for _, id := range ids {
		s += b.row(id).State + " "
	}
	return s[:len(s)-1]
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

func TestAFirstDeliveryIsDoneWithoutAClaimAndBringsTheNext(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1", "c2")
	b.handle(e[0], true)
	if w := next(t, b.begun); w.Attempt != 0 || w.Claimed() {
		t.Errorf("done as attempt %d", w.Attempt)
	}
	if r := next(t, b.results); r.CallID != "c1" || r.Status != call.OK || r.Attempt != 1 || r.Seq != 1 {
		t.Errorf("told %+v", r)
	}
	if got := next(t, b.events); got != e[1] {
		t.Errorf("published %+v, want %+v", got, e[1])
	}
}

func TestALaterDeliveryIsClaimed(t *testing.T) {
	b := newBench(t)
	b.handle(b.accept("file", "c1")[0], false)
	if w := next(t, b.begun); w.Attempt != 1 {
		t.Errorf("done as attempt %d", w.Attempt)
	}
	if r := next(t, b.results); r.Status != call.OK || r.Attempt != 1 {
		t.Errorf("told %+v", r)
	}
}

func TestAnEventOfAFinishedCallTellsItAgainAndPublishesTheHead(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1", "c2")
	b.handle(e[0], true)
	first := next(t, b.results)
	next(t, b.begun)
	next(t, b.events)
	b.handle(e[0], false)
	again := next(t, b.results)
	if again.CallID != "c1" || !again.FinishedAt.Equal(first.FinishedAt) {
		t.Errorf("told again as %+v, want %+v", again, first)
	}
	stale := e[1]
	stale.Fresh = false
	if got := next(t, b.events); got != stale {
		t.Errorf("published %+v, want the head %+v", got, stale)
	}
	quiet(t, b.begun)
}

func TestEventsThatAreNotAsTheLedgerHasItAreHarmless(t *testing.T) {
	b := newBench(t)
	if _, err := b.Ledger.PutConversation(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	e := b.accept("file", "c1", "c2")
	code := b.accept("code", "c3")[0]
	good := e[0]
	for name, change := range map[string]func(e *ledger.Event){
		"an unknown call":           func(e *ledger.Event) { e.Call = "nobody" },
		"an unknown turn":           func(e *ledger.Event) { e.Turn = "nobody" },
		"an unknown conversation":   func(e *ledger.Event) { e.Conversation = "nobody" },
		"another's conversation":    func(e *ledger.Event) { e.Conversation = "k2" },
		"a generation to come":      func(e *ledger.Event) { e.Generation = 2 },
		"a generation that is past": func(e *ledger.Event) { e.Generation = 0 },
		"a call that waits": func(e *ledger.Event) {
			*e = ledger.Event{Conversation: "k1", Turn: "t1", Call: "c2", Lane: "file", Generation: 1, Fresh: true}
		},
		"another lane's, that waits":  func(e *ledger.Event) { *e = code },
		"another lane's, as this one": func(e *ledger.Event) { *e = code; e.Lane = "file" },
	} {
		forged := good
		change(&forged)
		for _, first := range []bool{true, false} {
			b.handle(forged, first)
			if got := b.states("c1", "c2", "c3"); got != "released queued queued" {
				t.Fatalf("after the event of %s the calls are %s", name, got)
			}
		}
	}
	quiet(t, b.begun)
	quiet(t, b.results)
	wrong := good
	wrong.Seq, wrong.Lane = 99, "code" // the ledger knows better
	b.handle(wrong, true)
	if got := b.states("c1", "c2", "c3"); got != "done released queued" {
		t.Errorf("the calls are %s", got)
	}
	b.handle(e[1], true)
	b.handle(code, true) // it is released by now, and not this lane's
	if got := b.states("c1", "c2", "c3"); got != "done done released" {
		t.Errorf("the calls are %s", got)
	}
}

func TestAnEventOfARunningCallIsDroppedAndLeavesItToItsWorker(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1")[0]
	work, _, err := b.Ledger.Look(t.Context(), e, false)
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.Ledger.Claim(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	b.handle(e, true)
	b.handle(e, false)
	quiet(t, b.begun)
	if f, err := b.Ledger.Finish(t.Context(), held, ledger.Outcome{Status: call.OK}); err != nil || f.Result.Status != call.OK {
		t.Errorf("the holder finishes %+v, %v", f, err)
	}
}

func TestWorkThatAnotherClaimedMeanwhileHasNoEffect(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1")[0]
	b.does(func(ctx context.Context, w ledger.Work) (ledger.Outcome, error) {
		other, err := b.Ledger.Claim(ctx, w)
		if err != nil {
			t.Error(err)
		}
		b.does(func(context.Context, ledger.Work) (ledger.Outcome, error) {
			return ledger.Outcome{}, errors.New("not again")
		})
		t.Cleanup(func() {
			f, err := b.Ledger.Finish(context.Background(), other, ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text("the other's")}})
			if err != nil || call.TextOf(f.Result.Content) != "the other's" {
				t.Errorf("the other finishes %+v, %v", f, err)
			}
		})
		return ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text("mine")}}, nil
	})
	b.handle(e, true)
	if c := b.row("c1"); c.State != "running" || c.Attempt != 1 {
		t.Errorf("the call is %s at attempt %d", c.State, c.Attempt)
	}
	quiet(t, b.results)
	next(t, b.begun)
	quiet(t, b.begun)
}

func TestAPanicFailsTheCallAndTheConversationGoesOn(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			b := newBench(t)
			e := b.accept("file", "c1", "c2")
			b.does(func(_ context.Context, w ledger.Work) (ledger.Outcome, error) {
				if w.Key.Call == "c1" {
					panic("secret of the caller")
				}
				return ledger.Outcome{Status: call.OK}, nil
			})
			b.start(2)
			if !first {
				e[0].Fresh = false
			}
			if err := b.Queue.PublishEvent(t.Context(), e[0]); err != nil {
				t.Fatal(err)
			}
			failed, after := next(t, b.results), next(t, b.results)
			if failed.CallID != "c1" || failed.Status != call.Failed || failed.Code != call.Internal || !failed.IsError {
				t.Errorf("told %+v", failed)
			}
			if after.CallID != "c2" || after.Status != call.OK {
				t.Errorf("then told %+v", after)
			}
			if raw, _ := json.Marshal(failed); strings.Contains(string(raw), "secret") {
				t.Errorf("the result shows what the panic said: %s", raw)
			}
			quiet(t, b.results)
		})
	}
}

func TestAPanicInTheEffectFailsTheCallAndTheConversationGoesOn(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1", "c2")
	b.does(func(_ context.Context, w ledger.Work) (ledger.Outcome, error) {
		o := ledger.Outcome{Status: call.OK}
		if w.Key.Call == "c1" {
			o.Effect = func(context.Context, *db.Queries) error { panic("in the transaction") }
		}
		return o, nil
	})
	b.start(1)
	if err := b.Queue.PublishEvent(t.Context(), e[0]); err != nil {
		t.Fatal(err)
	}
	failed, after := next(t, b.results), next(t, b.results)
	if failed.CallID != "c1" || failed.Status != call.Failed || failed.Code != call.Internal {
		t.Errorf("told %+v", failed)
	}
	if after.CallID != "c2" || after.Status != call.OK {
		t.Errorf("then told %+v", after)
	}
}

func TestWhatFailsForTheMomentIsTriedAgainUnderAClaim(t *testing.T) {
	b := newBench(t)
	var tries atomic.Int32
	b.does(func(context.Context, ledger.Work) (ledger.Outcome, error) {
		if tries.Add(1) < 3 {
			return ledger.Outcome{}, errors.New("the database is away")
		}
		return ledger.Outcome{Status: call.OK}, nil
	})
	b.handle(b.accept("file", "c1")[0], true)
	if r := next(t, b.results); r.Status != call.OK || r.Attempt != 1 || tries.Load() != 3 {
		t.Errorf("after %d tries told %+v", tries.Load(), r)
	}
}

func TestARefusalOfTheEffectIsTheResult(t *testing.T) {
	b := newBench(t)
	b.does(func(context.Context, ledger.Work) (ledger.Outcome, error) {
		return ledger.Outcome{Status: call.OK, Effect: func(context.Context, *db.Queries) error {
			return call.Refuse(call.ArtifactReadOnly, "no")
		}}, nil
	})
	b.handle(b.accept("file", "c1")[0], true)
	if r := next(t, b.results); r.Status != call.Refused || r.Code != call.ArtifactReadOnly || call.TextOf(r.Content) != "no" {
		t.Errorf("told %+v", r)
	}
}

func TestACallDuringWhichTheDatabaseIsKilledIsDoneOnceItIsBack(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			postgres, database := devtest.OwnPostgres(t, store.Migrate)
			b := newBench(t, on(database.URL), lease(5*time.Second))
			e := b.accept("file", "c1", "c2")
			killed := false
			b.does(func(context.Context, ledger.Work) (ledger.Outcome, error) {
				if !killed {
					killed = true
					if err := postgres.Kill(); err != nil {
						t.Error(err)
					}
					time.AfterFunc(time.Second, func() {
						if err := postgres.Start(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				return ledger.Outcome{Status: call.OK}, nil
			})
			b.handle(e[0], first)
			if r := next(t, b.results); r.CallID != "c1" || r.Status != call.OK {
				t.Errorf("told %+v", r)
			}
			if got := next(t, b.events); got.Call != "c2" {
				t.Errorf("published %+v", got)
			}
		})
	}
}

func TestAQueueThatIsAwayWhileACallEndsHoldsNothingBack(t *testing.T) {
	b := newBench(t)
	e := b.accept("file", "c1", "c2")
	b.does(func(context.Context, ledger.Work) (ledger.Outcome, error) {
		return ledger.Outcome{Status: call.OK}, b.nats.Stop()
	})
	began := time.Now()
	b.handle(e[0], true) // the result stands; telling it is the sweeper's
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := b.states("c1", "c2"); got != "done released" {
		t.Errorf("the calls are %s", got)
	}
	if err := b.nats.Start(); err != nil {
		t.Fatal(err)
	}
	if b.row("c1").ToldSeq != nil {
		t.Error("a telling that never was is on record")
	}
}

func TestAWorkerThatIsToldToStopAtOnceHandsClaimedWorkBack(t *testing.T) {
	b := newBench(t)
	b.does(func(ctx context.Context, _ ledger.Work) (ledger.Outcome, error) {
		<-ctx.Done()
		return ledger.Outcome{}, ctx.Err()
	})
	e := b.accept("file", "c1")[0]
	e.Fresh = false
	b.start(1)
	if err := b.Queue.PublishEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	next(t, b.begun)
	next(t, b.events)
	b.stop()
	if c := b.row("c1"); c.State != "released" || c.Attempt != 0 {
		t.Errorf("the call is %s at attempt %d", c.State, c.Attempt)
	}
	if got := next(t, b.events); got != e {
		t.Errorf("published %+v, want %+v", got, e)
	}
}
