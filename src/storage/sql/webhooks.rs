//! The outbox of webhooks, on either engine.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::Row as _;

use crate::domain::ids::{DocumentId, WebhookId};
use crate::domain::limits::WEBHOOK_RETRY_WINDOW;
use crate::domain::webhook::{WebhookEvent, WebhookState};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::webhooks::{Hooks, StoredWebhook, Subject, WebhookClaim, WebhookCount};

use super::dialect::{
    Connection, Engine, Moment, Row, TxError, after_ms, encoded, json_rows, lock, read, single,
    text, transact, webhook_number,
};

/// One row for each endpoint, in one statement. A row is due at once unless its lane has a pending one.
const INSERT: &str = concat!(
    "INSERT INTO webhooks (id, seq, endpoint, url, type, lane, document_id, link_id, data, \
       created_at, give_up_at, state, attempts, fence, next_at) \
     SELECT n.id, ",
    webhook_number!(),
    ", n.endpoint, n.url, $2, n.lane, n.document, $4, $5, $6, ",
    after_ms!("$7"),
    ", 'pending', 0, 0, CASE WHEN EXISTS (SELECT 1 FROM webhooks p \
       WHERE p.lane = n.lane AND p.state = 'pending') THEN NULL ELSE ",
    after_ms!("0"),
    " END FROM (SELECT w.value ->> 0 AS id, w.value ->> 1 AS endpoint, w.value ->> 2 AS url, \
       d.document, (w.value ->> 1) || ' ' || COALESCE(d.document, w.value ->> 0) AS lane FROM ",
    json_rows!("$1"),
    " CROSS JOIN (SELECT COALESCE($3, (SELECT document_id FROM share_links WHERE id = $4)) \
       AS document) d) n"
);

/// Selects webhooks as [`stored_from`] reads them.
macro_rules! select_webhooks {
    ($rest:literal) => {
        concat!(
            "SELECT id, type, url, document_id, link_id, created_at, attempts, next_at, \
             last_error, state FROM webhooks ",
            $rest
        )
    };
}

/// The condition that no end of another webhook makes this one due: it is the first of its lane without a
/// next attempt, or its next attempt is later than any pause, because the clock of the database was set
/// back. `$latest` is the longest pause, in milliseconds.
macro_rules! stuck {
    ($latest:literal) => {
        concat!(
            "state = 'pending' AND (next_at > ",
            after_ms!($latest),
            " OR next_at IS NULL AND NOT EXISTS (SELECT 1 FROM webhooks e \
               WHERE e.state = 'pending' AND e.lane = webhooks.lane AND e.seq < webhooks.seq))"
        )
    };
}

/// Writes the webhooks of an event, in its transaction. `data` runs only if an endpoint wants the event.
/// On PostgreSQL the transaction has locked the document.
pub(super) async fn put(
    connection: &mut Connection,
    hooks: &Hooks,
    event: WebhookEvent,
    (subject, now): (Subject, DateTime<Utc>),
    data: impl FnOnce() -> Value,
) -> Result<(), TxError> {
    if !hooks.want(event) {
        return Ok(());
    }
    let rows = hooks.rows_of(event);
    if rows.is_empty() {
        return Ok(());
    }
    let data = data().to_string();
    sqlx::query(INSERT)
        .bind(serde_json::to_string(&rows).map_err(corrupt)?)
        .bind(event.as_str())
        .bind(subject.document.map(|document| document.to_string()))
        .bind(subject.link.map(|link| link.to_string()))
        .bind(encoded(&data))
        .bind(Moment(now))
        .bind(window()?)
        .execute(connection)
        .await?;
    Ok(())
}

