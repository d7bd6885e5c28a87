-- Updates as they came, whatever documents they are of: a group of edits goes behind the last one,
-- into a page or two. Among the updates of its own document each would change a page for itself.
-- They are moved there some thousands at a time; see `journal.rs`.
CREATE TABLE journal (
    -- Begins at 1 again when all have been moved, so the last one says how many there are at most.
    id          INTEGER PRIMARY KEY,
    -- No reference to `documents`: it would be looked up for each keystroke.
    document_id TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    bytes       BLOB    NOT NULL,
    at          INTEGER NOT NULL
) STRICT;

-- A document with what the journal has of it, which is a look at the whole journal.
CREATE VIEW documents_now AS
SELECT id, title, owner_id, characters, created_at,
       MAX(last_seq, COALESCE(
           (SELECT MAX(seq) FROM journal WHERE document_id = documents.id), 0)) AS last_seq,
       MAX(updated_at, COALESCE(
           (SELECT MAX(at) FROM journal WHERE document_id = documents.id), 0)) AS updated_at
  FROM documents;

-- Without `updated_at`, although lists are sorted by it: it stands in two places now, and to move an
-- update would change an index.
DROP INDEX documents_of_owner;
CREATE INDEX documents_of_owner ON documents (owner_id);
