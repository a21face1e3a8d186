package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// Finished is what a finishing transaction left to do: tell the result, publish the next call.
type Finished struct {
	Result call.Result
	// Told is the result's wire form.
	Told []byte
	// Next is the conversation's next call, if one waits.
	Next *Event
}

// Finish commits a call's effect, its result, its trace step, its place in the order and the release of the next as one
// transaction. It returns ErrFenced, with nothing changed, if the call is not this worker's any more. A call whose
// cancelling was asked for commits as cancelled, whatever the outcome.
func (l *Ledger) Finish(ctx context.Context, w Work, o Outcome) (Finished, error) {
	f, err := l.finish(ctx, w, o, false)
	var refusal *call.Refusal
	switch {
	case errors.As(err, &refusal):
		return l.finish(ctx, w, RefusedOutcome(refusal), false)
	case errors.Is(err, errCancelRequested):
		return l.finish(ctx, w, cancelledOutcome(), true)
	}
	return f, err
}

var errCancelRequested = errors.New("cancelling was asked for")

func cancelledOutcome() Outcome {
	return FailedOutcome(call.Cancelled, "The call was cancelled. Nothing of it was kept.")
}

// finish commits an outcome, or finds out why it cannot be.
func (l *Ledger) finish(ctx context.Context, w Work, o Outcome, cancelled bool) (Finished, error) {
	var done Finished
	for range 3 {
		err := l.inPipeline(ctx, "finish the call "+w.Key.String(), func(t *tx) error {
			var err error
			done, err = l.commitOutcome(ctx, t, w, o, cancelled)
			return err
		})
		if !hasMoved(err) {
			return done, err
		}
		if err := l.whyMoved(ctx, w, o, cancelled); err != nil {
			return Finished{}, err
		}
		w.alone = false // another call may have come: that is reason enough
	}
	return Finished{}, fmt.Errorf("finish the call %s: %w", w.Key, errMoved)
}

func (l *Ledger) commitOutcome(ctx context.Context, t *tx, w Work, o Outcome, cancelled bool) (Finished, error) {
	res, stored, err := l.compose(resultFacts{key: w.Key, tool: w.Tool, seq: w.Seq, attempt: max(1, w.Attempt), started: w.Started,
		finished: time.Now().UTC(), arguments: w.Arguments}, o)
	if err != nil {
		return Finished{}, err
	}
	small := o.contentBytes() < queuedBytes
	t.oneTrip = o.Effect == nil && small
	changes := sum(w, o.Changes)
	p := t.pipeline()
	l.fence(p, w, res, stored, changes, cancelled)
	if o.Effect != nil {
		if err := p.Send(ctx, t.conn); err != nil {
			return Finished{}, fmt.Errorf("mark the call done: %w", err)
		}
		if err := o.Effect(ctx, db.New(t.conn)); err != nil {
			return Finished{}, err
		}
		p = t.pipeline()
	}
	if small {
		changes.carry(o.Changes)
	} else if p, err = t.putBytes(ctx, p, w.Key.Conversation, o.Changes); err != nil {
		return Finished{}, fmt.Errorf("write the outcome's bytes: %w", err)
	}
	changes.apply(p, w, o)
	var next db.ReleaseNextRow
	var waits bool
	if !w.alone { // the fence holds that nobody is to be released
		p.ReleaseNext(db.ReleaseNextParams{ConversationID: w.Key.Conversation, Behind: w.Seq, DueAfter: l.freshDue()}, &waits, &next)
	}
	if err := t.commit(ctx, p); err != nil {
		return Finished{}, fmt.Errorf("write the outcome: %w", err)
	}
	f := Finished{Result: res, Told: stored.told}
	if waits {
		f.Next = nextEvent(w.Key.Conversation, next)
	}
	return f, nil
}

func nextEvent(conversation string, row db.ReleaseNextRow) *Event {
	return &Event{Conversation: conversation, Turn: row.TurnID, Call: row.CallID, Lane: row.Lane, Seq: row.Seq,
		Generation: row.Generation, Fresh: true}
}

