-- name: ExistingCalls :many
SELECT call_id, seq, state, arguments_sha256, tool, lane, generation, status, code, result, attempt
FROM calls WHERE turn_id = $1 AND call_id = ANY (sqlc.arg(call_ids)::text[]);

-- name: InsertCall :exec
INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                   paths, state, result_ref, next_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
        clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second');

-- name: InsertPlaced :one
-- Writes a call at the place that was just taken, in a later statement, if its turn still takes calls.
INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                   paths, state, result_ref, next_at)
SELECT t.id, sqlc.arg(call_id)::text, c.id, c.generation, c.last_seq, sqlc.arg(tool)::text, sqlc.arg(kind)::text,
       sqlc.arg(lane)::text, sqlc.arg(actor)::text, sqlc.arg(arguments)::bytea, sqlc.arg(arguments_sha256)::bytea,
       sqlc.arg(paths)::text[], CASE WHEN c.open = 1 THEN 'released' ELSE 'queued' END, sqlc.arg(result_ref)::text,
       clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second'
FROM conversations c JOIN turns t ON t.conversation_id = c.id
WHERE t.id = sqlc.arg(turn_id)::text AND c.id = sqlc.arg(conversation_id)::text AND t.generation = c.generation
  AND t.closed_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
RETURNING state;

-- name: InsertDoneCall :execrows
-- A call that is done as it arrives: it touched no workspace, or was refused at the door.
INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                   paths, state, status, code, result, output, result_ref, started_at, finished_at, attempt, next_at)
VALUES ($1, $2, $3, $4, 0, $5, $6, 'none', '', $7, $8, $9, 'done', $10, $11, $12, $13, $14, $15, $16, sqlc.arg(attempt),
        clock_timestamp() + interval '2 seconds')
ON CONFLICT DO NOTHING;

-- name: Call :one
SELECT * FROM calls WHERE turn_id = $1 AND call_id = $2;

-- name: Work :one
-- What a worker needs to know of a call and of the turn that made it.
SELECT c.conversation_id, c.tool, c.lane, c.seq, c.generation, c.actor, c.arguments, c.paths, c.state,
       t.generation AS turn_generation, t.portal, t.caller_user, t.department, t.collections, t.tools, t.skills, t.knowledge,
       t.vision, t.expires_at
FROM calls c JOIN turns t ON t.id = c.turn_id
WHERE c.turn_id = $1 AND c.call_id = $2;

-- name: Claim :one
-- Takes a released call: only one of several workers gets it.
UPDATE calls
SET state = 'running', token = sqlc.arg(token)::uuid, attempt = attempt + 1, started_at = clock_timestamp(),
    lease_until = clock_timestamp() + sqlc.arg(lease)::double precision * interval '1 second',
    next_at = clock_timestamp() + sqlc.arg(lease)::double precision * interval '1 second', sweeps = 0
WHERE turn_id = $1 AND call_id = $2 AND state = 'released' AND generation = $3
RETURNING attempt, cancel_requested, started_at;

-- name: Heartbeat :one
UPDATE calls
SET lease_until = clock_timestamp() + sqlc.arg(lease)::double precision * interval '1 second',
    next_at = clock_timestamp() + sqlc.arg(lease)::double precision * interval '1 second'
WHERE turn_id = $1 AND call_id = $2 AND state = 'running' AND token = sqlc.arg(token)::uuid
RETURNING cancel_requested;

-- name: FinishClaimed :execrows
-- The fence of a claimed call.
UPDATE calls
SET state = 'done', token = NULL, lease_until = NULL, status = $4, code = $5, result = $6, output = $7, paths = $8,
    finished_at = sqlc.arg(finished_at)::timestamptz, next_at = clock_timestamp() + interval '2 seconds', sweeps = 0
WHERE turn_id = $1 AND call_id = $2 AND generation = $3 AND state = 'running' AND token = sqlc.arg(token)::uuid
  AND cancel_requested = sqlc.arg(cancelled)::boolean;

-- name: FinishUnclaimed :execrows
-- The fence of a first delivery that is finished without a claim; any claim voids it.
UPDATE calls
SET state = 'done', attempt = 1, status = $4, code = $5, result = $6, output = $7, paths = $8,
    started_at = sqlc.arg(started_at)::timestamptz, finished_at = sqlc.arg(finished_at)::timestamptz,
    next_at = clock_timestamp() + interval '2 seconds', sweeps = 0
WHERE turn_id = $1 AND call_id = $2 AND generation = $3 AND state = 'released' AND attempt = 0
  AND cancel_requested = sqlc.arg(cancelled)::boolean;

-- name: ReleaseNext :one
-- Releases the oldest waiting call behind a place in the order, if nothing of the conversation is released or running.
-- Behind the head's own place there are only calls that wait or were cancelled.
UPDATE calls
SET state = 'released', next_at = clock_timestamp() + interval '5 seconds', sweeps = 0
WHERE (turn_id, call_id) = (
    SELECT q.turn_id, q.call_id FROM calls q
    WHERE q.conversation_id = $1 AND q.seq > sqlc.arg(behind)::bigint AND q.seq > 0 AND q.state = 'queued'
    ORDER BY q.seq LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM calls h WHERE h.conversation_id = $1 AND h.state IN ('released', 'running'))
RETURNING turn_id, call_id, lane, seq, generation;

-- name: Heads :many
SELECT turn_id, call_id, lane, seq, generation, state FROM calls
WHERE conversation_id = $1 AND state IN ('released', 'running');

-- name: HandBack :execrows
-- A worker that stops gives back what it has not done; that costs no attempt.
UPDATE calls
SET state = 'released', token = NULL, lease_until = NULL, attempt = attempt - 1, next_at = clock_timestamp() + interval '2 seconds'
WHERE turn_id = $1 AND call_id = $2 AND state = 'running' AND token = sqlc.arg(token)::uuid;

-- name: RequestCancel :execrows
UPDATE calls SET cancel_requested = true WHERE turn_id = $1 AND call_id = $2 AND state = 'running';

-- name: EndWaiting :execrows
-- Ends a call that waits: cancelled, before any worker had it.
UPDATE calls
SET state = 'done', status = 'failed', code = 'cancelled', result = $3, finished_at = sqlc.arg(finished_at)::timestamptz,
    next_at = clock_timestamp() + interval '2 seconds'
WHERE turn_id = $1 AND call_id = $2 AND state IN ('queued', 'released');

-- name: FailedWrites :many
-- Which of the paths a failed write_file of this turn has named.
SELECT DISTINCT p.path::text AS path
FROM calls c CROSS JOIN LATERAL unnest(c.paths) AS p(path)
WHERE c.turn_id = $1 AND c.tool = 'write_file' AND c.status <> 'ok' AND p.path = ANY (sqlc.arg(paths)::text[]);

-- name: StoredByRef :one
SELECT conversation_id, turn_id, call_id, tool, status, result, output, result_ref
FROM calls WHERE conversation_id = $1 AND result_ref = $2 AND state = 'done' AND result IS NOT NULL;

-- name: CallBySeq :one
SELECT turn_id, call_id, tool, arguments FROM calls WHERE conversation_id = $1 AND seq = $2 AND seq > 0;

-- name: Flush :exec
-- Commits something of no meaning, and with it, on the disk, everything that was committed before.
SELECT pg_logical_emit_message(true, 'treeline', '');
