//! What servers tell each other of a room.
//!
//! The relay may lose what it likes, and says so: whoever may have missed something gets a
//! [`Signal::Gap`] and reads the database, which alone is the truth. So nothing here is stored,
//! nothing is repeated, and nobody waits.
//!
//! # What is always true
//!
//! - **Y1** The first signal of a subscription is a gap, sent once it is in force.
//! - **Y2** After a lost connection, a full queue or a message that could not be sent or read, a
//!   gap follows in its place.
//! - **Y3** A server does not hear itself.
//! - **Y4** One connection, however many rooms are open.
//! - **Y5** What is heard was said by a server that has the same secret, and in that very place.

mod connection;
mod message;
#[cfg(test)]
mod message_tests;
mod seal;
mod subscriptions;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::domain::ids::NodeId;
use crate::pubsub::connection::{Line, OUTBOX_MAX, Outgoing, Shared};
pub use crate::pubsub::message::{Envelope, Message, Parcel, Reply, Topic};
use crate::pubsub::seal::Seal;
use crate::pubsub::subscriptions::{Reach, Table};
pub use crate::pubsub::subscriptions::{SIGNALS_MAX, Signal, Subscription};
use crate::redis_client;

/// A message was not sent. Those who should have had it are told of a gap when they can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// Redis is out of reach.
    #[error("the relay is out of reach")]
    Unavailable,
    /// More messages wait to be sent than may.
    #[error("the relay's queue is full")]
    Full,
    /// This kind of server is not spoken to.
    #[error("the relay is not supported: {0}")]
    Unsupported(String),
}

/// The line to the other servers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Relay {
    node: NodeId,
    table: Arc<Table>,
    /// None for a server alone.
    wire: Option<Arc<Wire>>,
}

/// The way out, and what ends with the last handle.
#[derive(Debug)]
struct Wire {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Outgoing>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Relay {
    /// A server without others: what it publishes goes nowhere.
    #[must_use]
    pub fn alone(node: NodeId) -> Self {
        Self { node, table: Table::new(Reach::Alone), wire: None }
    }

    /// The line through Redis at `url`, under the name `node`; `memory:` is a server alone. On a
    /// Cluster it goes through any one of the nodes in `url`, with Sentinels through the primary.
    ///
    /// Only servers with the same `secret` hear each other. Does not wait for Redis and does not fail
    /// when it is away.
    ///
    /// # Errors
    ///
    /// [`RelayError::Unsupported`] for another kind of server, or an address that makes no sense.
    pub async fn connect(url: &str, node: NodeId, secret: &[u8]) -> Result<Self, RelayError> {
        if url == "memory:" {
            return Ok(Self::alone(node));
        }
        let target = redis_client::target(url)
            .map_err(|error| RelayError::Unsupported(error.to_string()))?;
        let table = Table::new(Reach::Others);
        let shared = Arc::new(Shared::new(node, Seal::new(secret), Arc::clone(&table)));
        let (outbox, waiting) = mpsc::channel(OUTBOX_MAX);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let line = Line { target, shared: Arc::clone(&shared), outbox: waiting };
        tasks.spawn(line.run(stop.clone()).instrument(tracing::info_span!("relay", %node)));
        tasks.close();
        let wire = Some(Arc::new(Wire { shared, outbox, tasks, stop }));
        Ok(Self { node, table, wire })
    }

    /// The name under which this server speaks.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Whether there are no others, and never will be.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.wire.is_none()
    }

    /// Tells the other servers, if they listen. Never waits for them, nor for Redis: what it takes
    /// is sent soon, in order.
    ///
    /// # Errors
    ///
    /// [`RelayError`] when it was not taken. Whoever listens is told of a gap once that is possible.
    pub async fn publish(&self, topic: Topic, message: &Message) -> Result<(), RelayError> {
        let Some(wire) = &self.wire else { return Ok(()) };
        let published = wire.publish(topic, message);
        if published.is_err() {
            wire.shared.lose([topic]);
        }
        published
    }

    /// Listens from about now: the first signal says from when.
    #[must_use]
    pub fn subscribe(&self, topic: Topic) -> Subscription {
        self.table.join(topic)
    }

    /// Ends the connection. Subscriptions stay silent from then on.
    pub async fn close(&self) {
        if let Some(wire) = &self.wire {
            wire.stop.cancel();
            wire.tasks.wait().await;
        }
    }
}

impl Wire {
    fn publish(&self, topic: Topic, message: &Message) -> Result<(), RelayError> {
        if !self.shared.is_up() {
            return Err(RelayError::Unavailable);
        }
        let frame = self.shared.envelope(topic, Parcel::Message(message.clone()));
        if !self.shared.takes(&frame) {
            return Err(RelayError::Full);
        }
        self.outbox.try_send(Outgoing { topic, frame }).map_err(|refused| {
            self.shared.gives_back(&refused.into_inner().frame);
            RelayError::Full
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
