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
//! A server stops in this order: no new sockets → sockets closed → rooms flushed → seats released →
//! renewal stops last.

pub mod claim;
pub(crate) mod delivery;
pub mod departures;
pub(crate) mod error;
pub mod handle;
pub mod joining;
pub(crate) mod liveness;
pub mod local_facts;
mod messages;
#[cfg(test)]
mod panic_tests;
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
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::limits::{ABSENT_WAITERS_QUEUED_MAX, GRANTS_RATIFIED_AT_ONCE};
use crate::domain::seat::Seat;
use crate::locks::{LockName, Locks};
use crate::outbox::close::Close;
use crate::outbox::event::Event;
use crate::pubsub::Pubsub;
use crate::rooms::Rooms;
use crate::rooms::persister::{self, Persister, persister};
use crate::rooms::room::Trigger;
use crate::rooms::room::review_events::{MissedQueue, missed};
use crate::rooms::texts::Texts;
use crate::rooms::version_recorder::{self, History, history};
use crate::seats::liveness::Liveness;
use crate::seats::peers::Peers;
use crate::seats::tick::TickClock;
use crate::sessions::budgets::UserBudgets;
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::sessions::registry::Registry;
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::tasks::Tasks;

pub use crate::seats::error::SeatError;

#[derive(Clone, Debug)]
pub struct SeatsDeps {
    /// The name of this server, for administrators.
    pub name: String,
    pub storage: Storage,
    pub locks: Locks,
    pub pubsub: Pubsub,
    pub terms: SeatTerms,
    pub limits: RoomLimits,
    pub history: HistoryTerms,
    pub tasks: TaskTracker,
}

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
    terms: SeatTerms,
    limits: RoomLimits,
    tasks: Tasks,
    registry: Registry,
    liveness: Liveness,
    rooms: Rooms,
    texts: Texts,
    persister: Persister,
    history: History,
    last_tick: TickClock,
    /// Wakes the comparison with the database and the locks.
    reconcile_due: Notify,
    /// The grants that the database has lost, for the task that ratifies them again.
    lost_grants: mpsc::Sender<Vec<Arc<Session>>>,
    /// Permits to read why a key is gone: the loss of many at once leaves the database to others (G16).
    cause_permits: Semaphore,
    /// Permits to write the end of a grant to the outbox: many at once leave the database to others.
    departures: Semaphore,
    /// Set by a drain. A draining server seats no further session.
    draining: AtomicBool,
    budgets: Arc<UserBudgets>,
    /// Serializes the commits for which no session waits: times of names, and absent waiters. Edits go first.
    background_commits: Semaphore,
    /// Absent waiters that are not stored yet.
    absent_waiters: Arc<Semaphore>,
    /// Fires when the server begins to stop. The server then ends every resume grace.
    stop: CancellationToken,
}

impl Seats {
    /// Starts the seat tick, the persister and the subscriptions. The queue contains the rooms that
    /// missed a change of a review; [`Reviews::start`] consumes it.
    ///
    /// [`Reviews::start`]: crate::reviews::Reviews::start
    #[must_use]
    pub fn start(deps: SeatsDeps) -> (Self, MissedQueue) {
        let SeatsDeps { name, storage, locks, pubsub, terms, limits, history: checkpoints, tasks } =
            deps;
        let tasks = Tasks { tracker: tasks, ..Tasks::default() };
        let (persister, queue) = persister(storage.clone());
        let (history, jobs) = history();
        let (missed, missed_queue) = missed();
        let (lost_grants, lost_queue) = mpsc::channel(1);
        let rooms = Rooms::new(
            storage.clone(),
            pubsub.clone(),
            persister.clone(),
            missed,
            limits,
            terms.lease.renew_every,
            tasks.tracker.clone(),
        );
        let finished = tasks.finished.clone();
        let storing = persister::run(storage.clone(), pubsub.clone(), queue, finished.clone());
        let recording =
            version_recorder::run(rooms.clone(), storage.clone(), checkpoints, jobs, finished);
        let shared = Shared {
            peers: Peers::new(name, pubsub.clone()),
            storage,
            locks,
            pubsub,
            terms,
            limits,
            tasks: tasks.clone(),
            registry: Registry::default(),
            liveness: Liveness::default(),
            texts: Texts::new(rooms.clone()),
            rooms,
            persister,
            history,
            last_tick: TickClock::now(),
            reconcile_due: Notify::new(),
            lost_grants,
            cause_permits: Semaphore::new(GRANTS_RATIFIED_AT_ONCE),
            departures: Semaphore::new(GRANTS_RATIFIED_AT_ONCE),
            draining: AtomicBool::new(false),
            budgets: Arc::new(UserBudgets::new(&limits)),
            background_commits: Semaphore::new(1),
            absent_waiters: Arc::new(Semaphore::new(ABSENT_WAITERS_QUEUED_MAX)),
            stop: CancellationToken::new(),
        };
        let seats = Self { shared: Arc::new(shared) };
        tasks.spawn_critical("group commit", storing);
        tasks.spawn_critical("history", recording);
        tasks.spawn_critical("seat tick", tick::run(seats.clone()));
        tasks.spawn_critical("cluster", seats.clone().handle_cluster_messages());
        tasks.spawn_critical("reconcile", seats.clone().reconcile_when_due());
        tasks.spawn_critical("lost grants", seats.clone().ratify_lost_grants(lost_queue));
        tasks.spawn_critical("peer requests", seats.clone().handle_node_messages());
        (seats, missed_queue)
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
        &self.shared.limits
    }

    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.shared.texts
    }

    #[must_use]
    pub fn peers(&self) -> &Peers {
        &self.shared.peers
    }

    pub(crate) fn history(&self) -> &History {
        &self.shared.history
    }

    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.shared.tasks
    }

    #[must_use]
    pub fn budgets(&self) -> &Arc<UserBudgets> {
        &self.shared.budgets
    }

    /// The last error of storage while the persister cannot commit.
    #[must_use]
    pub fn storage_trouble(&self) -> Option<StorageError> {
        self.shared.persister.error()
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

    /// Flushes pending edits, releases all seats, then stops the renewal. Each step has a bound.
    ///
    /// Call it when every socket task has ended.
    pub async fn finish(&self, limit: Duration) {
        if !matches!(timeout(limit, self.shared.persister.flush(limit)).await, Ok(true)) {
            tracing::error!("storage did not commit all pending edits in time");
        }
        // All releases run at once: in sequence, each would wait for a slow Redis.
        for session in self.shared.registry.all() {
            session.end();
            if self.shared.registry.leave(&session).is_some() {
                self.release_in_background(&session.identity);
                self.announce_departure(&session);
            }
        }
        // A shorter bound: if this flush fails, the next version contains that text.
        let less = limit / 4;
        if !matches!(timeout(less, self.shared.history.flush(less)).await, Ok(true)) {
            tracing::warn!("the last versions were not stored; the text itself is stored");
        }
        let rooms = self.shared.rooms.all();
        let maintenance = async {
            for room in &rooms {
                self.shared.rooms.maintain(room, Trigger::Leaving).await;
            }
        };
        if timeout(less, maintenance).await.is_err() {
            tracing::warn!("some documents miss their maintenance; the next open reads more rows");
        }
        for room in rooms {
            room.retired.cancel();
        }
        self.shared.tasks.finished.cancel();
    }

    /// Retries pending releases, then disconnects from Redis.
    ///
    /// Call it last, when every task has ended: the tasks of rooms still publish their end to the
    /// other servers.
    pub async fn disconnect(&self) {
        self.shared.locks.close().await;
        self.shared.pubsub.close().await;
    }
}
