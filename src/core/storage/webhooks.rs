//! Webhooks: the outbox of events for the host product.
//!
//! # Invariants
//!
//! - **D9** The transaction of an event writes its webhooks, one for each endpoint that wants it. Both
//!   are committed, or neither.
//! - **D10** The webhooks of one document and endpoint are a *lane*. At most one webhook of a lane has a
//!   next attempt (`next_at`): the first pending one. The end of a webhook makes the next one due.
//! - **D11** A claim moves `next_at` to the end of its lease, by the clock of the database, and raises the
//!   fence. A server that lost its claim changes no row.
//!
//! A webhook never fails the transaction of its event: beyond the share of its endpoint in
//! [`WEBHOOKS_MAX`](crate::domain::limits::WEBHOOKS_MAX), or beyond the document's part of it, it is dropped, and counted by document. An endpoint
//! that is down fills its own share only, and a document its part; typed suggestions fill half of that.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::domain::ids::{DocumentId, ShareLinkId, WebhookId};
use crate::domain::limits::{WEBHOOK_RETRY_WINDOW, WEBHOOK_TYPED_DELAY};
use crate::domain::webhook::{WebhookEvent, WebhookState};
use crate::storage::error::StorageError;
use crate::storage::locks::{Locked, lock};
use crate::storage::pagination::{Cursor, Page};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture, trace};

/// The document and the share link of an event. Its transaction has locked the document.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    document: Option<DocumentId>,
    link: Option<ShareLinkId>,
}

impl Subject {
    /// An event without a document: its webhooks are lanes of their own.
    pub const NONE: Self = Self { document: None, link: None };

    pub fn document(_: Locked, document: DocumentId, link: Option<ShareLinkId>) -> Self {
        Self { document: Some(document), link }
    }

    /// An event of a share link that exists; its document is that of the link.
    pub fn link(_: Locked, link: ShareLinkId) -> Self {
        Self { document: None, link: Some(link) }
    }

