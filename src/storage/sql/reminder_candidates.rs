//! Candidates for reminders, on either engine.

use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::reminders::{
    CandidateQuery, ReminderCandidate, ReminderSubject, seat_cursor, seat_of,
};

use super::dialect::{Engine, Moment, read, text};
use super::reminders::{quiet_from, waits_for_its_writer};

/// Share links with a review that has waited from `$2` on or longer, after `$1`. `due` finds them with
/// the newest such review. A link whose last reminder is younger than `$2` waits: a reviewer who writes
/// for an hour causes one reminder, and the next one an hour later. The count is that of all reviews
/// without answer up to the newest.
const REVIEWS: &str = concat!(
    "WITH due AS ( \
       SELECT r.link_id, MAX(r.first_change) AS mark FROM reviews r \
       JOIN share_links l ON l.id = r.link_id AND l.revoked_at IS NULL \
       JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
       LEFT JOIN reminder_settings s ON s.user_id = d.owner_id \
       LEFT JOIN review_reminders m ON m.link_id = r.link_id \
       WHERE $1 < r.created_at AND r.created_at <= $2 AND $3 < r.link_id \
         AND COALESCE(m.mark, -1) < r.first_change \
         AND (m.claimed_at IS NULL OR m.claimed_at <= $2) \
         AND COALESCE(s.review_unanswered, 1) = 1 \
         AND EXISTS (SELECT 1 FROM push_subscriptions p WHERE p.user_id = d.owner_id) \
         AND ",
    waits_for_its_writer!(),
    "  GROUP BY r.link_id ORDER BY r.link_id LIMIT $4) \
     SELECT due.link_id, due.mark, d.id, d.title, d.owner_id, \
       (SELECT COUNT(*) FROM reviews r WHERE r.link_id = due.link_id \
          AND r.first_change <= due.mark AND ",
    waits_for_its_writer!(),
    ") AS unanswered, \
       (SELECT MIN(u.name) FROM reviews r JOIN users u ON u.id = r.author_id \
          WHERE r.link_id = due.link_id AND r.first_change = due.mark) AS author, \
       s.quiet_from, s.quiet_to, s.time_zone \
     FROM due JOIN share_links l ON l.id = due.link_id JOIN documents d ON d.id = l.document_id \
     LEFT JOIN reminder_settings s ON s.user_id = d.owner_id \
     ORDER BY due.link_id"
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
    i64,
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
    ) -> Result<Vec<ReminderCandidate>, StorageError> {
        read!(self, connection => {
            let rows: Vec<ReviewsRow> = sqlx::query_as(REVIEWS)
                .bind(Moment(query.since))
                .bind(Moment(query.until))
                .bind(query.after.as_str())
                .bind(i64::from(query.limit))
                .fetch_all(connection)
                .await?;
            Ok(rows.into_iter().map(reviews_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn awaited_seats(
        &self,
        query: &CandidateQuery,
    ) -> Result<Vec<ReminderCandidate>, StorageError> {
        let (link, role) = seat_cursor(&query.after);
        read!(self, connection => {
            let rows: Vec<SeatRow> = sqlx::query_as(SEATS)
                .bind(Moment(query.since))
                .bind(link)
                .bind(role)
                .bind(i64::from(query.limit))
                .fetch_all(connection)
                .await?;
            Ok(rows.into_iter().map(seat_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn unanswered_requests(
        &self,
        query: &CandidateQuery,
    ) -> Result<Vec<ReminderCandidate>, StorageError> {
        read!(self, connection => {
            let rows: Vec<RequestRow> = sqlx::query_as(REQUESTS)
                .bind(Moment(query.since))
                .bind(Moment(query.until))
                .bind(query.after.as_str())
                .bind(i64::from(query.limit))
                .bind(Moment(query.now))
                .fetch_all(connection)
                .await?;
            Ok(rows.into_iter().map(request_from).collect::<Result<_, _>>()?)
        })
    }
}

fn reviews_from(row: ReviewsRow) -> Result<ReminderCandidate, StorageError> {
    let (link, mark, document, title, owner, count, author, from, to, zone) = row;
    let subject = ReminderSubject::Reviews {
        link: parse(&link)?,
        document: parse(&document)?,
        title: text(title),
        by: author.map(text).unwrap_or_default(),
        count,
        mark,
    };
    Ok(ReminderCandidate { user: parse(&owner)?, quiet: quiet_from((from, to, zone)), subject })
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
