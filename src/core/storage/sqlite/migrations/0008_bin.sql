-- The bin. A deleted document stays with all its rows until its owner restores it or a server purges it.
-- Its active share link is revoked with it: so a server of the previous version also rejects its writes.

-- The time of the deletion; NULL: the document is not in the bin.
ALTER TABLE documents ADD COLUMN deleted_at INTEGER;
-- 1: the deletion of the document revoked this link, and its restoration makes it active again.
ALTER TABLE share_links ADD COLUMN binned INTEGER NOT NULL DEFAULT 0;

CREATE INDEX documents_in_bin ON documents (deleted_at) WHERE deleted_at IS NOT NULL;

DROP VIEW documents_now;
CREATE VIEW documents_now AS
SELECT id, title, owner_id, characters, created_at, deleted_at,
       MAX(last_seq, COALESCE(
           (SELECT MAX(seq) FROM journal WHERE document_id = documents.id), 0)) AS last_seq,
       MAX(updated_at, COALESCE(
           (SELECT MAX(at) FROM journal WHERE document_id = documents.id), 0)) AS updated_at
  FROM documents;
