-- The deletion of a user, and what finds the rows of one. As in SQLite.

-- Each user who is or was the reviewer of a link: the rows of a link and of its document may name them. A
-- trigger writes it, so that a server of the previous version does, too.
CREATE TABLE link_members (
    link_id text COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    user_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (link_id, user_id)
);

CREATE INDEX link_members_of_user ON link_members (user_id);

CREATE FUNCTION note_link_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO link_members (link_id, user_id) VALUES (NEW.id, NEW.reviewer_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER reviewer_is_member AFTER UPDATE OF reviewer_id ON share_links
FOR EACH ROW WHEN (NEW.reviewer_id IS NOT NULL) EXECUTE FUNCTION note_link_member();

INSERT INTO link_members (link_id, user_id)
SELECT m.link_id, m.user_id FROM (
    SELECT id AS link_id, reviewer_id AS user_id FROM share_links WHERE reviewer_id IS NOT NULL
    UNION SELECT link_id, author_id FROM reviews
    UNION SELECT r.link_id, p.author_id FROM replies p JOIN reviews r ON r.id = p.review_id
    UNION SELECT link_id, user_id FROM seats
    UNION SELECT link_id, user_id FROM seen_marks
    UNION SELECT link_id, by_id FROM turns
    UNION SELECT l.id, a.value ->> 'id' FROM versions v
      JOIN share_links l ON l.document_id = v.document_id
      CROSS JOIN json_array_elements(CAST(v.authors AS json)) AS a (value)
) m JOIN share_links l ON l.id = m.link_id JOIN documents d ON d.id = l.document_id
WHERE d.owner_id <> m.user_id;

-- The references to `users`: without an index the deletion of a row reads these tables whole.
DROP INDEX documents_of_owner;
CREATE INDEX documents_of_owner ON documents (owner_id, id);
DROP INDEX share_links_of_reviewer;
CREATE INDEX share_links_of_reviewer ON share_links (reviewer_id) WHERE reviewer_id IS NOT NULL;
CREATE INDEX reviews_of_author ON reviews (author_id, link_id, id);
CREATE INDEX replies_of_author ON replies (author_id, review_id, id);
CREATE INDEX decisions_of_user ON decisions (decided_by);
CREATE INDEX turns_of_user ON turns (by_id);
CREATE INDEX invite_attempts_of_user ON invite_attempts (user_id);

-- The receipts. A finished one names no user.
CREATE TABLE user_deletions (
    id             text        COLLATE "C" NOT NULL PRIMARY KEY,
    -- NULL: nothing of the user is left.
    user_id        text        COLLATE "C",
    -- The id of the deleted user in the documents of others. NULL with `user_id`.
    deleted_id     text        COLLATE "C",
    -- True: the reviews in documents of others are deleted too.
    with_reviews   boolean     NOT NULL,
    -- running, or done
    state          text        COLLATE "C" NOT NULL,
    -- The deleted documents of the user, and the share links of others that no longer name them.
    documents      bigint      NOT NULL DEFAULT 0,
    links          bigint      NOT NULL DEFAULT 0,
    requested_at   timestamptz NOT NULL,
    ended_at       timestamptz,
    -- Whether the file of the database has no byte of the deleted rows.
    is_file_clear  boolean     NOT NULL DEFAULT FALSE
);

-- One for each user at a time.
CREATE UNIQUE INDEX user_deletions_of_user ON user_deletions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX user_deletions_running ON user_deletions (requested_at) WHERE state = 'running';
