//! Facts for administrators: the sessions and locks of the cluster, and why a seat is held. The
//! JSON bodies of `/api/admin` are built from them.

mod audit;
pub mod explain;
pub(crate) mod http;
pub mod locks;
pub mod series;
pub mod sessions;

use crate::locks::Locks;
use crate::pubsub::Pubsub;
use crate::seats::Seats;
use crate::storage::Storage;

#[derive(Clone)]
pub struct Console {
    seats: Seats,
    storage: Storage,
    locks: Locks,
    pubsub: Pubsub,
}

impl Console {
    #[must_use]
    pub fn new(seats: Seats, storage: Storage, locks: Locks, pubsub: Pubsub) -> Self {
        Self { seats, storage, locks, pubsub }
    }
}
