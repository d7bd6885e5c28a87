-- The audit admits one change: the deletion of a user replaces the id, and removes the address of the user's
-- calls. As in SQLite.
CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at < (SELECT before FROM audit_retention) THEN
            RETURN OLD;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF (NEW.seq, NEW.at, NEW.actor_kind, NEW.action, NEW.status, NEW.request_id)
                IS NOT DISTINCT FROM
                (OLD.seq, OLD.at, OLD.actor_kind, OLD.action, OLD.status, OLD.request_id)
            AND (NEW.actor IS NOT DISTINCT FROM OLD.actor OR NEW.actor LIKE 'del\_%')
            AND (NEW.user_id IS NOT DISTINCT FROM OLD.user_id OR NEW.user_id LIKE 'del\_%')
            AND (NEW.target = OLD.target OR NEW.target LIKE 'del\_%')
            AND (NEW.peer = OLD.peer OR NEW.peer = '')
            AND (NEW.actor, NEW.user_id, NEW.target)
                IS DISTINCT FROM (OLD.actor, OLD.user_id, OLD.target) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit is append-only';
END
$$;

CREATE INDEX audit_of_actor ON audit (actor) WHERE actor IS NOT NULL;
CREATE INDEX audit_of_user ON audit (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_of_target ON audit (target);
