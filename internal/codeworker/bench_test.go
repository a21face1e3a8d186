package codeworker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/sandbox"
	"treeline/internal/sandbox/local"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	devtest.Main(m)
}

// bench is a conversation with a turn, a database, a queue and a sandbox of its own, and the parts of a code worker.
type bench struct {
	t      *testing.T
	ledger *ledger.Ledger
	queue  *queue.Queue
	teller *ledger.Teller
	driver sandbox.Driver
	turn   turn.Turn
	log    zerolog.Logger
	calls  int
	// database and nats are servers that a test made itself.
	database string
	nats     *devenv.NATS
}

type option func(*bench, *ledger.Config)

func lease(d time.Duration) option { return func(_ *bench, c *ledger.Config) { c.Lease = d } }
func limits(set func(*workspace.Limits)) option {
	return func(_ *bench, c *ledger.Config) { set(&c.Limits) }
}
func vision(b *bench, _ *ledger.Config) { b.turn.Vision = true }
func driven(d sandbox.Driver) option    { return func(b *bench, _ *ledger.Config) { b.driver = d } }

func stored(url string) option     { return func(b *bench, _ *ledger.Config) { b.database = url } }
func queued(n *devenv.NATS) option { return func(b *bench, _ *ledger.Config) { b.nats = n } }

func newBench(t *testing.T, options ...option) *bench {
	t.Helper()
	b := &bench{t: t, log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)}
	b.turn = turn.Turn{ID: "t1", Conversation: "k1", Generation: 1, Caller: turn.Caller{User: "u", Department: "d"}}
	cfg := ledger.DefaultConfig()
	for _, o := range options {
		o(b, &cfg)
	}
	if b.driver == nil {
		b.driver = newDriver(t)
	}
	if b.database == "" {
		b.database = devtest.Postgres(t, store.Migrate).URL
	}
	if b.nats == nil {
		b.nats = devtest.NATS(t)
	}
	pool, err := store.Open(t.Context(), b.database, 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.ledger = ledger.New(pool, cfg)
	b.queue, err = queue.Connect(t.Context(), queue.Options{URL: b.nats.URL(), Name: "test"}, queue.DefaultConfig(), b.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.queue.Close)
	b.teller = ledger.NewTeller(b.ledger, b.queue, b.log)
	if _, err := b.ledger.PutConversation(t.Context(), b.turn.Conversation); err != nil {
		t.Fatal(err)
	}
	_, hash := turn.NewToken()
	if err := b.ledger.OpenTurn(t.Context(), b.turn, hash); err != nil {
		t.Fatal(err)
	}
	return b
}

func newDriver(t *testing.T) *local.Driver {
	t.Helper()
	d, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// start runs a worker until the test ends, or until one of the functions it gives: stop lets runs end, kill does not. Both
// return when the worker has.
func (b *bench) start(in Inputs, cfg Config) (stop, kill func()) {
	b.t.Helper()
	w := New(b.ledger, b.queue, b.teller, b.driver, in, cfg, b.log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	stopping := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx, stopping); err != nil {
			b.t.Errorf("worker: %v", err)
		}
	})
	once := sync.OnceFunc(func() { close(stopping) })
	stop = func() { once(); running.Wait() }
	kill = func() { once(); cancel(); running.Wait() }
	b.t.Cleanup(kill)
	return stop, kill
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.MemoryBytes = 4 << 30
	return cfg
}

// seed puts files into the workspace, as write_file would, and gives the revision.
func (b *bench) seed(files map[string]string) int64 {
	b.t.Helper()
	w, _ := b.accept("write_file", "file", map[string]any{"path": "x"})
	o := ledger.Outcome{Status: call.OK}
	for path, content := range files {
		e := workspace.NewEntry(path, []byte(content), w.Seq)
		o.Changes = append(o.Changes, ledger.Change{Path: path, After: &e, Content: []byte(content), MIMEType: "text/plain"})
	}
	if _, err := b.ledger.Finish(b.t.Context(), w, o); err != nil {
		b.t.Fatal(err)
	}
	return w.Seq
}

