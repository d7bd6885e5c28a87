-- Webhooks to deliver: the outbox. The transaction of an event writes one row for each endpoint that wants
-- it; the delivery deletes the row. As in SQLite. A transaction that adds a row for a document, or ends
-- one, locks the row of the document first: so the numbers of a lane rise in the order of the commits.

CREATE SEQUENCE webhook_numbers;

CREATE TABLE webhooks (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    seq         bigint      NOT NULL,
    -- The beginning of the SHA-256 of the endpoint's address.
    endpoint    text        COLLATE "C" NOT NULL,
    -- The address without its query, for the administrator.
    url         text        NOT NULL,
    type        text        NOT NULL,
    -- Endpoint and document: the rows of a lane are delivered one after another. A row without a document
    -- has a lane of its own.
    lane        text        COLLATE "C" NOT NULL,
    -- No references: an event outlives its document.
    document_id text        COLLATE "C",
    link_id     text        COLLATE "C",
    data        text        NOT NULL,
    created_at  timestamptz NOT NULL,
    -- A failed attempt from this time on is the last one.
    give_up_at  timestamptz NOT NULL,
    -- pending or dead.
    state       text        COLLATE "C" NOT NULL,
    attempts    bigint      NOT NULL,
    -- The number of its claims. A server that lost its claim changes no row.
    fence       bigint      NOT NULL,
    -- The next attempt, or the end of the lease of the claim. NULL: an earlier row of the lane is pending,
    -- or the row is dead.
    next_at     timestamptz,
    last_error  text
);

CREATE INDEX webhooks_due ON webhooks (endpoint, next_at) WHERE state = 'pending';
CREATE INDEX webhooks_of_lane ON webhooks (lane, seq) WHERE state = 'pending';
CREATE INDEX webhooks_by_state ON webhooks (state, created_at, id);

-- The grants whose `seat.taken` is in the outbox and whose `seat.left` is not. Empty without an endpoint
-- that wants one of them.
CREATE TABLE webhook_seats (
    link_id     text   COLLATE "C" NOT NULL,
    role        text   COLLATE "C" NOT NULL,
    fence       bigint NOT NULL,
    user_id     text   COLLATE "C" NOT NULL,
    document_id text   COLLATE "C" NOT NULL,
    PRIMARY KEY (link_id, role)
);
