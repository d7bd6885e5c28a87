-- Numbers of the changes of a document's reviews. A server compares the number of its open rooms with
-- that of the database, and reads the changes whose messages it missed.

ALTER TABLE documents ADD COLUMN review_changes INTEGER NOT NULL DEFAULT 0;

-- The change that made a review, and its last one.
ALTER TABLE reviews ADD COLUMN first_change INTEGER NOT NULL DEFAULT 0;
ALTER TABLE reviews ADD COLUMN last_change INTEGER NOT NULL DEFAULT 0;

-- The changes that deleted a review: the last thousand numbers of a document.
CREATE TABLE deleted_reviews (
    document_id TEXT    NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    change      INTEGER NOT NULL,
    review_id   TEXT    NOT NULL,
    link_id     TEXT    NOT NULL,
    PRIMARY KEY (document_id, change)
) STRICT, WITHOUT ROWID;
