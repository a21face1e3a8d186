-- name: StateBefore :many
-- For each path that calls from one on changed, or for one of them: what was there before the first of these calls.
SELECT DISTINCT ON (ch.path) ch.path, ch.before_sha256, ch.before_bytes FROM changes ch
WHERE ch.conversation_id = $1 AND ch.seq >= sqlc.arg(from_seq)::bigint
  AND (sqlc.arg(path)::text = '' OR ch.path = sqlc.arg(path)::text COLLATE "C")
ORDER BY ch.path, ch.seq;

-- name: PathInHistory :one
SELECT EXISTS (SELECT 1 FROM changes WHERE conversation_id = $1 AND path = $2)::boolean AS known;
