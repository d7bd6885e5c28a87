-- The root secret of the installation, as an HMAC under it: a server with another one does not start. As in
-- SQLite.
CREATE TABLE installation_root (
    id   bigint PRIMARY KEY CHECK (id = 1),
    mark bytea  NOT NULL
);
