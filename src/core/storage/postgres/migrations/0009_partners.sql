-- Handles and personal links, requests of one user to another, and partners. As in SQLite.
--
-- A transaction that makes a request or partners locks the rows of both users, after the row of the
-- document if there is one, the lower id first.

-- How other users reach a user: by a handle, or by a personal link, of which the table has a hash.
CREATE TABLE handles (
    handle  text COLLATE "C" NOT NULL PRIMARY KEY,
    user_id text COLLATE "C" NOT NULL REFERENCES users (id)
);

CREATE INDEX handles_of_user ON handles (user_id);

CREATE TABLE personal_links (
    user_id   text  COLLATE "C" NOT NULL PRIMARY KEY REFERENCES users (id),
    link_id   text  COLLATE "C" NOT NULL,
    link_hash bytea NOT NULL UNIQUE CHECK (octet_length(link_hash) = 32)
);

-- Two users who accepted a request or a claim. The lower id comes first, so a pair has one row.
CREATE TABLE partners (
    low_id  text        COLLATE "C" NOT NULL REFERENCES users (id),
    high_id text        COLLATE "C" NOT NULL REFERENCES users (id),
    since   timestamptz NOT NULL,
    PRIMARY KEY (low_id, high_id),
    CHECK (low_id < high_id)
);

CREATE INDEX partners_of_high ON partners (high_id);

-- Requests for a review, and offers of one to a single user.
CREATE TABLE review_requests (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    sender_id   text        COLLATE "C" NOT NULL REFERENCES users (id),
    receiver_id text        COLLATE "C" NOT NULL REFERENCES users (id),
    low_id      text        COLLATE "C" NOT NULL
                            GENERATED ALWAYS AS (LEAST(sender_id, receiver_id)) STORED,
    high_id     text        COLLATE "C" NOT NULL
                            GENERATED ALWAYS AS (GREATEST(sender_id, receiver_id)) STORED,
    -- The role that the sender would have.
    sender_role text        COLLATE "C" NOT NULL,
    message     text,
    document_id text        COLLATE "C" REFERENCES documents (id) ON DELETE SET NULL,
    -- 'pending' also after `expires_at`: readers compare the time.
    state       text        COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL,
    decided_at  timestamptz,
    expires_at  timestamptz NOT NULL,
    CHECK (sender_id <> receiver_id)
);

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
