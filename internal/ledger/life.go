package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store/db"
)

// PutConversation makes a conversation, or leaves one as it is. It reports whether it made one.
func (l *Ledger) PutConversation(ctx context.Context, id string) (bool, error) {
	n, err := l.q.PutConversation(ctx, id)
	if err != nil {
		return false, fmt.Errorf("make the conversation: %w", err)
	}
	return n == 1, nil
}

// Conversation reads a conversation's own facts.
func (l *Ledger) Conversation(ctx context.Context, id string) (db.ConversationRow, error) {
	row, err := l.q.Conversation(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, ErrNotThere
	}
	if err != nil {
		return row, fmt.Errorf("read the conversation: %w", err)
	}
	return row, nil
}

// Deletion says what a deletion ended.
type Deletion struct {
	// Ended are the calls that were unfinished: runs among them are to be stopped, all of them to be told.
	Ended []call.Key
}

// Delete removes a conversation's workspace, history and stored results, closes its turns and ends what is unfinished
// as conversation_deleted. Deleting what is deleted changes nothing.
func (l *Ledger) Delete(ctx context.Context, conversation string) (Deletion, error) {
	var out Deletion
	err := l.inTx(ctx, "delete the conversation", func(q *db.Queries) error {
		out = Deletion{}
		row, err := q.LockConversationForDeletion(ctx, conversation)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotThere
		}
		if err != nil {
			return fmt.Errorf("lock the conversation: %w", err)
		}
		if row.DeletedAt != nil {
			return nil
		}
		ended, err := q.EndUnfinished(ctx, conversation)
		if err != nil {
			return fmt.Errorf("end the unfinished calls: %w", err)
		}
		for _, e := range ended {
			out.Ended = append(out.Ended, call.Key{Conversation: conversation, Turn: e.TurnID, Call: e.CallID})
		}
		return dropEverything(ctx, q, conversation)
	})
	return out, err
}

func dropEverything(ctx context.Context, q *db.Queries, conversation string) error {
	for _, step := range []struct {
		what string
		do   func(context.Context, string) error
	}{
		{"drop the calls' bytes", q.DropCallBytes},
		{"drop the files", q.DropFiles},
		{"drop the history", q.DropChanges},
		{"drop the files' bytes", q.DropBlobs},
		{"drop the stored results", q.DropResults},
		{"close the turns", q.CloseTurns},
		{"mark the conversation deleted", q.MarkDeleted},
	} {
		if err := step.do(ctx, conversation); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// Restore opens a deleted conversation again, with an empty workspace and its old turns closed. Restoring what is not
// deleted changes nothing.
func (l *Ledger) Restore(ctx context.Context, conversation string) error {
	return l.inTx(ctx, "restore the conversation", func(q *db.Queries) error {
		if _, err := q.LockConversationForDeletion(ctx, conversation); errors.Is(err, pgx.ErrNoRows) {
			return ErrNotThere
		} else if err != nil {
			return fmt.Errorf("lock the conversation: %w", err)
		}
		_, err := q.Restore(ctx, conversation)
		return err
	})
}
