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
//! - **B4** One connection, however many rooms are open.
//! - **B5** The publisher of each received message has the same secret, and published it on that
//!   channel.

mod connection;
mod message;
#[cfg(test)]
mod message_tests;
mod seal;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::domain::ids::NodeId;
use crate::locks::redis_client;
use crate::pubsub::connection::{ConnectionTask, OUTBOX_MAX, PublishedFrame, Shared};
pub use crate::pubsub::message::{Envelope, Message, Payload, Reply, Request, Topic};
use crate::pubsub::seal::Seal;
pub use crate::pubsub::seal::installation;
use crate::pubsub::subscriptions::{Mode, Table};
pub use crate::pubsub::subscriptions::{SIGNALS_MAX, Signal, Subscription};

/// A message was not sent. Its subscribers get a gap as soon as Redis is reachable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PubsubError {
    #[error("pub/sub is unreachable")]
    Unavailable,
    #[error("the pub/sub queue is full")]
    Full,
    #[error("pub/sub is not supported: {0}")]
    Unsupported(String),
}

#[derive(Clone, Debug)]
pub struct Pubsub {
    node: NodeId,
    table: Arc<Table>,
    /// `None` for a single server.
    wire: Option<Arc<Wire>>,
}

/// The outbound queue and its task, which ends with the last handle.
#[derive(Debug)]
struct Wire {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<PublishedFrame>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Pubsub {
    /// Pub/sub of a single server: its messages go nowhere.
    #[must_use]
    pub fn alone(node: NodeId) -> Self {
        Self { node, table: Table::new(Mode::Alone), wire: None }
    }

    /// Connects to Redis at `url` as `node`; `memory:` is a single server. On a Cluster it uses any
    /// of the nodes in `url`, with Sentinels the primary.
    ///
    /// Servers accept only messages under the same `secret`. The call does not wait for Redis, and does
    /// not fail while Redis is unreachable. Fails with [`PubsubError::Unsupported`] for another kind of
    /// server, or an invalid address.
    pub async fn connect(url: &str, node: NodeId, secret: &[u8]) -> Result<Self, PubsubError> {
        if url == "memory:" {
            return Ok(Self::alone(node));
        }
        let target = redis_client::target(url)
            .map_err(|error| PubsubError::Unsupported(error.to_string()))?;
        let table = Table::new(Mode::Others);
        let shared = Arc::new(Shared::new(node, Seal::new(secret), Arc::clone(&table)));
        let (outbox, waiting) = mpsc::channel(OUTBOX_MAX);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let task = ConnectionTask { target, shared: Arc::clone(&shared), outbox: waiting };
        #[expect(clippy::disallowed_methods, reason = "one for each server")]
        tasks.spawn(task.run(stop.clone()).instrument(tracing::info_span!("pubsub", %node)));
        tasks.close();
        let wire = Some(Arc::new(Wire { shared, outbox, tasks, stop }));
        Ok(Self { node, table, wire })
    }

    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.wire.is_none()
    }

    /// Publishes to the servers that subscribe to `topic`. Waits neither for them nor for Redis: a task
    /// sends the queued messages in order. Fails with [`PubsubError`] when the message was not queued.
    /// Subscribers get a gap as soon as Redis is reachable.
    pub async fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        let Some(wire) = &self.wire else { return Ok(()) };
        let published = wire.publish(topic, message);
        if published.is_err() {
            wire.shared.lose([topic]);
        }
        published
    }

    /// Subscribes to a topic; the first signal marks the start.
    #[must_use]
    pub fn subscribe(&self, topic: Topic) -> Subscription {
        self.table.join(topic)
    }

    /// Ends a subscription. If it is the last one of its topic, publishes `last` before any message of a
    /// later subscriber.
    pub fn leave(&self, subscription: Subscription, topic: Topic, last: &Message) {
        subscription.end(|| {
            if let Some(wire) = &self.wire
                && wire.publish(topic, last).is_err()
            {
                wire.shared.lose([topic]);
            }
        });
    }

    /// A random part of `period`, by which a server delays what all do at once after a restart of Redis.
    #[must_use]
    pub fn spread(period: Duration) -> Duration {
        redis_client::jittered(period * 2).saturating_sub(period)
    }

    /// Closes the connection. Subscriptions get no signal after that.
    pub async fn close(&self) {
        if let Some(wire) = &self.wire {
            wire.stop.cancel();
            wire.tasks.wait().await;
        }
    }
}

impl Wire {
    fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        if !self.shared.is_up() {
            return Err(PubsubError::Unavailable);
        }
        let frame = self.shared.envelope(topic, Payload::Message(message.clone()));
        if !self.shared.reserve(&frame) {
            return Err(PubsubError::Full);
        }
        self.outbox.try_send(PublishedFrame { topic, frame }).map_err(|refused| {
            self.shared.release(&refused.into_inner().frame);
            PubsubError::Full
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
