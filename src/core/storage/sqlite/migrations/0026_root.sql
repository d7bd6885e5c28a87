-- The root secret of the installation, as an HMAC under it: a server with another one does not start.
CREATE TABLE installation_root (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    mark BLOB    NOT NULL
) STRICT;
