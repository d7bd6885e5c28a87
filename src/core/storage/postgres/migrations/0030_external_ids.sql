-- The id that the host application gave a document, and the webhooks about it.
ALTER TABLE documents ADD COLUMN external_id text COLLATE "C";
ALTER TABLE webhooks ADD COLUMN external_id text COLLATE "C";

CREATE UNIQUE INDEX documents_external ON documents (owner_id, external_id)
    WHERE external_id IS NOT NULL;
