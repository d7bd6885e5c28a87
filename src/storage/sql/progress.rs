//! The statements of seen marks, counts of reviews and the turn.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::progress::{Progress, ReviewCounts, Turn};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::domain::webhook::WebhookEvent;
use crate::storage::progress::{Passed, StoredTurn};
use crate::storage::seats::{FenceGuard, Guarded};
use crate::storage::statement::{self, Row, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::Subject;
use crate::storage::{Storage, StorageFuture};

use super::review_changes::next_numbers;
use super::reviews::admit;
use super::users::put_user;
use super::webhooks::put;

impl Storage {
    /// Raises the seen mark of a member to `change`, and at most to the last change. A lower mark, and
    /// the mark of another user, change nothing.
    pub fn mark_seen<'a>(
        &'a self,
        link: ShareLinkId,
        user: &'a UserId,
        change: i64,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            sql!(
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
                link,
                user,
                change
            )
            .run(tx)
            .await?;
            Ok(())
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
                   OR r.changed_by <> $2 OR r.changed_by_number <> r.last_change)) AS unread, \
                 t.role, t.since, u.id AS by_id, u.name AS by_name FROM {list:$1} \
                 LEFT JOIN (SELECT r.link_id, COUNT(*) AS total, \
                   SUM(CASE WHEN r.status = 'open' THEN 1 ELSE 0 END) AS open FROM reviews r \
                   WHERE r.link_id IN (SELECT value FROM {list:$1}) \
                   GROUP BY r.link_id) c ON c.link_id = w.value \
                 LEFT JOIN seen_marks s ON s.link_id = w.value AND s.user_id = $2 \
                 LEFT JOIN turns t ON t.link_id = w.value LEFT JOIN users u ON u.id = t.by_id",
                statement::json(links)?,
                member
            );
            let rows = progress.rows(tx).await?;
            rows.iter().map(|row| Ok((row.get("link_id")?, progress_from(row)?))).collect()
        })
    }

    /// Sets the role whose turn it is.
    pub fn pass_turn<'a>(
        &'a self,
        link: ShareLinkId,
        to: Role,
        by: &'a User,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<Passed>> {
        guarded!(self, tx => {
            admit(tx, link, guard).await?;
            if let Some(before) = turn_of(tx, link).await?.filter(|before| before.turn.role == to) {
                return Ok(Passed::Same(before.turn));
            }
            put_user(tx, by, now).await?;
            let change = next_numbers(tx, link, 1).await?;
            sql!(
                "INSERT INTO turns (link_id, role, by_id, since, change) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (link_id) DO UPDATE \
                 SET role = excluded.role, by_id = excluded.by_id, since = excluded.since, \
                   change = excluded.change",
                link,
                to,
                by.id,
                now,
                change
            )
            .run(tx)
            .await?;
            let turn = turn_of(tx, link).await?.ok_or(TxError::Refused(Guarded::NotFound))?;
            put_turn(tx, link, &turn.turn).await?;
            Ok(Passed::Changed(turn))
        })
    }
}

/// The turn of a link. `None`: no user has passed it.
async fn turn_of(tx: &mut Tx, link: ShareLinkId) -> Result<Option<StoredTurn>, TxError> {
    let turn = sql!(
        "SELECT t.role, t.since, u.id AS by_id, u.name AS by_name, t.change \
         FROM turns t JOIN users u ON u.id = t.by_id WHERE t.link_id = $1",
        link
    );
    turn.row(tx).await?.as_ref().map(stored_turn).transpose()
}

/// The turn of a document's active link, if it was passed after change number `after`.
pub(super) async fn turn_after(
    tx: &mut Tx,
    document: DocumentId,
    after: i64,
) -> Result<Option<StoredTurn>, TxError> {
    let turn = sql!(
        "SELECT t.role, t.since, u.id AS by_id, u.name AS by_name, t.change FROM share_links l \
         JOIN turns t ON t.link_id = l.id JOIN users u ON u.id = t.by_id \
         WHERE l.document_id = $1 AND l.revoked_at IS NULL AND t.change > $2",
        document,
        after
    );
    turn.row(tx).await?.as_ref().map(stored_turn).transpose()
}

/// Writes the webhook of a passed turn, in its transaction.
async fn put_turn(tx: &mut Tx, link: ShareLinkId, turn: &Turn) -> Result<(), TxError> {
    if !tx.hooks.want(WebhookEvent::TurnChanged) {
        return Ok(());
    }
    let title = sql!(
        "SELECT d.title FROM documents d JOIN share_links l ON l.document_id = d.id \
         WHERE l.id = $1",
        link
    );
    let title: String = title.one(tx).await?.get(0)?;
    let Turn { role, since, by } = turn;
    let data = || json!({ "role": role, "since": since, "by": by, "title": title });
    put(tx, WebhookEvent::TurnChanged, (Subject::link(link), turn.since), data).await
}

fn stored_turn(row: &Row) -> Result<StoredTurn, TxError> {
    let by = row.user("by_id", "by_name")?;
    let turn = Turn { role: row.get("role")?, since: row.get("since")?, by };
    Ok(StoredTurn { turn, change: row.get("change")? })
}

fn progress_from(row: &Row) -> Result<Progress, TxError> {
    let turn = match row.get::<Option<Role>>("role")? {
        None => None,
        Some(role) => {
            let (since, by) = (row.get("since")?, row.user("by_id", "by_name")?);
            Some(Turn { role, since, by })
        }
    };
    let (open, unread) = (row.get("open")?, row.get("unread")?);
    let reviews = ReviewCounts { open, unread, total: row.get("total")? };
    Ok(Progress { seen: row.get("seen")?, reviews, turn })
}
