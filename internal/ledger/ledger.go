// Package ledger is the order, the once and the fence: accept, claim, heartbeat, finish, cancel, delete and sweep. Every
// transaction that changes a conversation first locks its row and decides in a later statement, because under READ
// COMMITTED a statement keeps the snapshot that it began with even after it has waited for the lock.
package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// Config bounds the ledger.
type Config struct {
	Limits workspace.Limits
	// Lease is how long a claim lasts without a heartbeat.
	Lease time.Duration
	// MaxAttempts is how many workers may die over one call before it fails.
	MaxAttempts int
	// Kept is how long the stream keeps results: what it has lost of that time is told again.
	Kept time.Duration
}

// DefaultConfig gives the defaults of the specification: a lease of 30 s and 3 attempts.
func DefaultConfig() Config {
	return Config{Limits: workspace.DefaultLimits(), Lease: 30 * time.Second, MaxAttempts: 3, Kept: 24 * time.Hour}
}

const (
	// freshEvent is how long the event of a call that was just released may take before the sweeper publishes another.
	freshEvent = 5 * time.Second
	// laterEvent is how long each further one may; then twice as long, and so on.
	laterEvent = 2 * time.Second
)

// freshDue is freshEvent in seconds, and no more than a lease: whoever is killed delays nothing for longer.
func (l *Ledger) freshDue() float64 { return min(freshEvent, l.cfg.Lease).Seconds() }

func (l *Ledger) laterDue() float64 { return min(laterEvent, l.cfg.Lease).Seconds() }

// Ledger is the calls of all conversations in Postgres. It is safe for concurrent use.
type Ledger struct {
	pool *pgxpool.Pool
	q    *db.Queries
	cfg  Config
}

// New makes a ledger over a migrated database.
func New(pool *pgxpool.Pool, cfg Config) *Ledger {
	return &Ledger{pool: pool, q: db.New(pool), cfg: cfg}
}

// Config gives the bounds the ledger works with.
func (l *Ledger) Config() Config { return l.cfg }

// Queries gives the plain queries, for reading outside any transaction.
func (l *Ledger) Queries() *db.Queries { return l.q }

// Pool gives the pool that the ledger works on.
func (l *Ledger) Pool() *pgxpool.Pool { return l.pool }

// Event says that a call is ready to be done. It only points at the ledger's row, which decides: a forged, stale or
// repeated event is harmless.
type Event struct {
	Conversation string `json:"conversationId"`
	Turn         string `json:"turnId"`
	Call         string `json:"callId"`
	Lane         string `json:"lane"`
	Seq          int64  `json:"seq"`
	Generation   int64  `json:"generation"`
	// Fresh marks the first event of a release. Only its first delivery may be finished without a claim.
	Fresh bool `json:"fresh,omitempty"`
	// Alone says that no other call of the conversation was open: there may be none to release when this one is finished.
	Alone bool `json:"alone,omitempty"`
}

// Key names the event's call.
func (e Event) Key() call.Key {
	return call.Key{Conversation: e.Conversation, Turn: e.Turn, Call: e.Call}
}

// ErrFenced says that a call is no longer this worker's to finish: another took it over, it was done already, or its
// conversation was deleted. The work must be thrown away.
var ErrFenced = errors.New("the call is no longer this worker's")

// ErrNotThere says that a conversation, turn or call does not exist.
var ErrNotThere = errors.New("not there")

// ResultRef names the stored result of a call within its conversation.
func ResultRef(k call.Key) string {
	sum := sha256.Sum256([]byte(k.String()))
	return call.ReservedPrefix + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])[:26]
}

// inTx runs fn in one transaction. What the database itself broke off (a deadlock, or two who met at one unique key) is
// tried again, at most three times in all; fn must therefore leave nothing behind outside the transaction.
func (l *Ledger) inTx(ctx context.Context, what string, fn func(q *db.Queries) error) error {
	var err error
	for range 3 {
		err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return fn(l.q.WithTx(tx)) })
		if !brokenOff(err) {
			break
		}
	}
	return wrap(what, err)
}

