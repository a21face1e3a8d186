// Package fileworker applies the calls of lane file: one handler a tool, each planning in internal/workspace and leaving
// the writing to the ledger's finishing transaction.
package fileworker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/worker"
	"treeline/internal/workspace"
)

// Config of a file worker.
type Config struct {
	// Slots is how many calls, of different conversations, it does at a time.
	Slots int
	// CacheBytes bounds its cache of file contents.
	CacheBytes int64
	// MemoryBytes bounds what all calls in hand hold together of files, beside the cache. A call that needs more goes on
	// alone. 0 for the default.
	MemoryBytes int64
}

// DefaultConfig gives 16 slots, 64 MiB of cache and 256 MiB of memory.
func DefaultConfig() Config { return Config{Slots: 16, CacheBytes: 64 << 20, MemoryBytes: 256 << 20} }

// Worker is one file worker.
type Worker struct {
	worker.Worker
	cfg      Config
	blobs    *store.Blobs
	limits   workspace.Limits
	handlers map[string]handler
	memory   *budget
	// decoding is held while a picture is decoded.
	decoding sync.Mutex
}

// handler does one tool's call. A *call.Refusal as the error is the call's result; any other error is the system's.
type handler func(ctx context.Context, c *job) (ledger.Outcome, error)

// New makes a file worker.
func New(l *ledger.Ledger, q *queue.Queue, t *ledger.Teller, cfg Config, log zerolog.Logger) *Worker {
	if cfg.MemoryBytes <= 0 {
		cfg.MemoryBytes = DefaultConfig().MemoryBytes
	}
	w := &Worker{cfg: cfg, blobs: store.NewBlobs(l.Queries(), cfg.CacheBytes), limits: l.Config().Limits, memory: newBudget(cfg.MemoryBytes)}
	w.Worker = worker.Worker{Ledger: l, Queue: q, Teller: t, Log: log, Lane: string(catalogue.LaneFile), WithTree: true, Do: w.do}
	w.handlers = map[string]handler{
		"list_files":    w.listFiles,
		"read_file":     w.readFile,
		"search_files":  w.searchFiles,
		"write_file":    w.writeFile,
		"edit_file":     w.editFile,
		"delete_file":   w.deleteFile,
		"move_file":     w.moveFile,
		"portal_put":    w.portalPut,
		"portal_delete": w.portalDelete,
		"portal_revert": w.portalRevert,
		"save_artifact": w.saveArtifact,
		"edit_artifact": w.editArtifact,
	}
	return w
}

// Run does calls until stop is done and what is in hand is settled, or until ctx ends.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	return w.Queue.Consume(ctx, stop, w.Lane, w.cfg.Slots, w.Handle)
}

// job is one call being done.
type job struct {
	ledger.Work
	arguments any
	tree      *workspace.Tree
	memory    *share
}

func (w *Worker) do(ctx context.Context, work ledger.Work) (ledger.Outcome, error) {
	h, ok := w.handlers[work.Tool]
	if !ok {
		return w.NoHandler(work), nil
	}
	arguments, err := catalogue.Decode(work.Tool, work.Arguments)
	if err != nil {
		return ledger.Outcome{}, worker.Internal(work.Tool, err)
	}
	memory, handled := ctx.Value(shareKey{}).(*share)
	if !handled {
		memory = &share{budget: w.memory}
		defer memory.giveBack()
	}
	o, err := h(ctx, &job{Work: work, arguments: arguments, tree: work.Tree, memory: memory})
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return ledger.RefusedOutcome(refusal), nil
	}
	if err != nil {
		return ledger.Outcome{}, worker.Internal(work.Tool, err)
	}
	return o, nil
}

// fetchAtOnce bounds how much content one query brings into memory; what a call wants beyond it comes file by file.
const fetchAtOnce = 16 << 20

// content gives the reader of a tree's files, for which it takes memory. What a call wants is fetched in one query, up to
// fetchAtOnce.
func (w *Worker) content(ctx context.Context, c *job, want []workspace.Entry) (workspace.ContentFunc, error) {
	var sums []store.SHA256
	var size int64
	for _, e := range want {
		if size += e.Bytes; size <= fetchAtOnce {
			sums = append(sums, e.SHA256)
		}
	}
	if err := c.memory.take(ctx, toReadAll(want)); err != nil {
		return nil, err
	}
	got, err := w.blobs.GetAll(ctx, c.Key.Conversation, sums)
	if err != nil {
		return nil, err
	}
	return func(path string) ([]byte, error) {
		e, ok := c.tree.Get(path)
		if !ok {
			return nil, fmt.Errorf("the file %q is not in the tree", path)
		}
		if b, ok := got[e.SHA256]; ok {
			return b, nil
		}
		return w.blobs.Get(ctx, c.Key.Conversation, e.SHA256)
	}, nil
}

// whole gives a file's bytes.
func (w *Worker) whole(ctx context.Context, c *job, e workspace.Entry) ([]byte, error) {
	return w.blobs.Get(ctx, c.Key.Conversation, e.SHA256)
}

// beginning gives a file's first bytes: all of a small one, and one piece of another.
func (w *Worker) beginning(ctx context.Context, c *job, e workspace.Entry) ([]byte, error) {
	if e.Bytes <= store.PieceSize {
		return w.blobs.Get(ctx, c.Key.Conversation, e.SHA256)
	}
	b, err := w.Ledger.Queries().Piece(ctx, db.PieceParams{ConversationID: c.Key.Conversation, Sha256: e.SHA256[:]})
	if err != nil {
		return nil, fmt.Errorf("read the beginning of a file: %w", err)
	}
	return b, nil
}

func ok(text string, data any) ledger.Outcome {
	return ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text(text)}, Data: data}
}
