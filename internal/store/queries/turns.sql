-- name: InsertTurn :execrows
INSERT INTO turns (id, conversation_id, generation, token_sha256, portal, caller_user, department, collections, tools,
                   skills, knowledge, vision, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT DO NOTHING;

-- name: TurnByToken :one
SELECT t.*, c.deleted_at AS conversation_deleted_at, c.generation AS conversation_generation
FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE t.token_sha256 = $1;

-- name: AcceptFacts :one
-- Whether the turn still takes calls, and how many of its conversation are open; read after the lock was taken.
SELECT (t.closed_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
        AND t.generation = c.generation)::boolean AS takes_calls, c.open, c.last_seq
FROM turns t JOIN conversations c ON c.id = t.conversation_id WHERE t.id = $1;

-- name: CloseTurn :execrows
UPDATE turns SET closed_at = coalesce(closed_at, clock_timestamp()) WHERE id = $1;

-- name: CloseTurns :exec
UPDATE turns SET closed_at = coalesce(closed_at, clock_timestamp()) WHERE conversation_id = $1 AND NOT portal;

-- name: TurnConversation :one
SELECT conversation_id FROM turns WHERE id = $1 AND NOT portal;
