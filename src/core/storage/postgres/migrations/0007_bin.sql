-- The bin. A deleted document stays with all its rows until its owner restores it or a server purges it.
-- Its active share link is revoked with it: so a server of the previous version also rejects its writes.
-- As in SQLite.

-- The time of the deletion; NULL: the document is not in the bin.
ALTER TABLE documents ADD COLUMN deleted_at timestamptz;
-- True: the deletion of the document revoked this link, and its restoration makes it active again.
ALTER TABLE share_links ADD COLUMN binned boolean NOT NULL DEFAULT FALSE;

CREATE INDEX documents_in_bin ON documents (deleted_at) WHERE deleted_at IS NOT NULL;
