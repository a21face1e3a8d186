package ledger

import (
	"context"
	"errors"
	"fmt"

	"treeline/internal/store/db"
)

// pruneHistories brings histories that are over their bound back within it.
func (l *Ledger) pruneHistories(ctx context.Context) error {
	ids, err := l.q.LongHistories(ctx, db.LongHistoriesParams{HistoryBytes: l.cfg.Limits.HistoryBytes, Limit: sweepBatch})
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
		if floor == 0 {
			return nil
		}
		if err := q.PruneChanges(ctx, db.PruneChangesParams{ConversationID: conversation, Through: floor}); err != nil {
			return fmt.Errorf("drop the oldest changes: %w", err)
		}
		if err := q.LowerHistory(ctx, db.LowerHistoryParams{ID: conversation, Freed: freed, Floor: floor}); err != nil {
			return fmt.Errorf("count the history: %w", err)
		}
		if err := q.PruneBlobs(ctx, conversation); err != nil {
			return fmt.Errorf("drop bytes that nothing names: %w", err)
		}
		return nil
	})
}
