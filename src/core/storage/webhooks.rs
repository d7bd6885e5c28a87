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
//! [`WEBHOOKS_MAX`], or beyond the document's part of it, it is dropped, and counted by document. An endpoint
//! that is down fills its own share only, and a document its part; typed suggestions fill half of that.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio::sync::watch;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, ExternalId, ShareLinkId, WebhookId};
use crate::domain::limits::{WEBHOOK_DOCUMENTS_MIN, WEBHOOKS_MAX};
use crate::domain::seat::Seat;
use crate::domain::webhook::{WebhookEvent, WebhookState};
use crate::storage::error::StorageError;
use crate::storage::locked::Locked;
use crate::storage::pagination::Cursor;
use crate::storage::{Engine, Storage};

#[derive(Clone, Debug)]
pub struct WebhookTarget {
    pub endpoint: String,
    /// Its address without the query, for the administrator.
    pub url: String,
    pub events: Vec<WebhookEvent>,
}

#[derive(Clone, Debug, Default)]
pub struct Hooks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    targets: OnceLock<Vec<Target>>,
    /// Rises after each commit with webhooks.
    added: watch::Sender<u64>,
    /// Webhooks without room, since the last maintenance.
    dropped: Mutex<Dropped>,
}

/// A number of webhooks for each document. `None`: their events have none.
pub type Dropped = BTreeMap<Option<DocumentId>, u64>;

#[derive(Debug)]
struct Target {
    is: WebhookTarget,
    /// Rows that the endpoint may still add: its share minus the rows at the last measurement and those
    /// that this server added since.
    free_rows: AtomicI64,
}

impl Default for Inner {
    fn default() -> Self {
        let added = watch::Sender::new(0);
        Self { targets: OnceLock::new(), added, dropped: Mutex::default() }
    }
}

/// A new row: its id, endpoint and address, as JSON has them.
pub(crate) type HookRow<'a> = (WebhookId, &'a str, &'a str);

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

impl Hooks {
    fn targets(&self) -> &[Target] {
        self.0.targets.get().map_or(&[], Vec::as_slice)
    }

    /// The rows of one endpoint, pending and dead. One more share is that of all endpoints which the
    /// settings have no longer.
    fn share(&self) -> i64 {
        let shares = i64::try_from(self.targets().len()).unwrap_or(i64::MAX).saturating_add(1);
        WEBHOOKS_MAX / shares
    }

    /// The pending rows of one document and endpoint.
    pub(crate) fn document_share(&self) -> i64 {
        self.share() / WEBHOOK_DOCUMENTS_MIN
    }

    pub fn want(&self, event: WebhookEvent) -> bool {
        self.targets().iter().any(|target| target.is.events.contains(&event))
    }

    pub(crate) fn want_seats(&self) -> bool {
        self.want(WebhookEvent::SeatTaken) || self.want(WebhookEvent::SeatLeft)
    }

    /// Reserves a row for each endpoint that wants the event. An endpoint without free rows gets none. Returns
    /// their number too.
    pub(crate) fn reserve<'a>(&'a self, event: WebhookEvent) -> (Vec<HookRow<'a>>, usize) {
        let wanting = self.targets().iter().filter(|target| target.is.events.contains(&event));
        let (spent, rows): (Vec<_>, Vec<_>) =
            wanting.partition(|target| target.free_rows.fetch_sub(1, Ordering::Relaxed) < 1);
        let row =
            |it: &'a Target| (WebhookId::generate(), it.is.endpoint.as_str(), it.is.url.as_str());
        (rows.into_iter().map(row).collect(), spent.len())
    }

    /// Frees the rows of these endpoints, in whose lanes the document has no room.
    pub(crate) fn give_back(&self, endpoints: &[&str]) {
        for target in
            self.targets().iter().filter(|it| endpoints.contains(&it.is.endpoint.as_str()))
        {
            target.free_rows.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_dropped(&self, document: Option<DocumentId>, webhooks: usize) {
        let webhooks = u64::try_from(webhooks).unwrap_or(u64::MAX);
        metrics::counter!("galley_webhook_total", "outcome" => "dropped").increment(webhooks);
        *self.dropped().entry(document).or_default() += webhooks;
    }

    fn dropped(&self) -> MutexGuard<'_, Dropped> {
        self.0.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the deliverer of this server after a commit with webhooks.
    pub(crate) fn wake(&self) {
        self.0.added.send_modify(|commits| *commits += 1);
    }
}

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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredWebhook {
    pub id: WebhookId,
    #[serde(rename = "type")]
    pub kind: String,
    /// The address of its endpoint, without the query.
    pub url: String,
    #[serde(rename = "document_id")]
    pub document: Option<DocumentId>,
    #[serde(rename = "share_link_id")]
    pub link: Option<ShareLinkId>,
    pub created_at: DateTime<Utc>,
    /// Claims so far.
    pub attempts: i64,
    /// The next attempt. `None`: an earlier webhook of its lane is pending, or it is dead.
    pub next_at: Option<DateTime<Utc>>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSeat {
    pub seat: Seat,
    pub fence: Fence,
    /// Whether the database still accepts its writes.
    pub is_ratified: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NewGrant<'a> {
    pub(crate) seat: Seat,
    pub(crate) fence: Fence,
    pub(crate) user: &'a str,
    pub(crate) now: DateTime<Utc>,
}

impl Storage {
    pub(crate) fn hooks(&self) -> &Hooks {
        match &self.engine {
            Engine::Sqlite(engine) => &engine.hooks,
            Engine::Postgres(engine) => &engine.hooks,
        }
    }

    /// Sets the endpoints, once, for all clones. Events before it write no webhooks.
    pub fn set_webhooks(&self, targets: Vec<WebhookTarget>) {
        let target = |is| Target { is, free_rows: AtomicI64::new(0) };
        let targets: Vec<_> = targets.into_iter().map(target).collect();
        let share = WEBHOOKS_MAX / i64::try_from(targets.len() + 1).unwrap_or(i64::MAX);
        targets.iter().for_each(|target| target.free_rows.store(share, Ordering::Relaxed));
        if self.hooks().0.targets.set(targets).is_err() {
            tracing::error!("the endpoints of webhooks are set already");
        }
    }

    /// A counter that rises after each commit of this process with webhooks.
    #[must_use]
    pub fn webhooks_added(&self) -> watch::Receiver<u64> {
        self.hooks().0.added.subscribe()
    }

    /// The webhooks that this process dropped since the last call.
    #[must_use]
    pub fn take_dropped_webhooks(&self) -> Dropped {
        take(&mut self.hooks().dropped())
    }

    #[must_use]
    pub fn wants_seat_events(&self) -> bool {
        self.hooks().want_seats()
    }

    /// The count sets the free rows for new webhooks of this server.
    pub async fn measure_webhooks(&self) -> Result<WebhookCount, StorageError> {
        let count = self.count_webhooks().await?;
        let hooks = self.hooks();
        for target in hooks.targets() {
            let rows = count.endpoints.get(&target.is.endpoint).map_or(0, EndpointCount::rows);
            target.free_rows.store(hooks.share().saturating_sub(rows), Ordering::Relaxed);
        }
        Ok(count)
    }

    /// Dead rows of one endpoint above nine tenths of its share: the rest remains for the webhooks of
    /// the next seconds.
    #[must_use]
    pub fn dead_webhooks_above(&self, count: &EndpointCount) -> i64 {
        let above = count.rows() - self.hooks().share() / 10 * 9;
        above.clamp(0, count.dead)
    }
}

/// For a statement.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
