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
	err := l.inTx(ctx, "finish the call", func(q *db.Queries) error {
		generation, err := lock(ctx, q, w.Key.Conversation)
		var deleted *call.Refusal
		if errors.As(err, &deleted) || (err == nil && generation != w.Generation) {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		done, err = l.commitOutcome(ctx, q, w, o, cancelled)
		return err
	})
	if err != nil && !errors.Is(err, ErrFenced) {
		var refusal *call.Refusal
		if !errors.As(err, &refusal) && !errors.Is(err, errCancelRequested) {
			return done, fmt.Errorf("call %s: %w", w.Key, err)
		}
	}
	return done, err
}

func (l *Ledger) commitOutcome(ctx context.Context, q *db.Queries, w Work, o Outcome, cancelled bool) (Finished, error) {
	attempt := max(1, w.Attempt)
	res, stored, err := l.compose(resultFacts{key: w.Key, tool: w.Tool, seq: w.Seq, attempt: attempt, started: w.Started,
		finished: time.Now().UTC(), arguments: w.Arguments}, o)
	if err != nil {
		return Finished{}, err
	}
	if err := l.fence(ctx, q, w, res, stored, cancelled); err != nil {
		return Finished{}, err
	}
	if o.Effect != nil {
		if err := o.Effect(ctx, q); err != nil {
			return Finished{}, err
		}
	}
	delta, err := l.apply(ctx, q, w, o)
	if err != nil {
		return Finished{}, err
	}
	err = q.CloseOpen(ctx, db.CloseOpenParams{ID: w.Key.Conversation, BytesDelta: delta.bytes, FilesDelta: delta.files,
		HistoryDelta: delta.history})
	if err != nil {
		return Finished{}, fmt.Errorf("count the change: %w", err)
	}
	if err := l.checkLimits(ctx, q, w, delta); err != nil {
		return Finished{}, err
	}
	next, err := releaseNext(ctx, q, w.Key.Conversation)
	return Finished{Result: res, Told: stored.told, Next: next}, err
}

