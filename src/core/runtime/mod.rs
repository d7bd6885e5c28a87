//! The composition of the core: it builds the parts of a server from the bottom up, and ends them from the top down.
//!
//! # Order of a stop
//!
//! No new sockets → sockets closed ([`Seats::drain`]) → rooms flushed → seats released → renewal stops last.

#[cfg(test)]
pub(crate) mod panic_tests;

use std::time::Duration;

use tokio::time::timeout;

use crate::locks::Locks;
use crate::reviews::Reviews;
use crate::rooms::Rooms;
use crate::rooms::room::Trigger;
use crate::rooms::texts::Texts;
use crate::seats::Seats;
use crate::seats::peers::Peers;
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::tasks::Tasks;

/// The parts of one server. A caller takes those that it uses.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub tasks: Tasks,
    pub texts: Texts,
    pub seats: Seats,
    pub reviews: Reviews,
    pub peers: Peers,
    rooms: Rooms,
    locks: Locks,
}

impl Runtime {
    #[must_use]
    pub fn start(
        storage: &Storage,
        locks: Locks,
        peers: Peers,
        terms: SeatTerms,
        limits: RoomLimits,
        checkpoints: HistoryTerms,
    ) -> Self {
        let (tasks, tick) = (Tasks::default(), terms.lease.renew_every);
        let (rooms, missed) =
            Rooms::start(storage, peers.pubsub(), limits, checkpoints, tick, &tasks);
        let seats = Seats::start(storage, &locks, &peers, &rooms, terms, &tasks);
        let texts = Texts::new(rooms.clone());
        let reviews = Reviews::start(storage, &seats, &texts, &tasks, missed);
        Self { tasks, texts, seats, reviews, peers, rooms, locks }
    }

    /// The last error of storage while the persister cannot commit.
    #[must_use]
    pub fn storage_trouble(&self) -> Option<StorageError> {
        self.rooms.persister.error()
    }

    /// Flushes pending edits, releases all seats, then stops the renewal. Each step has a bound.
    ///
    /// Call it when every socket task has ended.
    pub async fn finish(&self, limit: Duration) {
        if !matches!(timeout(limit, self.rooms.persister.flush(limit)).await, Ok(true)) {
            tracing::error!("storage did not commit all pending edits in time");
        }
        self.seats.end_all();
        // A shorter bound: if this flush fails, the next version contains that text.
        let less = limit / 4;
        if !matches!(timeout(less, self.rooms.history.flush(less)).await, Ok(true)) {
            tracing::warn!("the last versions were not stored; the text itself is stored");
        }
        let rooms = self.rooms.all();
        let maintenance = async {
            for room in &rooms {
                self.rooms.maintain(room, Trigger::Leaving).await;
            }
        };
        if timeout(less, maintenance).await.is_err() {
            tracing::warn!("some documents miss their maintenance; the next open reads more rows");
        }
        for room in rooms {
            room.retired.cancel();
        }
        self.tasks.finished.cancel();
    }

    /// Retries pending releases, then disconnects from Redis.
    ///
    /// Call it last, when every task has ended: the tasks of rooms still publish their end to the
    /// other servers.
    pub async fn disconnect(&self) {
        self.locks.close().await;
        self.peers.pubsub().close().await;
    }
}
