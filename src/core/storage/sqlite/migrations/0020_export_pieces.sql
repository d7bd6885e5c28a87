-- Stores a file in pieces, each in a transaction of its own: a file of 16 MB in one transaction delayed every
-- edit behind it. Files are built again on request, so none is copied.
DROP TABLE exports;

CREATE TABLE exports (
    link_id      TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       TEXT    NOT NULL,
    with_reviews INTEGER NOT NULL,
    -- The fence of its build, which names its pieces.
    fence        INTEGER NOT NULL,
    -- The state of the document in it: the last update, the last change of its reviews, the title.
    seq          INTEGER NOT NULL,
    change       INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    hash         BLOB    NOT NULL,
    length       INTEGER NOT NULL,
    took_ms      INTEGER NOT NULL,
    built_at     INTEGER NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
) STRICT;

CREATE INDEX exports_by_age ON exports (built_at, length);

-- The bytes of files, and of builds that have not ended.
CREATE TABLE export_pieces (
    link_id      TEXT    NOT NULL,
    format       TEXT    NOT NULL,
    with_reviews INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    bytes        BLOB    NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews, fence, number),
    FOREIGN KEY (link_id, format, with_reviews) REFERENCES export_builds ON DELETE CASCADE
) STRICT;
