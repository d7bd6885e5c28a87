//! One Redis that has locks: a single one, or a primary of a Cluster.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::locks::redis::call::End;
use crate::locks::redis::coalesce::Together;
use crate::locks::redis::connection::Link;
use crate::locks::redis::node_clock::Clock;
use crate::locks::redis::scripts::{Scripts, pipeline};
use crate::locks::redis::server_identity::Acquaintance;
use crate::redis_client::{Address, Addresses};

/// A Redis and the two connections to it: one for claims, releases and questions, one for renewals
/// alone, so that nothing a user does can make those late. They end with it.
#[derive(Debug)]
pub(in crate::locks) struct Node {
    /// Of a node of a Cluster; of a single Redis whatever names it.
    pub(in crate::locks) address: Address,
    pub(in crate::locks) calls: Link,
    /// Where claims and releases gather, if this is the only one: on a Cluster they are of many slots.
    pub(in crate::locks) together: Together,
    pub(in crate::locks) renewals: Link,
    /// Which Redis the claims go to.
    pub(in crate::locks) acquaintance: Arc<Acquaintance>,
    /// Its clock, as it was read last.
    pub(in crate::locks) clock: Clock,
    end: CancellationToken,
}

/// What the connections to all nodes have in common.
#[derive(Clone, Debug)]
pub(in crate::locks) struct Upbringing {
    pub(in crate::locks) scripts: Arc<Scripts>,
    /// Told when a connection for renewals is back.
    pub(in crate::locks) reconnected: Vec<Arc<Notify>>,
    /// Told of each connection for calls.
    pub(in crate::locks) opened: Arc<Notify>,
    pub(in crate::locks) tasks: TaskTracker,
    pub(in crate::locks) stop: CancellationToken,
}

/// Whether a node was there from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::locks) enum Coming {
    First,
    /// In the place of another, which may not have told it all that it knew.
    Later,
}

impl Node {
    /// Begins to connect.
    pub(in crate::locks) fn open(
        address: Address,
        addresses: Arc<Addresses>,
        coming: Coming,
        upbringing: &Upbringing,
    ) -> Arc<Self> {
        let greeting = upbringing.scripts.greeting();
        let (calls, mut calls_upkeep) = Link::new(Arc::clone(&addresses), greeting);
        calls_upkeep.opened = Some(Arc::clone(&upbringing.opened));
        let acquaintance = Arc::new(Acquaintance::new(coming));
        calls_upkeep.acquaintance = Some(Arc::clone(&acquaintance));
        // Renewals bring their script along; a new connection only has to show that it answers.
        let mut ping = pipeline();
        ping.cmd("PING");
        let (renewals, mut renewals_upkeep) = Link::new(addresses, ping);
        renewals_upkeep.reconnected.clone_from(&upbringing.reconnected);
        renewals_upkeep.is_successor = coming == Coming::Later;
        let end = upbringing.stop.child_token();
        let span = |name| tracing::info_span!("locks", task = name, node = %address);
        let tasks = &upbringing.tasks;
        tasks.spawn(calls_upkeep.run(end.clone()).instrument(span("calls")));
        tasks.spawn(renewals_upkeep.run(end.clone()).instrument(span("renewals")));
        let at = End { link: calls.clone(), acquaintance: Arc::clone(&acquaintance) };
        let (together, conductor) = Together::new(at, Arc::clone(&upbringing.scripts));
        let conducts = end.clone().run_until_cancelled_owned(conductor.run());
        tasks.spawn(conducts.instrument(span("together")));
        let clock = Clock::default();
        Arc::new(Self { address, calls, together, renewals, acquaintance, clock, end })
    }

    /// Where calls are sent.
    pub(in crate::locks) fn end(&self) -> End {
        End { link: self.calls.clone(), acquaintance: Arc::clone(&self.acquaintance) }
    }

    /// Gives the connections up: this is not a primary any more, look the address up again.
    pub(in crate::locks) fn reopen(&self) {
        self.calls.reopen();
        self.renewals.reopen();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
