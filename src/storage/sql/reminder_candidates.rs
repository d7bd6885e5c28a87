//! Candidates for reminders, on either engine.

use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::reminders::{
    CandidatePage, CandidateQuery, ReminderCandidate, ReminderSubject, seat_cursor, seat_of,
};

use super::dialect::{Engine, Moment, read, text};
use super::reminders::{quiet_from, waits_for_its_writer};

/// Share links with a review that has waited from `$2` on or longer, after `$1`.
///
/// `recent` reads an index, and `page` those links whose writer wants a reminder. `due` reads the reviews of
/// these links only, and finds the newest that waits for the writer. A link without one has no mark: it is
/// no candidate, and moves the cursor.
///
/// A link whose last reminder is younger than `$2` waits: a reviewer who writes for an hour causes one
/// reminder, and the next one an hour later. The count is that of all reviews without answer up to the
/// newest.
const REVIEWS: &str = concat!(
    "WITH recent AS ( \
       SELECT link_id, MAX(first_change) AS newest FROM reviews \
       WHERE status = 'open' AND $1 < created_at AND created_at <= $2 AND $3 < link_id \
       GROUP BY link_id), \
     page AS ( \
       SELECT n.link_id, COALESCE(m.mark, -1) AS covered, d.id, d.title, d.owner_id, \
         s.quiet_from, s.quiet_to, s.time_zone FROM recent n \
       JOIN share_links l ON l.id = n.link_id AND l.revoked_at IS NULL \
       JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
       LEFT JOIN reminder_settings s ON s.user_id = d.owner_id \
       LEFT JOIN review_reminders m ON m.link_id = n.link_id \
       WHERE COALESCE(m.mark, -1) < n.newest \
         AND (m.claimed_at IS NULL OR m.claimed_at <= $2) \
         AND COALESCE(s.review_unanswered, 1) = 1 \
         AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = d.owner_id) \
       ORDER BY n.link_id LIMIT $4), \
     due AS MATERIALIZED ( \
       SELECT d.link_id, d.id, d.title, d.owner_id, d.quiet_from, d.quiet_to, d.time_zone, \
         (SELECT MAX(r.first_change) FROM reviews r WHERE r.link_id = d.link_id \
            AND $1 < r.created_at AND r.created_at <= $2 AND d.covered < r.first_change AND ",
    waits_for_its_writer!(),
    "  ) AS mark FROM page d) \
     SELECT d.link_id, d.mark, d.id, d.title, d.owner_id, \
       (SELECT COUNT(*) FROM reviews r WHERE r.link_id = d.link_id \
          AND r.first_change <= d.mark AND ",
    waits_for_its_writer!(),
    ") AS unanswered, \
       (SELECT MIN(u.name) FROM reviews r JOIN users u ON u.id = r.author_id \
          WHERE r.link_id = d.link_id AND r.first_change = d.mark) AS author, \
       d.quiet_from, d.quiet_to, d.time_zone \
     FROM due d ORDER BY d.link_id"
);

/// Absent waiters who still have their role, and have not been in their seat since.
const SEATS: &str = "SELECT w.link_id, w.role, w.user_id, w.left_at, d.id, d.title, \
       s.quiet_from, s.quiet_to, s.time_zone \
     FROM absent_waiters w \
     JOIN share_links l ON l.id = w.link_id AND l.revoked_at IS NULL \
     JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
     LEFT JOIN reminder_settings s ON s.user_id = w.user_id \
     WHERE $1 < w.left_at AND (w.link_id, w.role) > ($2, $3) \
       AND ((w.role = 'writer' AND d.owner_id = w.user_id) \
         OR (w.role = 'reviewer' AND l.reviewer_id = w.user_id)) \
       AND COALESCE(s.seat_free, 1) = 1 \
       AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = w.user_id) \
       AND NOT EXISTS (SELECT 1 FROM seats t WHERE t.link_id = w.link_id AND t.role = w.role \
         AND t.user_id = w.user_id AND w.left_at < t.ratified_at) \
     ORDER BY w.link_id, w.role LIMIT $4";