    pub(crate) fn ids(self) -> (Option<DocumentId>, Option<ShareLinkId>) {
        (self.document, self.link)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Webhook"))]
pub struct StoredWebhook {
    pub id: WebhookId,
    /// The event, as in the body of the webhook.
    #[serde(rename = "type")]
    pub kind: String,
    /// The endpoint, without its query.
    pub url: String,
    #[serde(rename = "document_id")]
    pub document: Option<DocumentId>,
    #[serde(rename = "share_link_id")]
    pub link: Option<ShareLinkId>,
    pub created_at: DateTime<Utc>,
    /// Attempts so far, with the running one.
    #[cfg_attr(feature = "schemas", schemars(with = "i64", range(min = 0)))]
    pub attempts: i64,
    /// The next attempt. Null: an earlier webhook of the same document and endpoint is pending, or it is dead.
    pub next_at: Option<DateTime<Utc>>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    pub state: WebhookState,
}

impl StoredWebhook {
    /// The cursor of the next page, if this webhook is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<WebhookId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookCount {
    pub pending: i64,
    pub dead: i64,
    pub oldest: Option<DateTime<Utc>>,
    pub endpoints: BTreeMap<String, EndpointCount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCount {
    pub pending: i64,
    pub dead: i64,
}

impl EndpointCount {
    fn rows(&self) -> i64 {
        self.pending.saturating_add(self.dead)
    }
}

/// For a statement.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

const WEBHOOKS: &str = "SELECT id, type, url, document_id, link_id, created_at, attempts, next_at, \
    last_error, state FROM webhooks ";

/// The condition that no end of another webhook makes this one due: it is the first of its lane without a
/// next attempt, or its next attempt is later than any pause, because the clock of the database was set
/// back. `latest` is the longest pause, in milliseconds.
const STUCK: &str = "state = 'pending' AND (next_at > {@after:{latest}} OR next_at IS NULL AND NOT EXISTS ( \
    SELECT 1 FROM webhooks e \
    WHERE e.state = 'pending' AND e.lane = webhooks.lane AND e.seq < webhooks.seq))";

/// Writes the webhooks of an event, in its transaction: one row for each endpoint, in one statement. A row is
/// due at once unless its lane has a pending one. `data` runs only if an endpoint wants the event.
pub async fn put(
    tx: &mut Tx,
    event: WebhookEvent,
    about: (Subject, DateTime<Utc>),
    data: impl FnOnce() -> Value,
) -> Result<(), TxError> {
    put_after(tx, (event, Duration::ZERO), about, data).await
}

/// Writes the webhooks of an event that its author may take back for `wait`: zero, or [`WEBHOOK_TYPED_DELAY`]. None
/// is due sooner, and they have half of the document's share: the decisions about them have the rest.
pub(crate) async fn put_after(
    tx: &mut Tx,
    (event, wait): (WebhookEvent, Duration),
    (subject, now): (Subject, DateTime<Utc>),
    data: impl FnOnce() -> Value,
) -> Result<(), TxError> {
    if !tx.hooks.want(event) {
        return Ok(());
    }
    let hooks = tx.hooks.clone();
    let (rows, without_room) = hooks.reserve(event);
    let (document, link) = subject.ids();
    let share = hooks.document_share();
    let has_lane = document.is_some() || link.is_some();
    debug_assert!(has_lane || event.may_lack_document(), "{} names no document", event.as_str());
    let put = sql!(
        "INSERT INTO webhooks (id, seq, endpoint, url, type, lane, document_id, link_id, data, \
           created_at, give_up_at, state, attempts, fence, traceparent, external_id, next_at) \
         SELECT n.id, {@webhook number}, n.endpoint, n.url, {event}, n.lane, n.document, {link}, \
           {data}, {now}, {@after:{milliseconds(WEBHOOK_RETRY_WINDOW + wait)}}, 'pending', 0, 0, \
           {traceparent}, (SELECT external_id FROM documents WHERE id = n.document), \
           CASE WHEN EXISTS (SELECT 1 FROM webhooks p \
             WHERE p.lane = n.lane AND p.state = 'pending') THEN NULL \
             ELSE {@after:{milliseconds(wait)}} END FROM ( \
           SELECT w.value ->> 0 AS id, w.value ->> 1 AS endpoint, w.value ->> 2 AS url, \
             d.document, (w.value ->> 1) || ' ' || COALESCE(d.document, w.value ->> 0) AS lane \
           FROM {@rows:{json(&rows)?}} CROSS JOIN ( \
             SELECT COALESCE({document}, (SELECT document_id FROM share_links WHERE id = {link})) \
             AS document) d) n \
         WHERE NOT EXISTS (SELECT 1 FROM webhooks f \
           WHERE f.lane = n.lane AND f.state = 'pending' LIMIT 1 OFFSET {last}) RETURNING endpoint",
        data = data().to_string(),
        last = if wait.is_zero() { share } else { share / 2 } - 1,
        traceparent = trace::current().map(|it| it.as_str().to_owned())
    );
    let stored: Vec<String> = if rows.is_empty() { Vec::new() } else { put.values(tx).await? };
    tx.has_webhook |= !stored.is_empty();
    let all = rows.iter().map(|(_, endpoint, _)| *endpoint);
    let full: Vec<_> = all.filter(|it| stored.iter().all(|stored| stored != it)).collect();
    if without_room + full.len() > 0 {
        hooks.give_back(&full);
        let of_link = sql!(
            "SELECT COALESCE({document}, (SELECT document_id FROM share_links WHERE id = {link}))"
        );
        let document = of_link.value::<Option<DocumentId>>(tx).await?.flatten();
        hooks.count_dropped(document, without_room + full.len());
    }
    Ok(())
}

impl Storage {
    /// The count sets the free rows for new webhooks of this server.
    pub async fn measure_webhooks(&self) -> Result<WebhookCount, StorageError> {
        let count = self.count_webhooks().await?;
        let rows = |endpoint: &str| count.endpoints.get(endpoint).map_or(0, EndpointCount::rows);
        self.hooks().set_rows(rows);
        Ok(count)
    }

    /// Dead rows of one endpoint above nine tenths of its share: the rest remains for the webhooks of
    /// the next seconds.
    #[must_use]
    pub fn dead_webhooks_above(&self, count: &EndpointCount) -> i64 {
        let above = count.rows() - self.hooks().share() / 10 * 9;
        above.clamp(0, count.dead)
    }

    /// Newest first. Without a state it contains both.
    pub fn webhooks<'a>(
        &'a self,
        state: Option<WebhookState>,
        page: &'a Page<WebhookId>,
    ) -> StorageFuture<'a, Vec<StoredWebhook>> {
        run!(self, Read, tx => {
            let webhooks = sql!([
                WEBHOOKS,
                "WHERE ({state} IS NULL OR state = {state}) \
                 AND ({page.before_at()} IS NULL \
                 OR (created_at, id) < ({page.before_at()}, {page.before_id()})) \
                 ORDER BY created_at DESC, id DESC LIMIT {page.rows()}",
            ]);
            webhooks.rows(tx).await?.iter().map(stored_from).collect()
        })
    }

    /// Makes a dead webhook pending again, at the end of its lane. A pending one stays as it is. `None`:
    /// there is no such webhook.
    pub fn replay_webhook(&self, id: WebhookId) -> StorageFuture<'_, Option<StoredWebhook>> {
        run!(self, Write, tx => {
            let document = sql!("SELECT document_id FROM webhooks WHERE id = {id}");
            let Some(document) = document.value(tx).await? else { return Ok(None) };
            lock_lane(tx, document).await?;
            replay(tx, &id.to_string()).await?;
            let row = sql!([WEBHOOKS, "WHERE id = {id}"]).row(tx).await?;
            row.as_ref().map(stored_from).transpose()
        })
    }

