-- Jobs, reminders and what they follow from.

-- The last grant of each job's lock that the database ratified. A batch under an older fence claims
-- nothing.
CREATE TABLE jobs (
    job     TEXT    NOT NULL PRIMARY KEY,
    fence   INTEGER NOT NULL,
    -- Where a bounded batch ended, as JSON. The next one continues there.
    cursors TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The last runs of each job.
CREATE TABLE job_runs (
    job        TEXT    NOT NULL,
    fence      INTEGER NOT NULL,
    node       TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    -- running, done, stopped, lock-lost or failed
    outcome    TEXT    NOT NULL,
    -- As JSON.
    counts     TEXT    NOT NULL,
    PRIMARY KEY (job, fence)
) STRICT, WITHOUT ROWID;

-- The settings of a user. No row: every reminder, at any time.
CREATE TABLE reminder_settings (
    user_id            TEXT    NOT NULL PRIMARY KEY REFERENCES users (id),
    review_unanswered  INTEGER NOT NULL,
    seat_free          INTEGER NOT NULL,
    request_unanswered INTEGER NOT NULL,
    -- Quiet hours in minutes since midnight. NULL: none.
    quiet_from         INTEGER,
    quiet_to           INTEGER,
    -- A name of the IANA database. NULL: UTC.
    time_zone          TEXT
) STRICT, WITHOUT ROWID;

-- The last user who left the wait queue of a seat by a disconnect. A reminder deletes its row.
CREATE TABLE absent_waiters (
    link_id TEXT    NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    role    TEXT    NOT NULL,
    user_id TEXT    NOT NULL,
    left_at INTEGER NOT NULL,
    PRIMARY KEY (link_id, role)
) STRICT, WITHOUT ROWID;

CREATE INDEX absent_waiters_by_time ON absent_waiters (left_at);

-- Reminders that are sent or were about to be: a row is committed before the push.
-- Of the reviews of a link: the number of the newest review that a reminder covers.
CREATE TABLE review_reminders (
    link_id    TEXT    NOT NULL PRIMARY KEY REFERENCES share_links (id) ON DELETE CASCADE,
    mark       INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE request_reminders (
    request_id TEXT    NOT NULL PRIMARY KEY REFERENCES review_requests (id) ON DELETE CASCADE,
    fence      INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers the reviews that wait for an answer since a time.
CREATE INDEX reviews_open_by_time ON reviews (created_at) WHERE status = 'open';
