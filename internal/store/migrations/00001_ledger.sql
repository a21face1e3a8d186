-- +goose Up

-- One row a conversation: the lock of every change, the order of its calls, and what its workspace holds.
CREATE TABLE conversations (
    id            text        PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    generation    bigint      NOT NULL DEFAULT 1 CHECK (generation > 0), -- grows when the conversation is deleted
    last_seq      bigint      NOT NULL DEFAULT 0 CHECK (last_seq >= 0),  -- never reset, also not by a deletion
    open          integer     NOT NULL DEFAULT 0 CHECK (open >= 0),      -- calls queued, released or running
    bytes         bigint      NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    files         integer     NOT NULL DEFAULT 0 CHECK (files >= 0),
    history_bytes bigint      NOT NULL DEFAULT 0 CHECK (history_bytes >= 0),
    history_floor bigint      NOT NULL DEFAULT 0 CHECK (history_floor >= 0), -- changes up to this seq have been pruned
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at    timestamptz,
    purge_due     boolean     NOT NULL DEFAULT false, -- its results are still to be purged from the stream
    CHECK (deleted_at IS NULL OR (open = 0 AND bytes = 0 AND files = 0))
);
CREATE INDEX conversations_open ON conversations (id) WHERE open > 0;
CREATE INDEX conversations_purge ON conversations (id) WHERE purge_due;
CREATE INDEX conversations_history ON conversations (history_bytes);

CREATE TABLE turns (
    id              text        PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    conversation_id text        NOT NULL REFERENCES conversations,
    generation      bigint      NOT NULL,
    token_sha256    bytea       UNIQUE CHECK (octet_length(token_sha256) = 32),
    portal          boolean     NOT NULL DEFAULT false,
    caller_user     text        NOT NULL,
    department      text        NOT NULL,
    collections     text[]      NOT NULL DEFAULT '{}',
    tools           text[]      NOT NULL DEFAULT '{}',
    skills          text[]      NOT NULL DEFAULT '{}',
    knowledge       text[]      NOT NULL DEFAULT '{}',
    vision          boolean     NOT NULL DEFAULT false,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at      timestamptz,
    closed_at       timestamptz,
    CHECK (portal = (token_sha256 IS NULL)),
    UNIQUE (id, conversation_id)
);
CREATE INDEX turns_conversation ON turns (conversation_id);

