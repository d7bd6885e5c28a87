-- The texts of versions, compressed: one row for a text, however many versions have it.
CREATE TABLE version_texts (
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    hash        BLOB NOT NULL,
    bytes       BLOB NOT NULL,
    PRIMARY KEY (document_id, hash)
) STRICT;

CREATE TABLE versions (
    id            TEXT    NOT NULL PRIMARY KEY,
    document_id   TEXT    NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    -- Rises from 1; what was thinned out leaves holes.
    number        INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    label         TEXT,
    -- JSON: who, under the names they had.
    authors       TEXT    NOT NULL,
    -- The version that was restored.
    restored_from INTEGER,
    -- The number of the last update that is in it.
    seq           INTEGER NOT NULL,
    characters    INTEGER NOT NULL,
    text_hash     BLOB    NOT NULL,
    text_bytes    INTEGER NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX versions_of_document ON versions (document_id, number);
-- One automatic version of a point, whoever was asked for it, and on however many servers.
CREATE UNIQUE INDEX versions_one_automatic ON versions (document_id, seq)
    WHERE kind IN ('pause', 'seat', 'decision');
