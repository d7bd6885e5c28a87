-- Decisions of the writer about suggestions, which the writer can undo for a day. The server deletes
-- older ones, and the oldest beyond a bound for each share link.

CREATE TABLE decisions (
    id          TEXT    NOT NULL PRIMARY KEY,
    link_id     TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    -- accept or reject
    verdict     TEXT    NOT NULL,
    decided_by  TEXT    NOT NULL REFERENCES users (id),
    decided_at  INTEGER NOT NULL,
    -- The number of its rows in `decision_parts` when it was made.
    parts       INTEGER NOT NULL,
    -- The numbers of its last change of a review, and of its undo.
    change      INTEGER NOT NULL,
    undo_change INTEGER
) STRICT;

CREATE INDEX decisions_of_link ON decisions (link_id, decided_at, id, parts);

-- The reviews of a decision, in the order of the text. A deleted review retains its rows: the decision
-- cannot be undone without it.
CREATE TABLE decision_parts (
    decision_id TEXT    NOT NULL REFERENCES decisions (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    review_id   TEXT    NOT NULL,
    -- The part of the review; 0 is its first one.
    part        INTEGER NOT NULL,
    -- Relative positions of the accepted text. Null: the decision put nothing into the text.
    place_start BLOB,
    place_end   BLOB,
    PRIMARY KEY (decision_id, position)
) STRICT, WITHOUT ROWID;

-- The decision under which a review is accepted or rejected.
ALTER TABLE reviews ADD COLUMN decision_id TEXT;
ALTER TABLE reviews ADD COLUMN decided_by TEXT;
ALTER TABLE reviews ADD COLUMN decided_at INTEGER;
