package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

// ErrTurnExists says that a turn id is taken.
var ErrTurnExists = errors.New("the turn id is taken")

// OpenTurn writes a new turn of a conversation, under the hash of its token. It returns ErrTurnExists, ErrNotThere, or
// the refusal conversation_deleted.
func (l *Ledger) OpenTurn(ctx context.Context, t turn.Turn, tokenHash [32]byte) error {
	return l.inTx(ctx, "open the turn", func(q *db.Queries) error {
		generation, err := share(ctx, q, t.Conversation)
		if err != nil {
			return err
		}
		n, err := q.InsertTurn(ctx, db.InsertTurnParams{
			ID: t.ID, ConversationID: t.Conversation, Generation: generation, TokenSha256: tokenHash[:],
			CallerUser: t.Caller.User, Department: t.Caller.Department, Collections: orNone(t.Caller.Collections),
			Tools: orNone(t.Tools), Skills: orNone(t.Skills), Knowledge: orNone(t.Knowledge), Vision: t.Vision, ExpiresAt: t.ExpiresAt,
		})
		if err != nil {
			return fmt.Errorf("write the turn: %w", err)
		}
		if n == 0 {
			return ErrTurnExists
		}
		return nil
	})
}

// PortalTurn gives the turn in which the portal's own calls of a conversation are made, and writes it where it is new.
func (l *Ledger) PortalTurn(ctx context.Context, conversation string) (turn.Turn, error) {
	var t turn.Turn
	err := l.inTx(ctx, "open the portal's turn", func(q *db.Queries) error {
		generation, err := share(ctx, q, conversation)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(conversation + "." + strconv.FormatInt(generation, 10)))
		t = turn.Turn{ID: call.ReservedPrefix + "portal-" + hex.EncodeToString(sum[:16]), Conversation: conversation,
			Generation: generation, Portal: true}
		_, err = q.InsertTurn(ctx, db.InsertTurnParams{ID: t.ID, ConversationID: conversation, Generation: generation, Portal: true,
			Collections: []string{}, Tools: []string{}, Skills: []string{}, Knowledge: []string{}})
		return err
	})
	return t, err
}

// TurnState is a turn and what has become of it.
type TurnState struct {
	turn.Turn
	Closed              bool
	ConversationDeleted bool
	// Restored says that the conversation was deleted and restored since the turn was made.
	Restored bool
}

// TurnByToken finds the turn that a token opens; false if it is nobody's.
func (l *Ledger) TurnByToken(ctx context.Context, token string) (TurnState, bool, error) {
	hash := turn.Hash(token)
	row, err := l.q.TurnByToken(ctx, hash[:])
	if errors.Is(err, pgx.ErrNoRows) {
		return TurnState{}, false, nil
	}
	if err != nil {
		return TurnState{}, false, fmt.Errorf("look the turn up: %w", err)
	}
	t := turn.Turn{
		ID: row.ID, Conversation: row.ConversationID, Generation: row.Generation,
		Caller: turn.Caller{User: row.CallerUser, Department: row.Department, Collections: row.Collections},
		Tools:  row.Tools, Skills: row.Skills, Knowledge: row.Knowledge, Vision: row.Vision, Portal: row.Portal, ExpiresAt: row.ExpiresAt,
	}
	expired := row.ExpiresAt != nil && row.ExpiresAt.Before(time.Now())
	return TurnState{Turn: t, Closed: row.ClosedAt != nil || expired, ConversationDeleted: row.ConversationDeletedAt != nil,
		Restored: row.ConversationGeneration != row.Generation}, true, nil
}

// CloseTurn closes a turn for new calls; what it accepted still runs. Closing twice is fine.
func (l *Ledger) CloseTurn(ctx context.Context, turnID string) error {
	conversation, err := l.q.TurnConversation(ctx, turnID)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotThere
	}
	if err != nil {
		return fmt.Errorf("look the turn up: %w", err)
	}
	return l.inTx(ctx, "close the turn", func(q *db.Queries) error {
		if _, err := q.LockConversation(ctx, conversation); err != nil {
			return fmt.Errorf("lock the conversation: %w", err)
		}
		_, err := q.CloseTurn(ctx, turnID)
		return err
	})
}
