//! Facts for administrators: the sessions and locks of the cluster, and why a seat is held. The
//! JSON bodies of `/api/admin` are built from them.

pub(crate) mod audit;
pub mod explain;
pub(crate) mod http;
pub mod locks;
pub mod series;
pub mod sessions;

use crate::locks::Locks;
use crate::seats::Seats;
use crate::seats::peers::Peers;
use crate::storage::Storage;

#[derive(Clone)]
pub struct Console {
    seats: Seats,
    peers: Peers,
    storage: Storage,
    locks: Locks,
}

impl Console {
    #[must_use]
    pub fn new(seats: Seats, peers: Peers, storage: Storage, locks: Locks) -> Self {
        Self { seats, peers, storage, locks }
    }
}
