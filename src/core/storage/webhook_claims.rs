//! Claims of webhooks and their ends, and the statements about rows that no claim can take.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ExternalId, ShareLinkId, WebhookId};
use crate::domain::limits::WEBHOOK_LEASE;
use crate::domain::webhook::WebhookState;
use crate::storage::error::StorageError;
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{lock_lane, make_due, milliseconds};
use crate::storage::{Storage, StorageFuture};

/// The most webhooks that a claim takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimSize {
    /// Webhooks without an attempt.
    pub first: u32,
    /// Webhooks whose last attempt failed, or ended with its server.
    pub repeated: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookClaim {
    pub id: WebhookId,
    pub fence: i64,
    pub lane: String,
    /// Its document, whose row is the lock of the lane.
    pub document: Option<DocumentId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedWebhook {
    pub claim: WebhookClaim,
    /// The kind of the event, as the database has it.
    pub kind: String,
    pub created_at: DateTime<Utc>,
    pub link: Option<ShareLinkId>,
    /// The id of its document in the host application.
    pub external_id: Option<ExternalId>,
    /// The data of the event: a JSON object.
    pub data: String,
    /// Attempts so far, this one included.
    pub attempts: i64,
    /// The trace of the request that caused the event.
    pub traceparent: Option<String>,
}

impl Storage {
    /// Deletes a delivered webhook; the next one of its lane is due. False: the claim is lost.
    pub fn webhook_delivered<'a>(&'a self, claim: &'a WebhookClaim) -> StorageFuture<'a, bool> {
        run!(self, Write, tx => {
            lock_lane(tx, claim.document).await?;
            let deleted = sql!(
                "DELETE FROM webhooks WHERE id = {claim.id} AND fence = {claim.fence} \
                 AND state = 'pending'"
            );
            if deleted.run(tx).await? == 0 {
                return Ok(false);
            }
            make_due(tx, &claim.lane).await?;
            Ok(true)
        })
    }

    /// Stores a failed attempt: the webhook is due again after `delay`, or dead if its time is over; then
    /// the next one of its lane is due. `None`: the claim is lost.
    pub fn webhook_failed<'a>(
        &'a self,
        claim: &'a WebhookClaim,
        error: &'a str,
        delay: Duration,
    ) -> StorageFuture<'a, Option<WebhookState>> {
        run!(self, Write, tx => {
            lock_lane(tx, claim.document).await?;
            let state = sql!(
                "UPDATE webhooks SET last_error = {error}, \
                 state = CASE WHEN give_up_at <= {@now} THEN 'dead' ELSE 'pending' END, \
                 next_at = CASE WHEN give_up_at <= {@now} THEN NULL \
                 ELSE {@after:{milliseconds(delay)}} END \
                 WHERE id = {claim.id} AND fence = {claim.fence} AND state = 'pending' \
                 RETURNING state"
            );
            let state = state.value(tx).await?;
            if state == Some(WebhookState::Dead) {
                make_due(tx, &claim.lane).await?;
            }
            Ok(state)
        })
    }

    /// The time until the next attempt of an endpoint; zero if a webhook is due. `None`: there is none.
    pub fn webhook_due_in<'a>(&'a self, endpoint: &'a str) -> StorageFuture<'a, Option<Duration>> {
        run!(self, Read, tx => {
            let due = sql!(
                "SELECT MIN(next_at) AS due, {@now} AS now FROM webhooks \
                 WHERE state = 'pending' AND endpoint = {endpoint}"
            );
            let row = due.one(tx).await?;
            let (due, now): (Option<DateTime<Utc>>, DateTime<Utc>) = (row.get("due")?, row.get("now")?);
            Ok(due.map(|due| (due - now).to_std().unwrap_or_default()))
        })
    }

    /// Claims due webhooks of the endpoint for [`WEBHOOK_LEASE`], at most `size`, each of another lane. One
    /// whose row does not parse is dead instead.
    pub fn claim_webhooks<'a>(
        &'a self,
        endpoint: &'a str,
        size: ClaimSize,
    ) -> StorageFuture<'a, Vec<ClaimedWebhook>> {
        Box::pin(async move {
            // A second run claims the next rows; the lease of the first ones ends.
            let rows = run!(self, One, tx => {
                let rows = sql!(
                    "WITH fresh AS (SELECT id FROM webhooks \
                       WHERE state = 'pending' AND endpoint = {endpoint} AND next_at <= {@now} \
                       AND attempts = 0 ORDER BY next_at, seq LIMIT {size.first}{@skip locked}), \
                     again AS (SELECT id FROM webhooks \
                       WHERE state = 'pending' AND endpoint = {endpoint} AND next_at <= {@now} \
                       AND attempts > 0 ORDER BY next_at, seq LIMIT {size.repeated}{@skip locked}) \
                     UPDATE webhooks \
                     SET attempts = attempts + 1, fence = fence + 1, \
                     next_at = {@after:{milliseconds(WEBHOOK_LEASE)}} \
                     WHERE id IN (SELECT id FROM fresh UNION ALL SELECT id FROM again) \
                     RETURNING id, fence, lane, document_id, type, created_at, link_id, data, \
                       attempts, traceparent, external_id"
                );
                rows.rows(tx).await
            });
            let rows: Result<Vec<Row>, StorageError> = rows.await;
            self.parsed(&rows?, claimed_from).await
        })
    }

    /// Pending webhooks whose time is over and whose endpoint is none of `endpoints`.
    pub fn orphaned_webhooks<'a>(
        &'a self,
        endpoints: &'a [String],
        rows: u32,
    ) -> StorageFuture<'a, Vec<WebhookClaim>> {
        Box::pin(async move {
            let rows = run!(self, Read, tx => {
                let rows = sql!(
                    "SELECT id, fence, lane, document_id FROM webhooks \
                     WHERE state = 'pending' AND next_at IS NOT NULL AND give_up_at <= {@now} \
                     AND endpoint NOT IN (SELECT w.value FROM {@list:{json(endpoints)?}}) \
                     LIMIT {rows}"
                );
                rows.rows(tx).await
            });
            let rows: Result<Vec<Row>, StorageError> = rows.await;
            self.parsed(&rows?, claim_from).await
        })
    }

    /// The rows that parse. One that does not delays no other: it is dead from now on.
    async fn parsed<T: Send>(
        &self,
        rows: &[Row],
        from: fn(&Row) -> Result<T, TxError>,
    ) -> Result<Vec<T>, StorageError> {
        let mut parsed = Vec::new();
        for row in rows {
            match from(row).map_err(TxError::into_error) {
                Ok(webhook) => parsed.push(webhook),
                Err(error) => {
                    let text = |name: &str| row.get::<String>(name).map_err(TxError::into_error);
                    let (id, lane) = (text("id")?, text("lane")?);
                    tracing::warn!(id, %error, "a row of `webhooks` does not parse; it is dead");
                    self.end_damaged(&id, &lane, &error.to_string()).await?;
                }
            }
        }
        Ok(parsed)
    }

    /// Ends a webhook whose row does not parse. It gets an id with which an administrator can list it.
    fn end_damaged<'a>(
        &'a self,
        id: &'a str,
        lane: &'a str,
        error: &'a str,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            sql!(
                "UPDATE webhooks SET id = {WebhookId::generate()}, document_id = NULL, \
                 link_id = NULL, created_at = {@now}, state = 'dead', next_at = NULL, \
                 last_error = {error} WHERE id = {id}",
                error = format!("its row {id} does not parse: {error}")
            )
            .run(tx)
            .await?;
            make_due(tx, lane).await
        })
    }
}

fn claim_from(row: &Row) -> Result<WebhookClaim, TxError> {
    let (id, fence) = (row.get("id")?, row.get("fence")?);
    Ok(WebhookClaim { id, fence, lane: row.get("lane")?, document: row.get("document_id")? })
}

fn claimed_from(row: &Row) -> Result<ClaimedWebhook, TxError> {
    Ok(ClaimedWebhook {
        claim: claim_from(row)?,
        kind: row.get("type")?,
        created_at: row.get("created_at")?,
        link: row.get("link_id")?,
        data: row.get("data")?,
        attempts: row.get("attempts")?,
        traceparent: row.get("traceparent")?,
        external_id: row.get("external_id")?,
    })
}