const REQUESTS: &str = "SELECT q.id, q.receiver_id, u.name, \
       s.quiet_from, s.quiet_to, s.time_zone \
     FROM review_requests q JOIN users u ON u.id = q.sender_id \
     LEFT JOIN reminder_settings s ON s.user_id = q.receiver_id \
     WHERE q.state = 'pending' AND $1 < q.created_at AND q.created_at <= $2 AND $3 < q.id \
       AND $5 < q.expires_at AND COALESCE(s.request_unanswered, 1) = 1 \
       AND NOT EXISTS (SELECT 1 FROM request_reminders m WHERE m.request_id = q.id) \
       AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = q.receiver_id) \
     ORDER BY q.id LIMIT $4";

type ReviewsRow = (
    String,
    Option<i64>,
    String,
    String,
    String,
    i64,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<String>,
);
type SeatRow =
    (String, String, String, Moment, String, String, Option<i64>, Option<i64>, Option<String>);
type RequestRow = (String, String, String, Option<i64>, Option<i64>, Option<String>);

impl Engine {
    pub(in crate::storage) async fn unanswered_reviews(
        &self,
        query: &CandidateQuery,
    ) -> Result<CandidatePage, StorageError> {
        read!(self, connection => {
            let rows: Vec<ReviewsRow> = sqlx::query_as(REVIEWS)
                .bind(Moment(query.since))
                .bind(Moment(query.until))
                .bind(query.after.as_str())
                .bind(i64::from(query.limit))
                .fetch_all(connection)
                .await?;
            let last = rows.last().map(|row| row.0.clone());
            let next = last.filter(|_| query.is_filled_by(rows.len()));
            let candidates = rows.into_iter().filter_map(|row| reviews_from(row).transpose());
            Ok(CandidatePage { candidates: candidates.collect::<Result<_, _>>()?, next })
        })
    }

    pub(in crate::storage) async fn awaited_seats(
        &self,
        query: &CandidateQuery,
    ) -> Result<CandidatePage, StorageError> {
        let (link, role) = seat_cursor(&query.after);
        read!(self, connection => {
            let rows: Vec<SeatRow> = sqlx::query_as(SEATS)
                .bind(Moment(query.since))
                .bind(link)
                .bind(role)
                .bind(i64::from(query.limit))
                .fetch_all(connection)
                .await?;
            let candidates = rows.into_iter().map(seat_from).collect::<Result<_, _>>()?;
            Ok(query.page_of(candidates))
        })
    }

    pub(in crate::storage) async fn unanswered_requests(
        &self,
        query: &CandidateQuery,
    ) -> Result<CandidatePage, StorageError> {
        read!(self, connection => {
            let rows: Vec<RequestRow> = sqlx::query_as(REQUESTS)
                .bind(Moment(query.since))
                .bind(Moment(query.until))
                .bind(query.after.as_str())
                .bind(i64::from(query.limit))
                .bind(Moment(query.now))
                .fetch_all(connection)
                .await?;
            let candidates = rows.into_iter().map(request_from).collect::<Result<_, _>>()?;
            Ok(query.page_of(candidates))
        })
    }
}

fn reviews_from(row: ReviewsRow) -> Result<Option<ReminderCandidate>, StorageError> {
    let (link, mark, document, title, owner, count, author, from, to, zone) = row;
    let Some(mark) = mark else { return Ok(None) };
    let subject = ReminderSubject::Reviews {
        link: parse(&link)?,
        document: parse(&document)?,
        title: text(title),
        by: author.map(text).unwrap_or_default(),
        count,
        mark,
    };
    let quiet = quiet_from((from, to, zone));
    Ok(Some(ReminderCandidate { user: parse(&owner)?, quiet, subject }))
}

fn seat_from(row: SeatRow) -> Result<ReminderCandidate, StorageError> {
    let (link, role, user, Moment(left_at), document, title, from, to, zone) = row;
    let seat = seat_of(&link, &role)?;
    let (document, title) = (parse(&document)?, text(title));
    let subject = ReminderSubject::Seat { seat, document, title, left_at };
    Ok(ReminderCandidate { user: parse(&user)?, quiet: quiet_from((from, to, zone)), subject })
}

fn request_from(row: RequestRow) -> Result<ReminderCandidate, StorageError> {
    let (request, receiver, sender, from, to, zone) = row;
    let subject = ReminderSubject::Request { request: parse(&request)?, from: text(sender) };
    Ok(ReminderCandidate { user: parse(&receiver)?, quiet: quiet_from((from, to, zone)), subject })
}
