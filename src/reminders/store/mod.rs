//! The statements of reminders: settings, absent waiters and claims.

pub mod candidates;

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::reminder::{Quiet, QuietHours, ReminderSettings, TimeOfDay, TimeZone};
use crate::domain::user::User;
use crate::reminders::reminder::ReminderSubject;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

use crate::periodic::store::RatifiedRun;

/// The condition that a review `r` of a document `d` waits for its writer.
pub(crate) const WAITS_FOR_ITS_WRITER: &str = "r.status = 'open' AND r.author_id <> d.owner_id AND NOT EXISTS ( \
       SELECT 1 FROM replies a WHERE a.review_id = r.id AND a.author_id = d.owner_id)";

pub fn reminder_settings<'a>(
    storage: &'a Storage,
    user: &'a UserId,
) -> StorageFuture<'a, ReminderSettings> {
    run!(storage, Read, tx => {
        let row = sql!(
            "SELECT review_unanswered, seat_free, request_unanswered, quiet_from, \
             quiet_to, time_zone FROM reminder_settings WHERE user_id = {user}"
        );
        let Some(row) = row.row(tx).await? else { return Ok(ReminderSettings::default()) };
        Ok(ReminderSettings {
            review_unanswered: row.get::<i64>("review_unanswered")? != 0,
            seat_free: row.get::<i64>("seat_free")? != 0,
            request_unanswered: row.get::<i64>("request_unanswered")? != 0,
            quiet: quiet_of(&row)?,
        })
    })
}

pub fn put_reminder_settings<'a>(
    storage: &'a Storage,
    user: &'a User,
    settings: &'a ReminderSettings,
    now: DateTime<Utc>,
) -> StorageFuture<'a, ()> {
    let Quiet { hours, time_zone } = settings.quiet;
    run!(storage, Write, tx => {
        put_user(tx, user, now).await?;
        sql!(
            "INSERT INTO reminder_settings (user_id, review_unanswered, seat_free, \
               request_unanswered, quiet_from, quiet_to, time_zone) \
             VALUES ({user.id}, {i64::from(settings.review_unanswered)}, \
             {i64::from(settings.seat_free)}, {i64::from(settings.request_unanswered)}, {from}, \
             {to}, {time_zone.map(TimeZone::name)}) ON CONFLICT (user_id) DO UPDATE SET \
               review_unanswered = excluded.review_unanswered, \
               seat_free = excluded.seat_free, \
               request_unanswered = excluded.request_unanswered, \
               quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to, \
               time_zone = excluded.time_zone",
            from = hours.map(|hours| hours.from().minutes()),
            to = hours.map(|hours| hours.to().minutes())
        )
        .run(tx)
        .await?;
        Ok(())
    })
}

/// Deletes absent waiters from before `before`, and those who have been in their seat since; at
/// most `limit`. `None`: a later run is ratified.
pub fn trim_absent_waiters(
    storage: &Storage,
    run: RatifiedRun,
    before: DateTime<Utc>,
    limit: u32,
) -> StorageFuture<'_, Option<u64>> {
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(None);
        }
        let trimmed = sql!(
            "DELETE FROM absent_waiters WHERE (link_id, role) IN ( \
               SELECT w.link_id, w.role FROM absent_waiters w \
               WHERE w.left_at < {before} OR EXISTS (SELECT 1 FROM seats s \
                 WHERE s.link_id = w.link_id AND s.role = w.role \
                   AND s.user_id = w.user_id AND w.left_at < s.ratified_at) \
               ORDER BY w.left_at LIMIT {limit})"
        );
        Ok(Some(trimmed.run(tx).await?))
    })
}

/// Claims a reminder under the fence of a job's run. After an error the claim may be stored: the
/// reminder must not be sent. False: it was claimed before, or its reason is gone. `None`: a later
/// run is ratified.
pub fn claim_reminder<'a>(
    storage: &'a Storage,
    run: RatifiedRun,
    subject: &'a ReminderSubject,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Option<bool>> {
    let fence = run.fence();
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(None);
        }
        // No row changes if the reason is gone since the candidate was read.
        let claim = match subject {
            ReminderSubject::Reviews { link, mark, .. } => sql!([
                "INSERT INTO review_reminders (link_id, mark, fence, claimed_at) \
                 SELECT l.id, {mark}, {fence}, {now} FROM share_links l \
                 JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL \
                 WHERE l.id = {link} AND l.revoked_at IS NULL AND EXISTS ( \
                   SELECT 1 FROM reviews r \
                   WHERE r.link_id = l.id AND r.first_change <= {mark} AND ",
                WAITS_FOR_ITS_WRITER,
                ") ON CONFLICT (link_id) DO UPDATE SET mark = excluded.mark, \
                   fence = excluded.fence, claimed_at = excluded.claimed_at \
                 WHERE review_reminders.mark < excluded.mark",
            ]),
            ReminderSubject::Seat { seat, left_at, .. } => sql!(
                "DELETE FROM absent_waiters \
                 WHERE link_id = {seat.link} AND role = {seat.role} AND left_at = {left_at} \
                 AND EXISTS ( \
                   SELECT 1 FROM share_links l JOIN documents d ON d.id = l.document_id \
                   WHERE l.id = {seat.link} AND l.revoked_at IS NULL AND d.deleted_at IS NULL \
                     AND absent_waiters.user_id = \
                       CASE WHEN {seat.role} = 'writer' THEN d.owner_id ELSE l.reviewer_id END)"
            ),
            ReminderSubject::Request { request, .. } => sql!(
                "INSERT INTO request_reminders (request_id, fence, claimed_at) \
                 SELECT q.id, {fence}, {now} FROM review_requests q \
                 WHERE q.id = {request} AND q.state = 'pending' ON CONFLICT (request_id) DO NOTHING"
            ),
        };
        Ok(Some(claim.run(tx).await? == 1))
    })
}

/// The quiet hours of three columns. A zone that a later version of the database of zones removed reads
/// as UTC.
pub(crate) fn quiet_of(row: &Row) -> Result<Quiet, TxError> {
    let time = |name: &str| {
        Ok::<_, TxError>(row.get::<Option<i64>>(name)?.and_then(TimeOfDay::from_minutes))
    };
    let hours = time("quiet_from")?.zip(time("quiet_to")?);
    let hours = hours.and_then(|(from, to)| QuietHours::new(from, to));
    let zone: Option<String> = row.get("time_zone")?;
    Ok(Quiet { hours, time_zone: zone.and_then(|name| name.parse().ok()) })
}
