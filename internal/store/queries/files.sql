-- name: Tree :many
SELECT path, revision, last_read, sha256, bytes, kind, lines, characters, mime_type, updated_at
FROM files WHERE conversation_id = $1 ORDER BY path;

-- name: FilesAt :many
SELECT path, revision, last_read, sha256, bytes, kind, lines, characters, mime_type, updated_at
FROM files WHERE conversation_id = $1 AND path = ANY (sqlc.arg(paths)::text[]) ORDER BY path;

-- name: PutChanges :exec
-- Writes what a call changed: bytes that the conversation does not have yet, the records of files that it made or changed, and
-- the history of it all.
WITH pieces AS (
    INSERT INTO blobs (conversation_id, sha256, piece, data)
    SELECT sqlc.arg(conversation_id)::text, unnest(sqlc.arg(contents)::bytea[]), unnest(sqlc.arg(pieces)::integer[]),
           unnest(sqlc.arg(data)::bytea[])
    ON CONFLICT DO NOTHING),
put AS (
    INSERT INTO files (conversation_id, path, revision, sha256, bytes, kind, lines, characters, mime_type)
    SELECT sqlc.arg(conversation_id)::text, unnest(sqlc.arg(paths)::text[]), sqlc.arg(seq)::bigint,
           unnest(sqlc.arg(sha256s)::bytea[]), unnest(sqlc.arg(sizes)::bigint[]), unnest(sqlc.arg(kinds)::text[]),
           unnest(sqlc.arg(line_counts)::integer[]), unnest(sqlc.arg(character_counts)::bigint[]),
           unnest(sqlc.arg(mime_types)::text[])
    ON CONFLICT (conversation_id, path) DO UPDATE
    SET revision = excluded.revision, sha256 = excluded.sha256, bytes = excluded.bytes, kind = excluded.kind,
        lines = excluded.lines, characters = excluded.characters, mime_type = excluded.mime_type, updated_at = clock_timestamp())
INSERT INTO changes (conversation_id, seq, path, op, before_sha256, before_bytes, after_sha256, after_bytes)
SELECT sqlc.arg(conversation_id)::text, sqlc.arg(seq)::bigint, unnest(sqlc.arg(changed)::text[]), unnest(sqlc.arg(ops)::text[]),
       unnest(sqlc.arg(before_sha256s)::bytea[]), unnest(sqlc.arg(before_sizes)::bigint[]),
       unnest(sqlc.arg(after_sha256s)::bytea[]), unnest(sqlc.arg(after_sizes)::bigint[]);

-- name: RemoveFiles :exec
DELETE FROM files WHERE conversation_id = $1 AND path = ANY (sqlc.arg(paths)::text[]);

-- name: MarkRead :exec
UPDATE files SET last_read = sqlc.arg(seq)::bigint WHERE conversation_id = $1 AND path = ANY (sqlc.arg(paths)::text[]);

-- name: PutPiece :exec
INSERT INTO blobs (conversation_id, sha256, piece, data)
VALUES (sqlc.arg(conversation_id)::text, sqlc.arg(sha256)::bytea, sqlc.arg(piece)::integer, sqlc.arg(data)::bytea)
ON CONFLICT DO NOTHING;

-- name: PiecesOf :many
SELECT sha256, piece, data FROM blobs WHERE conversation_id = $1 AND sha256 = ANY (sqlc.arg(sha256s)::bytea[])
ORDER BY sha256, piece;

-- name: Piece :one
SELECT data FROM blobs WHERE conversation_id = $1 AND sha256 = $2 AND piece = $3;

-- name: Stage :exec
INSERT INTO staged (id, piece, data) VALUES ($1, $2, $3);

-- name: StagedPiece :one
SELECT data FROM staged WHERE id = $1 AND piece = $2;

-- name: UnstageInto :exec
INSERT INTO blobs (conversation_id, sha256, piece, data)
SELECT sqlc.arg(conversation_id)::text, sqlc.arg(sha256)::bytea, s.piece, s.data FROM staged s WHERE s.id = $1
ON CONFLICT DO NOTHING;

-- name: DropStaged :exec
DELETE FROM staged WHERE id = $1;

-- name: OldestChanges :many
SELECT seq, sum(before_bytes)::bigint AS bytes FROM changes WHERE conversation_id = $1
GROUP BY seq ORDER BY seq LIMIT $2;

-- name: PruneChanges :exec
DELETE FROM changes WHERE conversation_id = $1 AND seq <= sqlc.arg(through)::bigint;

-- name: LowerHistory :exec
UPDATE conversations SET history_bytes = history_bytes - sqlc.arg(freed)::bigint,
    history_floor = greatest(history_floor, sqlc.arg(floor)::bigint),
    history_due = history_bytes - sqlc.arg(freed)::bigint > sqlc.arg(most)::bigint
WHERE id = $1;

-- name: AllowHashing :exec
-- Lets the statements of this transaction join by hashing, which the plans of other statements are kept from.
SELECT set_config('enable_hashjoin', 'on', true);

-- name: PruneBlobs :exec
-- Content that neither the tree nor the history names any more; under the conversation's lock.
WITH named AS MATERIALIZED (
    SELECT sha256 FROM files WHERE conversation_id = $1
    UNION SELECT before_sha256 FROM changes WHERE conversation_id = $1
    UNION SELECT after_sha256 FROM changes WHERE conversation_id = $1)
DELETE FROM blobs b WHERE b.conversation_id = $1 AND NOT EXISTS (SELECT 1 FROM named n WHERE n.sha256 = b.sha256);
