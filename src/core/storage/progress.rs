//! The progress of a share link: seen marks, counts of its reviews, and the turn.
//!
//! A change of a review counts as unread for a member if its number is above the member's mark and
//! another user made it. The turn takes a number among the review changes of its document, so a server
//! that missed its message reads it (G15).

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::progress::{Progress, ReviewCounts, ReviewTurn};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::locks::require_seat;
use crate::storage::review_changes::next_numbers;
use crate::storage::statement::{Row, json, sql};
use crate::storage::turns::{StoredTurn, put_turn, turn_of};
use crate::storage::tx::{guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    Changed(StoredTurn),
    /// It was that role's turn already.
    Same(ReviewTurn),
}

impl Storage {
    /// Raises the seen mark of a member to `change`, and at most to the last change. False: the mark is
    /// not lower, or the user is no member of an active link.
    pub fn mark_seen<'a>(
        &'a self,
        link: ShareLinkId,
        user: &'a UserId,
        change: i64,
    ) -> StorageFuture<'a, bool> {
        run!(self, One, tx => {
            let raised = sql!(
                "INSERT INTO seen_marks (link_id, role, user_id, change) \
                 SELECT l.id, \
                   CASE WHEN d.owner_id = {user} THEN 'writer' ELSE 'reviewer' END, {user}, \
                   CASE WHEN d.review_changes < {change} THEN d.review_changes ELSE {change} END \
                 FROM share_links l JOIN documents d ON d.id = l.document_id \
                 WHERE l.id = {link} AND l.revoked_at IS NULL \
                   AND (d.owner_id = {user} OR l.reviewer_id = {user}) \
                 ON CONFLICT (link_id, role) DO UPDATE \
                 SET user_id = excluded.user_id, change = excluded.change \
                 WHERE seen_marks.user_id <> excluded.user_id \
                   OR seen_marks.change < excluded.change"
            );
            Ok(raised.run(tx).await? != 0)
        })
    }

    /// The progress of these links for a user, read in one statement. The cost: an entry of the index
    /// `review_counts_of_link`, which has the columns of both conditions, for each of their reviews. A
    /// change by a server of the previous version names no user and counts as another user's.
    pub fn progress_of<'a>(
        &'a self,
        member: &'a UserId,
        links: &'a [ShareLinkId],
    ) -> StorageFuture<'a, HashMap<ShareLinkId, Progress>> {
        if links.is_empty() {
            return Box::pin(async { Ok(HashMap::new()) });
        }
        run!(self, Read, tx => {
            let progress = sql!(
                "SELECT w.value AS link_id, COALESCE(s.change, 0) AS seen, \
                 COALESCE(c.total, 0) AS total, COALESCE(c.open, 0) AS open, \
                 (SELECT COUNT(*) FROM reviews r WHERE r.link_id = w.value \
                   AND COALESCE(s.change, 0) < r.last_change AND (r.changed_by IS NULL \
                     OR r.changed_by <> {member} \
                     OR r.changed_by_number <> r.last_change)) AS unread, \
                 t.role, t.since, u.id AS by_id, u.name AS by_name FROM {@list:{links}} \
                 LEFT JOIN (SELECT r.link_id, COUNT(*) AS total, \
                   SUM(CASE WHEN r.status = 'open' THEN 1 ELSE 0 END) AS open FROM reviews r \
                   WHERE r.link_id IN (SELECT value FROM {@list:{links}}) \
                   GROUP BY r.link_id) c ON c.link_id = w.value \
                 LEFT JOIN seen_marks s ON s.link_id = w.value AND s.user_id = {member} \
                 LEFT JOIN turns t ON t.link_id = w.value LEFT JOIN users u ON u.id = t.by_id",
                links = json(links)?
            );
            let rows = progress.rows(tx).await?;
            rows.iter().map(|row| Ok((row.get("link_id")?, progress_from(row)?))).collect()
        })
    }

    pub fn pass_turn<'a>(
        &'a self,
        link: ShareLinkId,
        to: Role,
        by: &'a User,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<Passed>> {
        guarded!(self, tx => {
            let locked = require_seat(tx, link, guard).await?;
            if let Some(before) = turn_of(tx, link).await?.filter(|before| before.turn.role == to) {
                return Ok(Passed::Same(before.turn));
            }
            put_user(tx, by, now).await?;
            let change = next_numbers(tx, link, 1).await?;
            sql!(
                "INSERT INTO turns (link_id, role, by_id, since, change) \
                 VALUES ({link}, {to}, {by.id}, {now}, {change}) ON CONFLICT (link_id) DO UPDATE \
                 SET role = excluded.role, by_id = excluded.by_id, since = excluded.since, \
                   change = excluded.change"
            )
            .run(tx)
            .await?;
            let turn = turn_of(tx, link).await?.ok_or(TxError::Refused(Guarded::NotFound))?;
            put_turn(tx, locked, link, &turn.turn).await?;
            Ok(Passed::Changed(turn))
        })
    }
}

fn progress_from(row: &Row) -> Result<Progress, TxError> {
    let turn = match row.get::<Option<Role>>("role")? {
        None => None,
        Some(role) => {
            let (since, by) = (row.get("since")?, row.user("by_id", "by_name")?);
            Some(ReviewTurn { role, since, by })
        }
    };
    let (open, unread) = (row.get("open")?, row.get("unread")?);
    let reviews = ReviewCounts { open, unread, total: row.get("total")? };
    Ok(Progress { seen: row.get("seen")?, reviews, turn })
}
