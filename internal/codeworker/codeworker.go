// Package codeworker does the calls of lane code: it mounts the workspace and the inputs that a call names in a sandbox, runs
// the call's Python there, and makes what the program left into one outcome. What becomes of it is the ledger's.
package codeworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/sandbox"
	"treeline/internal/store"
	"treeline/internal/worker"
	"treeline/internal/workspace"
)

// Config of a code worker.
type Config struct {
	// Slots is how many runs go on at a time, unless memory allows fewer.
	Slots int
	// MemoryBytes is what all runs together may take; 0 is what the machine or the container has available.
	MemoryBytes int64
	// CacheBytes bounds its cache of file contents.
	CacheBytes int64
	// Grace is how long runs may go on once the worker is told to stop; then they are handed back.
	Grace time.Duration
}

// DefaultConfig gives at most 4 runs at a time in the memory that is available, 32 MiB of cache and a grace of 20 s.
func DefaultConfig() Config { return Config{Slots: 4, CacheBytes: 32 << 20, Grace: 20 * time.Second} }

// Worker is one code worker.
type Worker struct {
	worker.Worker
	slots  int
	driver sandbox.Driver
	inputs Inputs
	blobs  *store.Blobs
	limits workspace.Limits
	// decoding is held while a picture is decoded.
	decoding sync.Mutex
}

// New makes a code worker. The driver stays the caller's to close.
func New(l *ledger.Ledger, q *queue.Queue, t *ledger.Teller, d sandbox.Driver, in Inputs, cfg Config, log zerolog.Logger) *Worker {
	w := &Worker{driver: d, inputs: in, blobs: store.NewBlobs(l.Queries(), cfg.CacheBytes), limits: l.Config().Limits}
	w.slots = slots(cfg, w.limits.RunMemoryBytes, log)
	w.Worker = worker.Worker{Ledger: l, Queue: q, Teller: t, Log: log, Lane: string(catalogue.LaneCode), ClaimAlways: true,
		WithTree: true, Do: w.do}
	return w
}

// Slots is how many runs this worker takes at a time.
func (w *Worker) Slots() int { return w.slots }

// Run does calls until stop is done and what is in hand is settled. When ctx ends, what still runs is handed back.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	unwatch, err := w.WatchCancels()
	if err != nil {
		return err
	}
	defer unwatch()
	return w.Queue.Consume(ctx, stop, w.Lane, w.slots, w.Handle)
}

func (w *Worker) do(ctx context.Context, work ledger.Work) (ledger.Outcome, error) {
	if work.Tool != catalogue.RunCodeTool {
		return w.NoHandler(work), nil
	}
	o, err := w.runCode(ctx, work)
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return ledger.RefusedOutcome(refusal), nil
	}
	if err != nil {
		return ledger.Outcome{}, worker.Internal(work.Tool, err)
	}
	return o, nil
}

// runCode resolves what the call names before a byte is read, then runs it.
func (w *Worker) runCode(ctx context.Context, work ledger.Work) (ledger.Outcome, error) {
	decoded, err := catalogue.Decode(work.Tool, work.Arguments)
	if err != nil {
		return ledger.Outcome{}, err
	}
	args := decoded.(catalogue.RunCode)
	plan, err := w.inputs.Resolve(ctx, work.Turn, args)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if size := plan.Size(); size > w.limits.InputBytes {
		return ledger.Outcome{}, inputsTooLarge(size, w.limits.InputBytes)
	}
	r := &run{Worker: w, work: work, code: args.Code, limit: w.timeLimit(args), plan: plan, before: work.Tree}
	return r.do(ctx)
}

func (w *Worker) timeLimit(args catalogue.RunCode) time.Duration {
	if args.TimeoutSeconds == 0 {
		return w.limits.RunTime
	}
	return min(time.Duration(args.TimeoutSeconds)*time.Second, w.limits.RunTimeMax)
}
