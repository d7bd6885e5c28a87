//! Settings of reminders, absent waiters and claims, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::UserId;
use crate::domain::reminder::{Quiet, QuietHours, ReminderSettings, TimeOfDay, TimeZone};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::storage::decode::fence_column;
use crate::storage::error::StorageError;
use crate::storage::reminders::{ReminderClaim, ReminderSubject};

use super::dialect::{Connection, Engine, Moment, TxError, read, single, transact};
use super::jobs::holds_job;
use super::users::put_user;

/// The condition that a review `r` of a document `d` waits for its writer.
macro_rules! waits_for_its_writer {
    () => {
        "r.status = 'open' AND r.author_id <> d.owner_id AND NOT EXISTS ( \
           SELECT 1 FROM replies a WHERE a.review_id = r.id AND a.author_id = d.owner_id)"
    };
}
pub(super) use waits_for_its_writer;

/// The columns of settings.
type SettingsRow = (i64, i64, i64, Option<i64>, Option<i64>, Option<String>);
/// The columns of quiet hours.
pub(super) type QuietRow = (Option<i64>, Option<i64>, Option<String>);

impl Engine {
    pub(in crate::storage) async fn reminder_settings(
        &self,
        user: &UserId,
    ) -> Result<ReminderSettings, StorageError> {
        read!(self, connection => {
            let row: Option<SettingsRow> =
                sqlx::query_as(
                    "SELECT review_unanswered, seat_free, request_unanswered, quiet_from, \
                     quiet_to, time_zone FROM reminder_settings WHERE user_id = $1",
                )
                .bind(user.as_str())
                .fetch_optional(connection)
                .await?;
            let Some((reviews, seats, requests, from, to, zone)) = row else {
                return Ok(ReminderSettings::default());
            };
            Ok(ReminderSettings {
                review_unanswered: reviews != 0,
                seat_free: seats != 0,
                request_unanswered: requests != 0,
                quiet: quiet_from((from, to, zone)),
            })
        })
    }

