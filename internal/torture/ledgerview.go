package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
)

// row is one call as the database has it, read with a plain query from outside.
type row struct {
	Turn, Call, Conversation string
	Generation, Seq          int64
	Tool, State, Code        string
	Status                   *string
	Attempt                  int
	Result                   []byte
	Told                     bool
	Leased                   bool
	AcceptedAt               time.Time
	FinishedAt               *time.Time
	Actor                    string
}

func (r row) key() call.Key {
	return call.Key{Conversation: r.Conversation, Turn: r.Turn, Call: r.Call}
}

// result reads the stored result; nil where a deletion has dropped it.
func (r row) result() (*call.Result, error) {
	if r.Result == nil {
		return nil, nil
	}
	var res call.Result
	if err := json.Unmarshal(r.Result, &res); err != nil {
		return nil, fmt.Errorf("read the stored result of %s: %w", r.key(), err)
	}
	return &res, nil
}

// counts is a conversation's own row.
type counts struct {
	ID                        string
	Generation, LastSeq       int64
	Open                      int
	Bytes                     int64
	Files                     int
	RealBytes                 int64
	RealFiles, AdvisoryLocked int
}

func (r *Rig) query(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, r.Postgres.URL())
	if err != nil {
		return fmt.Errorf("look at the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return do(conn)
}

// Rows reads all calls, in the order of their conversation and place.
func (r *Rig) rows(ctx context.Context) (out []row, err error) {
	err = r.query(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT turn_id, call_id, conversation_id, generation, seq, tool, state, code, status, attempt, result,
			told_seq IS NOT NULL, token IS NOT NULL OR lease_until IS NOT NULL, accepted_at, finished_at, actor
			FROM calls ORDER BY conversation_id, seq, accepted_at`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		return err
	})
	return out, err
}

func (r *Rig) counts(ctx context.Context) (out []counts, err error) {
	err = r.query(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT id, generation, last_seq, open, bytes, files,
			(SELECT coalesce(sum(f.bytes), 0) FROM files f WHERE f.conversation_id = c.id)::bigint,
			(SELECT count(*) FROM files f WHERE f.conversation_id = c.id)::integer,
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')::integer
			FROM conversations c ORDER BY id`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[counts])
		return err
	})
	return out, err
}

// pending counts the calls that are not done, and those that are done and not on record as told.
func (r *Rig) pending(ctx context.Context) (unfinished, untold int, err error) {
	err = r.query(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state <> 'done'), count(*) FILTER (WHERE state = 'done' AND told_seq IS NULL)
			FROM calls`).Scan(&unfinished, &untold)
	})
	return unfinished, untold, err
}