    /// Those of events since a time, the oldest first, at most `rows`, in one transaction. Returns their
    /// number.
    pub fn replay_dead_webhooks(
        &self,
        rows: u32,
        since: Option<DateTime<Utc>>,
    ) -> StorageFuture<'_, u64> {
        run!(self, Write, tx => {
            // Numbers rise with the commits of a lane; times are those of several servers' clocks.
            let dead = sql!(
                "SELECT id, document_id FROM webhooks WHERE state = 'dead' \
                 AND ({since} IS NULL OR created_at >= {since}) ORDER BY seq LIMIT {rows}"
            );
            let dead = dead.rows(tx).await?;
            let documents = dead.iter().map(|row| row.get::<Option<DocumentId>>("document_id"));
            let documents: Result<Vec<_>, _> = documents.filter_map(Result::transpose).collect();
            let mut documents = documents?;
            // The order in which every transaction locks several documents.
            documents.sort_unstable();
            documents.dedup();
            for document in documents {
                lock_lane(tx, Some(document)).await?;
            }
            let mut replayed = 0;
            for row in &dead {
                replayed += replay(tx, &row.get::<String>("id")?).await?;
            }
            Ok(replayed)
        })
    }

    pub(crate) fn count_webhooks(&self) -> StorageFuture<'_, WebhookCount> {
        run!(self, Read, tx => {
            let counts = sql!(
                "SELECT endpoint, state, count(*) AS count, MIN(created_at) AS oldest \
                 FROM webhooks GROUP BY endpoint, state"
            );
            let mut count = WebhookCount::default();
            for row in counts.rows(tx).await? {
                let (rows, oldest) = (row.get("count")?, row.get("oldest")?);
                let of_endpoint = count.endpoints.entry(row.get("endpoint")?).or_default();
                match row.get("state")? {
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

    /// Deletes the oldest dead webhooks of an endpoint. Returns their number.
    pub fn delete_dead_webhooks<'a>(
        &'a self,
        endpoint: &'a str,
        rows: i64,
    ) -> StorageFuture<'a, u64> {
        run!(self, One, tx => {
            let deleted = sql!(
                "DELETE FROM webhooks WHERE state = 'dead' AND id IN (SELECT id FROM webhooks \
                 WHERE state = 'dead' AND endpoint = {endpoint} \
                 ORDER BY created_at, id LIMIT {rows})"
            );
            deleted.run(tx).await
        })
    }

    /// Makes the first pending webhook of a lane due if it has no next attempt: two transactions about a
    /// purged document, which has no lock, may cause that. A webhook whose next attempt is further away
    /// than `longest_pause` is due as well: the clock of the database was set back. Returns their number.
    pub fn restore_due_webhooks(&self, longest_pause: Duration) -> StorageFuture<'_, u64> {
        let latest = milliseconds(longest_pause);
        Box::pin(async move {
            // Without the writer: it reads every pending row of an outage.
            let is_stuck = run!(self, Read, tx => {
                let stuck = sql!(["SELECT 1 FROM webhooks WHERE ", STUCK, " LIMIT 1"], latest);
                Ok(stuck.row(tx).await?.is_some())
            });
            let is_stuck: Result<bool, StorageError> = is_stuck.await;
            if !is_stuck? {
                return Ok(0);
            }
            let restored = run!(self, Write, tx => {
                let restored = sql!(["UPDATE webhooks SET next_at = {@now} WHERE ", STUCK], latest);
                restored.run(tx).await
            });
            restored.await
        })
    }
}