impl Engine {
    pub(in crate::storage) async fn webhook_delivered(
        &self,
        claim: &WebhookClaim,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            lock_lane(tx, claim.document).await?;
            let deleted = sqlx::query(
                "DELETE FROM webhooks WHERE id = $1 AND fence = $2 AND state = 'pending'",
            )
            .bind(claim.id.to_string())
            .bind(claim.fence)
            .execute(&mut *tx)
            .await?;
            if deleted.rows_affected() == 0 {
                return Ok(false);
            }
            give_turn(tx, &claim.lane).await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn webhook_failed(
        &self,
        claim: &WebhookClaim,
        error: &str,
        delay: i64,
    ) -> Result<Option<WebhookState>, StorageError> {
        transact!(self, tx => {
            lock_lane(tx, claim.document).await?;
            let state: Option<String> = sqlx::query_scalar(concat!(
                "UPDATE webhooks SET last_error = $3, \
                 state = CASE WHEN give_up_at <= ",
                after_ms!("0"),
                " THEN 'dead' ELSE 'pending' END, next_at = CASE WHEN give_up_at <= ",
                after_ms!("0"),
                " THEN NULL ELSE ",
                after_ms!("$4"),
                " END WHERE id = $1 AND fence = $2 AND state = 'pending' RETURNING state"
            ))
            .bind(claim.id.to_string())
            .bind(claim.fence)
            .bind(encoded(error))
            .bind(delay)
            .fetch_optional(&mut *tx)
            .await?;
            let Some(state) = state else { return Ok(None) };
            let state = parse(&state)?;
            if state == WebhookState::Dead {
                give_turn(tx, &claim.lane).await?;
            }
            Ok(Some(state))
        })
    }

    pub(in crate::storage) async fn webhooks(
        &self,
        state: Option<WebhookState>,
        page: &Page<WebhookId>,
    ) -> Result<Vec<StoredWebhook>, StorageError> {
        read!(self, connection => {
            let rows: Vec<Row> = sqlx::query(select_webhooks!(
                "WHERE ($1 IS NULL OR state = $1) \
                 AND ($2 IS NULL OR (created_at, id) < ($2, $3)) \
                 ORDER BY created_at DESC, id DESC LIMIT $4"
            ))
            .bind(state.map(WebhookState::as_str))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .fetch_all(connection)
            .await?;
            Ok(rows.iter().map(stored_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn replay_webhook(
        &self,
        id: WebhookId,
    ) -> Result<Option<StoredWebhook>, StorageError> {
        transact!(self, tx => {
            let document: Option<Option<String>> =
                sqlx::query_scalar("SELECT document_id FROM webhooks WHERE id = $1")
                    .bind(id.to_string())
                    .fetch_optional(&mut *tx)
                    .await?;
            let Some(document) = document else { return Ok(None) };
            lock_lane(tx, document.as_deref().map(parse).transpose()?).await?;
            replay(tx, &id.to_string()).await?;
            let row: Option<Row> = sqlx::query(select_webhooks!("WHERE id = $1"))
                .bind(id.to_string())
                .fetch_optional(tx)
                .await?;
            Ok(row.as_ref().map(stored_from).transpose()?)
        })
    }

    pub(in crate::storage) async fn replay_dead_webhooks(
        &self,
        rows: u32,
    ) -> Result<u64, StorageError> {
        transact!(self, tx => {
            let dead: Vec<(String, Option<String>)> = sqlx::query_as(
                // Numbers rise with the commits of a lane; times are those of several servers' clocks.
                "SELECT id, document_id FROM webhooks WHERE state = 'dead' ORDER BY seq LIMIT $1",
            )
            .bind(i64::from(rows))
            .fetch_all(&mut *tx)
            .await?;
            let mut documents: Vec<_> = dead.iter().filter_map(|(_, it)| it.as_deref()).collect();
            // The order in which every transaction locks several documents.
            documents.sort_unstable();
            documents.dedup();
            for document in documents {
                lock_lane(tx, Some(parse(document)?)).await?;
            }
            let mut replayed = 0;
            for (id, _) in &dead {
                replayed += replay(tx, id).await?;
            }
            Ok(replayed)
        })
    }

    pub(in crate::storage) async fn count_webhooks(&self) -> Result<WebhookCount, StorageError> {
        read!(self, connection => {
            let rows: Vec<(String, String, i64, Moment)> = sqlx::query_as(
                "SELECT endpoint, state, count(*), MIN(created_at) FROM webhooks \
                 GROUP BY endpoint, state",
            )
            .fetch_all(connection)
            .await?;
            let mut count = WebhookCount::default();
            for (endpoint, state, rows, Moment(oldest)) in rows {
                let of_endpoint = count.endpoints.entry(endpoint).or_default();
                match parse(&state)? {
                    WebhookState::Pending => {
                        of_endpoint.pending = rows;
                        count.pending += rows;
                        count.oldest = Some(count.oldest.map_or(oldest, |at| at.min(oldest)));
                    }
                    WebhookState::Dead => {
                        of_endpoint.dead = rows;
                        count.dead += rows;
                    }
                }
            }
            Ok(count)
        })
    }

    pub(in crate::storage) async fn delete_dead_webhooks(
        &self,
        endpoint: &str,
        rows: i64,
    ) -> Result<u64, StorageError> {
        single!(self, tx => {
            let deleted = sqlx::query(
                "DELETE FROM webhooks WHERE state = 'dead' AND id IN (SELECT id FROM webhooks \
                 WHERE state = 'dead' AND endpoint = $1 ORDER BY created_at, id LIMIT $2)",
            )
            .bind(endpoint)
            .bind(rows)
            .execute(tx)
            .await?;
            Ok(deleted.rows_affected())
        })
    }

    pub(in crate::storage) async fn restore_webhook_turns(
        &self,
        latest: i64,
    ) -> Result<u64, StorageError> {
        // The look needs no writer: it reads every pending row of an outage.
        let is_due = read!(self, connection => {
            let is_due: bool = sqlx::query_scalar(concat!(
                "SELECT EXISTS (SELECT 1 FROM webhooks WHERE ",
                stuck!("$1"),
                ")"
            ))
            .bind(latest)
            .fetch_one(connection)
            .await?;
            Ok(is_due)
        });
        if !is_due? {
            return Ok(0);
        }
        transact!(self, tx => {
            let restored = sqlx::query(concat!(
                "UPDATE webhooks SET next_at = ",
                after_ms!("0"),
                " WHERE ",
                stuck!("$1")
            ))
            .bind(latest)
            .execute(tx)
            .await?;
            Ok(restored.rows_affected())
        })
    }
}

/// Locks the lane of a document: no other transaction adds a webhook to it, or ends one. A purged
/// document has no lock.
async fn lock_lane(
    connection: &mut Connection,
    document: Option<DocumentId>,
) -> Result<(), TxError> {
    if let Some(document) = document {
        lock(connection, document).await?;
    }
    Ok(())
}

/// Makes the first pending webhook of a lane due, after the end of the one before it.
pub(super) async fn give_turn(connection: &mut Connection, lane: &str) -> Result<(), TxError> {
    sqlx::query(concat!(
        "UPDATE webhooks SET next_at = ",
        after_ms!("0"),
        " WHERE next_at IS NULL AND id = (SELECT id FROM webhooks \
           WHERE lane = $1 AND state = 'pending' ORDER BY seq LIMIT 1)"
    ))
    .bind(lane)
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes a dead webhook pending, at the end of its lane. Returns the number of changed rows.
async fn replay(connection: &mut Connection, id: &str) -> Result<u64, TxError> {
    let replayed = sqlx::query(concat!(
        "UPDATE webhooks SET state = 'pending', attempts = 0, fence = fence + 1, seq = ",
        webhook_number!(),
        ", give_up_at = ",
        after_ms!("$2"),
        ", next_at = CASE WHEN EXISTS (SELECT 1 FROM webhooks p \
           WHERE p.lane = webhooks.lane AND p.state = 'pending') THEN NULL ELSE ",
        after_ms!("0"),
        " END WHERE id = $1 AND state = 'dead'"
    ))
    .bind(id)
    .bind(window()?)
    .execute(connection)
    .await?;
    Ok(replayed.rows_affected())
}

/// The time for attempts, in milliseconds.
fn window() -> Result<i64, StorageError> {
    i64::try_from(WEBHOOK_RETRY_WINDOW.as_millis()).map_err(corrupt)
}

fn stored_from(row: &Row) -> Result<StoredWebhook, StorageError> {
    let Moment(created_at) = row.try_get("created_at")?;
    let next_at: Option<Moment> = row.try_get("next_at")?;
    let document: Option<String> = row.try_get("document_id")?;
    let link: Option<String> = row.try_get("link_id")?;
    let last_error: Option<String> = row.try_get("last_error")?;
    Ok(StoredWebhook {
        id: parse(&row.try_get::<String, _>("id")?)?,
        kind: row.try_get("type")?,
        url: row.try_get("url")?,
        document: document.as_deref().map(parse).transpose()?,
        link: link.as_deref().map(parse).transpose()?,
        created_at,
        attempts: row.try_get("attempts")?,
        next_at: next_at.map(|Moment(at)| at),
        last_error: last_error.map(text),
        state: parse(&row.try_get::<String, _>("state")?)?,
    })
}
