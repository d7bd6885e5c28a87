-- Browsers that receive pushes for their users (RFC 8030). An endpoint belongs to one user at a time.

CREATE TABLE push_subscriptions (
    id            TEXT    NOT NULL PRIMARY KEY,
    user_id       TEXT    NOT NULL REFERENCES users (id),
    endpoint      TEXT    NOT NULL,
    -- SHA-256: an index over the addresses themselves would be longer than the table.
    endpoint_hash BLOB    NOT NULL UNIQUE,
    -- The keys of the browser (RFC 8291): a point of P-256, uncompressed, and a secret.
    p256dh        BLOB    NOT NULL,
    auth          BLOB    NOT NULL,
    -- The language of the page: ko or en. NULL: the browser decides.
    lang          TEXT,
    -- The end that the push service announced.
    expires_at    INTEGER,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user_id, created_at);
