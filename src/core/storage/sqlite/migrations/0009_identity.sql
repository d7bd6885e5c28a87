-- Invites that the owner renews, users whom a taken link refused, and codes that sign a guest in on
-- another device.

-- The invite in force. NULL: the first one of the link, made with the link.
ALTER TABLE share_links ADD COLUMN invite_id TEXT;
ALTER TABLE share_links ADD COLUMN invited_at INTEGER;

-- Users with a valid invite whom the link refused because it had a reviewer: the last twenty of a link.
CREATE TABLE invite_attempts (
    link_id      TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    user_id      TEXT    NOT NULL REFERENCES users (id),
    attempted_at INTEGER NOT NULL,
    PRIMARY KEY (link_id, user_id)
) STRICT, WITHOUT ROWID;

-- One code of a user, as a keyed hash.
CREATE TABLE transfer_codes (
    user_id    TEXT    NOT NULL PRIMARY KEY REFERENCES users (id),
    code_hash  BLOB    NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX transfer_codes_by_end ON transfer_codes (expires_at);
