//! Webhooks: delivers the outbox to the endpoints of the host product.
//!
//! # Invariants
//!
//! - **W1** A webhook is delivered at least once: its row leaves the database only after a response of
//!   2xx, or when it is dead and the table is full.
//! - **W2** The webhooks of one document and endpoint are delivered one after another, in the order of
//!   their commits. A failing one delays no other document and no other endpoint: first attempts and
//!   repeated ones have slots of their own, and a slow attempt gives its slot back.
//! - **W3** An attempt runs under a claim of the database and ends before its lease. So two servers attempt
//!   one webhook at the same time only if one of them froze during its attempt.
//!
//! Each endpoint has a task. It claims what is due after a commit of this server, after an attempt, and at
//! each tick; the tick finds the webhooks of other servers.

pub(crate) mod http;
pub mod limits;
pub mod settings;
pub mod signature;

use std::sync::Arc;
use std::time::Duration;

use crate::outgoing::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::ids::WebhookId;
use crate::domain::limits::WEBHOOK_LEASE;
use crate::domain::webhook::{WebhookEvent, WebhookState};
use crate::outgoing::Outgoing;
use crate::outgoing::destination::Destination;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::hooks::WebhookTarget;
use crate::storage::pagination::Page;
use crate::storage::webhook_claims::{ClaimSize, ClaimedWebhook};
use crate::storage::webhooks::{EndpointCount, StoredWebhook, WebhookCount};
use crate::webhooks::limits::{
    WEBHOOK_ATTEMPT_MAX, WEBHOOK_DELAY_FIRST, WEBHOOK_DELAY_MAX, WEBHOOK_FIRST_AT_ONCE,
    WEBHOOK_LOOKUPS_MAX, WEBHOOK_REPEATED_AT_ONCE, WEBHOOK_RETRY_AFTER_MAX, WEBHOOK_SLOT_MAX,
    WEBHOOK_SLOW_AT_ONCE, WEBHOOK_TICK, WEBHOOKS_REPLAYED_AT_ONCE,
};
use crate::webhooks::signature::WebhookSecret;

/// The period of the maintenance: counts, and rows that no delivery ends.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(15);
/// Orphans that one query reads: the first ones of as many lanes.
const ORPHANS_AT_ONCE: u32 = 100;
/// How long one round of the maintenance ends orphans.
const ORPHANS_FOR: Duration = Duration::from_secs(5);
/// Dead webhooks that one transaction makes pending.
const REPLAYED_TOGETHER: u32 = 100;
/// How long a stop waits for attempts that run. Another server repeats the others.
const STOP_MAX: Duration = Duration::from_secs(3);
/// A shorter attempt would only fail: the claim ends, and the next one has its whole lease.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);
/// Characters of the response of a receiver that the administrator sees.
const ERROR_CHARACTERS: usize = 300;

#[derive(Clone, Debug)]
pub struct WebhookEndpoint {
    pub url: String,
    pub to: Destination,
    pub secret: WebhookSecret,
    pub events: Vec<WebhookEvent>,
}

#[derive(Clone)]
pub struct Webhooks(Arc<Inner>);

struct Inner {
    storage: Storage,
    outgoing: Outgoing,
    endpoints: Vec<Arc<Endpoint>>,
    tasks: TaskTracker,
}

struct Endpoint {
    name: String,
    to: Destination,
    secret: WebhookSecret,
    /// The slots of first attempts, and of repeated ones.
    first: Arc<Semaphore>,
    repeated: Arc<Semaphore>,
    /// Bounds the slow attempts, which run on after they released their slots.
    slow: Semaphore,
    lookups: Arc<Semaphore>,
    /// A slot is free again.
    freed: Notify,
}

