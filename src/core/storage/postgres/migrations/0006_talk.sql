-- Comments of both users, remarks on the whole text, seen marks and the turn. A server of the previous
-- version may run beside: it reads a remark as a review without a quote, and writes none of these columns.
-- As in SQLite.

-- 'summary': a remark on the whole text, which has no place. NULL: a review with a place.
ALTER TABLE reviews ADD COLUMN kind text COLLATE "C";
-- The user of the change with that number. Another number than `last_change`: the user of the last change is
-- unknown.
ALTER TABLE reviews ADD COLUMN changed_by text COLLATE "C";
ALTER TABLE reviews ADD COLUMN changed_by_number bigint NOT NULL DEFAULT 0;

ALTER TABLE replies ADD COLUMN edited_at timestamptz;

-- Answers the number of a link's remarks on the whole text.
CREATE INDEX summaries_of_link ON reviews (link_id) WHERE kind = 'summary';
-- Answers the counts of a link's reviews without reading a row of `reviews`.
CREATE INDEX review_counts_of_link
    ON reviews (link_id, last_change, status, changed_by, changed_by_number);

-- The last change that a member of a link has seen: one row for each role, of the role's last user.
CREATE TABLE seen_marks (
    link_id text   COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    role    text   COLLATE "C" NOT NULL,
    user_id text   COLLATE "C" NOT NULL,
    change  bigint NOT NULL,
    PRIMARY KEY (link_id, role)
);

-- The changes before this migration count as seen.
INSERT INTO seen_marks (link_id, role, user_id, change)
SELECT l.id, 'writer', d.owner_id, d.review_changes
  FROM share_links l JOIN documents d ON d.id = l.document_id
 WHERE l.revoked_at IS NULL AND 0 < d.review_changes
UNION ALL
SELECT l.id, 'reviewer', l.reviewer_id, d.review_changes
  FROM share_links l JOIN documents d ON d.id = l.document_id
 WHERE l.revoked_at IS NULL AND 0 < d.review_changes AND l.reviewer_id IS NOT NULL;

-- Whose turn it is on a link. The change has a number among the review changes of the document, so a
-- server that missed its message reads it. Rows are written under the lock of their document.
CREATE TABLE turns (
    link_id text        COLLATE "C" NOT NULL PRIMARY KEY
                        REFERENCES share_links (id) ON DELETE CASCADE,
    role    text        COLLATE "C" NOT NULL,
    by_id   text        COLLATE "C" NOT NULL REFERENCES users (id),
    since   timestamptz NOT NULL,
    change  bigint      NOT NULL
);