// fence takes the lock, counts the changes and makes the call done, if it is still this worker's and there is room. If not,
// the transaction ends there.
func (l *Ledger) fence(p *db.Pipeline, w Work, res call.Result, stored storedResult, c changeSet, cancelled bool) {
	f := db.FinishParams{
		ConversationID: w.Key.Conversation, TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Cancelled: cancelled,
		BytesDelta: c.bytes, FilesDelta: c.files, HistoryDelta: c.history,
		MostBytes: l.cfg.Limits.WorkspaceBytes, MostFiles: int32(l.cfg.Limits.WorkspaceFiles), MostHistory: l.cfg.Limits.HistoryBytes, MostOpen: math.MaxInt32,
		Status: string(res.Status), Code: string(res.Code), Result: stored.told, Output: stored.output, Paths: pathsOf(w, res),
		StartedAt: res.StartedAt, FinishedAt: res.FinishedAt,
	}
	if w.Claimed() {
		f.Token = &w.token
	}
	if w.alone {
		f.MostOpen = 1
	}
	db.Queue(p, (*db.Queries).Finish, f)
}

// whyMoved tells a call that is another's by now from one that is to be cancelled and from one that no longer fits. Nil: what
// stood against it has gone, so that it may be tried again.
func (l *Ledger) whyMoved(ctx context.Context, w Work, o Outcome, cancelled bool) error {
	c, err := l.q.Call(ctx, db.CallParams{TurnID: w.Key.Turn, CallID: w.Key.Call})
	if err != nil {
		return fmt.Errorf("read the call again: %w", err)
	}
	ours := c.State == string(Released) && c.Attempt == 0
	if w.Claimed() {
		ours = c.State == string(Running) && c.Token != nil && *c.Token == w.token
	}
	switch {
	case !ours || c.Generation != w.Generation || cancelled:
		return ErrFenced
	case c.CancelRequested:
		return errCancelRequested
	}
	now, err := l.Conversation(ctx, w.Key.Conversation)
	if err != nil {
		return err
	}
	changes, room := sum(w, o.Changes), workspace.Room{Bytes: now.Bytes, Files: int(now.Files)}
	then := workspace.Room{Bytes: room.Bytes + changes.bytes, Files: room.Files + int(changes.files)}
	if then.Bytes < 0 || then.Files < 0 {
		return ErrFenced // it was done on another tree than this
	}
	if r := l.cfg.Limits.CheckRoom(room, then); r != nil {
		return r
	}
	return nil
}

// pathsOf are the paths of a call's step: those it named and those it changed.
func pathsOf(w Work, res call.Result) []string {
	paths := slices.Concat(w.Paths, res.Changes.Created, res.Changes.Modified, res.Changes.Deleted)
	slices.Sort(paths)
	return orNone(slices.Compact(paths))
}

// changeSet is an outcome's changes in the form in which they are written.
type changeSet struct {
	bytes, history int64
	files          int32
	removed        []string
	rows           db.PutChangesParams
}

func sum(w Work, changes []Change) changeSet {
	s := changeSet{rows: db.PutChangesParams{ConversationID: w.Key.Conversation, Seq: w.Seq}}
	for _, c := range changes {
		s.add(c)
	}
	return s
}

func (s *changeSet) add(c Change) {
	var before, after []byte
	var beforeBytes, afterBytes int64
	if c.Before != nil {
		before, beforeBytes = c.Before.SHA256[:], c.Before.Bytes
		s.files--
	}
	if c.After != nil {
		after, afterBytes = c.After.SHA256[:], c.After.Bytes
		s.files++
		s.rows.Paths, s.rows.Sha256s = append(s.rows.Paths, c.Path), append(s.rows.Sha256s, after)
		s.rows.Sizes, s.rows.Kinds = append(s.rows.Sizes, c.After.Bytes), append(s.rows.Kinds, string(c.After.Kind))
		s.rows.LineCounts = append(s.rows.LineCounts, int32(c.After.Lines))
		s.rows.CharacterCounts = append(s.rows.CharacterCounts, int64(c.After.Characters))
		s.rows.MimeTypes = append(s.rows.MimeTypes, c.MIMEType)
	} else {
		s.removed = append(s.removed, c.Path)
	}
	s.bytes += afterBytes - beforeBytes
	s.history += beforeBytes
	s.rows.Changed, s.rows.Ops = append(s.rows.Changed, c.Path), append(s.rows.Ops, c.Op())
	s.rows.BeforeSha256s, s.rows.BeforeSizes = append(s.rows.BeforeSha256s, before), append(s.rows.BeforeSizes, beforeBytes)
	s.rows.AfterSha256s, s.rows.AfterSizes = append(s.rows.AfterSha256s, after), append(s.rows.AfterSizes, afterBytes)
}

