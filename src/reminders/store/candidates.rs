//! The statements that find candidates for reminders.

use crate::domain::reminder::ReminderKind;
use crate::domain::seat::Seat;
use crate::reminders::reminder::{
    CandidatePage, CandidateQuery, ReminderCandidate, ReminderSubject, seat_cursor,
};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

use crate::reminders::store::{WAITS_FOR_ITS_WRITER, quiet_of};

/// In the order of their cursors, only users who have a browser that receives pushes, and want this
/// kind. Whether a seat is free, the caller queries.
pub fn reminder_candidates<'a>(
    storage: &'a Storage,
    kind: ReminderKind,
    query: &'a CandidateQuery,
) -> StorageFuture<'a, CandidatePage> {
    match kind {
        ReminderKind::ReviewUnanswered => unanswered_reviews(storage, query),
        ReminderKind::SeatFree => awaited_seats(storage, query),
        ReminderKind::RequestUnanswered => unanswered_requests(storage, query),
    }
}

/// Share links with a review that waits since a time after `since`, up to `until`; behind the link `after`.
///
/// `recent` reads an index, and `page` those links whose writer wants a reminder. `due` reads the reviews of
/// these links only, and finds the newest that waits for the writer. A link without one has no mark: it is
/// no candidate, and moves the cursor.
///
/// A link whose last reminder is younger than `until` waits: a reviewer who writes for an hour causes one
/// reminder, and the next one an hour later. The count is that of all reviews without answer up to the
/// newest.
fn unanswered_reviews<'a>(
    storage: &'a Storage,
    query: &'a CandidateQuery,
) -> StorageFuture<'a, CandidatePage> {
    run!(storage, Read, tx => {
        let reviews = sql!([
            "WITH recent AS ( \
               SELECT link_id, MAX(first_change) AS newest FROM reviews \
               WHERE status = 'open' AND {query.since} < created_at \
               AND created_at <= {query.until} AND {query.after} < link_id GROUP BY link_id), \
            page AS ( \
               SELECT n.link_id, COALESCE(m.mark, -1) AS covered, d.id, d.title, d.owner_id, \
                 s.quiet_from, s.quiet_to, s.time_zone FROM recent n \
               JOIN share_links l ON l.id = n.link_id AND l.revoked_at IS NULL \
               JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
               LEFT JOIN reminder_settings s ON s.user_id = d.owner_id \
               LEFT JOIN review_reminders m ON m.link_id = n.link_id \
               WHERE COALESCE(m.mark, -1) < n.newest \
                 AND (m.claimed_at IS NULL OR m.claimed_at <= {query.until}) \
                 AND COALESCE(s.review_unanswered, 1) = 1 \
                 AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = d.owner_id) \
               ORDER BY n.link_id LIMIT {query.limit}), \
            due AS MATERIALIZED ( \
               SELECT d.link_id, d.id, d.title, d.owner_id, d.quiet_from, d.quiet_to, d.time_zone, \
                 (SELECT MAX(r.first_change) FROM reviews r WHERE r.link_id = d.link_id \
                    AND {query.since} < r.created_at AND r.created_at <= {query.until} \
                    AND d.covered < r.first_change AND ",
            WAITS_FOR_ITS_WRITER,
            "  ) AS mark FROM page d) \
            SELECT d.link_id, d.mark, d.id, d.title, d.owner_id, \
               (SELECT COUNT(*) FROM reviews r WHERE r.link_id = d.link_id \
                  AND r.first_change <= d.mark AND ",
            WAITS_FOR_ITS_WRITER,
            ") AS unanswered, \
               (SELECT MIN(u.name) FROM reviews r JOIN users u ON u.id = r.author_id \
                  WHERE r.link_id = d.link_id AND r.first_change = d.mark) AS author, \
               d.quiet_from, d.quiet_to, d.time_zone \
            FROM due d ORDER BY d.link_id",
        ]);
        let rows = reviews.rows(tx).await?;
        let last: Option<String> = rows.last().map(|row| row.get("link_id")).transpose()?;
        let next = last.filter(|_| query.is_filled_by(rows.len()));
        let candidates = rows.iter().filter_map(|row| reviews_from(row).transpose());
        Ok(CandidatePage { candidates: candidates.collect::<Result<_, _>>()?, next })
    })
}

