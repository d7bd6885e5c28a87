//! Claims of webhooks, and rows that no claim can take, on either engine.

use sqlx::Row as _;

use crate::domain::ids::WebhookId;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::webhooks::{ClaimSize, ClaimedWebhook, WebhookClaim};

use super::dialect::{
    Engine, Moment, Row, after_ms, encoded, listed, read, single, skip_locked, text, transact,
};
use super::webhooks::give_turn;

/// Selects due webhooks of an endpoint for a claim, by their attempts.
macro_rules! due {
    ($attempts:literal, $rows:literal) => {
        concat!(
            "(SELECT id FROM webhooks WHERE state = 'pending' AND endpoint = $1 AND next_at <= ",
            after_ms!("0"),
            " AND attempts ",
            $attempts,
            " ORDER BY next_at, seq LIMIT ",
            $rows,
            skip_locked!(),
            ")"
        )
    };
}

impl Engine {
    pub(in crate::storage) async fn has_due_webhook(
        &self,
        endpoint: &str,
    ) -> Result<bool, StorageError> {
        read!(self, connection => {
            let is_due: bool = sqlx::query_scalar(concat!(
                "SELECT EXISTS (SELECT 1 FROM webhooks \
                 WHERE state = 'pending' AND endpoint = $1 AND next_at <= ",
                after_ms!("0"),
                ")"
            ))
            .bind(endpoint)
            .fetch_one(connection)
            .await?;
            Ok(is_due)
        })
    }

    pub(in crate::storage) async fn claim_webhooks(
        &self,
        endpoint: &str,
        size: ClaimSize,
        lease: i64,
    ) -> Result<Vec<ClaimedWebhook>, StorageError> {
        // A second run claims the next rows; the lease of the first ones ends.
        let rows = single!(self, tx => {
            let rows: Vec<Row> = sqlx::query(concat!(
                "WITH fresh AS ",
                due!("= 0", "$2"),
                ", again AS ",
                due!("> 0", "$3"),
                " UPDATE webhooks SET attempts = attempts + 1, fence = fence + 1, next_at = ",
                after_ms!("$4"),
                " WHERE id IN (SELECT id FROM fresh UNION ALL SELECT id FROM again) \
                 RETURNING id, fence, lane, document_id, type, created_at, link_id, data, attempts"
            ))
            .bind(endpoint)
            .bind(i64::from(size.first))
            .bind(i64::from(size.repeated))
            .bind(lease)
            .fetch_all(tx)
            .await?;
            Ok(rows)
        });
        self.parsed(&rows?, claimed_from).await
    }

    /// The rows that parse. One that does not delays no other: it is dead from now on.
    async fn parsed<T: Send>(
        &self,
        rows: &[Row],
        from: fn(&Row) -> Result<T, StorageError>,
    ) -> Result<Vec<T>, StorageError> {
        let mut parsed = Vec::new();
        for row in rows {
            match from(row) {
                Ok(webhook) => parsed.push(webhook),
                Err(error) => {
                    let (id, lane): (String, String) = (row.try_get("id")?, row.try_get("lane")?);
                    tracing::warn!(id, %error, "a row of `webhooks` does not parse; it is dead");
                    self.end_damaged(&id, &lane, &error.to_string()).await?;
                }
            }
        }
        Ok(parsed)
    }

    /// Ends a webhook whose row does not parse. It gets an id with which an administrator can list it.
    async fn end_damaged(&self, id: &str, lane: &str, error: &str) -> Result<(), StorageError> {
        transact!(self, tx => {
            sqlx::query(concat!(
                "UPDATE webhooks SET id = $2, document_id = NULL, link_id = NULL, created_at = ",
                after_ms!("0"),
                ", state = 'dead', next_at = NULL, last_error = $3 WHERE id = $1"
            ))
            .bind(id)
            .bind(WebhookId::generate().to_string())
            .bind(encoded(&format!("its row {id} does not parse: {error}")))
            .execute(&mut *tx)
            .await?;
            give_turn(tx, lane).await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn orphaned_webhooks(
        &self,
        endpoints: &[String],
        rows: u32,
    ) -> Result<Vec<WebhookClaim>, StorageError> {
        let rows = read!(self, connection => {
            let rows: Vec<Row> = sqlx::query(concat!(
                "SELECT id, fence, lane, document_id FROM webhooks \
                 WHERE state = 'pending' AND next_at IS NOT NULL AND give_up_at <= ",
                after_ms!("0"),
                " AND endpoint NOT IN (SELECT w.value FROM ",
                listed!("$1"),
                ") LIMIT $2"
            ))
            .bind(serde_json::to_string(endpoints).map_err(corrupt)?)
            .bind(i64::from(rows))
            .fetch_all(connection)
            .await?;
            Ok(rows)
        });
        self.parsed(&rows?, claim_from).await
    }
}

fn claim_from(row: &Row) -> Result<WebhookClaim, StorageError> {
    let document: Option<String> = row.try_get("document_id")?;
    Ok(WebhookClaim {
        id: parse(&row.try_get::<String, _>("id")?)?,
        fence: row.try_get("fence")?,
        lane: row.try_get("lane")?,
        document: document.as_deref().map(parse).transpose()?,
    })
}

fn claimed_from(row: &Row) -> Result<ClaimedWebhook, StorageError> {
    let Moment(created_at) = row.try_get("created_at")?;
    let link: Option<String> = row.try_get("link_id")?;
    Ok(ClaimedWebhook {
        claim: claim_from(row)?,
        kind: row.try_get("type")?,
        created_at,
        link: link.as_deref().map(parse).transpose()?,
        data: text(row.try_get("data")?),
        attempts: row.try_get("attempts")?,
    })
}
