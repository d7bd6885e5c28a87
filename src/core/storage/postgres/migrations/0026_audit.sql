-- The audit: who did what, in whose name, on what. Rows are appended. The retention deletes old ones; the
-- triggers refuse every other change. As in SQLite.
CREATE TABLE audit (
    seq        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    -- admin, user or server.
    actor_kind text        COLLATE "C" NOT NULL,
    -- The user, or the `sub` of the server token. NULL: the admin token. No reference: a row outlives its user.
    actor      text        COLLATE "C",
    -- The user in whose name a server acts.
    user_id    text        COLLATE "C",
    -- Method and route.
    action     text        COLLATE "C" NOT NULL,
    -- The ids in the address, separated by a slash.
    target     text        COLLATE "C" NOT NULL,
    -- NULL: the call began. Else a further row of a call that failed, with its status.
    status     bigint,
    request_id text        NOT NULL,
    peer       text        NOT NULL
);

CREATE INDEX audit_by_time ON audit (at);

-- The retention deletes rows from before this time alone.
CREATE TABLE audit_retention (
    id     bigint      PRIMARY KEY CHECK (id = 1),
    before timestamptz NOT NULL
);

INSERT INTO audit_retention (id, before) VALUES (1, 'epoch');

CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at < (SELECT before FROM audit_retention) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit is append-only';
END
$$;

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_is_not_truncated BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
