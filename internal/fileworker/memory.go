package fileworker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"treeline/internal/catalogue"
	"treeline/internal/queue"
	"treeline/internal/workspace"
)

const (
	// smallWork is what a call may hold without being counted, so that small calls never wait for large ones.
	smallWork = 1 << 20
	// lineMemory is what one line of a file that is cut into lines takes.
	lineMemory = 24
	// sourceBytes is the most that a stored result may have.
	sourceBytes = 16 << 20
)

// budget bounds the bytes of file contents, and of what is made of them, that all calls in hand hold together. A call takes
// what it may need before it fetches anything, and once: no call waits while it holds some. One that needs more than there
// is altogether has all of it, and so goes on alone.
type budget struct {
	size int64
	room *semaphore.Weighted

	mu         sync.Mutex
	held, most int64 // most is what was held at a time at most
}

func newBudget(size int64) *budget { return &budget{size: size, room: semaphore.NewWeighted(size)} }

func (b *budget) count(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n
	b.most = max(b.most, b.held)
}

// share is what one call holds of the budget, until it is given back once the call's outcome is committed.
type share struct {
	budget *budget
	bytes  int64
}

// take waits until there is room for n bytes. What an earlier try of the same call had taken is given back first.
func (s *share) take(ctx context.Context, n int64) error {
	s.giveBack()
	if n <= smallWork {
		return nil
	}
	n = min(n, s.budget.size)
	if err := s.budget.room.Acquire(ctx, n); err != nil {
		return fmt.Errorf("wait for memory: %w", err)
	}
	s.bytes = n
	s.budget.count(n)
	return nil
}

func (s *share) giveBack() {
	if s.bytes > 0 {
		s.budget.count(-s.bytes)
		s.budget.room.Release(s.bytes)
		s.bytes = 0
	}
}

type shareKey struct{}

// Handle settles one delivery. What its call holds of the worker's memory it holds until the outcome is committed.
func (w *Worker) Handle(ctx context.Context, d queue.Delivery) error {
	s := &share{budget: w.memory}
	defer s.giveBack()
	return w.Worker.Handle(context.WithValue(ctx, shareKey{}, s), d)
}

// toRead is what it takes to have a file and look through it: its bytes, as they come and as they are joined, and its lines.
func toRead(e workspace.Entry) int64 { return 2*e.Bytes + lineMemory*int64(e.Lines) }

// toReadAll is what it takes to look through files one after the other, as content fetches them.
func toReadAll(want []workspace.Entry) int64 {
	var size, together, alone int64
	for _, e := range want {
		if size += e.Bytes; size <= fetchAtOnce {
			together += 2 * e.Bytes
		}
		alone = max(alone, toRead(e))
	}
	return together + alone
}

// toChange is what it takes to make a file of so many bytes of one that is there, and to tell the difference.
func toChange(e workspace.Entry, after int64) int64 {
	lines := int64(e.Lines)
	if e.Bytes > 0 && after > e.Bytes {
		lines = lines * after / e.Bytes
	}
	return 2*(e.Bytes+after) + lineMemory*(int64(e.Lines)+lines)
}

// written bounds what a text takes in a file, whose newlines may be longer.
func written(text string) int64 { return int64(len(text) + strings.Count(text, "\n")) }

// grown bounds what edits may make of a file of so many bytes; past most they are refused.
func grown(bytes int64, edits []workspace.Edit, most int64) int64 {
	for _, e := range edits {
		switch {
		case e.Text != nil:
			bytes += written(*e.Text)
		case e.Find == nil || e.Replace == nil || *e.Find == "":
		case e.All != nil && *e.All:
			bytes += bytes / int64(len(*e.Find)) * max(0, written(*e.Replace)-int64(len(*e.Find)))
		default:
			bytes += written(*e.Replace)
		}
		if bytes >= most {
			return most
		}
	}
	return bytes
}

// toWrite is what it takes to write files: stored results that they are taken from, and whole files that they replace.
func (w *Worker) toWrite(c *job, files []catalogue.WriteTarget) int64 {
	var n, sources int64
	for _, f := range files {
		size := int64(sourceBytes)
		if f.Source == nil {
			size = int64(len(*f.Content))
		} else {
			sources++
		}
		n += size
		if e, there := c.tree.Get(f.Path); there && !w.long(e) {
			n += toChange(e, size)
		}
	}
	if sources > 0 {
		n += 2 * sourceBytes // while one is read and decoded
	}
	return n
}
