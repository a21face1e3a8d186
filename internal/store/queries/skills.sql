-- name: LockSkill :one
SELECT content_id FROM skills WHERE name = $1 FOR UPDATE;

-- name: PutSkill :exec
INSERT INTO skills (name, content_id) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET content_id = excluded.content_id, updated_at = clock_timestamp();

-- name: DropSkillFiles :exec
DELETE FROM skill_files WHERE skill_name = $1;

-- name: PutSkillFiles :exec
INSERT INTO skill_files (skill_name, path, at, bytes)
SELECT sqlc.arg(skill_name)::text, unnest(sqlc.arg(paths)::text[]), unnest(sqlc.arg(ats)::bigint[]), unnest(sqlc.arg(sizes)::bigint[]);

-- name: SkillFiles :many
SELECT s.name, s.content_id, c.bytes AS content_bytes, f.path, f.at, f.bytes
FROM skills s
JOIN contents c ON c.id = s.content_id
JOIN skill_files f ON f.skill_name = s.name
WHERE s.name = ANY (sqlc.arg(names)::text[])
ORDER BY s.name, f.path;
