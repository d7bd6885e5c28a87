-- Numbers of the changes of a document's reviews. A server compares the number of its open rooms with
-- that of the database, and reads the changes whose messages it missed. As in SQLite.

ALTER TABLE documents ADD COLUMN review_changes bigint NOT NULL DEFAULT 0;

-- The change that made a review, and its last one.
ALTER TABLE reviews ADD COLUMN first_change bigint NOT NULL DEFAULT 0;
ALTER TABLE reviews ADD COLUMN last_change bigint NOT NULL DEFAULT 0;

-- The changes that deleted a review: the last thousand numbers of a document. Rows are written under the
-- lock of their document.
CREATE TABLE deleted_reviews (
    document_id text   COLLATE "C" NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    change      bigint NOT NULL,
    review_id   text   COLLATE "C" NOT NULL,
    link_id     text   COLLATE "C" NOT NULL,
    PRIMARY KEY (document_id, change)
);
