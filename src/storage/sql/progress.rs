//! Seen marks, counts of reviews and the turn, on either engine.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::Row as _;

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::progress::{Progress, ReviewCounts, Turn};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::progress::Passed;
use crate::storage::seats::{FenceGuard, Guarded};

use super::dialect::{Engine, Moment, Row, TxError, guarded, listed, read, transact, user};
use super::review_changes::next_number;
use super::reviews::admit;
use super::turn_rows::{put_turn, turn_of};
use super::users::put_user;

/// Counts the reviews of the links of `$1` for the user of `$2`.
///
/// The index `review_counts_of_link` answers all counts: it has the columns of both conditions. A change by a
/// server of the previous version names no user and counts as another user's.
const PROGRESS: &str = concat!(
    "SELECT w.value AS link_id, COALESCE(s.change, 0) AS seen, COALESCE(c.total, 0) AS total, \
     COALESCE(c.open, 0) AS open, (SELECT COUNT(*) FROM reviews r WHERE r.link_id = w.value \
       AND COALESCE(s.change, 0) < r.last_change AND (r.changed_by IS NULL \
       OR r.changed_by <> $2 OR r.changed_by_number <> r.last_change)) AS unread, \
     t.role, t.since, u.id AS by_id, u.name AS by_name FROM ",
    listed!("$1"),
    " LEFT JOIN (SELECT r.link_id, COUNT(*) AS total, \
       SUM(CASE WHEN r.status = 'open' THEN 1 ELSE 0 END) AS open FROM reviews r \
       WHERE r.link_id IN (SELECT value FROM ",
    listed!("$1"),
    ") GROUP BY r.link_id) c ON c.link_id = w.value \
     LEFT JOIN seen_marks s ON s.link_id = w.value AND s.user_id = $2 \
     LEFT JOIN turns t ON t.link_id = w.value LEFT JOIN users u ON u.id = t.by_id"
);

impl Engine {
    pub(in crate::storage) async fn mark_seen(
        &self,
        link: ShareLinkId,
        user: &UserId,
        change: i64,
    ) -> Result<(), StorageError> {
        transact!(self, tx => {
            sqlx::query(
                "INSERT INTO seen_marks (link_id, role, user_id, change) \
                 SELECT l.id, CASE WHEN d.owner_id = $2 THEN 'writer' ELSE 'reviewer' END, $2, \
                   CASE WHEN d.review_changes < $3 THEN d.review_changes ELSE $3 END \
                 FROM share_links l JOIN documents d ON d.id = l.document_id \
                 WHERE l.id = $1 AND l.revoked_at IS NULL \
                   AND (d.owner_id = $2 OR l.reviewer_id = $2) \
                 ON CONFLICT (link_id, role) DO UPDATE \
                 SET user_id = excluded.user_id, change = excluded.change \
                 WHERE seen_marks.user_id <> excluded.user_id \
                   OR seen_marks.change < excluded.change",
            )
            .bind(link.to_string())
            .bind(user.as_str())
            .bind(change)
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn progress_of(
        &self,
        member: &UserId,
        links: &[ShareLinkId],
    ) -> Result<HashMap<ShareLinkId, Progress>, StorageError> {
        if links.is_empty() {
            return Ok(HashMap::new());
        }
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        let wanted = serde_json::to_string(&wanted).map_err(corrupt)?;
        read!(self, connection => {
            let rows = sqlx::query(PROGRESS)
                .bind(wanted.as_str())
                .bind(member.as_str())
                .fetch_all(connection)
                .await?;
            let mut progress = HashMap::with_capacity(rows.len());
            for row in &rows {
                progress.insert(parse(&row.try_get::<String, _>("link_id")?)?, progress_from(row)?);
            }
            Ok(progress)
        })
    }

    pub(in crate::storage) async fn pass_turn(
        &self,
        link: ShareLinkId,
        to: Role,
        by: &User,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<Passed>, StorageError> {
        guarded!(self, tx => {
            admit(tx, link, guard).await?;
            if let Some(before) = turn_of(tx, link).await?.filter(|before| before.turn.role == to) {
                return Ok(Passed::Same(before.turn));
            }
            put_user(tx, by, now).await?;
            let change = next_number(tx, link).await?;
            sqlx::query(
                "INSERT INTO turns (link_id, role, by_id, since, change) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (link_id) DO UPDATE \
                 SET role = excluded.role, by_id = excluded.by_id, since = excluded.since, \
                   change = excluded.change",
            )
            .bind(link.to_string())
            .bind(to.as_str())
            .bind(by.id.as_str())
            .bind(Moment(now))
            .bind(change)
            .execute(&mut *tx)
            .await?;
            let turn = turn_of(tx, link).await?.ok_or(TxError::Refused(Guarded::NotFound))?;
            put_turn(tx, &self.hooks, link, &turn.turn).await?;
            Ok(Passed::Changed(turn))
        })
    }
}

fn progress_from(row: &Row) -> Result<Progress, StorageError> {
    let text = |column: &str| row.try_get::<Option<String>, _>(column);
    let number = |column: &str| row.try_get::<i64, _>(column);
    let since: Option<Moment> = row.try_get("since")?;
    let turn = match (text("role")?, since, text("by_id")?, text("by_name")?) {
        (Some(role), Some(Moment(since)), Some(id), Some(name)) => {
            Some(Turn { role: parse(&role)?, since, by: user(&id, name)? })
        }
        _ => None,
    };
    let (open, unread, total) = (number("open")?, number("unread")?, number("total")?);
    Ok(Progress { seen: number("seen")?, reviews: ReviewCounts { open, unread, total }, turn })
}
