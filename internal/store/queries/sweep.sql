-- name: SweepLock :one
SELECT pg_try_advisory_xact_lock($1)::boolean AS mine;

-- name: Stuck :many
-- Conversations with calls that wait and none that is released or running.
SELECT DISTINCT q.conversation_id AS id FROM calls q
WHERE q.state = 'queued' AND NOT EXISTS (
    SELECT 1 FROM calls h WHERE h.conversation_id = q.conversation_id AND h.state IN ('released', 'running'))
ORDER BY id LIMIT $1;

-- name: OldReleased :many
-- Released calls whose event may be lost; the next look is twice as far off, up to a minute.
UPDATE calls
SET sweeps = sweeps + 1,
    next_at = clock_timestamp() + least(60, sqlc.arg(due_after)::double precision * power(2, least(sweeps, 8))) * interval '1 second'
WHERE (turn_id, call_id) IN (
    SELECT q.turn_id, q.call_id FROM calls q
    WHERE q.state = 'released' AND q.next_at < clock_timestamp() ORDER BY q.next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  AND state = 'released'
RETURNING conversation_id, turn_id, call_id, lane, seq, generation;

-- name: Expired :many
-- Running calls whose lease has run out, with the token that was seen.
SELECT conversation_id, turn_id, call_id, token, attempt, generation, cancel_requested FROM calls
WHERE state = 'running' AND lease_until < clock_timestamp()
ORDER BY next_at LIMIT $1;

-- name: TakeBack :one
-- Releases a call again whose worker let its lease run out; the token that was seen says that nobody has it since.
UPDATE calls
SET state = 'released', token = NULL, lease_until = NULL,
    next_at = clock_timestamp() + sqlc.arg(due_after)::double precision * interval '1 second', sweeps = 0
WHERE turn_id = $1 AND call_id = $2 AND state = 'running' AND token = sqlc.arg(seen)::uuid AND lease_until < clock_timestamp()
RETURNING conversation_id, turn_id, call_id, lane, seq, generation;

-- name: EndLost :execrows
-- Ends a call whose worker is gone for good.
UPDATE calls
SET state = 'done', token = NULL, lease_until = NULL, status = 'failed', code = $3, result = $4,
    finished_at = sqlc.arg(finished_at)::timestamptz, next_at = clock_timestamp()
WHERE turn_id = $1 AND call_id = $2 AND state = 'running' AND token = sqlc.arg(seen)::uuid AND lease_until < clock_timestamp();

-- name: Untold :many
UPDATE calls
SET sweeps = sweeps + 1,
    next_at = clock_timestamp() + least(60, 2 * power(2, least(sweeps, 8))) * interval '1 second'
WHERE (turn_id, call_id) IN (
    SELECT q.turn_id, q.call_id FROM calls q
    WHERE q.state = 'done' AND q.told_seq IS NULL AND q.next_at < clock_timestamp()
      AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = q.conversation_id AND c.purge_due)
    ORDER BY q.next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  AND told_seq IS NULL
RETURNING conversation_id, turn_id, call_id, seq, tool, status, code, result, attempt, result_ref, accepted_at, finished_at;

-- name: MarkTold :exec
-- Notes what was told, but for what was told into a stream that is gone.
WITH present AS (SELECT made_at FROM results_stream FOR SHARE)
UPDATE calls c SET told_stream = t.stream, told_seq = t.seq
FROM (SELECT unnest(sqlc.arg(turns)::text[]) AS turn_id, unnest(sqlc.arg(calls)::text[]) AS call_id,
             unnest(sqlc.arg(streams)::timestamptz[]) AS stream, unnest(sqlc.arg(seqs)::bigint[]) AS seq) t, present
WHERE c.turn_id = t.turn_id AND c.call_id = t.call_id AND present.made_at IN (t.stream, '-infinity');

-- name: MeetStream :exec
-- The stream that holds the results now. Until the transaction ends, nobody notes what was told.
UPDATE results_stream SET made_at = $1;

-- name: ForgetTold :execrows
-- What the present stream cannot hold is to be told again: it was told into another one, or past this one's end. That a
-- call was accepted not much earlier than finished bounds what is looked at.
UPDATE calls SET told_stream = NULL, told_seq = NULL, sweeps = 0, next_at = clock_timestamp()
WHERE state = 'done' AND told_seq IS NOT NULL
  AND (told_stream <> sqlc.arg(stream)::timestamptz OR told_seq > sqlc.arg(last_seq)::bigint)
  AND finished_at > statement_timestamp() - sqlc.arg(kept)::double precision * interval '1 second'
  AND accepted_at > statement_timestamp() - sqlc.arg(kept)::double precision * interval '1 second' - interval '1 day';

-- name: AllowLongScan :exec
-- Lets the statements of this transaction take longer than others may.
SELECT set_config('statement_timeout', sqlc.arg(within)::text, true);

-- name: HurryReleased :execrows
-- After an outage of the queue, what waits for its next look is due at once. It waits for no lock, so that it meets nobody who
-- takes the rows in another order: a row that is being changed is looked at as it is.
UPDATE calls SET next_at = clock_timestamp(), sweeps = 0
WHERE (turn_id, call_id) IN (
    SELECT q.turn_id, q.call_id FROM calls q WHERE q.state = 'released' AND q.sweeps > 0 FOR UPDATE SKIP LOCKED);

-- name: HurryUntold :execrows
UPDATE calls SET next_at = clock_timestamp(), sweeps = 0
WHERE (turn_id, call_id) IN (
    SELECT q.turn_id, q.call_id FROM calls q
    WHERE q.state = 'done' AND q.told_seq IS NULL AND q.sweeps > 0 FOR UPDATE SKIP LOCKED);

-- name: DropOldStaged :exec
DELETE FROM staged WHERE created_at < clock_timestamp() - interval '24 hours';

-- name: LongHistories :many
SELECT id FROM conversations WHERE history_due ORDER BY id LIMIT $1;
