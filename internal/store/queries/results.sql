-- name: PutResult :execrows
INSERT INTO results (conversation_id, ref, tool_name, is_error, output) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (conversation_id, ref) DO NOTHING;

-- name: PutOfRef :one
SELECT tool_name, is_error, output FROM results WHERE conversation_id = $1 AND ref = $2;