/// Absent waiters who still have their role, and have not been in their seat since.
fn awaited_seats<'a>(
    storage: &'a Storage,
    query: &'a CandidateQuery,
) -> StorageFuture<'a, CandidatePage> {
    let (link, role) = seat_cursor(&query.after);
    run!(storage, Read, tx => {
        let seats = sql!(
            "SELECT w.link_id, w.role, w.user_id, w.left_at, d.id, d.title, \
    s.quiet_from, s.quiet_to, s.time_zone \
    FROM absent_waiters w \
    JOIN share_links l ON l.id = w.link_id AND l.revoked_at IS NULL \
    JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
    LEFT JOIN reminder_settings s ON s.user_id = w.user_id \
    WHERE {query.since} < w.left_at AND (w.link_id, w.role) > ({link}, {role}) \
    AND ((w.role = 'writer' AND d.owner_id = w.user_id) \
     OR (w.role = 'reviewer' AND l.reviewer_id = w.user_id)) \
    AND COALESCE(s.seat_free, 1) = 1 \
    AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = w.user_id) \
    AND NOT EXISTS (SELECT 1 FROM seats t WHERE t.link_id = w.link_id AND t.role = w.role \
     AND t.user_id = w.user_id AND w.left_at < t.ratified_at) \
    ORDER BY w.link_id, w.role LIMIT {query.limit}"
        );
        let rows = seats.rows(tx).await?;
        Ok(query.page_of(rows.iter().map(seat_from).collect::<Result<_, _>>()?))
    })
}

fn unanswered_requests<'a>(
    storage: &'a Storage,
    query: &'a CandidateQuery,
) -> StorageFuture<'a, CandidatePage> {
    run!(storage, Read, tx => {
        let requests = sql!(
            "SELECT q.id, q.receiver_id, u.name, \
    s.quiet_from, s.quiet_to, s.time_zone \
    FROM review_requests q JOIN users u ON u.id = q.sender_id \
    LEFT JOIN reminder_settings s ON s.user_id = q.receiver_id \
    WHERE q.state = 'pending' AND {query.since} < q.created_at AND q.created_at <= {query.until} \
    AND {query.after} < q.id AND {query.now} < q.expires_at \
    AND COALESCE(s.request_unanswered, 1) = 1 \
    AND NOT EXISTS (SELECT 1 FROM request_reminders m WHERE m.request_id = q.id) \
    AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = q.receiver_id) \
    ORDER BY q.id LIMIT {query.limit}"
        );
        let rows = requests.rows(tx).await?;
        Ok(query.page_of(rows.iter().map(request_from).collect::<Result<_, _>>()?))
    })
}

fn reviews_from(row: &Row) -> Result<Option<ReminderCandidate>, TxError> {
    let Some(mark) = row.get("mark")? else { return Ok(None) };
    let subject = ReminderSubject::Reviews {
        link: row.get("link_id")?,
        document: row.get("id")?,
        title: row.get("title")?,
        by: row.get::<Option<String>>("author")?.unwrap_or_default(),
        count: row.get("unanswered")?,
        mark,
    };
    Ok(Some(ReminderCandidate { user: row.get("owner_id")?, quiet: quiet_of(row)?, subject }))
}

fn seat_from(row: &Row) -> Result<ReminderCandidate, TxError> {
    let subject = ReminderSubject::Seat {
        seat: Seat::new(row.get("link_id")?, row.get("role")?),
        document: row.get("id")?,
        title: row.get("title")?,
        left_at: row.get("left_at")?,
    };
    Ok(ReminderCandidate { user: row.get("user_id")?, quiet: quiet_of(row)?, subject })
}

fn request_from(row: &Row) -> Result<ReminderCandidate, TxError> {
    let subject = ReminderSubject::Request { request: row.get("id")?, from: row.get("name")? };
    Ok(ReminderCandidate { user: row.get("receiver_id")?, quiet: quiet_of(row)?, subject })
}
