-- Decisions of the writer about suggestions, which the writer can undo for a day. The server deletes
-- older ones, and the oldest beyond a bound for each share link. As in SQLite.

CREATE TABLE decisions (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    link_id     text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    -- accept or reject
    verdict     text        COLLATE "C" NOT NULL,
    decided_by  text        COLLATE "C" NOT NULL REFERENCES users (id),
    decided_at  timestamptz NOT NULL,
    -- The number of its rows in `decision_parts` when it was made.
    parts       bigint      NOT NULL,
    -- The numbers of its last change of a review, and of its undo.
    change      bigint      NOT NULL,
    undo_change bigint
);

CREATE INDEX decisions_of_link ON decisions (link_id, decided_at, id, parts);

-- The reviews of a decision, in the order of the text. A deleted review retains its rows: the decision
-- cannot be undone without it.
CREATE TABLE decision_parts (
    decision_id text   COLLATE "C" NOT NULL REFERENCES decisions (id) ON DELETE CASCADE,
    position    bigint NOT NULL,
    review_id   text   COLLATE "C" NOT NULL,
    -- The part of the review; 0 is its first one.
    part        bigint NOT NULL,
    -- Relative positions of the accepted text. Null: the decision put nothing into the text.
    place_start bytea,
    place_end   bytea,
    PRIMARY KEY (decision_id, position)
);

-- The decision under which a review is accepted or rejected.
ALTER TABLE reviews ADD COLUMN decision_id text COLLATE "C";
ALTER TABLE reviews ADD COLUMN decided_by text COLLATE "C";
ALTER TABLE reviews ADD COLUMN decided_at timestamptz;
