-- The texts of versions, compressed: one row for a text, however many versions have it.
CREATE TABLE version_texts (
    document_id text  COLLATE "C" NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
    bytes       bytea NOT NULL,
    PRIMARY KEY (document_id, hash)
);

-- They are compressed already.
ALTER TABLE version_texts ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Kept under an advisory lock of their document, not under that of its row: no edit waits for them.
CREATE TABLE versions (
    id            text        COLLATE "C" NOT NULL PRIMARY KEY,
    document_id   text        COLLATE "C" NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    -- Rises from 1; what was thinned out leaves holes.
    number        bigint      NOT NULL,
    kind          text        COLLATE "C" NOT NULL,
    label         text,
    -- JSON: who, under the names they had.
    authors       text        NOT NULL,
    -- The version that was restored.
    restored_from bigint,
    -- The number of the last update that is in it.
    seq           bigint      NOT NULL,
    characters    bigint      NOT NULL,
    text_hash     bytea       NOT NULL CHECK (octet_length(text_hash) = 32),
    text_bytes    bigint      NOT NULL,
    created_at    timestamptz NOT NULL
);

CREATE UNIQUE INDEX versions_of_document ON versions (document_id, number);
-- One automatic version of a point, whoever was asked for it, and on however many servers.
CREATE UNIQUE INDEX versions_one_automatic ON versions (document_id, seq)
    WHERE kind IN ('pause', 'seat', 'decision');
