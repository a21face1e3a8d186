-- name: BeginContent :exec
INSERT INTO contents (id, due_at) VALUES ($1, clock_timestamp() + interval '24 hours');

-- name: AddContentPiece :exec
INSERT INTO content_pieces (content_id, piece, data) VALUES ($1, $2, $3);

-- name: EndContent :exec
UPDATE contents SET bytes = $2, sha256 = $3 WHERE id = $1;

-- name: UseContent :execrows
-- Takes content into use, in the transaction that names it.
UPDATE contents SET due_at = NULL WHERE id = $1;

-- name: RetireContent :exec
-- Content that nothing names any more stays for the runs that are reading it.
UPDATE contents SET due_at = clock_timestamp() + interval '1 hour' WHERE id = $1;

-- name: ContentPiece :one
SELECT data FROM content_pieces WHERE content_id = $1 AND piece = $2;

-- name: DropContent :exec
DELETE FROM contents WHERE id = $1 AND due_at IS NOT NULL;

-- name: DropDueContents :execrows
DELETE FROM contents WHERE id IN (
    SELECT c.id FROM contents c WHERE c.due_at < clock_timestamp() ORDER BY c.due_at LIMIT $1 FOR UPDATE SKIP LOCKED);

-- name: CopyBlob :exec
-- Makes content of a file in a workspace, within the database.
INSERT INTO content_pieces (content_id, piece, data)
SELECT sqlc.arg(content_id)::text, b.piece, b.data FROM blobs b
WHERE b.conversation_id = $1 AND b.sha256 = $2 AND octet_length(b.data) > 0;

-- name: InsertContent :exec
INSERT INTO contents (id, bytes, sha256) VALUES ($1, $2, $3);

-- name: LockName :exec
-- Has those who put something under one name take turns, also where it is new; in the transaction that puts it.
SELECT pg_advisory_xact_lock(hashtextextended(sqlc.arg(name)::text, 0));