impl Endpoint {
    fn new(endpoint: WebhookEndpoint) -> Self {
        Self {
            name: name_of(&endpoint.url),
            to: endpoint.to,
            secret: endpoint.secret,
            first: Arc::new(Semaphore::new(WEBHOOK_FIRST_AT_ONCE)),
            repeated: Arc::new(Semaphore::new(WEBHOOK_REPEATED_AT_ONCE)),
            slow: Semaphore::new(WEBHOOK_SLOW_AT_ONCE),
            lookups: Arc::new(Semaphore::new(WEBHOOK_LOOKUPS_MAX)),
            freed: Notify::new(),
        }
    }

    /// Attempts that may begin now.
    fn free(&self) -> ClaimSize {
        let free = |slots: &Semaphore| u32::try_from(slots.available_permits()).unwrap_or_default();
        ClaimSize { first: free(&self.first), repeated: free(&self.repeated) }
    }
}

impl Webhooks {
    /// `storage` writes webhooks for these endpoints from now on.
    #[must_use]
    pub fn new(storage: Storage, outgoing: Outgoing, endpoints: Vec<WebhookEndpoint>) -> Self {
        let targets = endpoints.iter().map(|endpoint| WebhookTarget {
            endpoint: name_of(&endpoint.url),
            url: shown(&endpoint.url).to_owned(),
            events: endpoint.events.clone(),
        });
        storage.set_webhooks(targets.collect());
        let endpoints = endpoints.into_iter().map(|it| Arc::new(Endpoint::new(it))).collect();
        Self(Arc::new(Inner { storage, outgoing, endpoints, tasks: TaskTracker::new() }))
    }

    /// The newest first.
    pub async fn list(
        &self,
        state: Option<WebhookState>,
        page: &Page<WebhookId>,
    ) -> Result<Vec<StoredWebhook>, StorageError> {
        self.0.storage.webhooks(state, page).await
    }

    /// At the end of its lane. `None`: there is no such webhook.
    pub async fn replay(&self, id: WebhookId) -> Result<Option<StoredWebhook>, StorageError> {
        self.0.storage.replay_webhook(id).await
    }

    /// Those since a time, the oldest first, at most [`WEBHOOKS_REPLAYED_AT_ONCE`]. Returns their number. After
    /// an error some may be pending.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future has replayed a part.
    pub async fn replay_all(&self, since: Option<DateTime<Utc>>) -> Result<u64, StorageError> {
        let mut replayed = 0;
        while replayed < WEBHOOKS_REPLAYED_AT_ONCE {
            match self.0.storage.replay_dead_webhooks(REPLAYED_TOGETHER, since).await? {
                0 => break,
                some => replayed += some,
            }
        }
        Ok(replayed)
    }

    /// Delivers until `stop` fires, and then waits some seconds for attempts that run.
    pub async fn run_deliveries(self, stop: CancellationToken) {
        let delivering = join_all(self.0.endpoints.iter().map(|it| self.deliver_to(it)));
        let work = async {
            tokio::join!(delivering, self.run_maintenance());
        };
        stop.run_until_cancelled(work).await;
        self.0.tasks.close();
        if timeout(STOP_MAX, self.0.tasks.wait()).await.is_err() {
            tracing::debug!("attempts of webhooks did not end; another server repeats them");
        }
    }