-- The ledger, the trace and the stored results in one row a call.
CREATE TABLE calls (
    turn_id          text        NOT NULL,
    call_id          text        NOT NULL CHECK (call_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    conversation_id  text        NOT NULL,
    generation       bigint      NOT NULL,
    seq              bigint      NOT NULL CHECK (seq >= 0), -- 0: it touched no workspace, or was refused at the door
    tool             text        NOT NULL,
    kind             text        NOT NULL,                  -- the catalogue's kind of step
    lane             text        NOT NULL CHECK (lane IN ('file', 'code', 'none')),
    actor            text        NOT NULL DEFAULT '',       -- the person, for the portal's own calls
    arguments        bytea       NOT NULL,
    arguments_sha256 bytea       NOT NULL CHECK (octet_length(arguments_sha256) = 32),
    paths            text[]      NOT NULL DEFAULT '{}',
    state            text        NOT NULL CHECK (state IN ('queued', 'released', 'running', 'done')),
    token            uuid,
    attempt          integer     NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    lease_until      timestamptz,
    next_at          timestamptz NOT NULL DEFAULT clock_timestamp(), -- when the sweeper looks at it next
    sweeps           integer     NOT NULL DEFAULT 0,
    cancel_requested boolean     NOT NULL DEFAULT false,
    status           text        CHECK (status IN ('ok', 'refused', 'failed')),
    code             text        NOT NULL DEFAULT '',
    result           bytea,      -- the result as it is told
    output           bytea,      -- the stored result, where it holds more than the told one
    result_ref       text        NOT NULL,
    accepted_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz,
    finished_at      timestamptz,
    told_stream      timestamptz, -- when the stream that holds the telling was made
    told_seq         bigint,      -- and the telling's place in it
    PRIMARY KEY (turn_id, call_id),
    FOREIGN KEY (turn_id, conversation_id) REFERENCES turns (id, conversation_id),
    UNIQUE (conversation_id, result_ref),
    CHECK (seq > 0 OR state = 'done'),
    CHECK ((state = 'running') = (token IS NOT NULL)),
    CHECK ((state = 'running') = (lease_until IS NOT NULL)),
    CHECK ((state = 'done') = (status IS NOT NULL)),
    CHECK ((state = 'done') = (finished_at IS NOT NULL)),
    CHECK ((status = 'ok') = (code = '')),
    CHECK ((told_stream IS NULL) = (told_seq IS NULL))
);
-- Every change of a call's row touches each index of the table: there are no more than are needed.
-- A place in the order is given once.
CREATE UNIQUE INDEX calls_order ON calls (conversation_id, seq) WHERE seq > 0;
-- One call of a conversation at a time.
CREATE UNIQUE INDEX calls_head ON calls (conversation_id) WHERE state IN ('released', 'running');
CREATE INDEX calls_due ON calls (next_at) WHERE state IN ('released', 'running');
CREATE INDEX calls_untold ON calls (next_at) WHERE state = 'done' AND told_seq IS NULL;
-- The calls of late, of all that there ever were: when results were lost. It costs next to nothing.
CREATE INDEX calls_of_late ON calls USING brin (accepted_at) WITH (pages_per_range = 32);

CREATE TABLE files (
    conversation_id text        NOT NULL REFERENCES conversations,
    path            text        COLLATE "C" NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 512),
    revision        bigint      NOT NULL CHECK (revision > 0),
    last_read       bigint      NOT NULL DEFAULT 0, -- the seq of the last read_file of it
    sha256          bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    bytes           bigint      NOT NULL CHECK (bytes >= 0),
    kind            text        NOT NULL CHECK (kind IN ('text', 'binary')),
    lines           integer     NOT NULL CHECK (lines >= 0),
    characters      bigint      NOT NULL CHECK (characters >= 0),
    mime_type       text        NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation_id, path)
);

-- Content by hash within a conversation, in pieces of at most 1 MiB. An empty content has one empty piece.
CREATE TABLE blobs (
    conversation_id text    NOT NULL REFERENCES conversations,
    sha256          bytea   NOT NULL CHECK (octet_length(sha256) = 32),
    piece           integer NOT NULL CHECK (piece >= 0),
    data            bytea   NOT NULL CHECK (octet_length(data) <= 1048576),
    PRIMARY KEY (conversation_id, sha256, piece)
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

-- The history: what each call changed, and what was there before.
CREATE TABLE changes (
    conversation_id text   NOT NULL REFERENCES conversations,
    seq             bigint NOT NULL CHECK (seq > 0),
    path            text   COLLATE "C" NOT NULL,
    op              text   NOT NULL CHECK (op IN ('created', 'modified', 'deleted')),
    before_sha256   bytea,
    before_bytes    bigint NOT NULL DEFAULT 0,
    after_sha256    bytea,
    after_bytes     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (conversation_id, seq, path),
    CHECK ((op = 'created') = (before_sha256 IS NULL)),
    CHECK ((op = 'deleted') = (after_sha256 IS NULL))
);
CREATE INDEX changes_before ON changes (conversation_id, before_sha256);
CREATE INDEX changes_after ON changes (conversation_id, after_sha256);

-- Bytes that a person uploads, kept here until the call that puts them in place has its turn.
CREATE TABLE staged (
    id         text        NOT NULL,
    piece      integer     NOT NULL CHECK (piece >= 0),
    data       bytea       NOT NULL CHECK (octet_length(data) <= 1048576),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, piece)
);
ALTER TABLE staged ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX staged_age ON staged (created_at);

-- Results of tools that run elsewhere, put by the portal.
CREATE TABLE results (
    conversation_id text        NOT NULL REFERENCES conversations,
    ref             text        NOT NULL CHECK (ref ~ '^[A-Za-z0-9_-]{1,64}$' AND ref NOT LIKE 'tl-%'),
    tool_name       text        NOT NULL,
    is_error        boolean     NOT NULL,
    output          bytea       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation_id, ref)
);

-- +goose Down
SELECT 'forward only';
