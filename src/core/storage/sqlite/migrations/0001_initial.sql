-- What Galley keeps. Times are milliseconds since the epoch, UTC. Never edited after release.

-- "GALY": says whose file this is.
PRAGMA application_id = 1195461721;

CREATE TABLE users (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE documents (
    id         TEXT    NOT NULL PRIMARY KEY,
    title      TEXT    NOT NULL,
    owner_id   TEXT    NOT NULL REFERENCES users (id),
    characters INTEGER NOT NULL,
    -- The number of the last update, also when its row was merged away. 0: none yet.
    last_seq   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX documents_of_owner ON documents (owner_id, updated_at, id);

-- Most rows are a keystroke of some 30 bytes: one tree, not two.
CREATE TABLE updates (
    document_id TEXT    NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    bytes       BLOB    NOT NULL,
    PRIMARY KEY (document_id, seq)
) STRICT, WITHOUT ROWID;

-- Stands in the place of all updates up to and with number `upto`.
CREATE TABLE snapshots (
    document_id TEXT    NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    upto        INTEGER NOT NULL,
    bytes       BLOB    NOT NULL
) STRICT;

-- Whose Yjs client ids are whose. No user: the server's own. No reference to `users`: one update
-- by a user whom nobody wrote down would fail its whole group.
CREATE TABLE clients (
    document_id TEXT    NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    client      INTEGER NOT NULL,
    user_id     TEXT,
    PRIMARY KEY (document_id, client)
) STRICT, WITHOUT ROWID;

CREATE TABLE share_links (
    id          TEXT    NOT NULL PRIMARY KEY,
    document_id TEXT    NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    reviewer_id TEXT    REFERENCES users (id),
    joined_at   INTEGER,
    invite_hash BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) STRICT;

-- One active link per document, whoever asks.
CREATE UNIQUE INDEX share_links_one_active ON share_links (document_id) WHERE revoked_at IS NULL;
CREATE INDEX share_links_of_document ON share_links (document_id);
CREATE INDEX share_links_of_reviewer ON share_links (reviewer_id) WHERE revoked_at IS NULL;

-- The last grant of each seat. The fence never falls.
CREATE TABLE seats (
    link_id     TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    role        TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    session_id  TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    ratified_at INTEGER NOT NULL,
    PRIMARY KEY (link_id, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE reviews (
    id            TEXT    NOT NULL PRIMARY KEY,
    link_id       TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    author_id     TEXT    NOT NULL REFERENCES users (id),
    -- What it was made on; never changes.
    anchor_start  INTEGER NOT NULL,
    anchor_end    INTEGER NOT NULL,
    quote         TEXT    NOT NULL,
    prefix        TEXT    NOT NULL,
    suffix        TEXT    NOT NULL,
    -- Where it was last found.
    current_start BLOB    NOT NULL,
    current_end   BLOB    NOT NULL,
    body          TEXT    NOT NULL,
    suggestion    TEXT,
    status        TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX reviews_of_link ON reviews (link_id, created_at, id);

CREATE TABLE replies (
    id         TEXT    NOT NULL PRIMARY KEY,
    review_id  TEXT    NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    -- The version that it made of the review: an order that no clock decides.
    version    INTEGER NOT NULL,
    author_id  TEXT    NOT NULL REFERENCES users (id),
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX replies_of_review ON replies (review_id, version);
