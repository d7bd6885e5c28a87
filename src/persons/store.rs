//! The statements of deletions: receipts, and the steps of the job.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::domain::ids::{DeletionId, DocumentId, ShareLinkId, UserId};
use crate::domain::webhook::WebhookEvent;
use crate::periodic::store::RatifiedRun;
use crate::sharing::invite::Invites;
use crate::storage::audit::{AuditEntry, append};
use crate::storage::guard::Guarded;
use crate::storage::locks::lock_audit;
use crate::storage::persons::{
    Forgotten, forget_document, forget_member, forget_rows, forget_webhooks,
};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, put};
use crate::storage::{Storage, StorageFuture};

/// How long a finished receipt is stored.
const RECEIPT_RETENTION: TimeDelta = TimeDelta::days(365);

/// A deletion that is not done.
#[derive(Clone, Debug)]
pub struct Running {
    pub id: DeletionId,
    /// `None`: only the file of the database is left.
    pub who: Option<Forgotten>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: DeletionId,
    pub is_done: bool,
    /// Deleted documents, and share links of others that no longer name the user.
    pub done: (u64, u64),
    pub left: (u64, u64),
    pub is_file_clear: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There may be more.
    More,
    /// Nothing was left.
    None,
    /// A later run of the job is ratified.
    Lost,
}

/// The receipt of the user's deletion: a new one, or that of the running one. `None`: the running one treats the
/// reviews otherwise.
pub fn begin<'a>(
    storage: &'a Storage,
    user: &'a UserId,
    with_reviews: bool,
    entry: &'a AuditEntry,
) -> StorageFuture<'a, Option<DeletionId>> {
    let now = Utc::now();
    let (id, deleted) = (DeletionId::generate(), UserId::generate_deleted());
    run!(storage, Write, tx => {
        append(tx, entry).await?;
        sql!("DELETE FROM user_deletions WHERE ended_at < {now - RECEIPT_RETENTION}")
            .run(tx)
            .await?;
        sql!(
            "INSERT INTO user_deletions (id, user_id, deleted_id, with_reviews, state, requested_at) \
             VALUES ({id}, {user}, {deleted}, {with_reviews}, 'running', {now}) \
             ON CONFLICT (user_id) WHERE user_id IS NOT NULL DO NOTHING"
        )
        .run(tx)
        .await?;
        let found = sql!(
            "SELECT id FROM user_deletions WHERE user_id = {user} AND with_reviews = {with_reviews}"
        );
        found.value(tx).await
    })
}

/// The oldest first.
pub fn running(storage: &Storage) -> StorageFuture<'_, Vec<Running>> {
    run!(storage, Read, tx => {
        let running = sql!(
            "SELECT id, user_id, deleted_id, with_reviews FROM user_deletions \
             WHERE state = 'running' ORDER BY requested_at, id"
        );
        running.rows(tx).await?.iter().map(running_from).collect()
    })
}

pub fn receipt(storage: &Storage, id: DeletionId) -> StorageFuture<'_, Option<Receipt>> {
    run!(storage, Read, tx => {
        let receipt = sql!(
            "SELECT r.state = 'done' AS is_done, r.documents, r.links, r.is_file_clear, \
             (SELECT count(*) FROM documents WHERE owner_id = r.user_id) AS documents_left, \
             (SELECT count(*) FROM link_members WHERE user_id = r.user_id) AS links_left \
             FROM user_deletions r WHERE r.id = {id}"
        );
        let Some(row) = receipt.row(tx).await? else { return Ok(None) };
        Ok(Some(Receipt {
            id,
            is_done: row.get("is_done")?,
            done: (row.get("documents")?, row.get("links")?),
            left: (row.get("documents_left")?, row.get("links_left")?),
            is_file_clear: row.get("is_file_clear")?,
        }))
    })
}

/// A document of an export, also one of the bin.
#[derive(Clone, Debug)]
pub struct OwnDocument {
    pub id: DocumentId,
    pub title: String,
    pub created_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

/// In the order of the ids.
pub fn next_document<'a>(
    storage: &'a Storage,
    owner: &'a UserId,
    after: Option<DocumentId>,
) -> StorageFuture<'a, Option<OwnDocument>> {
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    run!(storage, Read, tx => {
        let next = sql!(
            "SELECT id, title, created_at, deleted_at FROM documents \
             WHERE owner_id = {owner} AND id > {after} ORDER BY id LIMIT 1"
        );
        let Some(row) = next.row(tx).await? else { return Ok(None) };
        Ok(Some(OwnDocument {
            id: row.get("id")?,
            title: row.get("title")?,
            created_at: row.get("created_at")?,
            deleted_at: row.get("deleted_at")?,
        }))
    })
}

