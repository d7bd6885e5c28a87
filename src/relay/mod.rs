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

mod message;
mod subscription;

use std::sync::Arc;

use crate::domain::ids::NodeId;
pub use crate::relay::message::{Message, Topic};
use crate::relay::subscription::{Reach, Table};
pub use crate::relay::subscription::{SIGNALS_MAX, Signal, Subscription};

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
}

impl Relay {
    /// A server without others: what it publishes goes nowhere.
    #[must_use]
    pub fn alone(node: NodeId) -> Self {
        Self { node, table: Table::new(Reach::Alone) }
    }

    /// The name under which this server speaks.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Tells the other servers, if they listen. Never waits for them, nor for Redis.
    ///
    /// # Errors
    ///
    /// [`RelayError`] when it certainly was not sent.
    pub async fn publish(&self, _topic: Topic, _message: &Message) -> Result<(), RelayError> {
        Ok(())
    }

    /// Listens from about now: the first signal says from when.
    #[must_use]
    pub fn subscribe(&self, topic: Topic) -> Subscription {
        self.table.join(topic)
    }
}
