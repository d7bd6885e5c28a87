-- Invites that the owner renews, users whom a taken link refused, and codes that sign a guest in on
-- another device. As in SQLite.

-- The invite in force. NULL: the first one of the link, made with the link.
ALTER TABLE share_links ADD COLUMN invite_id text COLLATE "C";
ALTER TABLE share_links ADD COLUMN invited_at timestamptz;

-- Users with a valid invite whom the link refused because it had a reviewer: the last twenty of a link.
-- Rows are written under the lock of the link's document.
CREATE TABLE invite_attempts (
    link_id      text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    user_id      text        COLLATE "C" NOT NULL REFERENCES users (id),
    attempted_at timestamptz NOT NULL,
    PRIMARY KEY (link_id, user_id)
);

-- One code of a user, as a keyed hash.
CREATE TABLE transfer_codes (
    user_id    text        COLLATE "C" NOT NULL PRIMARY KEY REFERENCES users (id),
    code_hash  bytea       NOT NULL UNIQUE CHECK (octet_length(code_hash) = 32),
    expires_at timestamptz NOT NULL
);

CREATE INDEX transfer_codes_by_end ON transfer_codes (expires_at);
