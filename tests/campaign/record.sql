-- Records the commits of the database, inside the committing transaction: each row of the log with
-- the writer's grant that is ratified at that moment, each ratified fence, each end of a right.

CREATE SCHEMA campaign;

CREATE TABLE campaign.log (
    id       bigserial   PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind     text        NOT NULL,
    document text,
    link     text,
    role     text,
    seq      bigint,
    fence    bigint,
    session  text,
    bytes    bytea
);

CREATE FUNCTION campaign.stored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign.log (kind, document, link, role, seq, fence, session, bytes)
    SELECT 'row', NEW.document_id, l.id, s.role, NEW.seq, s.fence, s.session_id, NEW.bytes
    FROM (SELECT 1) AS one
    LEFT JOIN public.share_links l ON l.document_id = NEW.document_id AND l.revoked_at IS NULL
    LEFT JOIN public.seats s ON s.link_id = l.id AND s.role = 'writer';
    RETURN NULL;
END $$;
CREATE TRIGGER campaign AFTER INSERT ON public.updates
    FOR EACH ROW EXECUTE FUNCTION campaign.stored();

-- A vacated seat retains its session under the next fence: that is no grant.
CREATE FUNCTION campaign.ratified() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.session_id <> OLD.session_id OR NEW.fence = OLD.fence THEN
        INSERT INTO campaign.log (kind, link, role, fence, session)
        VALUES ('ratified', NEW.link_id, NEW.role, NEW.fence, NEW.session_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER campaign AFTER INSERT OR UPDATE ON public.seats
    FOR EACH ROW EXECUTE FUNCTION campaign.ratified();

CREATE FUNCTION campaign.revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign.log (kind, document, link) VALUES ('revoked', NEW.document_id, NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER campaign AFTER UPDATE OF revoked_at ON public.share_links
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION campaign.revoked();

CREATE FUNCTION campaign.deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign.log (kind, document) VALUES ('deleted', OLD.id);
    RETURN NULL;
END $$;
CREATE TRIGGER campaign AFTER DELETE ON public.documents
    FOR EACH ROW EXECUTE FUNCTION campaign.deleted();

CREATE TRIGGER campaign_bin AFTER UPDATE OF deleted_at ON public.documents
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION campaign.deleted();

CREATE FUNCTION campaign.accepted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign.log (kind, document, bytes)
    SELECT 'accepted', l.document_id, convert_to(NEW.suggestion, 'UTF8')
    FROM public.share_links l WHERE l.id = NEW.link_id;
    RETURN NULL;
END $$;
CREATE TRIGGER campaign AFTER UPDATE OF status ON public.reviews
    FOR EACH ROW WHEN (OLD.status <> 'accepted' AND NEW.status = 'accepted')
    EXECUTE FUNCTION campaign.accepted();
