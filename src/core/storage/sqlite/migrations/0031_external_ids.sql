-- The id that the host application gave a document, and the webhooks about it.
ALTER TABLE documents ADD COLUMN external_id TEXT;
ALTER TABLE webhooks ADD COLUMN external_id TEXT;

CREATE UNIQUE INDEX documents_external ON documents (owner_id, external_id)
    WHERE external_id IS NOT NULL;

DROP VIEW documents_now;
CREATE VIEW documents_now AS
SELECT id, title, owner_id, external_id, characters, created_at, deleted_at,
       MAX(last_seq, COALESCE(
           (SELECT MAX(seq) FROM journal WHERE document_id = documents.id), 0)) AS last_seq,
       MAX(updated_at, COALESCE(
           (SELECT MAX(at) FROM journal WHERE document_id = documents.id), 0)) AS updated_at
  FROM documents;
