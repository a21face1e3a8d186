package db

import (
	"context"

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

func (p *Pipeline) exec(sql string, args ...any) { p.batch.Queue(sql, args...) }

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

// TakeSeqs is Queries.TakeSeqs.
func (p *Pipeline) TakeSeqs(arg TakeSeqsParams) { p.exec(takeSeqs, arg.ID, arg.N) }

// InsertCall is Queries.InsertCall.
func (p *Pipeline) InsertCall(a InsertCallParams) {
	p.exec(insertCall, a.TurnID, a.CallID, a.ConversationID, a.Generation, a.Seq, a.Tool, a.Kind, a.Lane, a.Actor, a.Arguments,
		a.ArgumentsSha256, a.Paths, a.State, a.ResultRef, a.DueAfter)
}

// InsertDoneCall is Queries.InsertDoneCall.
func (p *Pipeline) InsertDoneCall(a InsertDoneCallParams, into *int64) {
	p.execRows(into, insertDoneCall, a.TurnID, a.CallID, a.ConversationID, a.Generation, a.Tool, a.Kind, a.Arguments,
		a.ArgumentsSha256, a.Paths, a.Status, a.Code, a.Result, a.Output, a.ResultRef, a.StartedAt, a.FinishedAt, a.Attempt)
}

// FinishClaimed is Queries.FinishClaimed.
func (p *Pipeline) FinishClaimed(a FinishClaimedParams, into *int64) {
	p.execRows(into, finishClaimed, a.TurnID, a.CallID, a.Generation, a.Status, a.Code, a.Result, a.Output, a.Paths, a.FinishedAt,
		a.Token, a.Cancelled)
}

// FinishUnclaimed is Queries.FinishUnclaimed.
func (p *Pipeline) FinishUnclaimed(a FinishUnclaimedParams, into *int64) {
	p.execRows(into, finishUnclaimed, a.TurnID, a.CallID, a.Generation, a.Status, a.Code, a.Result, a.Output, a.Paths, a.StartedAt,
		a.FinishedAt, a.Cancelled)
}

// MarkRead is Queries.MarkRead.
func (p *Pipeline) MarkRead(a MarkReadParams) { p.exec(markRead, a.ConversationID, a.Seq, a.Paths) }

// PutPiece is Queries.PutPiece.
func (p *Pipeline) PutPiece(a PutPieceParams) {
	p.exec(putPiece, a.ConversationID, a.Sha256, a.Piece, a.Data)
}

// UnstageInto is Queries.UnstageInto.
func (p *Pipeline) UnstageInto(a UnstageIntoParams) {
	p.exec(unstageInto, a.ID, a.ConversationID, a.Sha256)
}

// DropStaged is Queries.DropStaged.
func (p *Pipeline) DropStaged(id string) { p.exec(dropStaged, id) }

// RemoveFiles is Queries.RemoveFiles.
func (p *Pipeline) RemoveFiles(a RemoveFilesParams) { p.exec(removeFiles, a.ConversationID, a.Paths) }

// PutFiles is Queries.PutFiles.
func (p *Pipeline) PutFiles(a PutFilesParams) {
	p.exec(putFiles, a.ConversationID, a.Paths, a.Revision, a.Sha256s, a.Sizes, a.Kinds, a.LineCounts, a.CharacterCounts, a.MimeTypes)
}

// PutChanges is Queries.PutChanges.
func (p *Pipeline) PutChanges(a PutChangesParams) {
	p.exec(putChanges, a.ConversationID, a.Seq, a.Paths, a.Ops, a.BeforeSha256s, a.BeforeSizes, a.AfterSha256s, a.AfterSizes)
}

// CloseOpen is Queries.CloseOpen.
func (p *Pipeline) CloseOpen(a CloseOpenParams, found *bool, i *CloseOpenRow) {
	p.row(found, closeOpen, []any{a.ID, a.Generation, a.BytesDelta, a.FilesDelta, a.HistoryDelta}, &i.Bytes, &i.Files, &i.Open)
}

// TakePlace is Queries.TakePlace.
func (p *Pipeline) TakePlace(a TakePlaceParams, found *bool, i *TakePlaceRow) {
	p.row(found, takePlace, []any{a.ID, a.Most}, &i.Generation, &i.LastSeq, &i.Open)
}

// InsertPlaced is Queries.InsertPlaced.
func (p *Pipeline) InsertPlaced(a InsertPlacedParams, found *bool, state *string) {
	p.row(found, insertPlaced, []any{a.CallID, a.Tool, a.Kind, a.Lane, a.Actor, a.Arguments, a.ArgumentsSha256, a.Paths, a.ResultRef,
		a.DueAfter, a.TurnID, a.ConversationID}, state)
}

// ReleaseNext is Queries.ReleaseNext.
func (p *Pipeline) ReleaseNext(a ReleaseNextParams, found *bool, i *ReleaseNextRow) {
	p.row(found, releaseNext, []any{a.ConversationID, a.Behind}, &i.TurnID, &i.CallID, &i.Lane, &i.Seq, &i.Generation)
}

// Work is Queries.Work.
func (p *Pipeline) Work(arg WorkParams, into *[]WorkRow) {
	p.batch.Queue(work, arg.TurnID, arg.CallID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[WorkRow])
		return err
	})
}

// Tree is Queries.Tree.
func (p *Pipeline) Tree(conversation string, into *[]TreeRow) {
	p.batch.Queue(tree, conversation).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[TreeRow])
		return err
	})
}
