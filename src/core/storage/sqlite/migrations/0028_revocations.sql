-- Tokens that are refused before their end. Each server reads the new rows at its tick.
CREATE TABLE revocations (
    -- The id of a user, `token:` with the hash of one token, or `*` for all users.
    subject TEXT    NOT NULL PRIMARY KEY,
    -- Tokens of the subject that were issued up to this time are refused.
    before  INTEGER NOT NULL,
    -- By the clock of the database: a server reads the rows since its last tick.
    made_at INTEGER NOT NULL,
    -- The end of the longest token that the row refuses.
    until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX revocations_by_time ON revocations (made_at);
CREATE INDEX revocations_by_end ON revocations (until);