// accept accepts a call and gives it as a worker would find it.
func (b *bench) accept(tool, lane string, args map[string]any) (ledger.Work, ledger.Event) {
	b.t.Helper()
	b.calls++
	id := "c" + strconv.Itoa(b.calls)
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = b.ledger.Accept(b.t.Context(), b.turn, []ledger.NewCall{{ID: id, Tool: tool, Kind: "code", Lane: lane, Arguments: raw,
		Digest: sha256.Sum256(raw)}})
	if err != nil {
		b.t.Fatal(err)
	}
	e := ledger.Event{Conversation: b.turn.Conversation, Turn: b.turn.ID, Call: id, Lane: lane, Generation: 1, Fresh: true}
	w, _, err := b.ledger.Look(b.t.Context(), e, false)
	if err != nil {
		b.t.Fatal(err)
	}
	e.Seq = w.Seq
	return w, e
}

// send accepts a run and publishes that it is ready.
func (b *bench) send(code string, more map[string]any) call.Key {
	b.t.Helper()
	args := map[string]any{"code": code}
	for k, v := range more {
		args[k] = v
	}
	w, e := b.accept("run_code", "code", args)
	if err := b.queue.PublishEvent(b.t.Context(), e); err != nil {
		b.t.Fatal(err)
	}
	return w.Key
}

func (b *bench) row(k call.Key) db.Call {
	b.t.Helper()
	c, err := b.ledger.Queries().Call(b.t.Context(), db.CallParams{TurnID: k.Turn, CallID: k.Call})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// until waits for the call to be in a state.
func (b *bench) until(k call.Key, state ledger.State) db.Call {
	b.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		if c := b.row(k); c.State == string(state) {
			return c
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatalf("call %s is %s, want %s", k, b.row(k).State, state)
	return db.Call{}
}

// answer is a result with its data read.
type answer struct {
	call.Result
	data   data
	stored data // what is stored whole, where that is more
	text   string
	whole  string // the stored text
}

func (b *bench) answer(k call.Key) answer {
	b.t.Helper()
	c := b.until(k, ledger.Done)
	var a answer
	if err := json.Unmarshal(c.Result, &a.Result); err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(a.Data, &a.data); err != nil {
		b.t.Fatal(err)
	}
	a.text = call.TextOf(a.Content)
	a.stored, a.whole = a.data, a.text
	if c.Output != nil {
		var own store.OwnOutput
		if err := json.Unmarshal(c.Output, &own); err != nil {
			b.t.Fatal(err)
		}
		if err := json.Unmarshal(own.Data, &a.stored); err != nil {
			b.t.Fatal(err)
		}
		a.whole = own.Text
	}
	return a
}

// do runs code to its result.
func (b *bench) do(code string, more map[string]any) answer {
	b.t.Helper()
	return b.answer(b.send(code, more))
}

// files reads the whole workspace.
func (b *bench) files() map[string]string {
	b.t.Helper()
	q := b.ledger.Queries()
	tree, err := store.Tree(b.t.Context(), q, b.turn.Conversation)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	blobs := store.NewBlobs(q, 0)
	for _, e := range tree.All() {
		content, err := blobs.Get(b.t.Context(), b.turn.Conversation, e.SHA256)
		if err != nil {
			b.t.Fatal(err)
		}
		if got := workspace.NewEntry(e.Path, content, e.Revision); got.SHA256 != e.SHA256 || got.Bytes != e.Bytes {
			b.t.Errorf("%s: the record does not describe its bytes", e.Path)
		}
		out[e.Path] = string(content)
	}
	return out
}

func (b *bench) revisions() map[string]int64 {
	b.t.Helper()
	tree, err := store.Tree(b.t.Context(), b.ledger.Queries(), b.turn.Conversation)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, e := range tree.All() {
		out[e.Path] = e.Revision
	}
	return out
}

// residentBytes is what this process has in memory now.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
