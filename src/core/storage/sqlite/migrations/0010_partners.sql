-- Handles and personal links, requests of one user to another, and partners.

-- How other users reach a user: by a handle, or by a personal link, of which the table has a hash.
CREATE TABLE handles (
    handle  TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX handles_of_user ON handles (user_id);

CREATE TABLE personal_links (
    user_id   TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
    link_id   TEXT NOT NULL,
    link_hash BLOB NOT NULL UNIQUE
) STRICT;

-- Two users who accepted a request or a claim. The lower id comes first, so a pair has one row.
CREATE TABLE partners (
    low_id  TEXT    NOT NULL REFERENCES users (id),
    high_id TEXT    NOT NULL REFERENCES users (id),
    since   INTEGER NOT NULL,
    PRIMARY KEY (low_id, high_id),
    CHECK (low_id < high_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX partners_of_high ON partners (high_id);

-- Requests for a review, and offers of one to a single user.
CREATE TABLE review_requests (
    id          TEXT    NOT NULL PRIMARY KEY,
    sender_id   TEXT    NOT NULL REFERENCES users (id),
    receiver_id TEXT    NOT NULL REFERENCES users (id),
    low_id      TEXT    GENERATED ALWAYS AS (MIN(sender_id, receiver_id)) VIRTUAL,
    high_id     TEXT    GENERATED ALWAYS AS (MAX(sender_id, receiver_id)) VIRTUAL,
    -- The role that the sender would have.
    sender_role TEXT    NOT NULL,
    message     TEXT,
    document_id TEXT    REFERENCES documents (id) ON DELETE SET NULL,
    -- 'pending' also after `expires_at`: readers compare the time.
    state       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    decided_at  INTEGER,
    expires_at  INTEGER NOT NULL,
    CHECK (sender_id <> receiver_id)
) STRICT;

-- One pending request for each pair, in either direction.
CREATE UNIQUE INDEX review_requests_one_pending ON review_requests (low_id, high_id)
    WHERE state = 'pending';
CREATE INDEX review_requests_pending_of_sender ON review_requests (sender_id)
    WHERE state = 'pending';
CREATE INDEX review_requests_pending_of_receiver ON review_requests (receiver_id)
    WHERE state = 'pending';
CREATE INDEX review_requests_of_sender ON review_requests (sender_id, created_at);
CREATE INDEX review_requests_of_receiver ON review_requests (receiver_id, created_at);
CREATE INDEX review_requests_of_document ON review_requests (document_id)
    WHERE document_id IS NOT NULL;
CREATE INDEX review_requests_by_time ON review_requests (created_at);
