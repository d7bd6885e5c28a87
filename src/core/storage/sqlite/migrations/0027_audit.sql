-- The audit: who did what, in whose name, on what. Rows are appended. The retention deletes old ones; the
-- triggers refuse every other change.
CREATE TABLE audit (
    seq        INTEGER NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    -- admin, user or server.
    actor_kind TEXT    NOT NULL,
    -- The user, or the `sub` of the server token. NULL: the admin token. No reference: a row outlives its user.
    actor      TEXT,
    -- The user in whose name a server acts.
    user_id    TEXT,
    -- Method and route.
    action     TEXT    NOT NULL,
    -- The ids in the address, separated by a slash.
    target     TEXT    NOT NULL,
    -- NULL: the call began. Else a further row of a call that failed, with its status.
    status     INTEGER,
    request_id TEXT    NOT NULL,
    peer       TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_by_time ON audit (at);

-- The retention deletes rows from before this time alone.
CREATE TABLE audit_retention (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    before INTEGER NOT NULL
) STRICT;

INSERT INTO audit_retention (id, before) VALUES (1, 0);

CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
WHEN OLD.at >= (SELECT before FROM audit_retention)
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
