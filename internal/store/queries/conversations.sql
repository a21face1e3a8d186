-- name: LockConversation :one
-- The lock of every transaction that changes a conversation. What is decided is read in a later statement.
-- The row's own columns are what they are after the wait.
SELECT generation, deleted_at, bytes, files FROM conversations WHERE id = $1 FOR NO KEY UPDATE;

-- name: ShareConversation :one
-- The lock of a call that touches no workspace: it waits for a deletion and for nothing else.
SELECT generation, deleted_at FROM conversations WHERE id = $1 FOR KEY SHARE;

-- name: LockConversationForDeletion :one
SELECT generation, deleted_at FROM conversations WHERE id = $1 FOR UPDATE;

-- name: Conversation :one
SELECT id, generation, last_seq, open, bytes, files, history_bytes, history_floor, created_at, deleted_at
FROM conversations WHERE id = $1;

-- name: PutConversation :execrows
INSERT INTO conversations (id) VALUES ($1) ON CONFLICT (id) DO NOTHING;

-- name: TakeSeqs :exec
-- Takes the next n places in the order, under the conversation's lock.
UPDATE conversations SET last_seq = last_seq + sqlc.arg(n)::bigint, open = open + sqlc.arg(n)::integer WHERE id = $1;

-- name: CloseOpen :one
-- One call is done that changed nothing, under the conversation's lock.
UPDATE conversations SET open = open - 1 WHERE id = $1 AND generation = $2 AND deleted_at IS NULL AND open > 0
RETURNING open;

-- name: MarkDeleted :exec
UPDATE conversations
SET generation = generation + 1, deleted_at = clock_timestamp(), open = 0, bytes = 0, files = 0, history_bytes = 0,
    history_floor = last_seq, history_due = false, purge_due = true
WHERE id = $1;

-- name: Restore :execrows
UPDATE conversations SET deleted_at = NULL WHERE id = $1 AND deleted_at IS NOT NULL;

-- name: PurgesDue :many
SELECT id FROM conversations WHERE purge_due ORDER BY id LIMIT $1;

-- name: MarkPurged :exec
UPDATE conversations SET purge_due = false WHERE id = $1;

-- name: DropFiles :exec
DELETE FROM files WHERE conversation_id = $1;

-- name: DropBlobs :exec
DELETE FROM blobs WHERE conversation_id = $1;

-- name: DropChanges :exec
DELETE FROM changes WHERE conversation_id = $1;

-- name: DropResults :exec
DELETE FROM results WHERE conversation_id = $1;

-- name: DropCallBytes :exec
-- A deleted conversation keeps each call's id, status and code, and none of its bytes.
UPDATE calls SET arguments = '', output = NULL, result = NULL, paths = '{}' WHERE conversation_id = $1;

-- name: EndUnfinished :many
-- Ends what a deletion found unfinished.
UPDATE calls
SET state = 'done', token = NULL, lease_until = NULL, status = 'refused', code = 'conversation_deleted',
    finished_at = clock_timestamp(), next_at = clock_timestamp()
WHERE conversation_id = $1 AND state <> 'done'
RETURNING turn_id, call_id, seq, tool, state, attempt, result_ref, accepted_at;