/// Locks the lane of a document: no other transaction adds a webhook to it, or ends one. A purged
/// document has no lock.
pub(crate) async fn lock_lane(tx: &mut Tx, document: Option<DocumentId>) -> Result<(), TxError> {
    if let Some(document) = document {
        lock(tx, document).await?;
    }
    Ok(())
}

/// Makes the first pending webhook of a lane due, after the end of the one before it. The end of the time of
/// its attempts says whether it is settled.
pub(crate) async fn make_due(tx: &mut Tx, lane: &str) -> Result<(), TxError> {
    sql!(
        "UPDATE webhooks \
         SET next_at = CASE WHEN give_up_at <= {@after:{milliseconds(WEBHOOK_RETRY_WINDOW)}} \
         THEN {@now} ELSE {@after:{milliseconds(WEBHOOK_TYPED_DELAY)}} END \
         WHERE next_at IS NULL AND id = ( \
           SELECT id FROM webhooks WHERE lane = {lane} AND state = 'pending' ORDER BY seq LIMIT 1)"
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Makes a dead webhook pending, at the end of its lane. Returns the number of changed rows.
async fn replay(tx: &mut Tx, id: &str) -> Result<u64, TxError> {
    tx.has_webhook = true;
    let replayed = sql!(
        "UPDATE webhooks SET state = 'pending', attempts = 0, fence = fence + 1, \
         seq = {@webhook number}, give_up_at = {@after:{milliseconds(WEBHOOK_RETRY_WINDOW)}}, \
         next_at = CASE WHEN EXISTS (SELECT 1 FROM webhooks p \
           WHERE p.lane = webhooks.lane AND p.state = 'pending') THEN NULL ELSE {@now} END \
         WHERE id = {id} AND state = 'dead'"
    );
    replayed.run(tx).await
}

fn stored_from(row: &Row) -> Result<StoredWebhook, TxError> {
    Ok(StoredWebhook {
        id: row.get("id")?,
        kind: row.get("type")?,
        url: row.get("url")?,
        document: row.get("document_id")?,
        link: row.get("link_id")?,
        created_at: row.get("created_at")?,
        attempts: row.get("attempts")?,
        next_at: row.get("next_at")?,
        last_error: row.get("last_error")?,
        state: row.get("state")?,
    })
}