// fence makes the call done, if it is still this worker's.
func (l *Ledger) fence(ctx context.Context, q *db.Queries, w Work, res call.Result, stored storedResult, cancelled bool) error {
	paths := pathsOf(w, res)
	var n int64
	var err error
	if w.Claimed() {
		n, err = q.FinishClaimed(ctx, db.FinishClaimedParams{
			TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Status: status(res.Status), Code: string(res.Code),
			Result: stored.told, Output: stored.output, Paths: paths, FinishedAt: res.FinishedAt, Token: w.token, Cancelled: cancelled,
		})
	} else {
		n, err = q.FinishUnclaimed(ctx, db.FinishUnclaimedParams{
			TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Status: status(res.Status), Code: string(res.Code),
			Result: stored.told, Output: stored.output, Paths: paths, StartedAt: res.StartedAt, FinishedAt: res.FinishedAt,
			Cancelled: cancelled,
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("mark the call done: %w", err)
	case n == 1:
		return nil
	case cancelled:
		return ErrFenced
	}
	c, err := q.Call(ctx, db.CallParams{TurnID: w.Key.Turn, CallID: w.Key.Call})
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

type delta struct {
	bytes, history int64
	files          int32
}

// apply writes an outcome's changes: bytes, records, history.
func (l *Ledger) apply(ctx context.Context, q *db.Queries, w Work, o Outcome) (delta, error) {
	if len(o.Reads) > 0 {
		err := q.MarkRead(ctx, db.MarkReadParams{ConversationID: w.Key.Conversation, Seq: w.Seq, Paths: o.Reads})
		if err != nil {
			return delta{}, fmt.Errorf("mark what was read: %w", err)
		}
	}
	if len(o.Changes) == 0 {
		return delta{}, nil
	}
	if err := putBytes(ctx, q, w, o.Changes); err != nil {
		return delta{}, err
	}
	files, removed := db.PutFilesParams{ConversationID: w.Key.Conversation, Revision: w.Seq}, []string{}
	history := db.PutChangesParams{ConversationID: w.Key.Conversation, Seq: w.Seq}
	var d delta
	for _, c := range o.Changes {
		history.Paths, history.Ops = append(history.Paths, c.Path), append(history.Ops, c.Op())
		var before, after []byte
		var beforeBytes, afterBytes int64
		if c.Before != nil {
			before, beforeBytes = c.Before.SHA256[:], c.Before.Bytes
			d.files--
		}
		if c.After != nil {
			after, afterBytes = c.After.SHA256[:], c.After.Bytes
			d.files++
			files.Paths, files.Sha256s = append(files.Paths, c.Path), append(files.Sha256s, after)
			files.Sizes, files.Kinds = append(files.Sizes, c.After.Bytes), append(files.Kinds, string(c.After.Kind))
			files.LineCounts = append(files.LineCounts, int32(c.After.Lines))
			files.CharacterCounts = append(files.CharacterCounts, int64(c.After.Characters))
			files.MimeTypes = append(files.MimeTypes, c.MIMEType)
		} else {
			removed = append(removed, c.Path)
		}
		d.bytes += afterBytes - beforeBytes
		d.history += beforeBytes
		history.BeforeSha256s, history.BeforeSizes = append(history.BeforeSha256s, before), append(history.BeforeSizes, beforeBytes)
		history.AfterSha256s, history.AfterSizes = append(history.AfterSha256s, after), append(history.AfterSizes, afterBytes)
	}
	if len(removed) > 0 {
		if err := q.RemoveFiles(ctx, db.RemoveFilesParams{ConversationID: w.Key.Conversation, Paths: removed}); err != nil {
			return d, fmt.Errorf("remove records of files: %w", err)
		}
	}
	if len(files.Paths) > 0 {
		if err := q.PutFiles(ctx, files); err != nil {
			return d, fmt.Errorf("write records of files: %w", err)
		}
	}
	if err := q.PutChanges(ctx, history); err != nil {
		return d, fmt.Errorf("write the history: %w", err)
	}
	return d, nil
}

func putBytes(ctx context.Context, q *db.Queries, w Work, changes []Change) error {
	for _, c := range changes {
		switch {
		case c.Staged != "":
			err := q.UnstageInto(ctx, db.UnstageIntoParams{ConversationID: w.Key.Conversation, Sha256: c.After.SHA256[:], ID: c.Staged})
			if err != nil {
				return fmt.Errorf("put staged bytes in place: %w", err)
			}
			if err := q.DropStaged(ctx, c.Staged); err != nil {
				return fmt.Errorf("drop staged bytes: %w", err)
			}
		case c.After != nil && (c.Before == nil || c.Before.SHA256 != c.After.SHA256) && c.Content != nil:
			if err := store.PutBlob(ctx, q, w.Key.Conversation, c.After.SHA256, c.Content); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkLimits is the last word on the workspace's limits: it counts in the transaction of the write, whatever a plan
// had believed.
func (l *Ledger) checkLimits(ctx context.Context, q *db.Queries, w Work, d delta) error {
	if d.bytes <= 0 && d.files <= 0 {
		return nil
	}
	c, err := q.Conversation(ctx, w.Key.Conversation)
	if err != nil {
		return fmt.Errorf("count the workspace: %w", err)
	}
	lim := l.cfg.Limits
	if (d.bytes > 0 && c.Bytes > lim.WorkspaceBytes) || (d.files > 0 && int(c.Files) > lim.WorkspaceFiles) {
		return call.Refuse(call.WorkspaceFull, "The workspace would have %d bytes in %d files; at most %d bytes and %d files are allowed. "+
			"Nothing was changed. Delete what is not needed, or write less.", c.Bytes, c.Files, lim.WorkspaceBytes, lim.WorkspaceFiles)
	}
	return nil
}

func releaseNext(ctx context.Context, q *db.Queries, conversation string) (*Event, error) {
	row, err := q.ReleaseNext(ctx, conversation)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("release the next call: %w", err)
	}
	return &Event{Conversation: conversation, Turn: row.TurnID, Call: row.CallID, Lane: row.Lane, Seq: row.Seq,
		Generation: row.Generation, Fresh: true}, nil
}
