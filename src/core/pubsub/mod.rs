//! Messages between servers over Redis pub/sub: updates, presence and events of rooms and seats.
//!
//! Pub/sub may lose messages, and reports each possible loss. A subscriber that may have missed a
//! message gets a [`Signal::Gap`] and reads the database, the only source of truth. So this module
//! stores nothing, retries nothing, and no publisher waits.
//!
//! # Invariants
//!
//! - **B1** The first signal of a subscription is a gap, sent once it is in force.
//! - **B2** After a lost connection, a full queue, or a message that was not sent or not decoded, a
//!   gap follows in its place.
//! - **B3** A server does not receive its own messages.
//! - **B4** One connection, however many rooms are open; on a Cluster with sharded pub/sub two more to each
//!   primary ([`lanes`]).
//! - **B5** The publisher of each received message has the same secret, and published it on that
//!   channel.

mod connection;
mod lane_state;
mod lanes;
mod message;
#[cfg(test)]
mod message_tests;
mod seal;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::ids::NodeId;
use crate::locks::redis_client::{self, Kind, RedisTarget};
use crate::pubsub::lane_state::SendingClock;
use crate::pubsub::lanes::{Lanes, Service};
pub use crate::pubsub::lanes::{PubsubError, Subscription};
pub use crate::pubsub::message::{Envelope, Message, Payload, Reply, Request, Topic};
use crate::pubsub::seal::Seal;
pub use crate::pubsub::seal::installation;
pub use crate::pubsub::subscriptions::{SIGNALS_MAX, Signal};

#[derive(Clone, Debug)]
pub struct Pubsub {
    node: NodeId,
    lanes: Arc<Lanes>,
}

impl Pubsub {
    /// Pub/sub of a single server: its messages go nowhere.
    #[must_use]
    pub fn alone(node: NodeId) -> Self {
        Self { node, lanes: Lanes::alone() }
    }

    /// Connects to Redis at `url` as `node`; `memory:` is a single server. On a Cluster any node of
    /// `url` names the primaries, with Sentinels each of them names the primary.
    ///
    /// Servers accept only messages under the same `secret`. The call does not wait for Redis, and does
    /// not fail while Redis is unreachable. Fails with [`PubsubError::Unsupported`] for another kind of
    /// server, or an invalid address.
    pub async fn connect(url: &str, node: NodeId, secret: &[u8]) -> Result<Self, PubsubError> {
        if url == "memory:" {
            return Ok(Self::alone(node));
        }
        let RedisTarget { kind, addresses } = redis_client::target(url)
            .map_err(|error| PubsubError::Unsupported(error.to_string()))?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.close();
        let clock = SendingClock::start();
        let service = Service { node, clock, seal: Seal::new(secret), tasks, stop };
        let seeds = match kind {
            Kind::Cluster(seeds) => seeds,
            Kind::Single => Vec::new(),
        };
        Ok(Self { node, lanes: Lanes::open(service, addresses, seeds) })
    }

    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.lanes.is_alone()
    }

    /// Publishes to the servers that subscribe to `topic`. Waits neither for them nor for Redis: a task
    /// sends the queued messages in order. Fails with [`PubsubError`] when the message was not queued.
    /// Subscribers get a gap as soon as Redis is reachable.
    pub async fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        self.lanes.publish(topic, message)
    }

    /// Subscribes to a topic; the first signal marks the start.
    #[must_use]
    pub fn subscribe(&self, topic: Topic) -> Subscription {
        self.lanes.join(topic)
    }

    /// Ends a subscription. If it is the last one of its topic, publishes `last` before any message of a
    /// later subscriber.
    pub fn leave(&self, subscription: &Subscription, last: &Message) {
        self.lanes.leave(subscription, Some(last));
    }

    /// A random part of `period`, by which a server delays what all do at once after a restart of Redis.
    #[must_use]
    pub fn spread(period: Duration) -> Duration {
        redis_client::jittered(period * 2).saturating_sub(period)
    }

    /// Closes the connection. Subscriptions get no signal after that.
    pub async fn close(&self) {
        self.lanes.close().await;
    }
}
