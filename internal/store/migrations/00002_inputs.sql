-- +goose Up

-- Bytes that outlive a conversation: of uploads, passages, skills and artifacts. Content is written under a fresh id, a
-- piece a statement, and taken into use by one statement that ends its being due; what is replaced becomes due again, so
-- that a run that is reading it reads it whole. Due content is swept.
CREATE TABLE contents (
    id         text        PRIMARY KEY,
    bytes      bigint      NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    sha256     bytea       CHECK (octet_length(sha256) = 32), -- unknown while it is being written
    due_at     timestamptz,                                  -- when it may be removed; null: it is in use
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (due_at IS NOT NULL OR sha256 IS NOT NULL)
);
CREATE INDEX contents_due ON contents (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE content_pieces (
    content_id text    NOT NULL REFERENCES contents ON DELETE CASCADE,
    piece      integer NOT NULL CHECK (piece >= 0),
    data       bytea   NOT NULL CHECK (octet_length(data) BETWEEN 1 AND 1048576),
    PRIMARY KEY (content_id, piece)
);
ALTER TABLE content_pieces ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE uploads (
    id         text        PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    collection text        NOT NULL, -- '': in none, so that only a turn's knowledge opens it
    name       text        NOT NULL,
    content_id text        NOT NULL REFERENCES contents,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE passages (
    upload_id  text        PRIMARY KEY REFERENCES uploads ON DELETE CASCADE,
    passages   integer     NOT NULL CHECK (passages >= 0),
    content_id text        NOT NULL REFERENCES contents, -- a JSON array, as it is mounted
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A skill's files stand one behind the other in its content.
CREATE TABLE skills (
    name       text        PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9_-]{1,64}$'),
    content_id text        NOT NULL REFERENCES contents,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE skill_files (
    skill_name text    NOT NULL REFERENCES skills ON DELETE CASCADE,
    path       text    COLLATE "C" NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 512),
    at         bigint  NOT NULL CHECK (at >= 0), -- where its bytes begin in the content
    bytes      bigint  NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (skill_name, path)
);

CREATE TABLE artifacts (
    id         text        PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    owner      text        NOT NULL CHECK (owner <> ''),
    version    integer     NOT NULL CHECK (version > 0), -- the newest
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE artifact_versions (
    artifact_id     text        NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    version         integer     NOT NULL CHECK (version > 0),
    kind            text        NOT NULL CHECK (kind IN ('document', 'chart', 'web', 'text', 'file')),
    title           text        NOT NULL,
    name            text        NOT NULL, -- of the file that it is, for its ending
    content_id      text        NOT NULL REFERENCES contents,
    made_by         text        NOT NULL, -- the caller; '': the portal
    department      text        NOT NULL, -- is billed for the bytes
    bytes           bigint      NOT NULL CHECK (bytes >= 0),
    conversation_id text,                 -- no reference: an artifact outlives its conversation
    seq             bigint,
    call_id         text        NOT NULL DEFAULT '', -- the call that last made the file
    call_tool       text        NOT NULL DEFAULT '',
    code            bytea,                           -- and its code, where it ran some
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (artifact_id, version),
    UNIQUE (conversation_id, seq)         -- a call makes one version
);
CREATE INDEX artifact_versions_department ON artifact_versions (department);

-- The files that a version was made from, as they were.
CREATE TABLE artifact_sources (
    artifact_id text    NOT NULL,
    version     integer NOT NULL,
    path        text    COLLATE "C" NOT NULL,
    content_id  text    NOT NULL REFERENCES contents,
    PRIMARY KEY (artifact_id, version, path),
    FOREIGN KEY (artifact_id, version) REFERENCES artifact_versions ON DELETE CASCADE
);

CREATE TABLE artifact_shares (
    artifact_id text NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    subject     text NOT NULL CHECK (subject IN ('user', 'department')),
    name        text NOT NULL CHECK (name <> ''),
    right_to    text NOT NULL CHECK (right_to IN ('read', 'change')),
    PRIMARY KEY (artifact_id, subject, name)
);

-- +goose Down
SELECT 'forward only';