    async fn deliver_to(&self, endpoint: &Arc<Endpoint>) {
        let mut added = self.0.storage.webhooks_added();
        loop {
            added.mark_unchanged();
            let pause = self.attempt_due(endpoint).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "webhooks cannot be claimed; the next tick repeats it");
                WEBHOOK_TICK
            });
            tokio::select! {
                _changed = added.changed() => {}
                () = endpoint.freed.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Claims due webhooks and starts their attempts, as many as may run. Returns the pause until the next.
    async fn attempt_due(&self, endpoint: &Arc<Endpoint>) -> Result<Duration, StorageError> {
        loop {
            let due_in = self.0.storage.webhook_due_in(&endpoint.name).await?;
            let due_in = due_in.unwrap_or(WEBHOOK_TICK).min(WEBHOOK_TICK);
            if !due_in.is_zero() {
                return Ok(due_in);
            }
            if self.claim_due(endpoint).await? == 0 {
                return Ok(WEBHOOK_TICK);
            }
        }
    }

    /// Returns the number of attempts that it started.
    async fn claim_due(&self, endpoint: &Arc<Endpoint>) -> Result<usize, StorageError> {
        let Inner { storage, tasks, .. } = &*self.0;
        let (free, began) = (endpoint.free(), Instant::now());
        let claimed = match free == ClaimSize::default() {
            true => Vec::new(),
            false => storage.claim_webhooks(&endpoint.name, free).await?,
        };
        let count = claimed.len();
        for webhook in claimed {
            let slots = if webhook.attempts == 1 { &endpoint.first } else { &endpoint.repeated };
            let Ok(slot) = Arc::clone(slots).try_acquire_owned() else { continue };
            let (webhooks, endpoint) = (self.clone(), Arc::clone(endpoint));
            #[expect(clippy::disallowed_methods, reason = "under the slot")]
            tasks.spawn(async move {
                webhooks.attempt_in(slot, &endpoint, &webhook, began).await;
                endpoint.freed.notify_one();
            });
        }
        Ok(count)
    }

    /// Makes one attempt, which gives its slot back once it is slow.
    async fn attempt_in(
        &self,
        slot: OwnedSemaphorePermit,
        endpoint: &Endpoint,
        webhook: &ClaimedWebhook,
        claimed_at: Instant,
    ) {
        let becoming_slow = async {
            sleep(WEBHOOK_SLOT_MAX).await;
            endpoint.slow.acquire().await
        };
        let attempting = self.attempt(endpoint, webhook, claimed_at);
        tokio::pin!(attempting);
        tokio::select! {
            () = &mut attempting => drop(slot),
            _slow = becoming_slow => {
                drop(slot);
                endpoint.freed.notify_one();
                attempting.await;
            }
        }
    }

    async fn attempt(&self, endpoint: &Endpoint, webhook: &ClaimedWebhook, claimed_at: Instant) {
        let storage = &self.0.storage;
        let Some(left) = time_for(claimed_at.elapsed()) else { return };
        let outcome = self.send(endpoint, webhook, left).await;
        let stored = match &outcome {
            Ok(()) => storage.webhook_delivered(&webhook.claim).await.map(|_is_own| "delivered"),
            Err(failure) => {
                let delay = failure.delay(webhook.attempts);
                let ended = storage.webhook_failed(&webhook.claim, &failure.error, delay).await;
                ended.map(|state| match state {
                    Some(WebhookState::Dead) => "dead",
                    Some(WebhookState::Pending) | None => "failed",
                })
            }
        };
        let (id, host) = (webhook.claim.id, endpoint.to.host());
        match stored {
            Ok(outcome) => count(outcome, 1),
            Err(error) => tracing::warn!(%id, %error, "the outcome of a webhook was not stored"),
        }
        if let Err(Failure { error, .. }) = outcome {
            tracing::debug!(%id, host, error, "an attempt of a webhook failed");
        }
    }

    async fn send(
        &self,
        endpoint: &Endpoint,
        webhook: &ClaimedWebhook,
        left: Duration,
    ) -> Result<(), Failure> {
        let own = |error: &str| Failure { error: error.to_owned(), retry_after: None };
        let body = body_of(webhook).ok_or_else(|| own("its row is damaged"))?;
        let headers = headers_of(endpoint, webhook, &body).ok_or_else(|| own("no signature"))?;
        let (outgoing, to) = (&self.0.outgoing, &endpoint.to);
        let posting =
            outgoing.post_unslotted(&endpoint.lookups, "webhook", to, headers, body.into());
        match timeout(left, posting).await {
            Err(_elapsed) => Err(own("it took too long")),
            Ok(Err(error)) => Err(own(&error.to_string())),
            Ok(Ok(reply)) if reply.is_success() => Ok(()),
            Ok(Ok(reply)) => {
                let error = format!("status {} {}", reply.status, reply.explanation);
                Err(Failure { error: first(&error), retry_after: reply.retry_after })
            }
        }
    }

    async fn run_maintenance(&self) {
        let mut ticker = interval(MAINTENANCE_EVERY);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticker.tick().await;
            if let Err(error) = self.maintain().await {
                tracing::debug!(%error, "the outbox was not maintained; the next tick repeats it");
            }
        }
    }

    /// Counts the rows, deletes dead ones beyond the bound, and ends those without an endpoint.
    async fn maintain(&self) -> Result<(), StorageError> {
        let storage = &self.0.storage;
        let found = storage.measure_webhooks().await?;
        let age = found.oldest.map_or(0, |oldest| (Utc::now() - oldest).num_seconds().max(0));
        metrics::gauge!("galley_webhook_queue", "state" => "pending").set(gauge(found.pending));
        metrics::gauge!("galley_webhook_queue", "state" => "dead").set(gauge(found.dead));
        metrics::gauge!("galley_webhook_oldest_seconds").set(gauge(age));
        for (document, webhooks) in storage.take_dropped_webhooks() {
            let document = document.map(|it| it.to_string()).unwrap_or_default();
            tracing::warn!(document, webhooks, "the outbox has no room: webhooks are dropped");
        }
        self.drop_dead(&found).await?;
        if found.pending == 0 {
            return Ok(());
        }
        self.end_orphans().await?;
        storage.restore_due_webhooks(WEBHOOK_RETRY_AFTER_MAX).await?;
        Ok(())
    }

    /// Deletes dead rows above the share of their endpoint. All former endpoints together have one share.
    async fn drop_dead(&self, found: &WebhookCount) -> Result<(), StorageError> {
        let storage = &self.0.storage;
        let is_former = |name: &str| self.0.endpoints.iter().all(|it| it.name != name);
        let mut former = EndpointCount::default();
        for (_, rows) in found.endpoints.iter().filter(|(name, _)| is_former(name)) {
            former.pending = former.pending.saturating_add(rows.pending);
            former.dead = former.dead.saturating_add(rows.dead);
        }
        let mut above_former = storage.dead_webhooks_above(&former);
        for (name, rows) in &found.endpoints {
            let above = match is_former(name) {
                true => above_former.min(rows.dead),
                false => storage.dead_webhooks_above(rows),
            };
            if above > 0 {
                count("dropped", storage.delete_dead_webhooks(name, above).await?);
            }
            if is_former(name) {
                above_former = above_former.saturating_sub(above);
            }
        }
        Ok(())
    }

    /// An orphan is a webhook whose endpoint left the settings. The server ends it once its time is over.
    /// Each end makes the next webhook of its lane due, so this repeats until none is found.
    async fn end_orphans(&self) -> Result<(), StorageError> {
        let names: Vec<_> = self.0.endpoints.iter().map(|it| it.name.clone()).collect();
        let (storage, began) = (&self.0.storage, Instant::now());
        while began.elapsed() < ORPHANS_FOR {
            let orphans = storage.orphaned_webhooks(&names, ORPHANS_AT_ONCE).await?;
            let mut ended = 0;
            for orphan in &orphans {
                let error = "no server has its endpoint in its settings";
                let state = storage.webhook_failed(orphan, error, Duration::ZERO).await?;
                ended += u64::from(state.is_some());
            }
            count("dead", ended);
            // Another server may end the same ones.
            if ended == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// The most that an attempt may take, so long after its claim began. A slow claim, or a freeze, leaves it the
/// rest of the lease (W3), or `None`.
fn time_for(since_claim: Duration) -> Option<Duration> {
    let left = WEBHOOK_LEASE.saturating_sub(since_claim);
    (left >= ATTEMPT_MIN).then(|| left.min(WEBHOOK_ATTEMPT_MAX))
}

struct Failure {
    error: String,
    retry_after: Option<Duration>,
}

impl Failure {
    /// The pause until the next attempt: it doubles with each, and varies by a quarter.
    fn delay(&self, attempts: i64) -> Duration {
        let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or_default().min(20);
        let plain = (WEBHOOK_DELAY_FIRST * 2_u32.pow(doublings)).min(WEBHOOK_DELAY_MAX);
        // Without entropy the pause does not vary.
        let varied = getrandom::u32().map_or(500, |random| random % 500);
        let delay = plain * (750 + varied) / 1_000;
        delay.max(self.retry_after.unwrap_or_default().min(WEBHOOK_RETRY_AFTER_MAX))
    }
}

/// The name of an endpoint in the database: stable across restarts and the same on all servers.
fn name_of(url: &str) -> String {
    let hash = digest(&SHA256, url.as_bytes());
    hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The address without its query, which may be a secret.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn first(text: &str) -> String {
    text.chars().take(ERROR_CHARACTERS).collect::<String>().trim_end().to_owned()
}

/// The body: the same bytes in each attempt.
fn body_of(webhook: &ClaimedWebhook) -> Option<String> {
    let data: Value = serde_json::from_str(&webhook.data).ok()?;
    let body = json!({
        "id": webhook.claim.id,
        "type": webhook.kind,
        "created_at": webhook.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "document_id": webhook.claim.document,
        "share_link_id": webhook.link,
        "external_id": webhook.external_id,
        "data": data,
    });
    Some(body.to_string())
}

fn headers_of(endpoint: &Endpoint, webhook: &ClaimedWebhook, body: &str) -> Option<HeaderMap> {
    let signature = endpoint.secret.sign(Utc::now().timestamp(), body.as_bytes());
    let mut headers = HeaderMap::new();
    headers.insert("galley-signature", HeaderValue::try_from(signature).ok()?);
    headers.insert("galley-event", HeaderValue::try_from(webhook.kind.as_str()).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = concat!("Galley/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if let Some(trace) = &webhook.traceparent {
        headers.insert("traceparent", HeaderValue::try_from(trace).ok()?);
    }
    Some(headers)
}

fn count(outcome: &'static str, rows: u64) {
    metrics::counter!("galley_webhook_total", "outcome" => outcome).increment(rows);
}

fn gauge(number: i64) -> f64 {
    u32::try_from(number).unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_varies_and_respects_the_receiver() {
        let delay = |attempts, after: Option<u64>| {
            let retry_after = after.map(Duration::from_secs);
            Failure { error: String::new(), retry_after }.delay(attempts)
        };
        for (attempts, seconds) in [(1, 1_f64), (2, 2.0), (4, 8.0), (30, 1_800.0), (99, 1_800.0)] {
            let pause = delay(attempts, None).as_secs_f64();
            assert!((seconds * 0.75..=seconds * 1.25).contains(&pause), "{attempts}: {pause}");
        }
        assert_eq!(delay(1, Some(60)).as_secs(), 60);
        assert_eq!(delay(1, Some(u64::MAX)), WEBHOOK_RETRY_AFTER_MAX);
    }

    #[test]
    fn an_attempt_ends_before_its_lease() {
        let seconds = |since| time_for(Duration::from_secs(since)).map(|time| time.as_secs());
        assert_eq!([0, 3, 5, 13].map(seconds), [Some(12), Some(12), Some(10), Some(2)]);
        assert_eq!([14, 15, 60].map(seconds), [None; 3]);
    }

    #[test]
    fn an_endpoint_has_a_stable_name_and_an_address_without_its_query() {
        assert_eq!(name_of("https://h/x").len(), 16);
        assert_ne!(name_of("https://h/x"), name_of("https://h/x?key=1"));
        assert_eq!(shown("https://h/x?key=1#a"), "https://h/x");
    }
}
