package ledger

import (
	"context"
	"errors"
	"fmt"

	"treeline/internal/store/db"
)

// pruneHistories brings histories that are over their bound back within it.
func (l *Ledger) pruneHistories(ctx context.Context) error {
	ids, err := l.q.LongHistories(ctx, sweepBatch)
	if err != nil {
		return fmt.Errorf("look for long histories: %w", err)
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, l.pruneHistory(ctx, id))
	}
	return errors.Join(errs...)
}

func (l *Ledger) pruneHistory(ctx context.Context, conversation string) error {
	return l.inTx(ctx, "prune the history", func(q *db.Queries) error {
		if _, err := q.LockConversation(ctx, conversation); err != nil {
			return fmt.Errorf("lock the conversation: %w", err)
		}
		c, err := q.Conversation(ctx, conversation)
		if err != nil {
			return fmt.Errorf("read the conversation: %w", err)
		}
		rows, err := q.OldestChanges(ctx, db.OldestChangesParams{ConversationID: conversation, Limit: 10_000})
		if err != nil {
			return fmt.Errorf("read the oldest changes: %w", err)
		}
		var freed, floor int64
		for _, r := range rows {
			if c.HistoryBytes-freed <= l.cfg.Limits.HistoryBytes {
				break
			}
			freed, floor = freed+r.Bytes, r.Seq
		}
		if floor > 0 {
			err = dropHistory(ctx, q, conversation, floor)
		}
		if err != nil {
			return err
		}
		low := db.LowerHistoryParams{ID: conversation, Freed: freed, Floor: floor, Most: l.cfg.Limits.HistoryBytes}
		if err := q.LowerHistory(ctx, low); err != nil {
			return fmt.Errorf("count the history: %w", err)
		}
		return nil
	})
}

// dropHistory drops the changes up to a place in the order, and the bytes that nothing names any more.
func dropHistory(ctx context.Context, q *db.Queries, conversation string, through int64) error {
	if err := q.PruneChanges(ctx, db.PruneChangesParams{ConversationID: conversation, Through: through}); err != nil {
		return fmt.Errorf("drop the oldest changes: %w", err)
	}
	if err := q.AllowHashing(ctx); err != nil {
		return fmt.Errorf("allow a join by hashing: %w", err)
	}
	if err := q.PruneBlobs(ctx, conversation); err != nil {
		return fmt.Errorf("drop bytes that nothing names: %w", err)
	}
	return nil
}
