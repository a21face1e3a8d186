-- name: LockArtifact :execrows
-- What is decided upon is read in a later statement: one that waits for the lock keeps the versions that there were before.
SELECT id FROM artifacts WHERE id = $1 FOR UPDATE;

-- name: InsertArtifact :exec
INSERT INTO artifacts (id, owner, version) VALUES ($1, $2, 1);

-- name: RaiseArtifact :execrows
UPDATE artifacts SET version = version + 1, updated_at = clock_timestamp()
WHERE id = $1 AND version = sqlc.arg(expected)::integer;

-- name: InsertArtifactVersion :exec
INSERT INTO artifact_versions (artifact_id, version, kind, title, name, content_id, made_by, department, bytes,
                               conversation_id, seq, call_id, call_tool, code)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: InsertArtifactSource :exec
INSERT INTO artifact_sources (artifact_id, version, path, content_id) VALUES ($1, $2, $3, $4);

-- name: OpenArtifact :one
-- An artifact as a caller may reach it: his own, or shared with him or his department; version 0 is the newest.
SELECT a.id, a.version AS newest, v.version, v.kind, v.title, v.name, v.content_id, c.bytes, c.sha256,
       (a.owner = sqlc.arg(caller)::text OR EXISTS (
           SELECT 1 FROM artifact_shares s WHERE s.artifact_id = a.id AND s.right_to = 'change'
             AND ((s.subject = 'user' AND s.name = sqlc.arg(caller)::text)
                  OR (s.subject = 'department' AND s.name = sqlc.arg(department)::text))))::boolean AS may_change
FROM artifacts a
JOIN artifact_versions v ON v.artifact_id = a.id
    AND v.version = CASE WHEN sqlc.arg(version)::integer = 0 THEN a.version ELSE sqlc.arg(version)::integer END
JOIN contents c ON c.id = v.content_id
WHERE a.id = $1
  AND (a.owner = sqlc.arg(caller)::text OR EXISTS (
      SELECT 1 FROM artifact_shares s WHERE s.artifact_id = a.id
        AND ((s.subject = 'user' AND s.name = sqlc.arg(caller)::text)
             OR (s.subject = 'department' AND s.name = sqlc.arg(department)::text))));

-- name: ArtifactVersion :one
-- A version as the portal sees it; 0 is the newest.
SELECT a.id, a.owner, a.version AS newest, v.version, v.kind, v.title, v.name, v.content_id, v.made_by, v.department, v.conversation_id, v.seq,
       v.call_id, v.call_tool, v.code, v.created_at, c.bytes, c.sha256
FROM artifacts a
JOIN artifact_versions v ON v.artifact_id = a.id
    AND v.version = CASE WHEN sqlc.arg(version)::integer = 0 THEN a.version ELSE sqlc.arg(version)::integer END
JOIN contents c ON c.id = v.content_id
WHERE a.id = $1;

-- name: ArtifactSources :many
SELECT s.path, s.content_id, c.bytes, c.sha256 FROM artifact_sources s JOIN contents c ON c.id = s.content_id
WHERE s.artifact_id = $1 AND s.version = $2 ORDER BY s.path;

-- name: DropShares :exec
DELETE FROM artifact_shares WHERE artifact_id = $1;

-- name: PutShares :exec
INSERT INTO artifact_shares (artifact_id, subject, name, right_to)
SELECT sqlc.arg(artifact_id)::text, unnest(sqlc.arg(subjects)::text[]), unnest(sqlc.arg(names)::text[]), unnest(sqlc.arg(rights)::text[]);

-- name: MadeBy :one
-- The call that last gave a file its present bytes: moving a file, or putting one back, makes none.
SELECT c.call_id, c.tool, c.arguments
FROM changes ch JOIN calls c ON c.conversation_id = ch.conversation_id AND c.seq = ch.seq AND c.seq > 0
WHERE ch.conversation_id = $1 AND ch.after_sha256 = sqlc.arg(sha256)::bytea AND c.tool NOT IN ('move_file', 'portal_revert')
ORDER BY ch.seq DESC LIMIT 1;
