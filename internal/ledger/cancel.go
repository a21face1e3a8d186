package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store/db"
)

// Cancelling says what cancelling a call came to.
type Cancelling struct {
	// Result is set where the call is done by now: cancelled while it waited, or done before.
	Result *call.Result
	// Told is the result's wire form, where this cancelling ended the call: it is to be told.
	Told []byte
	// Running says that a worker has the call: it is to be told to stop.
	Running bool
	// Next is to be published: the call that was ended was the head.
	Next *Event
}

// Cancel ends a waiting call at once, releasing the next if it was the head, and marks a running one. Cancelling what is
// done changes nothing and gives its result. ErrNotThere: the turn has no such call. It returns the refusal
// conversation_deleted where the conversation is gone.
func (l *Ledger) Cancel(ctx context.Context, conversation, turnID, callID string) (Cancelling, error) {
	var out Cancelling
	err := l.inTx(ctx, "cancel the call", func(q *db.Queries) error {
		out = Cancelling{}
		if _, err := lock(ctx, q, conversation); err != nil {
			return err
		}
		c, err := q.Call(ctx, db.CallParams{TurnID: turnID, CallID: callID})
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotThere
		}
		if err != nil {
			return fmt.Errorf("read the call: %w", err)
		}
		switch State(c.State) {
		case Done:
			if c.Result == nil {
				return refuseDeleted() // and restored since the caller last looked
			}
			out.Result = &call.Result{}
			return json.Unmarshal(c.Result, out.Result)
		case Running:
			n, err := q.RequestCancel(ctx, db.RequestCancelParams{TurnID: turnID, CallID: callID})
			if err != nil {
				return fmt.Errorf("ask the worker to stop: %w", err)
			}
			out.Running = n == 1
			if n == 1 {
				return nil
			}
			return errMoved
		}
		return l.endWaiting(ctx, q, c, cancelledOutcome(), &out)
	})
	return out, err
}

// errMoved says that a call was claimed or handed back between the reading and the writing; the transaction is tried
// again.
var errMoved = errors.New("the call moved on meanwhile")

// endWaiting makes a call done that no worker has begun.
func (l *Ledger) endWaiting(ctx context.Context, q *db.Queries, c db.Call, o Outcome, out *Cancelling) error {
	now := time.Now().UTC()
	key := call.Key{Conversation: c.ConversationID, Turn: c.TurnID, Call: c.CallID}
	res, stored, err := l.compose(resultFacts{key: key, tool: c.Tool, seq: c.Seq, attempt: int(c.Attempt), started: now,
		finished: now, arguments: c.Arguments}, o)
	if err != nil {
		return err
	}
	n, err := q.EndWaiting(ctx, db.EndWaitingParams{TurnID: c.TurnID, CallID: c.CallID, Result: stored.told, FinishedAt: now})
	if err != nil {
		return fmt.Errorf("end the waiting call: %w", err)
	}
	if n == 0 {
		return errMoved
	}
	if _, err := q.CloseOpen(ctx, db.CloseOpenParams{ID: c.ConversationID, Generation: c.Generation}); err != nil {
		return fmt.Errorf("count the call: %w", err)
	}
	out.Result, out.Told = &res, stored.told
	out.Next, err = l.releaseNext(ctx, q, c.ConversationID, c.Seq)
	return err
}
