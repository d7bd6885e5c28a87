//! Locks in Redis.
//!
//! Three connections, however many locks: one for claims, releases and queries, one for renewals
//! alone, and one for the hand-over subscription. No operation of a user delays a renewal. On a
//! Cluster each primary has the first two.

pub(super) mod args;
pub(super) mod batch_ops;
pub(super) mod call;
pub(super) mod cluster;
pub(super) mod connection;
pub(super) mod error;
pub(super) mod health;
pub(super) mod node;
pub(super) mod node_clock;
pub(super) mod pending_releases;
pub(super) mod pipeline;
pub(super) mod preflight;
pub(super) mod reply;
#[cfg(test)]
pub(super) mod reply_tests;
pub(super) mod scripts;
pub(super) mod server_identity;
pub(super) mod target;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::REASSERT_GRACE;
use crate::name::{KeyFormat, LockName, SCAN_PATTERN, release_channel};
use crate::redis::call::{Calls, Topology};
use crate::redis::cluster::Cluster;
use crate::redis::connection::{CALL_TIMEOUT, Link, Subscription};
use crate::redis::error::explain_url;
use crate::redis::health::Health;
use crate::redis::node::{Node, NodeContext};
use crate::redis::pending_releases::PendingReleases;
use crate::redis::scripts::{Scripts, pipeline};
use crate::redis::server_identity::NodeOrigin;
use crate::redis_client::{self, Address, Addresses, Kind, RedisTarget};
use crate::types::{CallError, Claim, Claimed, HeldLock, Holder, LocksError, Released, unexpected};
use crate::wait_queue::{QueueEntry, QueueStatus, WaiterRegistry};
use galley_domain::ids::NodeId;

/// Keys requested in one step of a scan.
const SCAN_STEP: usize = 1_000;
/// The shortest and the longest pause between retries of a claim during the reassert grace of its
/// lock.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

#[derive(Debug)]
pub(super) struct Remote {
    pub(super) calls: Calls,
    pub(super) health: Arc<Health>,
    pub(super) reconnected: Arc<Notify>,
    pending_releases: Arc<PendingReleases>,
    pub(super) waiter_registry: Arc<WaiterRegistry>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Remote {
    /// Starts to connect. Redis publishes hand-overs to this process's waiters on the channel of
    /// `server`.
    #[expect(clippy::disallowed_methods, reason = "two for each server")]
    pub(super) fn connect(url: &str, server: NodeId) -> Result<Self, LocksError> {
        let target = redis_client::target(url).map_err(explain_url)?;
        let key_format = match &target.kind {
            Kind::Single => KeyFormat::Plain,
            Kind::Cluster(_) => KeyFormat::Tagged,
        };
        let scripts = Arc::new(Scripts::new(key_format));
        let (reconnected, opened) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let stop = CancellationToken::new();
        let context = NodeContext {
            scripts: Arc::clone(&scripts),
            reconnected: Arc::clone(&reconnected),
            opened: Arc::clone(&opened),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        };
        let tasks = context.tasks.clone();
        let waiter_registry = Arc::new(WaiterRegistry::default());
        let subscription = Subscription {
            channel: release_channel(server),
            waiter_registry: Arc::clone(&waiter_registry),
        };
        let (route, listens) = route(target, subscription, context);
        let calls = Calls { route, scripts };
        let pending_releases = Arc::new(PendingReleases::default());
        let span = |name| tracing::info_span!("locks", task = name);
        let work = Arc::clone(&pending_releases).work(calls.clone(), stop.clone());
        tasks.spawn(work.instrument(span("pending releases")));
        let health = Health::new(server, calls.clone(), listens, Arc::clone(&waiter_registry));
        let health = Arc::new(health);
        let watch = stop.clone().run_until_cancelled_owned(Arc::clone(&health).watch(opened));
        tasks.spawn(watch.instrument(span("health")));
        tasks.close();
        Ok(Self { calls, health, reconnected, pending_releases, waiter_registry, tasks, stop })
    }

    pub(super) fn key_of(&self, name: &LockName) -> String {
        name.key_as(self.calls.scripts.key_format).into_owned()
    }

    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        if self.pending_releases.is_pending(&claim.value) {
            // Its pending release could arrive after this grant and free it.
            let why = "the release of an earlier claim with this value is pending";
            return Err(LocksError::Unavailable(why.to_owned()));
        }
        let gives_up = Instant::now() + REASSERT_GRACE + CALL_TIMEOUT;
        loop {
            if let Some(claimed) = self.claim_once(claim).await? {
                return Ok(claimed);
            }
            if gives_up <= Instant::now() {
                let why = "Redis restarted, and the holder of this lock may reassert it";
                return Err(LocksError::Unavailable(why.to_owned()));
            }
            let left = self.calls.grace(&claim.name, claim.floor);
            // This process has no grace: the script found an older grant in Redis and left the
            // lock.
            let left = if left.is_zero() { LOOK_AGAIN.1 } else { left };
            sleep(left.clamp(LOOK_AGAIN.0, LOOK_AGAIN.1)).await;
        }
    }

