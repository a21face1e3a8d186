-- +goose Up

-- Ends a transaction whose statements were sent together, where one of them finds that what it was to change has moved on:
-- nothing of the transaction is kept.
-- +goose StatementBegin
CREATE FUNCTION moved() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what this transaction was to change has moved on' USING ERRCODE = 'TL001';
END $$;
-- +goose StatementEnd

-- A CHECK is read and prepared anew by every statement that writes to its table, whatever the statement changes: on the
-- tables that each call writes to, that was a third of the database's work. What one column must be is a domain's to say,
-- which is prepared once a connection and asked when a value is given; what columns must be to each other is one function's.
CREATE DOMAIN identifier AS text CHECK (VALUE ~ '^[A-Za-z0-9_-]{1,64}$');
CREATE DOMAIN workspace_path AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 512);
CREATE DOMAIN sha256_hash AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN content_piece AS bytea CHECK (octet_length(VALUE) <= 1048576);
CREATE DOMAIN natural_bigint AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN natural_integer AS integer CHECK (VALUE >= 0);
CREATE DOMAIN positive_bigint AS bigint CHECK (VALUE > 0);
CREATE DOMAIN call_state AS text CHECK (VALUE IN ('queued', 'released', 'running', 'done'));
CREATE DOMAIN call_lane AS text CHECK (VALUE IN ('file', 'code', 'none'));
CREATE DOMAIN call_status AS text CHECK (VALUE IN ('ok', 'refused', 'failed'));
CREATE DOMAIN file_kind AS text CHECK (VALUE IN ('text', 'binary'));
CREATE DOMAIN change_op AS text CHECK (VALUE IN ('created', 'modified', 'deleted'));

-- +goose StatementBegin
CREATE FUNCTION call_is_sound(seq bigint, state text, token uuid, lease_until timestamptz, status text, code text,
                              finished_at timestamptz, told_stream timestamptz, told_seq bigint)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (seq > 0 OR state = 'done')
       AND (state = 'running') = (token IS NOT NULL)
       AND (state = 'running') = (lease_until IS NOT NULL)
       AND (state = 'done') = (status IS NOT NULL)
       AND (state = 'done') = (finished_at IS NOT NULL)
       AND (status IS NULL OR (status = 'ok') = (code = ''))
       AND (told_stream IS NULL) = (told_seq IS NULL);
END $$;

CREATE FUNCTION change_is_sound(op text, before_sha256 bytea, after_sha256 bytea)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (op = 'created') = (before_sha256 IS NULL) AND (op = 'deleted') = (after_sha256 IS NULL);
END $$;

-- The checks that the domains and functions take the place of; the one that ties a conversation's columns stays.
DO $$
DECLARE c record;
BEGIN
    FOR c IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
             WHERE contype = 'c' AND conname <> 'conversations_check'
               AND conrelid IN ('conversations'::regclass, 'calls'::regclass, 'files'::regclass, 'blobs'::regclass, 'changes'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.of_table, c.conname);
    END LOOP;
END $$;
-- +goose StatementEnd

ALTER TABLE conversations
    ALTER COLUMN id TYPE identifier,
    ALTER COLUMN generation TYPE positive_bigint,
    ALTER COLUMN last_seq TYPE natural_bigint,
    ALTER COLUMN open TYPE natural_integer,
    ALTER COLUMN bytes TYPE natural_bigint,
    ALTER COLUMN files TYPE natural_integer,
    ALTER COLUMN history_bytes TYPE natural_bigint,
    ALTER COLUMN history_floor TYPE natural_bigint;

ALTER TABLE calls
    ALTER COLUMN call_id TYPE identifier,
    ALTER COLUMN seq TYPE natural_bigint,
    ALTER COLUMN lane TYPE call_lane,
    ALTER COLUMN arguments_sha256 TYPE sha256_hash,
    ALTER COLUMN state TYPE call_state,
    ALTER COLUMN attempt TYPE natural_integer,
    ALTER COLUMN status TYPE call_status,
    ADD CONSTRAINT call_is_sound CHECK (call_is_sound(seq, state, token, lease_until, status, code, finished_at, told_stream, told_seq));

ALTER TABLE files
    ALTER COLUMN path TYPE workspace_path,
    ALTER COLUMN revision TYPE positive_bigint,
    ALTER COLUMN sha256 TYPE sha256_hash,
    ALTER COLUMN bytes TYPE natural_bigint,
    ALTER COLUMN kind TYPE file_kind,
    ALTER COLUMN lines TYPE natural_integer,
    ALTER COLUMN characters TYPE natural_bigint;

ALTER TABLE blobs
    ALTER COLUMN sha256 TYPE sha256_hash,
    ALTER COLUMN piece TYPE natural_integer,
    ALTER COLUMN data TYPE content_piece;

ALTER TABLE changes
    ALTER COLUMN seq TYPE positive_bigint,
    ALTER COLUMN op TYPE change_op,
    ADD CONSTRAINT change_is_sound CHECK (change_is_sound(op, before_sha256, after_sha256));

-- A conversation's row changes with each of its calls. Where none of its indexes has a column that does, Postgres rewrites the
-- row in place (a HOT update) and touches no index: what is to be found is found by other means.
DROP INDEX conversations_open;    -- open conversations without a head: by the calls that wait
DROP INDEX conversations_history; -- long histories: by a mark that is set once
ALTER TABLE conversations ADD COLUMN history_due boolean NOT NULL DEFAULT false; -- more history is kept than may be
UPDATE conversations SET history_due = true WHERE history_bytes > 0; -- the sweeper looks
CREATE INDEX conversations_history_due ON conversations (id) WHERE history_due;
ALTER TABLE conversations SET (fillfactor = 70);
ALTER TABLE files SET (fillfactor = 90);

-- Calls that wait behind the head. Most calls never do.
CREATE INDEX calls_waiting ON calls (conversation_id, seq) WHERE state = 'queued';
DROP INDEX calls_due; -- heads are few: calls_head finds those that are due

-- A BRIN index costs each single-row statement ten times what a B-tree's last page does.
DROP INDEX calls_of_late;
CREATE INDEX calls_of_late ON calls (accepted_at);

-- Only pruning asks what names a content, and then of a whole conversation.
DROP INDEX changes_before;
DROP INDEX changes_after;

-- A file of a few KB stands in its own row, not in pieces of 2 KB beside it.
ALTER TABLE blobs SET (toast_tuple_target = 8160);

-- When the stream was made that holds the results now. Who was cut off while it was made anew must not note later that a
-- result was told: it was told into the one that is gone.
CREATE TABLE results_stream (
    one     boolean     PRIMARY KEY DEFAULT true CHECK (one),
    made_at timestamptz NOT NULL
);
INSERT INTO results_stream (made_at) VALUES ('-infinity'); -- nobody has looked yet

-- Results are compressed the quick way, where the server can.
-- +goose StatementBegin
DO $$
BEGIN
    ALTER TABLE calls ALTER COLUMN arguments SET COMPRESSION lz4, ALTER COLUMN result SET COMPRESSION lz4,
        ALTER COLUMN output SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server was built without lz4';
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT 'forward only';