    pub(in crate::storage) async fn put_reminder_settings(
        &self,
        user: &User,
        settings: &ReminderSettings,
        now: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let Quiet { hours, time_zone } = settings.quiet;
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            sqlx::query(
                "INSERT INTO reminder_settings (user_id, review_unanswered, seat_free, \
                   request_unanswered, quiet_from, quiet_to, time_zone) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) \
                 ON CONFLICT (user_id) DO UPDATE SET \
                   review_unanswered = excluded.review_unanswered, \
                   seat_free = excluded.seat_free, \
                   request_unanswered = excluded.request_unanswered, \
                   quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to, \
                   time_zone = excluded.time_zone",
            )
            .bind(user.id.as_str())
            .bind(i64::from(settings.review_unanswered))
            .bind(i64::from(settings.seat_free))
            .bind(i64::from(settings.request_unanswered))
            .bind(hours.map(|hours| hours.from().minutes()))
            .bind(hours.map(|hours| hours.to().minutes()))
            .bind(time_zone.map(TimeZone::name))
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn put_absent_waiter(
        &self,
        seat: Seat,
        user: &UserId,
        left_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        single!(self, tx => {
            sqlx::query(
                "INSERT INTO absent_waiters (link_id, role, user_id, left_at) \
                 SELECT l.id, $2, $3, $4 FROM share_links l \
                 WHERE l.id = $1 AND l.revoked_at IS NULL \
                 ON CONFLICT (link_id, role) DO UPDATE \
                 SET user_id = excluded.user_id, left_at = excluded.left_at",
            )
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .bind(user.as_str())
            .bind(Moment(left_at))
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn delete_absent_waiter(
        &self,
        seat: Seat,
        user: &UserId,
    ) -> Result<(), StorageError> {
        single!(self, tx => {
            sqlx::query("DELETE FROM absent_waiters WHERE link_id = $1 AND role = $2 AND user_id = $3")
                .bind(seat.link.to_string())
                .bind(seat.role.as_str())
                .bind(user.as_str())
                .execute(tx)
                .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn trim_absent_waiters(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, StorageError> {
        single!(self, tx => {
            let trimmed = sqlx::query(
                "DELETE FROM absent_waiters WHERE (link_id, role) IN ( \
                   SELECT w.link_id, w.role FROM absent_waiters w \
                   WHERE w.left_at < $1 OR EXISTS (SELECT 1 FROM seats s \
                     WHERE s.link_id = w.link_id AND s.role = w.role \
                       AND s.user_id = w.user_id AND w.left_at < s.ratified_at) \
                   ORDER BY w.left_at LIMIT $2)",
            )
            .bind(Moment(before))
            .bind(i64::from(limit))
            .execute(tx)
            .await?;
            Ok(trimmed.rows_affected())
        })
    }

    pub(in crate::storage) async fn claim_reminder(
        &self,
        job: &str,
        fence: Fence,
        subject: &ReminderSubject,
        now: DateTime<Utc>,
    ) -> Result<ReminderClaim, StorageError> {
        let number = fence_column(fence)?;
        transact!(self, tx => {
            if !holds_job(tx, job, number).await? {
                return Ok(ReminderClaim::Fenced);
            }
            let rows = claim(tx, number, subject, now).await?;
            Ok(if rows == 1 { ReminderClaim::Claimed } else { ReminderClaim::Spent })
        })
    }
}

/// The number of rows that the claim changed: none if the reason is gone since the candidate was read.
async fn claim(
    connection: &mut Connection,
    fence: i64,
    subject: &ReminderSubject,
    now: DateTime<Utc>,
) -> Result<u64, TxError> {
    let query = match subject {
        ReminderSubject::Reviews { link, mark, .. } => sqlx::query(concat!(
            "INSERT INTO review_reminders (link_id, mark, fence, claimed_at) \
             SELECT l.id, $2, $3, $4 FROM share_links l \
             JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
             WHERE l.id = $1 AND l.revoked_at IS NULL AND EXISTS ( \
               SELECT 1 FROM reviews r WHERE r.link_id = l.id AND r.first_change <= $2 AND ",
            waits_for_its_writer!(),
            ") ON CONFLICT (link_id) DO UPDATE SET mark = excluded.mark, fence = excluded.fence, \
               claimed_at = excluded.claimed_at WHERE review_reminders.mark < excluded.mark"
        ))
        .bind(link.to_string())
        .bind(*mark)
        .bind(fence)
        .bind(Moment(now)),
        ReminderSubject::Seat { seat, left_at, .. } => sqlx::query(
            "DELETE FROM absent_waiters WHERE link_id = $1 AND role = $2 AND left_at = $3 AND EXISTS ( \
               SELECT 1 FROM share_links l JOIN documents d ON d.id = l.document_id \
               WHERE l.id = $1 AND l.revoked_at IS NULL AND d.deleted_at IS NULL \
                 AND absent_waiters.user_id = \
                   CASE WHEN $2 = 'writer' THEN d.owner_id ELSE l.reviewer_id END)",
        )
        .bind(seat.link.to_string())
        .bind(seat.role.as_str())
        .bind(Moment(*left_at)),
        ReminderSubject::Request { request, .. } => sqlx::query(
            "INSERT INTO request_reminders (request_id, fence, claimed_at) \
             SELECT q.id, $2, $3 FROM review_requests q \
             WHERE q.id = $1 AND q.state = 'pending' ON CONFLICT (request_id) DO NOTHING",
        )
        .bind(request.to_string())
        .bind(fence)
        .bind(Moment(now)),
    };
    Ok(query.execute(connection).await?.rows_affected())
}

/// Quiet hours of three columns. A zone that a later version of the database of zones removed reads
/// as UTC.
pub(super) fn quiet_from((from, to, zone): QuietRow) -> Quiet {
    let time = |minutes: Option<i64>| minutes.and_then(TimeOfDay::from_minutes);
    let hours = time(from).zip(time(to)).and_then(|(from, to)| QuietHours::new(from, to));
    Quiet { hours, time_zone: zone.and_then(|name| name.parse().ok()) }
}
