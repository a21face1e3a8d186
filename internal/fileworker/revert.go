package fileworker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// portalRevert puts a file, or the whole tree, back to what it was before a call. That is a change like any other: it has
// its place in the history, and limits and names hold for it. Where all is as it was, nothing is changed and all is well.
func (w *Worker) portalRevert(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.PortalRevert)
	if a.BeforeSeq >= c.Seq {
		return ledger.Outcome{}, call.Refuse(call.InvalidArguments, "There is no call %d yet: the last one before this was %d. Nothing was changed.",
			a.BeforeSeq, c.Seq-1)
	}
	if err := checkHistory(ctx, w.Ledger.Queries(), c.Key.Conversation, a.BeforeSeq); err != nil {
		return ledger.Outcome{}, err
	}
	was, err := w.stateBefore(ctx, c, a)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if refusal := w.checkReverted(c.tree, was, a.Path == ""); refusal != nil {
		return ledger.Outcome{}, refusal
	}
	if err := c.memory.take(ctx, toPutBack(was)); err != nil {
		return ledger.Outcome{}, err
	}
	changes, err := w.putBack(ctx, c, was)
	if err != nil {
		return ledger.Outcome{}, err
	}
	data := changeData{Revisions: map[string]int64{}}
	for _, ch := range changes {
		if ch.After != nil {
			data.Revisions[ch.Path] = c.Seq
		}
	}
	o := ok(fmt.Sprintf("Put back to before call %d: %d files changed.", a.BeforeSeq, len(changes)), data)
	o.Changes = changes
	// The bytes that are put back are kept only as long as the history names them.
	o.Effect = func(ctx context.Context, q *db.Queries) error {
		return checkHistory(ctx, q, c.Key.Conversation, a.BeforeSeq)
	}
	return o, nil
}

// checkHistory refuses to go back further than the history does.
func checkHistory(ctx context.Context, q *db.Queries, conversation string, before int64) error {
	row, err := q.Conversation(ctx, conversation)
	if err != nil {
		return fmt.Errorf("read how far the history goes back: %w", err)
	}
	if before <= row.HistoryFloor {
		return call.Refuse(call.HistoryGone, "What was there before call %d is not kept any more: the history begins after call %d. Nothing was "+
			"changed.", before, row.HistoryFloor)
	}
	return nil
}

// past is what was at a path: no bytes where there was no file.
type past struct {
	path string
	sum  *store.SHA256
	size int64
}

// stateBefore gives what is to be put back: of each path what was there, where that is not what is there now.
func (w *Worker) stateBefore(ctx context.Context, c *job, a catalogue.PortalRevert) ([]past, error) {
	rows, err := w.Ledger.Queries().StateBefore(ctx, db.StateBeforeParams{ConversationID: c.Key.Conversation, FromSeq: a.BeforeSeq, Path: a.Path})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	if len(rows) == 0 && a.Path != "" {
		return nil, w.checkKnown(ctx, c, a.Path)
	}
	var was []past
	for _, r := range rows {
		now, there := c.tree.Get(r.Path)
		switch {
		case r.BeforeSha256 == nil && there:
			was = append(was, past{path: r.Path})
		case r.BeforeSha256 != nil:
			sum := store.SHA256(r.BeforeSha256)
			if !there || now.SHA256 != sum {
				was = append(was, past{r.Path, &sum, r.BeforeBytes})
			}
		}
	}
	return was, nil
}

// checkKnown refuses a path that never was a file.
func (w *Worker) checkKnown(ctx context.Context, c *job, path string) error {
	_, refusal := c.tree.Find(path)
	if refusal == nil {
		return nil
	}
	known, err := w.Ledger.Queries().PathInHistory(ctx, db.PathInHistoryParams{ConversationID: c.Key.Conversation, Path: path})
	if err != nil {
		return fmt.Errorf("look for the path in the history: %w", err)
	}
	if known {
		return nil
	}
	return refusal
}

// checkReverted checks names and limits of the tree as it would be. A tree that is whole may have names that look alike, as
// it had them once: runs make such.
func (w *Worker) checkReverted(tree *workspace.Tree, was []past, whole bool) *call.Refusal {
	var written, leaving []string
	room := tree.Room()
	for _, p := range was {
		now, there := tree.Get(p.path)
		if there {
			room.Bytes -= now.Bytes
			room.Files--
		}
		if p.sum == nil {
			leaving = append(leaving, p.path)
			continue
		}
		written = append(written, p.path)
		room.Bytes += p.size
		room.Files++
	}
	refusal := without(tree, leaving).CheckNames(written)
	if refusal != nil && !(whole && refusal.Code == call.PathLookalike) {
		return refusal
	}
	return w.limits.CheckRoom(tree.Room(), room)
}

// without is the tree less the files at paths, which are sorted.
func without(tree *workspace.Tree, paths []string) *workspace.Tree {
	var rest []workspace.Entry
	for _, e := range tree.All() {
		if _, gone := slices.BinarySearch(paths, e.Path); !gone {
			rest = append(rest, e)
		}
	}
	return workspace.NewTree(rest)
}

// putBack makes the changes. What is put back is measured anew, at most fetchAtOnce of it in memory at a time.
func (w *Worker) putBack(ctx context.Context, c *job, was []past) ([]ledger.Change, error) {
	var changes []ledger.Change
	for len(was) > 0 {
		n, size := 0, int64(0)
		var sums []store.SHA256
		for n < len(was) && (n == 0 || size+was[n].size <= fetchAtOnce) {
			if was[n].sum != nil {
				sums, size = append(sums, *was[n].sum), size+was[n].size
			}
			n++
		}
		contents, err := w.blobs.GetAll(ctx, c.Key.Conversation, sums)
		if err != nil {
			return nil, err
		}
		for _, p := range was[:n] {
			changes = append(changes, p.change(c, contents))
		}
		was = was[n:]
	}
	slices.SortFunc(changes, func(a, b ledger.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

// toPutBack is what it takes to measure what is put back, as putBack does: a batch, or one file that is larger.
func toPutBack(was []past) int64 {
	var all, largest int64
	for _, p := range was {
		all, largest = all+p.size, max(largest, p.size)
	}
	return 2 * max(min(all, fetchAtOnce), largest)
}

func (p past) change(c *job, contents map[store.SHA256][]byte) ledger.Change {
	ch := ledger.Change{Path: p.path}
	if now, there := c.tree.Get(p.path); there {
		ch.Before = &now
	}
	if p.sum != nil {
		content := contents[*p.sum]
		after := workspace.NewEntry(p.path, content, c.Seq)
		ch.After, ch.MIMEType = &after, workspace.MIMEType(p.path, content)
	}
	return ch
}