// wrap says what was being done when the system failed. What callers tell apart stays as it is.
func wrap(what string, err error) error {
	var refusal *call.Refusal
	if err == nil || errors.As(err, &refusal) || errors.Is(err, ErrFenced) || errors.Is(err, ErrNotThere) ||
		errors.Is(err, errCancelRequested) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// tx is one transaction on one connection, whose statements travel in pipelines.
type tx struct {
	conn *pgx.Conn
	// within says that somebody else begins and commits.
	within bool
	// oneTrip says that all of it travels in one pipeline, which is a transaction by itself.
	oneTrip bool
	// lazy has the commit not wait for the disk.
	lazy  bool
	begun bool
}

// pipeline starts a pipeline; the transaction's first begins it.
func (t *tx) pipeline() *db.Pipeline {
	p := &db.Pipeline{}
	if !t.within && !t.oneTrip && !t.begun {
		t.begun = true
		if t.lazy {
			p.BeginLazily()
		} else {
			p.Begin()
		}
	}
	return p
}

// commit sends what is left of the transaction, and ends it.
func (t *tx) commit(ctx context.Context, p *db.Pipeline) error {
	if t.begun {
		p.Commit()
	}
	return p.Send(ctx, t.conn)
}

// inPipeline is inTx for the calls' hot path. An error rolls back.
func (l *Ledger) inPipeline(ctx context.Context, what string, fn func(t *tx) error) error {
	var err error
	for range 3 {
		if err = l.onConn(ctx, fn); !brokenOff(err) {
			break
		}
	}
	return wrap(what, err)
}

func (l *Ledger) onConn(ctx context.Context, fn func(t *tx) error) error {
	c, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	defer c.Release() // closes a connection that is still within a transaction
	t := &tx{conn: c.Conn()}
	if err = fn(t); err == nil || c.Conn().PgConn().TxStatus() == 'I' || c.Conn().IsClosed() {
		return err
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
	defer cancel()
	if _, failed := c.Conn().Exec(back, "rollback"); failed != nil {
		_ = c.Conn().Close(back)
	}
	return err
}

// rollbackWithin bounds a rollback; a connection that takes longer is closed, which rolls back as well.
const rollbackWithin = 2 * time.Second

// hasMoved reports that a statement found that what it was to change has moved on, and that so nothing was kept.
func hasMoved(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "TL001"
}

func brokenOff(err error) bool {
	if errors.Is(err, errMoved) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40P01", "40001", "23505": // deadlock, serialization failure, unique violation
		return true
	}
	return false
}

// lock takes the conversation's lock. It tells a deleted conversation apart.
func lock(ctx context.Context, q *db.Queries, conversation string) (generation int64, err error) {
	row, err := q.LockConversation(ctx, conversation)
	return locked(row.Generation, row.DeletedAt, err)
}

// share takes the lock of calls that touch no workspace, which only a deletion makes wait.
func share(ctx context.Context, q *db.Queries, conversation string) (generation int64, err error) {
	row, err := q.ShareConversation(ctx, conversation)
	return locked(row.Generation, row.DeletedAt, err)
}

func locked(generation int64, deleted *time.Time, err error) (int64, error) {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, ErrNotThere
	case err != nil:
		return 0, fmt.Errorf("lock the conversation: %w", err)
	case deleted != nil:
		return 0, refuseDeleted()
	}
	return generation, nil
}

func refuseDeleted() *call.Refusal {
	return call.Refuse(call.ConversationDeleted,
		"This conversation was deleted, and its workspace with it. Nothing was done; no further call of this turn can work.")
}

func refuseClosed() *call.Refusal {
	return call.Refuse(call.TurnClosed, "This turn is closed or has expired: it takes no more calls. Nothing was done. "+
		"The results of its earlier calls can still be read.")
}
