//! One Redis node that stores locks: a single Redis, or a primary of a Cluster.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::redis::connection::Link;
use crate::redis::node_clock::Clock;
use crate::redis::scripts::{Scripts, pipeline};
use crate::redis::server_identity::{NodeOrigin, ServerIdentity};
use crate::redis::target::CallTarget;
use crate::redis_client::{Address, Addresses};

/// Claims and releases in flight to a node; more wait.
pub(crate) const IN_FLIGHT_MAX: usize = 128;

/// A Redis node and its two connections: one for claims, releases and queries, one for renewals
/// alone. No operation of a user delays a renewal. Both close when the node is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    /// The address of a Cluster node; a placeholder for a single Redis.
    pub(crate) address: Address,
    pub(crate) calls: Link,
    /// Bounds the claims and releases in flight: a hung Redis executes no more when it resumes.
    pub(crate) in_flight: Semaphore,
    pub(crate) renewals: Link,
    pub(crate) identity: Arc<ServerIdentity>,
    pub(crate) clock: Clock,
    end: CancellationToken,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeContext {
    pub(crate) scripts: Arc<Scripts>,
    /// Notified when a connection for renewals reopens.
    pub(crate) reconnected: Arc<Notify>,
    /// Notified of each connection for calls.
    pub(crate) opened: Arc<Notify>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Node {
    #[expect(clippy::disallowed_methods, reason = "three for each node")]
    pub(crate) fn open(
        address: Address,
        addresses: Arc<Addresses>,
        origin: NodeOrigin,
        context: &NodeContext,
    ) -> Arc<Self> {
        let mut greeting = context.scripts.greeting();
        ServerIdentity::add_queries(&mut greeting);
        let (calls, mut calls_supervisor) = Link::new(Arc::clone(&addresses), greeting);
        calls_supervisor.opened = Some(Arc::clone(&context.opened));
        let identity = Arc::new(ServerIdentity::new(origin));
        calls_supervisor.identity = Some(Arc::clone(&identity));
        // Each renewal pipeline loads its script; a new connection only has to answer a ping.
        let mut ping = pipeline();
        ping.cmd("PING");
        let (renewals, mut renewals_supervisor) = Link::new(addresses, ping);
        renewals_supervisor.reconnected = Some(Arc::clone(&context.reconnected));
        renewals_supervisor.is_successor = origin == NodeOrigin::Later;
        let end = context.stop.child_token();
        let span = |name| tracing::info_span!("locks", task = name, node = %address);
        let tasks = &context.tasks;
        tasks.spawn(calls_supervisor.run(end.clone()).instrument(span("calls")));
        tasks.spawn(renewals_supervisor.run(end.clone()).instrument(span("renewals")));
        let (in_flight, clock) = (Semaphore::new(IN_FLIGHT_MAX), Clock::default());
        Arc::new(Self { address, calls, in_flight, renewals, identity, clock, end })
    }

    pub(crate) fn end(&self) -> CallTarget {
        CallTarget { link: self.calls.clone(), identity: Arc::clone(&self.identity) }
    }

    /// Closes both connections: the node is no longer a primary, so the next opening resolves the
    /// address.
    pub(crate) fn reopen(&self) {
        self.calls.reopen();
        self.renewals.reopen();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