    /// `None` during the reassert grace of the lock.
    async fn claim_once(&self, claim: &Claim) -> Result<Option<Claimed>, LocksError> {
        self.health.permits_grants()?;
        let promise = self.pending_releases.promise(&claim.name, &claim.value, Duration::ZERO);
        let call = self.calls.scripts.claim(claim, None);
        let answer = self.calls.call(call).await;
        let claimed = answer.and_then(|(sent_at, reply)| reply::claimed(&reply, sent_at));
        match &claimed {
            Ok(_) | Err(CallError::Unsent(_) | CallError::Refused(_)) => promise.disarm(),
            Err(CallError::Unknown(_)) => drop(promise),
        }
        if let Ok(Some(Claimed::Busy(holder))) = &claimed
            && holder.ttl == Duration::MAX
        {
            let key = self.key_of(&claim.name);
            tracing::warn!(
                key,
                "the key of a lock does not expire: another program made it; delete it"
            );
        }
        Ok(claimed?)
    }

    /// A waiter's poll. It extends the waiter's entry and acquires the lock if it is free and the
    /// waiter is first. A waiter that gives up must release: it does not know whether it still
    /// waits or already holds the lock.
    pub(super) async fn check_in(
        &self,
        claim: &Claim,
        waiter: &QueueEntry,
    ) -> Result<QueueStatus, CallError> {
        self.health.permits_grants().map_err(CallError::Refused)?;
        let call = self.calls.scripts.claim(claim, Some(waiter));
        let (sent_at, reply) = self.calls.call(call).await?;
        reply::queue_status(&reply, sent_at)
    }

    pub(super) async fn renew_one(
        &self,
        held: &HeldLock,
        ttl: Duration,
    ) -> Result<Option<Instant>, CallError> {
        let call = self.calls.scripts.renew_one(held, ttl);
        let (sent_at, reply) = self.calls.call(call).await?;
        Ok(reply::was_held(&reply).map_err(CallError::Unknown)?.then_some(sent_at))
    }

    pub(super) async fn release(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, LocksError> {
        let promise = self.pending_releases.promise(name, value, rest);
        let released = self.calls.release(name, value, rest).await?;
        promise.disarm();
        Ok(released)
    }

    pub(super) fn release_soon(&self, name: &LockName, value: &str, rest: Duration) {
        drop(self.pending_releases.promise(name, value, rest));
    }

    pub(super) async fn holders(
        &self,
        names: &[LockName],
    ) -> Result<Vec<Option<Holder>>, LocksError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.calls.holders(names).await
    }

    pub(super) async fn held(&self) -> Result<Vec<(LockName, Holder)>, LocksError> {
        let names = self.scan().await?;
        let holders = self.holders(&names).await?;
        Ok(names.into_iter().zip(holders).filter_map(|(name, by)| Some((name, by?))).collect())
    }

    async fn scan(&self) -> Result<Vec<LockName>, LocksError> {
        let nodes = self.calls.nodes().await?;
        let scans = nodes.iter().map(|node| self.scan_at(node));
        let mut names = try_join_all(scans).await?.concat();
        // `SCAN` may return a key twice, and two nodes may return it during the migration of its
        // slot.
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    async fn scan_at(&self, node: &Node) -> Result<Vec<LockName>, LocksError> {
        let key_format = self.calls.scripts.key_format;
        let mut names = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut request = pipeline();
            request.cmd("SCAN").arg(cursor).arg("MATCH").arg(SCAN_PATTERN);
            // The companion keys of a lock have other types.
            request.arg("COUNT").arg(SCAN_STEP).arg("TYPE").arg("string");
            let reply = node.query(&request).await?.into_iter().next();
            let (next, keys): (u64, Vec<String>) =
                redis::from_redis_value(reply.ok_or_else(unexpected)?)
                    .map_err(|_malformed| unexpected())?;
            names.extend(keys.iter().filter_map(|key| LockName::from_key(key, key_format)));
            cursor = next;
            if cursor == 0 {
                return Ok(names);
            }
        }
    }

    /// Retries all pending releases once, and ends the tasks.
    pub(super) async fn close(&self) {
        self.pending_releases.retry_pending(&self.calls).await;
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[expect(clippy::disallowed_methods, reason = "two for each server")]
fn route(
    target: RedisTarget,
    subscription: Subscription,
    context: NodeContext,
) -> (Topology, Link) {
    let mut ping = pipeline();
    ping.cmd("PING");
    let (tasks, stop) = (context.tasks.clone(), context.stop.clone());
    let addresses = Arc::new(target.addresses);
    let (listens, mut supervisor) = Link::new(Arc::clone(&addresses), ping);
    supervisor.subscription = Some(subscription);
    let span = |name| tracing::info_span!("locks", task = name);
    tasks.spawn(supervisor.run(stop.clone()).instrument(span("hand-overs")));
    let subscription = listens.clone();
    let route = match target.kind {
        Kind::Single => {
            let named = Address { host: "redis".to_owned(), port: 0 };
            let node = Node::open(named, Arc::clone(&addresses), NodeOrigin::First, &context);
            let follows = follow(addresses, Arc::clone(&node), listens);
            let follows = stop.run_until_cancelled_owned(follows);
            tasks.spawn(follows.instrument(span("primary")));
            Topology::Single(node)
        }
        Kind::Cluster(seeds) => {
            let cluster = Arc::new(Cluster::new(seeds, listens, addresses, context));
            let view = stop.run_until_cancelled_owned(Arc::clone(&cluster).run_refreshes());
            tasks.spawn(view.instrument(span("view")));
            Topology::Cluster(cluster)
        }
    };
    (route, subscription)
}

/// Reopens the connections when the Sentinels name another primary. Never ends.
async fn follow(addresses: Arc<Addresses>, node: Arc<Node>, listens: Link) {
    loop {
        addresses.moves().await;
        tracing::warn!("the Sentinels name another primary");
        node.reopen();
        listens.reopen();
    }
}
