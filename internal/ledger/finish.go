package ledger

import (
	"context"
	"errors"
	"fmt"
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

func (l *Ledger) finish(ctx context.Context, w Work, o Outcome, cancelled bool) (Finished, error) {
	var done Finished
	err := l.inPipeline(ctx, "finish the call "+w.Key.String(), func(t *tx) error {
		var err error
		done, err = l.commitOutcome(ctx, t, w, o, cancelled)
		return err
	})
	return done, err
}

func (l *Ledger) commitOutcome(ctx context.Context, t *tx, w Work, o Outcome, cancelled bool) (Finished, error) {
	res, stored, err := l.compose(resultFacts{key: w.Key, tool: w.Tool, seq: w.Seq, attempt: max(1, w.Attempt), started: w.Started,
		finished: time.Now().UTC(), arguments: w.Arguments}, o)
	if err != nil {
		return Finished{}, err
	}
	changes := sum(w, o.Changes)
	then, err := l.fence(ctx, t, w, res, stored, changes, cancelled)
	if err != nil {
		return Finished{}, err
	}
	if r := l.checkLimits(then, changes); r != nil {
		return Finished{}, r
	}
	if o.Effect != nil {
		if err := o.Effect(ctx, db.New(t.conn)); err != nil {
			return Finished{}, err
		}
	}
	p, err := t.putBytes(ctx, w.Key.Conversation, o.Changes)
	if err != nil {
		return Finished{}, fmt.Errorf("write the outcome's bytes: %w", err)
	}
	changes.apply(p, w, o)
	var next db.ReleaseNextRow
	var waits bool
	if then.Open > 0 { // under the lock: nobody adds a call meanwhile
		p.ReleaseNext(db.ReleaseNextParams{ConversationID: w.Key.Conversation, Behind: w.Seq}, &waits, &next)
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

// fence takes the lock, counts the changes and makes the call done, if it is still this worker's. It gives what the
// conversation then holds.
func (l *Ledger) fence(ctx context.Context, t *tx, w Work, res call.Result, stored storedResult, c changeSet, cancelled bool) (db.CloseOpenRow, error) {
	var then db.CloseOpenRow
	var there bool
	var n int64
	p := t.pipeline()
	p.CloseOpen(db.CloseOpenParams{ID: w.Key.Conversation, Generation: w.Generation, BytesDelta: c.bytes, FilesDelta: c.files,
		HistoryDelta: c.history}, &there, &then)
	if paths := pathsOf(w, res); w.Claimed() {
		p.FinishClaimed(db.FinishClaimedParams{
			TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Status: status(res.Status), Code: string(res.Code),
			Result: stored.told, Output: stored.output, Paths: paths, FinishedAt: res.FinishedAt, Token: w.token, Cancelled: cancelled,
		}, &n)
	} else {
		p.FinishUnclaimed(db.FinishUnclaimedParams{
			TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Status: status(res.Status), Code: string(res.Code),
			Result: stored.told, Output: stored.output, Paths: paths, StartedAt: res.StartedAt, FinishedAt: res.FinishedAt,
			Cancelled: cancelled,
		}, &n)
	}
	if err := p.Send(ctx, t.conn); err != nil {
		return then, fmt.Errorf("mark the call done: %w", err)
	}
	switch {
	case !there:
		return then, ErrFenced
	case n == 1:
		return then, nil
	case cancelled:
		return then, ErrFenced
	}
	return then, l.whyFenced(ctx, t, w)
}

// whyFenced tells a call that is to be cancelled from one that is another's by now.
func (l *Ledger) whyFenced(ctx context.Context, t *tx, w Work) error {
	c, err := db.New(t.conn).Call(ctx, db.CallParams{TurnID: w.Key.Turn, CallID: w.Key.Call})
	if err != nil {
		return fmt.Errorf("read the call again: %w", err)
	}
	if c.CancelRequested && c.State == string(Running) && c.Token != nil && *c.Token == w.token {
		return errCancelRequested
	}
	return ErrFenced
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
	put            db.PutFilesParams
	removed        []string
	rows           db.PutChangesParams
}

func sum(w Work, changes []Change) changeSet {
	s := changeSet{put: db.PutFilesParams{ConversationID: w.Key.Conversation, Revision: w.Seq},
		rows: db.PutChangesParams{ConversationID: w.Key.Conversation, Seq: w.Seq}}
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
		s.put.Paths, s.put.Sha256s = append(s.put.Paths, c.Path), append(s.put.Sha256s, after)
		s.put.Sizes, s.put.Kinds = append(s.put.Sizes, c.After.Bytes), append(s.put.Kinds, string(c.After.Kind))
		s.put.LineCounts = append(s.put.LineCounts, int32(c.After.Lines))
		s.put.CharacterCounts = append(s.put.CharacterCounts, int64(c.After.Characters))
		s.put.MimeTypes = append(s.put.MimeTypes, c.MIMEType)
	} else {
		s.removed = append(s.removed, c.Path)
	}
	s.bytes += afterBytes - beforeBytes
	s.history += beforeBytes
	s.rows.Paths, s.rows.Ops = append(s.rows.Paths, c.Path), append(s.rows.Ops, c.Op())
	s.rows.BeforeSha256s, s.rows.BeforeSizes = append(s.rows.BeforeSha256s, before), append(s.rows.BeforeSizes, beforeBytes)
	s.rows.AfterSha256s, s.rows.AfterSizes = append(s.rows.AfterSha256s, after), append(s.rows.AfterSizes, afterBytes)
}

// apply writes records and history.
func (s changeSet) apply(p *db.Pipeline, w Work, o Outcome) {
	if len(o.Reads) > 0 {
		p.MarkRead(db.MarkReadParams{ConversationID: w.Key.Conversation, Seq: w.Seq, Paths: o.Reads})
	}
	if len(o.Changes) == 0 {
		return
	}
	if len(s.removed) > 0 {
		p.RemoveFiles(db.RemoveFilesParams{ConversationID: w.Key.Conversation, Paths: s.removed})
	}
	if len(s.put.Paths) > 0 {
		p.PutFiles(s.put)
	}
	p.PutChanges(s.rows)
}

// queuedBytes is how many bytes of content are sent together, at least: what is queued is in memory a second time.
const queuedBytes = 4 * store.PieceSize

// putBytes writes the changed files' bytes, unless the conversation has them. The last of them wait in the pipeline that it
// gives.
func (t *tx) putBytes(ctx context.Context, conversation string, changes []Change) (*db.Pipeline, error) {
	p, queued := t.pipeline(), 0
	for _, c := range changes {
		if c.Staged != "" {
			p.UnstageInto(db.UnstageIntoParams{ConversationID: conversation, Sha256: c.After.SHA256[:], ID: c.Staged})
			p.DropStaged(c.Staged)
		}
		for i, piece := range c.pieces() {
			if queued >= queuedBytes {
				if err := p.Send(ctx, t.conn); err != nil {
					return nil, err
				}
				p, queued = t.pipeline(), 0
			}
			p.PutPiece(db.PutPieceParams{ConversationID: conversation, Sha256: c.After.SHA256[:], Piece: int32(i), Data: piece})
			queued += len(piece)
		}
	}
	return p, nil
}

// pieces are those of the bytes that a change brings.
func (c Change) pieces() [][]byte {
	if c.Staged != "" || c.After == nil || c.Content == nil || c.Before != nil && c.Before.SHA256 == c.After.SHA256 {
		return nil
	}
	return store.Pieces(c.Content)
}

// checkLimits is the last word on the workspace's limits: it counts under the lock of the write, whatever a plan had
// believed.
func (l *Ledger) checkLimits(then db.CloseOpenRow, c changeSet) *call.Refusal {
	room := workspace.Room{Bytes: then.Bytes, Files: int(then.Files)}
	return l.cfg.Limits.CheckRoom(workspace.Room{Bytes: room.Bytes - c.bytes, Files: room.Files - int(c.files)}, room)
}

// releaseNext releases the oldest call that waits behind a place in the order, if the conversation has no head.
func releaseNext(ctx context.Context, q *db.Queries, conversation string, behind int64) (*Event, error) {
	row, err := q.ReleaseNext(ctx, db.ReleaseNextParams{ConversationID: conversation, Behind: behind})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("release the next call: %w", err)
	}
	return nextEvent(conversation, row), nil
}
