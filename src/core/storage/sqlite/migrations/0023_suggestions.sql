-- Suggestions that a reviewer types: how a review was made, why its author closed it, and the further parts
-- of a suggestion. A review has its first part.
ALTER TABLE reviews ADD COLUMN origin TEXT;
ALTER TABLE reviews ADD COLUMN outcome TEXT;
ALTER TABLE reviews ADD COLUMN more_parts INTEGER NOT NULL DEFAULT 0;

CREATE TABLE review_parts (
    review_id     TEXT    NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    part          INTEGER NOT NULL,
    anchor_start  INTEGER NOT NULL,
    anchor_end    INTEGER NOT NULL,
    quote         TEXT    NOT NULL,
    prefix        TEXT    NOT NULL,
    suffix        TEXT    NOT NULL,
    current_start BLOB    NOT NULL,
    current_end   BLOB    NOT NULL,
    text          TEXT    NOT NULL,
    PRIMARY KEY (review_id, part)
) STRICT, WITHOUT ROWID;

-- Answers how many open reviews a link has.
CREATE INDEX reviews_open_of_link ON reviews (link_id, more_parts, status) WHERE status = 'open';
