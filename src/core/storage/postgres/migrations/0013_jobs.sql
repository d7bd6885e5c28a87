-- Jobs, reminders and what they follow from. As in SQLite.
--
-- A transaction of a job locks the job's row first.

-- The last grant of each job's lock that the database ratified. A batch under an older fence claims
-- nothing.
CREATE TABLE jobs (
    job     text   COLLATE "C" NOT NULL PRIMARY KEY,
    fence   bigint NOT NULL,
    -- Where a bounded batch ended, as JSON. The next one continues there.
    cursors text   NOT NULL
) WITH (fillfactor = 50);

-- The last runs of each job.
CREATE TABLE job_runs (
    job        text        COLLATE "C" NOT NULL,
    fence      bigint      NOT NULL,
    node       text        COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    -- running, done, stopped, lock-lost or failed
    outcome    text        COLLATE "C" NOT NULL,
    -- As JSON.
    counts     text        NOT NULL,
    PRIMARY KEY (job, fence)
);

-- The settings of a user. No row: every reminder, at any time.
CREATE TABLE reminder_settings (
    user_id            text   COLLATE "C" NOT NULL PRIMARY KEY REFERENCES users (id),
    review_unanswered  bigint NOT NULL,
    seat_free          bigint NOT NULL,
    request_unanswered bigint NOT NULL,
    -- Quiet hours in minutes since midnight. NULL: none.
    quiet_from         bigint,
    quiet_to           bigint,
    -- A name of the IANA database. NULL: UTC.
    time_zone          text   COLLATE "C"
);

-- The last user who left the wait queue of a seat by a disconnect. A reminder deletes its row.
CREATE TABLE absent_waiters (
    link_id text        COLLATE "C" NOT NULL REFERENCES share_links (id) ON DELETE CASCADE,
    role    text        COLLATE "C" NOT NULL,
    user_id text        COLLATE "C" NOT NULL,
    left_at timestamptz NOT NULL,
    PRIMARY KEY (link_id, role)
);

CREATE INDEX absent_waiters_by_time ON absent_waiters (left_at);

-- Reminders that are sent or were about to be: a row is committed before the push.
-- Of the reviews of a link: the number of the newest review that a reminder covers.
CREATE TABLE review_reminders (
    link_id    text        COLLATE "C" NOT NULL PRIMARY KEY
                           REFERENCES share_links (id) ON DELETE CASCADE,
    mark       bigint      NOT NULL,
    fence      bigint      NOT NULL,
    claimed_at timestamptz NOT NULL
);

CREATE TABLE request_reminders (
    request_id text        COLLATE "C" NOT NULL PRIMARY KEY
                           REFERENCES review_requests (id) ON DELETE CASCADE,
    fence      bigint      NOT NULL,
    claimed_at timestamptz NOT NULL
);

-- Answers the reviews that wait for an answer since a time.
CREATE INDEX reviews_open_by_time ON reviews (created_at) WHERE status = 'open';
