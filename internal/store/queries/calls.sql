-- name: ExistingCalls :many
SELECT call_id, seq, state, arguments_sha256, tool, lane, generation, status, code, result, attempt
FROM calls WHERE turn_id = $1 AND call_id = ANY (sqlc.arg(call_ids)::text[]);

-- name: InsertCall :exec
INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                   paths, state, result_ref, next_at)
VALUES ($1, sqlc.arg(call_id)::text, $2, $3, sqlc.arg(seq)::bigint, $4, $5, sqlc.arg(lane)::text, $6, $7,
        sqlc.arg(arguments_sha256)::bytea, $8, sqlc.arg(state)::text, $9,
        clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second');

-- name: AcceptPlain :one
-- Locks the conversation, takes the next place in its order and writes a call there, if nothing stands against it: no row says
-- that something does. It decides only from the locked row's own columns and from the turn: one that closes while this waits
-- for the lock counts as closed after it. Lazily: the commit does not wait for the disk.
WITH place AS (
    UPDATE conversations c SET last_seq = c.last_seq + 1, open = c.open + 1
    FROM turns t
    WHERE c.id = sqlc.arg(conversation_id)::text AND c.deleted_at IS NULL AND c.open <= sqlc.arg(most)::integer
      AND t.id = sqlc.arg(turn_id)::text AND t.conversation_id = c.id AND t.generation = c.generation
      AND t.closed_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
    RETURNING c.generation, c.last_seq, c.open),
written AS (
    INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                       paths, state, result_ref, next_at)
    SELECT sqlc.arg(turn_id)::text, sqlc.arg(call_id)::text, sqlc.arg(conversation_id)::text, place.generation, place.last_seq,
           sqlc.arg(tool)::text, sqlc.arg(kind)::text, sqlc.arg(lane)::text, sqlc.arg(actor)::text, sqlc.arg(arguments)::bytea,
           sqlc.arg(arguments_sha256)::bytea, sqlc.arg(paths)::text[], CASE WHEN place.open = 1 THEN 'released' ELSE 'queued' END,
           sqlc.arg(result_ref)::text, clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second'
    FROM place)
SELECT generation::bigint, last_seq::bigint, open::integer,
       CASE WHEN sqlc.arg(lazily)::boolean THEN set_config('synchronous_commit', 'off', true) ELSE '' END::text AS lazily
FROM place;

-- name: InsertDoneCall :execrows
-- A call that is done as it arrives: it touched no workspace, or was refused at the door.
INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
                   paths, state, status, code, result, output, result_ref, started_at, finished_at, attempt, next_at)
VALUES ($1, sqlc.arg(call_id)::text, $2, $3, 0, $4, $5, 'none', '', $6, sqlc.arg(arguments_sha256)::bytea, $7, 'done',
        sqlc.arg(status)::text, $8, $9, $10, $11, $12, $13, sqlc.arg(attempt)::integer,
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

-- name: Finish :exec
-- The lock, the counts and the fence; with most_open 1 only the conversation's last open call. Under the lock of a conversation that is what the call was accepted in, with room for what
-- grows, it makes the call done that is still the worker's: claimed under its token, or, without one, released and never
-- claimed. It decides only from the two rows' own columns, and anything else ends the transaction.
WITH closed AS (
    UPDATE conversations
    SET open = open - 1, bytes = bytes + sqlc.arg(bytes_delta)::bigint, files = files + sqlc.arg(files_delta)::integer,
        history_bytes = history_bytes + sqlc.arg(history_delta)::bigint,
        history_due = history_due OR history_bytes + sqlc.arg(history_delta)::bigint > sqlc.arg(most_history)::bigint
    WHERE id = sqlc.arg(conversation_id)::text AND generation = sqlc.arg(generation)::bigint AND deleted_at IS NULL
      AND open BETWEEN 1 AND sqlc.arg(most_open)::integer AND bytes + sqlc.arg(bytes_delta)::bigint BETWEEN 0 AND greatest(bytes, sqlc.arg(most_bytes)::bigint)
      AND files + sqlc.arg(files_delta)::integer BETWEEN 0 AND greatest(files, sqlc.arg(most_files)::integer)
    RETURNING open),
finished AS (
    UPDATE calls
    SET state = 'done', token = NULL, lease_until = NULL, attempt = greatest(attempt, 1),
        started_at = coalesce(started_at, sqlc.arg(started_at)::timestamptz), finished_at = sqlc.arg(finished_at)::timestamptz,
        status = sqlc.arg(status)::text, code = sqlc.arg(code)::text, result = sqlc.arg(result)::bytea,
        output = sqlc.narg(output)::bytea, paths = sqlc.arg(paths)::text[],
        next_at = clock_timestamp() + interval '2 seconds', sweeps = 0
    WHERE turn_id = sqlc.arg(turn_id)::text AND call_id = sqlc.arg(call_id)::text AND generation = sqlc.arg(generation)::bigint
      AND (state = 'running' AND token = sqlc.narg(token)::uuid OR state = 'released' AND attempt = 0 AND sqlc.narg(token)::uuid IS NULL)
      AND cancel_requested = sqlc.arg(cancelled)::boolean AND (SELECT open FROM closed) IS NOT NULL
    RETURNING seq)
SELECT coalesce((SELECT seq FROM finished), moved())::bigint AS seq;

-- name: ReleaseNext :one
-- Releases the oldest waiting call behind a place in the order, if nothing of the conversation is released or running.
-- Behind the head's own place there are only calls that wait or were cancelled.
UPDATE calls
SET state = 'released', next_at = clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second', sweeps = 0
WHERE (turn_id, call_id) = (
    SELECT q.turn_id, q.call_id FROM calls q
    WHERE q.conversation_id = $1 AND q.seq > sqlc.arg(behind)::bigint AND q.state = 'queued'
    ORDER BY q.seq LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM calls h WHERE h.conversation_id = $1 AND h.state IN ('released', 'running'))
RETURNING turn_id, call_id, lane, seq, generation;

-- name: Heads :many
SELECT turn_id, call_id, lane, seq, generation, state FROM calls
WHERE conversation_id = $1 AND state IN ('released', 'running');

-- name: HandBack :execrows
-- A worker that stops gives back what it has not done; that costs no attempt.
UPDATE calls
SET state = 'released', token = NULL, lease_until = NULL, attempt = attempt - 1,
    next_at = clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second'
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
