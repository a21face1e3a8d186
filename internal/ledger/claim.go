package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// Work is a call that a worker has in hand, and the turn that made it.
type Work struct {
	Key        call.Key
	Turn       turn.Turn
	Tool       string
	Lane       string
	Seq        int64
	Generation int64
	Actor      string
	Arguments  []byte
	// Paths are those that the call's arguments name.
	Paths []string
	// Attempt counts the claims, this one included. 0: nobody has claimed it, and it is finished as a first delivery.
	Attempt int
	Started time.Time
	// Tree is the workspace's tree, where it was asked for.
	Tree *workspace.Tree

	token uuid.UUID
	// alone says that the conversation had no other open call when this one was accepted.
	alone bool
}

// Claimed reports whether the work is held by a lease.
func (w Work) Claimed() bool { return w.Attempt > 0 }

// State of a call, as the ledger has it.
type State string

// The states of a call.
const (
	Queued   State = "queued"
	Released State = "released"
	Running  State = "running"
	Done     State = "done"
)

// Look reads what an event points at. The work is complete only for a call that is released. With tree it also reads the
// records of the workspace's files, in a later statement: while the call is released or running, only finishing it can
// change them.
func (l *Ledger) Look(ctx context.Context, e Event, tree bool) (Work, State, error) {
	var r db.WorkRow
	var there bool
	var files []db.TreeRow
	err := l.onConn(ctx, func(t *tx) error {
		p := &db.Pipeline{}
		p.Work(db.WorkParams{TurnID: e.Turn, CallID: e.Call}, &there, &r)
		if tree {
			p.Tree(e.Conversation, &files)
		}
		return p.Send(ctx, t.conn)
	})
	if err != nil {
		return Work{}, "", fmt.Errorf("read the call: %w", err)
	}
	if !there || r.ConversationID != e.Conversation {
		return Work{}, "", ErrNotThere
	}
	w := Work{
		Key: e.Key(), Tool: r.Tool, Lane: r.Lane, Seq: r.Seq, Generation: r.Generation, Actor: r.Actor,
		Arguments: r.Arguments, Paths: r.Paths, Started: time.Now().UTC(), alone: e.Alone,
		Turn: turn.Turn{
			ID: e.Turn, Conversation: r.ConversationID, Generation: r.TurnGeneration,
			Caller: turn.Caller{User: r.CallerUser, Department: r.Department, Collections: r.Collections},
			Tools:  r.Tools, Skills: r.Skills, Knowledge: r.Knowledge, Vision: r.Vision, Portal: r.Portal, ExpiresAt: r.ExpiresAt,
		},
	}
	if tree {
		w.Tree = store.TreeOf(files)
	}
	return w, State(r.State), nil
}

// Claim takes a released call for the length of a lease, under a fresh token. It returns ErrFenced if the call is not
// there to be taken.
func (l *Ledger) Claim(ctx context.Context, w Work) (Work, error) {
	token := uuid.New()
	row, err := l.q.Claim(ctx, db.ClaimParams{
		TurnID: w.Key.Turn, CallID: w.Key.Call, Generation: w.Generation, Token: token, Lease: l.cfg.Lease.Seconds(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return w, ErrFenced
	}
	if err != nil {
		return w, fmt.Errorf("claim the call: %w", err)
	}
	w.token, w.Attempt, w.alone = token, int(row.Attempt), false // others may come meanwhile
	if row.StartedAt != nil {
		w.Started = row.StartedAt.UTC()
	}
	return w, nil
}

// Heartbeat extends the lease of a claimed call by its whole length from now, by the database's clock. It reports
// whether the call is to be cancelled, and ErrFenced if the lease is another's by now.
func (l *Ledger) Heartbeat(ctx context.Context, w Work) (cancel bool, err error) {
	cancel, err = l.q.Heartbeat(ctx, db.HeartbeatParams{
		TurnID: w.Key.Turn, CallID: w.Key.Call, Token: w.token, Lease: l.cfg.Lease.Seconds(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrFenced
	}
	if err != nil {
		return false, fmt.Errorf("extend the lease: %w", err)
	}
	return cancel, nil
}

// HandBack releases a claimed call that this worker will not finish, and costs it no attempt. The event is to be
// published.
func (l *Ledger) HandBack(ctx context.Context, w Work) (Event, error) {
	n, err := l.q.HandBack(ctx, db.HandBackParams{TurnID: w.Key.Turn, CallID: w.Key.Call, Token: w.token, DueAfter: l.laterDue()})
	if err != nil {
		return Event{}, fmt.Errorf("hand the call back: %w", err)
	}
	if n == 0 {
		return Event{}, ErrFenced
	}
	return Event{Conversation: w.Key.Conversation, Turn: w.Key.Turn, Call: w.Key.Call, Lane: w.Lane, Seq: w.Seq,
		Generation: w.Generation}, nil
}
