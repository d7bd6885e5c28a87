-- Browsers that receive pushes for their users (RFC 8030). An endpoint belongs to one user at a time. As
-- in SQLite. A transaction that adds a row locks the row of the user first.

CREATE TABLE push_subscriptions (
    id            text        COLLATE "C" NOT NULL PRIMARY KEY,
    user_id       text        COLLATE "C" NOT NULL REFERENCES users (id),
    endpoint      text        NOT NULL,
    -- SHA-256: an index over the addresses themselves would be longer than the table.
    endpoint_hash bytea       NOT NULL UNIQUE CHECK (octet_length(endpoint_hash) = 32),
    -- The keys of the browser (RFC 8291): a point of P-256, uncompressed, and a secret.
    p256dh        bytea       NOT NULL CHECK (octet_length(p256dh) = 65),
    auth          bytea       NOT NULL CHECK (octet_length(auth) = 16),
    -- The language of the page: ko or en. NULL: the browser decides.
    lang          text,
    -- The end that the push service announced.
    expires_at    timestamptz,
    created_at    timestamptz NOT NULL
);

CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user_id, created_at);