// apply writes records and history.
func (s changeSet) apply(p *db.Pipeline, w Work, o Outcome) {
	if len(o.Reads) > 0 {
		db.Queue(p, (*db.Queries).MarkRead, db.MarkReadParams{ConversationID: w.Key.Conversation, Seq: w.Seq, Paths: o.Reads})
	}
	if len(o.Changes) == 0 {
		return
	}
	for _, c := range o.Changes {
		if c.Staged != "" {
			db.Queue(p, (*db.Queries).UnstageInto, db.UnstageIntoParams{ConversationID: w.Key.Conversation, Sha256: c.After.SHA256[:], ID: c.Staged})
			db.Queue(p, (*db.Queries).DropStaged, c.Staged)
		}
	}
	if len(s.removed) > 0 {
		db.Queue(p, (*db.Queries).RemoveFiles, db.RemoveFilesParams{ConversationID: w.Key.Conversation, Paths: s.removed})
	}
	db.Queue(p, (*db.Queries).PutChanges, s.rows)
}

// queuedBytes is how many bytes of content are sent together, at least: what is queued is in memory a second time.
const queuedBytes = 4 * store.PieceSize

// putBytes writes the changed files' bytes, unless the conversation has them. The last of them wait in the pipeline that it
// gives.
func (t *tx) putBytes(ctx context.Context, p *db.Pipeline, conversation string, changes []Change) (*db.Pipeline, error) {
	queued := 0
	for _, c := range changes {
		for i, piece := range c.pieces() {
			if queued >= queuedBytes {
				if err := p.Send(ctx, t.conn); err != nil {
					return nil, err
				}
				p, queued = t.pipeline(), 0
			}
			db.Queue(p, (*db.Queries).PutPiece, db.PutPieceParams{ConversationID: conversation, Sha256: c.After.SHA256[:], Piece: int32(i), Data: piece})
			queued += len(piece)
		}
	}
	return p, nil
}

// carry has the changed files' bytes written with their records.
func (s *changeSet) carry(changes []Change) {
	for _, c := range changes {
		for i, piece := range c.pieces() {
			s.rows.Contents, s.rows.Pieces = append(s.rows.Contents, c.After.SHA256[:]), append(s.rows.Pieces, int32(i))
			s.rows.Data = append(s.rows.Data, piece)
		}
	}
}

// contentBytes is how many bytes of content an outcome brings.
func (o Outcome) contentBytes() int {
	n := 0
	for _, c := range o.Changes {
		n += len(c.Content)
	}
	return n
}

// pieces are those of the bytes that a change brings.
func (c Change) pieces() [][]byte {
	if c.Staged != "" || c.After == nil || c.Content == nil || c.Before != nil && c.Before.SHA256 == c.After.SHA256 {
		return nil
	}
	return store.Pieces(c.Content)
}

// releaseNext releases the oldest call that waits behind a place in the order, if the conversation has no head.
func (l *Ledger) releaseNext(ctx context.Context, q *db.Queries, conversation string, behind int64) (*Event, error) {
	row, err := q.ReleaseNext(ctx, db.ReleaseNextParams{ConversationID: conversation, Behind: behind, DueAfter: l.freshDue()})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("release the next call: %w", err)
	}
	return nextEvent(conversation, row), nil
}
