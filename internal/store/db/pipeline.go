package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pipeline sends several of the generated statements in one round trip. Each still sees what is true when it begins, as
// statements sent one by one do; after an error the rest is not carried out, and no results are to be used.
type Pipeline struct{ batch pgx.Batch }

// Begin starts a transaction.
func (p *Pipeline) Begin() { p.batch.Queue("begin") }

// BeginLazily starts a transaction whose commit does not wait for the disk.
func (p *Pipeline) BeginLazily() {
	p.batch.Queue("begin")
	p.batch.Queue("set local synchronous_commit = off")
}

// Commit ends it.
func (p *Pipeline) Commit() { p.batch.Queue("commit") }

// Len is the number of statements so far.
func (p *Pipeline) Len() int { return p.batch.Len() }

// Send carries the statements out.
func (p *Pipeline) Send(ctx context.Context, conn *pgx.Conn) error {
	return conn.SendBatch(ctx, &p.batch).Close()
}

// Queue adds a generated statement that gives no rows: Queue(p, (*Queries).Finish, FinishParams{...}).
func Queue[A any](p *Pipeline, statement func(*Queries, context.Context, A) error, arg A) {
	_ = statement(New(queued{p}), context.Background(), arg) // only Send finds errors
}

// queued takes the place of a connection, and keeps the statements for later.
type queued struct{ p *Pipeline }

func (q queued) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q.p.batch.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

func (queued) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errNoRows }

func (queued) QueryRow(context.Context, string, ...any) pgx.Row { return noRow{} }

var errNoRows = errors.New("a queued statement gives no rows")

type noRow struct{}

func (noRow) Scan(...any) error { return errNoRows }

func (p *Pipeline) execRows(into *int64, sql string, args ...any) {
	p.batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		*into = tag.RowsAffected()
		return nil
	})
}

// row reads one row, and none into found = false.
func (p *Pipeline) row(found *bool, sql string, args []any, fields ...any) {
	p.batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		*found = false
		for rows.Next() {
			*found = true
			if err := rows.Scan(fields...); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// LockConversation is Queries.LockConversation.
func (p *Pipeline) LockConversation(id string, found *bool, i *LockConversationRow) {
	p.row(found, lockConversation, []any{id}, &i.Generation, &i.DeletedAt, &i.Bytes, &i.Files)
}

// ShareConversation is Queries.ShareConversation.
func (p *Pipeline) ShareConversation(id string, found *bool, i *LockConversationRow) {
	p.row(found, shareConversation, []any{id}, &i.Generation, &i.DeletedAt)
}

// AcceptFacts is Queries.AcceptFacts.
func (p *Pipeline) AcceptFacts(turn string, found *bool, i *AcceptFactsRow) {
	p.row(found, acceptFacts, []any{turn}, &i.TakesCalls, &i.Open, &i.LastSeq)
}

// ExistingCalls is Queries.ExistingCalls.
func (p *Pipeline) ExistingCalls(arg ExistingCallsParams, into *[]ExistingCallsRow) {
	p.batch.Queue(existingCalls, arg.TurnID, arg.CallIds).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ExistingCallsRow])
		return err
	})
}

// InsertDoneCall is Queries.InsertDoneCall.
func (p *Pipeline) InsertDoneCall(a InsertDoneCallParams, into *int64) {
	p.execRows(into, insertDoneCall, a.TurnID, a.ConversationID, a.Generation, a.Tool, a.Kind, a.Arguments, a.Paths, a.Code, a.Result,
		a.Output, a.ResultRef, a.StartedAt, a.FinishedAt, a.CallID, a.ArgumentsSha256, a.Status, a.Attempt)
}

// ReleaseNext is Queries.ReleaseNext.
func (p *Pipeline) ReleaseNext(a ReleaseNextParams, found *bool, i *ReleaseNextRow) {
	p.row(found, releaseNext, []any{a.ConversationID, a.DueAfter, a.Behind}, &i.TurnID, &i.CallID, &i.Lane, &i.Seq, &i.Generation)
}

// Work is Queries.Work.
func (p *Pipeline) Work(arg WorkParams, found *bool, i *WorkRow) {
	p.row(found, work, []any{arg.TurnID, arg.CallID}, &i.ConversationID, &i.Tool, &i.Lane, &i.Seq, &i.Generation, &i.Actor, &i.Arguments,
		&i.Paths, &i.State, &i.TurnGeneration, &i.Portal, &i.CallerUser, &i.Department, &i.Collections, &i.Tools, &i.Skills,
		&i.Knowledge, &i.Vision, &i.ExpiresAt)
}

// Tree is Queries.Tree.
func (p *Pipeline) Tree(conversation string, into *[]TreeRow) {
	p.batch.Queue(tree, conversation).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[TreeRow])
		return err
	})
}
