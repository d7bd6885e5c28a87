-- Exports: documents as files. A cache: the server rebuilds a row that is missing.

-- The last build of each file. The fence of its lock decides which build stores the file.
CREATE TABLE export_builds (
    link_id      TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       TEXT    NOT NULL,
    with_reviews INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    -- 0 to 100.
    progress     INTEGER NOT NULL,
    -- Why the build produced no file. NULL: it runs, it has stored its file, or its server died.
    failure      TEXT,
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
) STRICT, WITHOUT ROWID;

-- The last file of each format, for each share link: its members read the reviews of this link only.
CREATE TABLE exports (
    link_id      TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       TEXT    NOT NULL,
    with_reviews INTEGER NOT NULL,
    -- The state of the document in it: the last update, the last change of its reviews, the title.
    seq          INTEGER NOT NULL,
    change       INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    hash         BLOB    NOT NULL,
    length       INTEGER NOT NULL,
    took_ms      INTEGER NOT NULL,
    built_at     INTEGER NOT NULL,
    bytes        BLOB    NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
) STRICT;

CREATE INDEX exports_by_age ON exports (built_at, length);
