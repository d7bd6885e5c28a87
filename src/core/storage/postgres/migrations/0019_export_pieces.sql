-- Stores a file in pieces, each in a transaction of its own: a file of 16 MB in one transaction delayed every
-- edit behind it. Files are built again on request, so none is copied.
DROP TABLE exports;

CREATE TABLE exports (
    link_id      text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    format       text        COLLATE "C" NOT NULL,
    with_reviews bigint      NOT NULL,
    -- The fence of its build, which names its pieces.
    fence        bigint      NOT NULL,
    -- The state of the document in it: the last update, the last change of its reviews, the title.
    seq          bigint      NOT NULL,
    change       bigint      NOT NULL,
    title        text        NOT NULL,
    hash         bytea       NOT NULL CHECK (octet_length(hash) = 32),
    length       bigint      NOT NULL,
    took_ms      bigint      NOT NULL,
    built_at     timestamptz NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews)
);

CREATE INDEX exports_by_age ON exports (built_at, length);

-- The bytes of files, and of builds that have not ended.
CREATE TABLE export_pieces (
    link_id      text        COLLATE "C" NOT NULL,
    format       text        COLLATE "C" NOT NULL,
    with_reviews bigint      NOT NULL,
    fence        bigint      NOT NULL,
    number       bigint      NOT NULL,
    bytes        bytea       NOT NULL,
    PRIMARY KEY (link_id, format, with_reviews, fence, number),
    FOREIGN KEY (link_id, format, with_reviews) REFERENCES export_builds ON DELETE CASCADE
);
