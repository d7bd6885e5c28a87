//! The last health check of Redis, and its consequences.
//!
//! A check runs after each new connection, which may lead to another node; every 30 s; and on
//! request. It has two halves.
//!
//! - *Preflight* ([`preflight`]). While Redis is a replica, may evict keys, or lacks a right, the
//!   server grants no lock. It still renews held locks: a Redis that passed had granted them, and
//!   their end would repair nothing.
//! - *Pub/sub round trip.* A message to this server's own channel must return within one second. A
//!   subscription that a proxy drops fails without any other sign. Waiters then acquire by polling,
//!   so a failure is a warning. The check closes a connection that receives nothing; its supervisor
//!   opens another.
//!
//! The log has one line when a fault appears and one when it is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::name::release_channel;
use crate::redis::call::Calls;
use crate::redis::connection::Link;
use crate::redis::preflight;
use crate::redis::scripts::pipeline;
use crate::redis_client::jittered;
use crate::types::LocksError;
use crate::wait_queue::WaiterRegistry;
use galley_domain::ids::NodeId;

/// Interval of checks while all is well.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Otherwise pauses between checks double from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
const ECHO_MAX: Duration = Duration::from_secs(1);
/// A larger offset is a warning. No lock depends on it: only Redis's clock counts, and it only has
/// to advance. But people read the time at which a seat was taken.
const CLOCK_OFF_MAX: TimeDelta = TimeDelta::seconds(5);

const DEAF: &str = "hand-over messages do not arrive, so waiters acquire their lock by polling, up \
                    to 3 s late: allow the user of `locks.url` to subscribe (`&*` in its ACL), and \
                    remove a proxy that does not forward pub/sub";
const CLOCK: &str = "the clock of Redis is more than 5 s away from this server's: keep both by NTP";

const REFUSED: &str = "Redis refuses sharded pub/sub, so a message reaches every node of the Cluster: allow the user of \
                       `locks.url` ssubscribe, sunsubscribe and spublish on every node, and restart all servers";

#[derive(Debug)]
pub(crate) struct Health {
    server: NodeId,
    calls: Calls,
    /// The subscribed connection, and the waiters that its messages wake.
    subscription: Link,
    waiter_registry: Arc<WaiterRegistry>,
    found: Mutex<HealthReport>,
    /// Notified when a check finds a new fault.
    worry: Notify,
}

#[derive(Debug, Default)]
struct HealthReport {
    /// Why no lock is granted.
    unfit: Option<LocksError>,
    warnings: Vec<&'static str>,
    clock_ahead: TimeDelta,
    /// When the check began that found this.
    began: Option<Instant>,
}

impl HealthReport {
    fn replaces(&mut self, began: Instant) -> bool {
        let is_news = self.began.is_none_or(|before| before <= began);
        if is_news {
            self.began = Some(began);
        }
        is_news
    }
}

impl Health {
    pub(crate) fn new(
        server: NodeId,
        calls: Calls,
        subscription: Link,
        waiter_registry: Arc<WaiterRegistry>,
    ) -> Self {
        Self {
            server,
            calls,
            subscription,
            waiter_registry,
            found: Mutex::default(),
            worry: Notify::new(),
        }
    }

    /// Whether locks may be granted, by the last check. No IO.
    pub(crate) fn permits_grants(&self) -> Result<(), LocksError> {
        self.found().unfit.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn warnings(&self) -> Vec<&'static str> {
        self.found().warnings.clone()
    }

    pub(crate) fn clock_ahead(&self) -> TimeDelta {
        self.found().clock_ahead
    }

    /// Runs a check. Of two concurrent checks it stores the result of the later one.
    pub(crate) async fn check(&self) -> Result<(), LocksError> {
        let began = Instant::now();
        let ahead = preflight::check(&self.calls, self.server).await;
        match &ahead {
            // The check has no result: the server retains the previous one.
            Err(LocksError::Unavailable(_) | LocksError::Unsupported(_)) => {}
            // A later check has stored its result meanwhile.
            Ok(_) | Err(_) if !self.found().replaces(began) => {}
            Ok(ahead) => {
                if self.found().unfit.take().is_some() {
                    tracing::info!("Redis is fit to keep locks again");
                }
                self.found().clock_ahead = *ahead;
                self.warn(CLOCK, ahead.abs() > CLOCK_OFF_MAX);
            }
            Err(error) => {
                let before = self.found().unfit.replace(error.clone());
                if before.as_ref() != Some(error) {
                    self.worry.notify_one();
                    tracing::error!(%error, "Redis is not fit to keep locks; none is granted");
                }
            }
        }
        ahead?;
        self.warn(REFUSED, preflight::refuses_sharded_pubsub(&self.calls).await?);
        let has_returned = self.pubsub_roundtrip().await?;
        self.warn(DEAF, !has_returned);
        if !has_returned {
            self.subscription.reopen();
        }
        Ok(())
    }

    pub(crate) async fn watch(self: Arc<Self>, opened: Arc<Notify>) {
        let mut pause = POLL_INTERVAL;
        loop {
            tokio::select! {
                () = opened.notified() => {}
                () = self.worry.notified() => {
                    pause = PAUSES.0;
                    continue;
                }
                () = sleep(jittered(pause)) => {}
            }
            pause = match self.check().await {
                Ok(()) if self.found().warnings.is_empty() => POLL_INTERVAL,
                Ok(()) | Err(_) => (pause * 2).min(PAUSES.1),
            };
        }
    }

    async fn pubsub_roundtrip(&self) -> Result<bool, LocksError> {
        let deadline = Instant::now() + ECHO_MAX;
        if !matches!(timeout_at(deadline, self.subscription.opens()).await, Ok(true)) {
            return Ok(false);
        }
        let mut echoes = self.waiter_registry.echoes();
        let mut request = pipeline();
        request.cmd("PUBLISH").arg(release_channel(self.server)).arg("");
        // On a Cluster a message to one of its nodes reaches all.
        let nodes = self.calls.nodes().await?;
        let Some(node) = nodes.first() else { return Ok(false) };
        node.query(&request).await?;
        Ok(matches!(timeout_at(deadline, echoes.changed()).await, Ok(Ok(()))))
    }

    fn warn(&self, warning: &'static str, is_so: bool) {
        let mut found = self.found();
        let was_so = found.warnings.contains(&warning);
        if is_so && !was_so {
            found.warnings.push(warning);
            self.worry.notify_one();
            tracing::warn!("{warning}");
        } else if was_so && !is_so {
            found.warnings.retain(|other| *other != warning);
            tracing::info!("no longer so: {warning}");
        }
    }

    fn found(&self) -> MutexGuard<'_, HealthReport> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
