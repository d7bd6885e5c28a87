-- Answers which links have a review that waits since a time, without reading the reviews. Each minute a
-- batch of reminders queries all open reviews of three days.
DROP INDEX reviews_open_by_time;
-- SQLite reads a row for a condition on a column that the index lacks, hence `status`.
CREATE INDEX reviews_open_by_time ON reviews (created_at, link_id, first_change, status)
    WHERE status = 'open';
