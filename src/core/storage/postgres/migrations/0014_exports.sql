-- Exports: documents as files. A cache: the server rebuilds a row that is missing. As in SQLite.

-- The last build of each file. The fence of its lock decides which build stores the file.
CREATE TABLE export_builds (
    link_id      text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       text        COLLATE "C" NOT NULL,
    with_reviews bigint      NOT NULL,
    fence        bigint      NOT NULL,
    -- 0 to 100.
    progress     bigint      NOT NULL,
    -- Why the build produced no file. NULL: it runs, it has stored its file, or its server died.
    failure      text        COLLATE "C",
    changed_at   timestamptz NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
);

-- The last file of each format, for each share link: its members read the reviews of this link only.
CREATE TABLE exports (
    link_id      text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       text        COLLATE "C" NOT NULL,
    with_reviews bigint      NOT NULL,
    -- The state of the document in it: the last update, the last change of its reviews, the title.
    seq          bigint      NOT NULL,
    change       bigint      NOT NULL,
    title        text        NOT NULL,
    hash         bytea       NOT NULL CHECK (octet_length(hash) = 32),
    length       bigint      NOT NULL,
    took_ms      bigint      NOT NULL,
    built_at     timestamptz NOT NULL,
    bytes        bytea       NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
);

CREATE INDEX exports_by_age ON exports (built_at, length);
