-- Tokens that are refused before their end. Each server reads the new rows at its tick. As in SQLite.
CREATE TABLE revocations (
    -- The id of a user, `token:` with the hash of one token, or `*` for all users.
    subject text        COLLATE "C" NOT NULL PRIMARY KEY,
    -- Tokens of the subject that were issued up to this time are refused.
    before  timestamptz NOT NULL,
    -- By the clock of the database: a server reads the rows since its last tick.
    made_at timestamptz NOT NULL,
    -- The end of the longest token that the row refuses.
    until   timestamptz NOT NULL
);

CREATE INDEX revocations_by_time ON revocations (made_at);
CREATE INDEX revocations_by_end ON revocations (until);
