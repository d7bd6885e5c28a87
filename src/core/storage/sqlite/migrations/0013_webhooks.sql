-- Webhooks to deliver: the outbox. The transaction of an event writes one row for each endpoint that wants
-- it; the delivery deletes the row.

CREATE TABLE webhooks (
    id          TEXT    NOT NULL PRIMARY KEY,
    -- The order within a lane. A number may return after its row is deleted.
    seq         INTEGER NOT NULL,
    -- The beginning of the SHA-256 of the endpoint's address.
    endpoint    TEXT    NOT NULL,
    -- The address without its query, for the administrator.
    url         TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    -- Endpoint and document: the rows of a lane are delivered one after another. A row without a document
    -- has a lane of its own.
    lane        TEXT    NOT NULL,
    -- No references: an event outlives its document.
    document_id TEXT,
    link_id     TEXT,
    data        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    -- A failed attempt from this time on is the last one.
    give_up_at  INTEGER NOT NULL,
    -- pending or dead.
    state       TEXT    NOT NULL,
    attempts    INTEGER NOT NULL,
    -- The number of its claims. A server that lost its claim changes no row.
    fence       INTEGER NOT NULL,
    -- The next attempt, or the end of the lease of the claim. NULL: an earlier row of the lane is pending,
    -- or the row is dead.
    next_at     INTEGER,
    last_error  TEXT
) STRICT;

CREATE INDEX webhooks_due ON webhooks (endpoint, next_at) WHERE state = 'pending';
CREATE INDEX webhooks_of_lane ON webhooks (lane, seq) WHERE state = 'pending';
CREATE INDEX webhooks_by_state ON webhooks (state, created_at, id);
CREATE INDEX webhooks_by_number ON webhooks (seq);

-- The grants whose `seat.taken` is in the outbox and whose `seat.left` is not. Empty without an endpoint
-- that wants one of them.
CREATE TABLE webhook_seats (
    link_id     TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    user_id     TEXT    NOT NULL,
    document_id TEXT    NOT NULL,
    PRIMARY KEY (link_id, role)
) STRICT, WITHOUT ROWID;
