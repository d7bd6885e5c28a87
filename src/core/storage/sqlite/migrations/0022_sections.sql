-- The settings of the sections of a document, as one JSON array: each is anchored to its heading.
CREATE TABLE document_sections (
    document_id TEXT    NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    sections    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
