//! The endpoints of the host product, as the settings have them, and the rows that each may add.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;

use crate::domain::ids::{DocumentId, WebhookId};
use crate::domain::limits::{WEBHOOK_DOCUMENTS_MIN, WEBHOOKS_MAX};
use crate::domain::webhook::WebhookEvent;
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
    targets: OnceLock<Vec<CountedTarget>>,
    /// Rises after each commit with webhooks.
    added: watch::Sender<u64>,
    /// Webhooks without room, since the last maintenance.
    dropped: Mutex<Dropped>,
}

/// A number of webhooks for each document. `None`: their events have none.
pub type Dropped = BTreeMap<Option<DocumentId>, u64>;

#[derive(Debug)]
struct CountedTarget {
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

impl Hooks {
    fn targets(&self) -> &[CountedTarget] {
        self.0.targets.get().map_or(&[], Vec::as_slice)
    }

    /// The rows of one endpoint, pending and dead. One more share is that of all endpoints which the
    /// settings have no longer.
    pub(crate) fn share(&self) -> i64 {
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
        let row = |it: &'a CountedTarget| {
            (WebhookId::generate(), it.is.endpoint.as_str(), it.is.url.as_str())
        };
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

    /// Sets the free rows of each endpoint by those that the database has.
    pub(crate) fn set_rows(&self, rows: impl Fn(&str) -> i64) {
        for target in self.targets() {
            let free = self.share().saturating_sub(rows(&target.is.endpoint));
            target.free_rows.store(free, Ordering::Relaxed);
        }
    }

    /// Wakes the deliverer of this server after a commit with webhooks.
    pub(crate) fn wake(&self) {
        self.0.added.send_modify(|commits| *commits += 1);
    }
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
        let target = |is| CountedTarget { is, free_rows: AtomicI64::new(0) };
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
}
