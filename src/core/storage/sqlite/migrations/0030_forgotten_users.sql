-- The audit admits one change: the deletion of a user replaces the id, and removes the address of the user's
-- calls.
DROP TRIGGER audit_is_not_updated;

CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit
WHEN NEW.seq <> OLD.seq OR NEW.at <> OLD.at OR NEW.actor_kind <> OLD.actor_kind
    OR NEW.action <> OLD.action OR NEW.status IS NOT OLD.status OR NEW.request_id <> OLD.request_id
    OR (NEW.actor IS NOT OLD.actor AND COALESCE(NEW.actor, '') NOT GLOB 'del_*')
    OR (NEW.user_id IS NOT OLD.user_id AND COALESCE(NEW.user_id, '') NOT GLOB 'del_*')
    OR (NEW.target <> OLD.target AND NEW.target NOT GLOB 'del_*')
    OR (NEW.peer <> OLD.peer AND NEW.peer <> '')
    OR (NEW.actor IS OLD.actor AND NEW.user_id IS OLD.user_id AND NEW.target = OLD.target)
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE INDEX audit_of_actor ON audit (actor) WHERE actor IS NOT NULL;
CREATE INDEX audit_of_user ON audit (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_of_target ON audit (target);
