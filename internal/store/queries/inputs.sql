-- name: ResultSizes :many
-- How many bytes each stored result of a conversation holds, of either origin.
SELECT c.result_ref AS ref, octet_length(coalesce(c.output, c.result))::bigint AS bytes
FROM calls c WHERE c.conversation_id = $1 AND c.result_ref = ANY (sqlc.arg(refs)::text[]) AND c.state = 'done' AND c.result IS NOT NULL
UNION ALL
SELECT r.ref, octet_length(r.output)::bigint
FROM results r WHERE r.conversation_id = $1 AND r.ref = ANY (sqlc.arg(refs)::text[]);
