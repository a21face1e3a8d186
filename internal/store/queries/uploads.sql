-- name: LockUpload :one
-- Its content is read in a later statement: one that waits for the lock keeps the contents that there were before.
SELECT content_id FROM uploads WHERE id = $1 FOR UPDATE;

-- name: ContentHash :one
SELECT sha256 FROM contents WHERE id = $1;

-- name: PutUpload :exec
INSERT INTO uploads (id, collection, name, content_id) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE
SET collection = excluded.collection, name = excluded.name, content_id = excluded.content_id, updated_at = clock_timestamp();

-- name: DropPassages :one
DELETE FROM passages WHERE upload_id = $1 RETURNING content_id;

-- name: PutPassages :exec
INSERT INTO passages (upload_id, passages, content_id) VALUES ($1, $2, $3);

-- name: OpenUploads :many
-- Those of the uploads that a turn opens: bound to its knowledge, or in one of its caller's collections.
SELECT u.id, u.name, u.content_id, c.bytes, p.content_id AS passages_id, pc.bytes AS passages_bytes
FROM uploads u
JOIN contents c ON c.id = u.content_id
LEFT JOIN passages p ON p.upload_id = u.id
LEFT JOIN contents pc ON pc.id = p.content_id
WHERE u.id = ANY (sqlc.arg(ids)::text[])
  AND (u.id = ANY (sqlc.arg(knowledge)::text[])
       OR (u.collection <> '' AND u.collection = ANY (sqlc.arg(collections)::text[])));
