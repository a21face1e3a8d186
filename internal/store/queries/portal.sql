-- name: StepsPage :many
-- The trace of a conversation, oldest first, from behind a step on; an empty turn is every turn.
SELECT turn_id, call_id, seq, tool, kind, actor, state, status, code, paths, attempt, accepted_at, started_at, finished_at
FROM calls
WHERE conversation_id = $1 AND accepted_at >= sqlc.arg(after_at)::timestamptz
  AND (accepted_at, turn_id, call_id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_turn)::text, sqlc.arg(after_call)::text)
  AND (sqlc.arg(turn)::text = '' OR turn_id = sqlc.arg(turn)::text)
ORDER BY accepted_at, turn_id, call_id LIMIT $2;

-- name: ChangesPage :many
-- The history of a conversation, oldest first, from behind a change on: what changed, and whose call it was.
SELECT ch.seq, ch.path, ch.op, ch.before_sha256, ch.before_bytes, ch.after_sha256, ch.after_bytes,
       c.turn_id, c.call_id, c.tool, c.actor, t.caller_user, c.finished_at
FROM changes ch
JOIN calls c ON c.conversation_id = ch.conversation_id AND c.seq = ch.seq AND c.seq > 0
JOIN turns t ON t.id = c.turn_id
WHERE ch.conversation_id = $1
  AND (ch.seq, ch.path) > (sqlc.arg(after_seq)::bigint, sqlc.arg(after_path)::text COLLATE "C")
ORDER BY ch.seq, ch.path LIMIT $2;
