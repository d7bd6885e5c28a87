//! Seats of live sessions: claim, wait, liveness probe, renewal, release.
//!
//! A session enters the [registry](crate::sessions::registry) and claims the lock of its seat with
//! its own id as the value ([`claim`]). Then it joins the [room](crate::rooms::room) of its
//! document. The seat tick sends its heartbeats ([`tick`]). The room relays its edits at once;
//! [the persister](crate::rooms::persister) commits them in groups.
//!
//! # Order
//!
//! A session enters the registry before it claims the lock. It leaves the registry before it sends
//! the release.

pub mod claim;
pub(crate) mod delivery;
pub mod departures;
pub(crate) mod error;
pub mod handle;
pub mod joining;
pub(crate) mod liveness;
pub mod local_facts;
mod messages;
pub(crate) mod peer_rpc;
pub mod peers;
pub(crate) mod reconcile;
pub(crate) mod rights;
pub mod tick;
pub mod view;
pub(crate) mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::limits::{ABSENT_WAITERS_QUEUED_MAX, GRANTS_RATIFIED_AT_ONCE};
use crate::domain::seat::Seat;
use crate::locks::{LockName, Locks};
use crate::outbox::close::Close;
use crate::outbox::event::Event;
use crate::pubsub::Pubsub;
use crate::rooms::Rooms;
use crate::seats::liveness::Liveness;
use crate::seats::peers::Peers;
use crate::seats::tick::TickClock;
use crate::sessions::budgets::UserBudgets;
use crate::sessions::options::{RoomLimits, SeatTerms};
use crate::sessions::registry::Registry;
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::tasks::Tasks;

pub use crate::seats::error::SeatError;

#[derive(Clone, Debug)]
pub struct Seats {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    storage: Storage,
    locks: Locks,
    pubsub: Pubsub,
    peers: Peers,
    rooms: Rooms,
    terms: SeatTerms,
    tasks: Tasks,
    registry: Registry,
    liveness: Liveness,
    budgets: Arc<UserBudgets>,
    last_tick: TickClock,
    /// Wakes the comparison with the database and the locks.
    reconcile_due: Notify,
    /// The grants that the database has lost, for the task that ratifies them again.
    lost_grants: mpsc::Sender<Vec<Arc<Session>>>,
    /// Permits to read why a key is gone: the loss of many at once leaves the database to others (G16).
    cause_permits: Semaphore,
    /// Permits to write the end of a grant to the outbox: many at once leave the database to others.
    departures: Semaphore,
    /// Serializes the commits for which no session waits: times of names, and absent waiters. Edits go first.
    background_commits: Semaphore,
    /// Absent waiters that are not stored yet.
    absent_waiters: Arc<Semaphore>,
    /// Set by a drain. A draining server seats no further session.
    draining: AtomicBool,
    /// Fires when the server begins to stop. The server then ends every resume grace.
    stop: CancellationToken,
}

impl Seats {
    /// Starts the seat tick, the comparisons and the subscriptions.
    #[must_use]
    pub fn start(
        storage: &Storage,
        locks: &Locks,
        peers: &Peers,
        rooms: &Rooms,
        terms: SeatTerms,
        tasks: &Tasks,
    ) -> Self {
        let (lost_grants, lost) = mpsc::channel(1);
        let seats = Self {
            shared: Arc::new(Shared {
                storage: storage.clone(),
                locks: locks.clone(),
                pubsub: peers.pubsub().clone(),
                peers: peers.clone(),
                rooms: rooms.clone(),
                budgets: Arc::new(UserBudgets::new(&rooms.limits)),
                terms,
                tasks: tasks.clone(),
                registry: Registry::default(),
                liveness: Liveness::default(),
                last_tick: TickClock::now(),
                reconcile_due: Notify::new(),
                lost_grants,
                cause_permits: Semaphore::new(GRANTS_RATIFIED_AT_ONCE),
                departures: Semaphore::new(GRANTS_RATIFIED_AT_ONCE),
                background_commits: Semaphore::new(1),
                absent_waiters: Arc::new(Semaphore::new(ABSENT_WAITERS_QUEUED_MAX)),
                draining: AtomicBool::new(false),
                stop: CancellationToken::new(),
            }),
        };
        tasks.spawn_critical("seat tick", tick::run(seats.clone()));
        tasks.spawn_critical("cluster", seats.clone().handle_cluster_messages());
        tasks.spawn_critical("reconcile", seats.clone().reconcile_when_due());
        tasks.spawn_critical("lost grants", seats.clone().ratify_lost_grants(lost));
        tasks.spawn_critical("peer requests", seats.clone().handle_node_messages());
        seats
    }

    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The id of this server.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared.peers.node()
    }

    #[must_use]
    pub fn terms(&self) -> &SeatTerms {
        &self.shared.terms
    }

    #[must_use]
    pub fn limits(&self) -> &RoomLimits {
        &self.shared.rooms.limits
    }

    #[must_use]
    pub fn budgets(&self) -> &Arc<UserBudgets> {
        &self.shared.budgets
    }

    /// The fence under which `user` holds `seat` now, on any server.
    ///
    /// A session of this server costs O(1) without IO. Any other costs one query to the lock service.
    /// Fails with [`SeatError::Locks`] when the query fails; the caller must deny then.
    pub async fn holds(&self, user: &UserId, seat: Seat) -> Result<Option<Fence>, SeatError> {
        if let Some(fence) = self.shared.registry.holds(user, seat, Instant::now()) {
            return Ok(Some(fence));
        }
        let holder = self.shared.locks.holder(&LockName::seat(seat)).await?;
        let here = self.shared.pubsub.node();
        Ok(holder
            // A session of this server that the registry does not confirm is uncertain or has
            // ended.
            .filter(|holder| holder.owner.id == *user && holder.owner.node != here)
            .map(|holder| holder.fence))
    }

    /// Seats no further session: the server closes each new socket with 1012. Seated sessions stay.
    pub fn refuse(&self) {
        self.shared.draining.store(true, Ordering::Release);
    }

    /// Seats no further session, and closes every socket within `spread`. The spread prevents that
    /// all clients connect to the next server at once.
    pub async fn drain(&self, spread: Duration) {
        self.refuse();
        self.shared.stop.cancel();
        let sessions = self.shared.registry.all();
        let count = u32::try_from(sessions.len()).unwrap_or(u32::MAX).max(1);
        // Fewer than 50 sockets need no spread.
        let step = if count < 50 { Duration::ZERO } else { spread / count };
        for (session, index) in sessions.iter().zip(0_u32..) {
            tokio::time::sleep(step).await;
            let after = Duration::from_millis(u64::from(index % 20) * 25);
            let reconnect_after_ms = u64::try_from(after.as_millis()).unwrap_or_default();
            session.notify(&Event::ServerDraining { reconnect_after_ms });
            session.outbox().close(Close::Restart("draining"));
        }
    }

    /// Ends all sessions and releases their seats. All releases run at once: in sequence, each would wait for a slow
    /// Redis.
    pub(crate) fn end_all(&self) {
        for session in self.shared.registry.all() {
            session.end();
            self.release_lost(&session);
        }
    }
}
