-- What Galley keeps, in PostgreSQL. The same tables and the same promises as in SQLite, with this
-- engine's own means. Never edited after release.
--
-- Ids are compared byte by byte, whatever the collation of the database. Times are whole
-- milliseconds. Text may hold U+0000, which PostgreSQL cannot: see `columns.rs`.

-- Whose tables these are; the table itself is made by the migrator.
COMMENT ON TABLE _sqlx_migrations IS 'galley';

CREATE TABLE users (
    id         text        COLLATE "C" NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    updated_at timestamptz NOT NULL
);

-- The row of a document is its one lock: whoever changes its log, its seats, its link or its
-- reviews locks it first, several in the order of their ids. Whatever an append rests on shows in
-- it: `last_seq` moves with the log and with `clients`, `grants` with `seats` and `share_links`.
CREATE TABLE documents (
    id         text        COLLATE "C" NOT NULL PRIMARY KEY,
    title      text        NOT NULL,
    owner_id   text        COLLATE "C" NOT NULL REFERENCES users (id),
    characters bigint      NOT NULL,
    -- The number of the last update, also when its row was merged away. 0: none yet.
    last_seq   bigint      NOT NULL,
    -- Rises when a seat is ratified or vacated and when the link is revoked.
    grants     bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
    -- Room on the page for the next version of a row, which each group of edits makes.
) WITH (fillfactor = 70);

-- Without `updated_at`, although lists are sorted by it: an edit would then change an index.
CREATE INDEX documents_of_owner ON documents (owner_id);

-- No reference to `documents`, here and in `clients`: it would be looked up for each keystroke.
-- Rows are only written under the lock of their document, and deleted with it under the same.
CREATE TABLE updates (
    document_id text   COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    bytes       bytea  NOT NULL,
    PRIMARY KEY (document_id, seq)
    -- Rows live until they are merged, so most are dead soon.
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Long ones are stored as they are: compressing them would cost more than writing them.
ALTER TABLE updates ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Stands in the place of all updates up to and with number `upto`.
CREATE TABLE snapshots (
    document_id text   COLLATE "C" NOT NULL PRIMARY KEY
                       REFERENCES documents (id) ON DELETE CASCADE,
    upto        bigint NOT NULL,
    bytes       bytea  NOT NULL
);

ALTER TABLE snapshots ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Whose Yjs client ids are whose. No user: the server's own.
CREATE TABLE clients (
    document_id text   COLLATE "C" NOT NULL,
    client      bigint NOT NULL,
    user_id     text   COLLATE "C",
    PRIMARY KEY (document_id, client)
);

CREATE TABLE share_links (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    document_id text        COLLATE "C" NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    reviewer_id text        COLLATE "C" REFERENCES users (id),
    joined_at   timestamptz,
    invite_hash bytea       NOT NULL CHECK (octet_length(invite_hash) = 32),
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz
);

-- One active link per document, whoever asks.
CREATE UNIQUE INDEX share_links_one_active ON share_links (document_id) WHERE revoked_at IS NULL;
CREATE INDEX share_links_of_document ON share_links (document_id);
CREATE INDEX share_links_of_reviewer ON share_links (reviewer_id) WHERE revoked_at IS NULL;

-- The last grant of each seat. The fence never falls.
CREATE TABLE seats (
    link_id     text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    role        text        COLLATE "C" NOT NULL,
    fence       bigint      NOT NULL,
    session_id  text        COLLATE "C" NOT NULL,
    user_id     text        COLLATE "C" NOT NULL,
    ratified_at timestamptz NOT NULL,
    PRIMARY KEY (link_id, role)
) WITH (fillfactor = 70);

CREATE TABLE reviews (
    id            text        COLLATE "C" NOT NULL PRIMARY KEY,
    link_id       text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    author_id     text        COLLATE "C" NOT NULL REFERENCES users (id),
    -- What it was made on, in UTF-16 units; never changes.
    anchor_start  bigint      NOT NULL,
    anchor_end    bigint      NOT NULL,
    quote         text        NOT NULL,
    prefix        text        NOT NULL,
    suffix        text        NOT NULL,
    -- Where it was last found.
    current_start bytea       NOT NULL,
    current_end   bytea       NOT NULL,
    body          text        NOT NULL,
    suggestion    text,
    status        text        COLLATE "C" NOT NULL,
    version       bigint      NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);

CREATE INDEX reviews_of_link ON reviews (link_id, created_at, id);

CREATE TABLE replies (
    id         text        COLLATE "C" NOT NULL PRIMARY KEY,
    review_id  text        COLLATE "C" NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    -- The version that it made of the review: an order that no clock decides.
    version    bigint      NOT NULL,
    author_id  text        COLLATE "C" NOT NULL REFERENCES users (id),
    body       text        NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE UNIQUE INDEX replies_of_review ON replies (review_id, version);
