package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/store/db"
	"treeline/internal/strictjson"
)

// ErrOtherResult says that a ref has another result already. A stored result does not change.
var ErrOtherResult = errors.New("the ref has another result")

// PutResult keeps a result of a tool that runs elsewhere, and reports whether the ref is new; the same result again is
// none. Its output has been judged to be strict JSON. Errors: ErrAbsent where there is no such conversation, the refusal
// conversation_deleted, ErrOtherResult.
func PutResult(ctx context.Context, pool *pgxpool.Pool, conversation string, r StoredResult) (made bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		made, err = putResult(ctx, db.New(tx), conversation, r)
		return err
	})
	return made, err
}

func putResult(ctx context.Context, q *db.Queries, conversation string, r StoredResult) (bool, error) {
	// A deletion waits for this lock, and then drops the result with all others.
	row, err := q.ShareConversation(ctx, conversation)
	if err != nil {
		return false, absentOr("lock the conversation", err)
	}
	if row.DeletedAt != nil {
		return false, call.Refuse(call.ConversationDeleted, "The conversation is deleted, and its stored results with it. Nothing was stored.")
	}
	n, err := q.PutResult(ctx, db.PutResultParams{ConversationID: conversation, Ref: r.Ref, ToolName: r.ToolName, IsError: r.IsError, Output: r.Output})
	if err != nil {
		return false, fmt.Errorf("write the result: %w", err)
	}
	if n == 1 {
		return true, nil
	}
	old, err := q.PutOfRef(ctx, db.PutOfRefParams{ConversationID: conversation, Ref: r.Ref})
	if err != nil {
		return false, fmt.Errorf("read the result that is there: %w", err)
	}
	same := old.ToolName == r.ToolName && old.IsError == r.IsError
	if same && !bytes.Equal(old.Output, r.Output) {
		if same, err = sameJSON(old.Output, r.Output); err != nil {
			return false, err
		}
	}
	if !same {
		return false, ErrOtherResult
	}
	return false, nil
}

func sameJSON(a, b []byte) (bool, error) {
	x, err := strictjson.Canonical(a)
	if err != nil {
		return false, fmt.Errorf("read the result that is there: %w", err)
	}
	y, err := strictjson.Canonical(b)
	if err != nil {
		return false, fmt.Errorf("read the new result: %w", err)
	}
	return bytes.Equal(x, y), nil
}
