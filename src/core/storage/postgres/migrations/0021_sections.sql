-- The settings of the sections of a document, as one JSON array: each is anchored to its heading.
CREATE TABLE document_sections (
    document_id text   COLLATE "C" NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    version     bigint NOT NULL,
    sections    text   NOT NULL
);