/// Deletes one document of the user.
pub fn delete_document<'a>(
    storage: &'a Storage,
    run: RatifiedRun,
    (receipt, who): (DeletionId, &'a Forgotten),
) -> StorageFuture<'a, Step> {
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(Step::Lost);
        }
        let next = sql!("SELECT id FROM documents WHERE owner_id = {who.user} LIMIT 1");
        let Some(document) = next.value::<DocumentId>(tx).await? else { return Ok(Step::None) };
        forget_document(tx, document, who).await?;
        sql!("UPDATE user_deletions SET documents = documents + 1 WHERE id = {receipt}")
            .run(tx)
            .await?;
        Ok(Step::More)
    })
}

/// Replaces the user in one share link of another owner, and in its document.
pub fn leave_link<'a>(
    storage: &'a Storage,
    run: RatifiedRun,
    (receipt, who): (DeletionId, &'a Forgotten),
    (invites, now): (&'a Invites, DateTime<Utc>),
) -> StorageFuture<'a, Step> {
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(Step::Lost);
        }
        let next = sql!("SELECT link_id FROM link_members WHERE user_id = {who.user} LIMIT 1");
        let Some(link) = next.value::<ShareLinkId>(tx).await? else { return Ok(Step::None) };
        forget_member(tx, link, who, &invites.renewed(link, now)).await?;
        sql!("UPDATE user_deletions SET links = links + 1 WHERE id = {receipt}").run(tx).await?;
        Ok(Step::More)
    })
}

/// Replaces the user in some webhooks after number `after`, which it moves.
pub fn rewrite_webhooks<'a>(
    storage: &'a Storage,
    run: RatifiedRun,
    who: &'a Forgotten,
    after: &'a mut i64,
) -> StorageFuture<'a, Step> {
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(Step::Lost);
        }
        let Some(last) = forget_webhooks(tx, who, *after).await? else { return Ok(Step::None) };
        *after = last;
        Ok(Step::More)
    })
}

/// Deletes the last rows of the user, and the user in the receipt. `More`: a document or a link has come
/// meanwhile, and nothing changes.
pub fn finish<'a>(
    storage: &'a Storage,
    run: RatifiedRun,
    (receipt, who): (DeletionId, &'a Forgotten),
    now: DateTime<Utc>,
) -> StorageFuture<'a, Guarded<Step>> {
    guarded!(storage, tx => {
        if !run.holds(tx).await? {
            return Ok(Step::Lost);
        }
        // A call about the user that is under way has a row there, too.
        lock_audit(tx).await?;
        forget_rows(tx, who).await?;
        if is_named(tx, &who.user).await? {
            return Err(TxError::Refused(Guarded::Stale));
        }
        // Each row that refers to it refuses this, and no row comes after it.
        sql!("DELETE FROM users WHERE id = {who.user}").run(tx).await?;
        let mut after = 0;
        while let Some(last) = forget_webhooks(tx, who, after).await? {
            after = last;
        }
        sql!("UPDATE user_deletions SET user_id = NULL, deleted_id = NULL WHERE id = {receipt}")
            .run(tx)
            .await?;
        // It alone names the user, until the host application has it.
        let data = || json!({ "user_id": who.user, "deletion_id": receipt });
        put(tx, WebhookEvent::UserDeleted, (Subject::NONE, now), data).await?;
        Ok(Step::None)
    })
}

async fn is_named(tx: &mut Tx, user: &UserId) -> Result<bool, TxError> {
    let named = sql!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM documents WHERE owner_id = {user}) \
         OR EXISTS (SELECT 1 FROM link_members WHERE user_id = {user})"
    );
    Ok(named.row(tx).await?.is_some())
}

/// Ends the receipts without a user.
pub fn end(
    storage: &Storage,
    run: RatifiedRun,
    is_file_clear: bool,
    now: DateTime<Utc>,
) -> StorageFuture<'_, u64> {
    run!(storage, Write, tx => {
        if !run.holds(tx).await? {
            return Ok(0);
        }
        sql!(
            "UPDATE user_deletions SET state = 'done', ended_at = {now}, \
             is_file_clear = {is_file_clear} WHERE state = 'running' AND user_id IS NULL"
        )
        .run(tx)
        .await
    })
}

fn running_from(row: &Row) -> Result<Running, TxError> {
    let (user, deleted): (Option<UserId>, Option<UserId>) =
        (row.get("user_id")?, row.get("deleted_id")?);
    let with_reviews = row.get("with_reviews")?;
    let who = user.zip(deleted);
    let who = who.map(|(user, deleted)| Forgotten { user, deleted, with_reviews });
    Ok(Running { id: row.get("id")?, who })
}
