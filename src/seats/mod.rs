//! Live sessions: who sits where, and the rooms they work in.
//!
//! A session asks for the seat's lock with its own id as the value ([`seating`]), is entered in
//! the [`registry`], works in the [`room`] of its document, and is looked after at each tick of
//! one scheduler ([`renewal`]). What it writes is relayed at once and stored in groups ([`persist`]).
//!
//! # Order
//!
//! Into the registry before the key is asked for; out of the registry before the release is sent.
//! Stopping: no new sockets → sockets closed → rooms flushed → seats released → renewal stops last.

pub mod claim;
pub(crate) mod delivery;
pub(crate) mod error;
pub mod handle;
pub mod joining;
pub(crate) mod liveness;
pub(crate) mod local_facts;
#[cfg(test)]
mod panic_tests;
pub(crate) mod peer_rpc;
pub(crate) mod reconcile;
pub(crate) mod set_back;
pub mod tick;
pub(crate) mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use governor::clock::DefaultClock;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, UserId};
use crate::domain::seat::Seat;
use crate::locks::{LockName, Locks};
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::Event;
use crate::pubsub::Relay;
use crate::rooms::persister::{self, Persister, persister};
use crate::rooms::room::Occasion;
use crate::rooms::room::review_events::{MissedQueue, missed};
use crate::rooms::version_recorder::{self, History, history};
use crate::rooms::{RoomError, Rooms};
use crate::seats::liveness::Across;
use crate::seats::local_facts::Questions;
use crate::seats::tick::LastVisit;
use crate::sessions::budgets::UserBudgets;
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::sessions::registry::Registry;
use crate::sessions::session::Holding;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::yjs::text::Text;

pub use crate::seats::error::SeatError;

/// What sessions are built on.
#[derive(Clone, Debug)]
pub struct Foundations {
    /// Documents, links, reviews.
    pub storage: Storage,
    /// Seats as locks.
    pub locks: Locks,
    /// The other servers.
    pub relay: Relay,
    /// How long things last.
    pub terms: SeatTerms,
    /// How much one socket and one room may take.
    pub limits: RoomLimits,
    /// When versions are kept.
    pub history: HistoryTerms,
    /// Every task is spawned here.
    pub tasks: TaskTracker,
}

/// A handle on the live sessions of this process. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) storage: Storage,
    pub(crate) locks: Locks,
    pub(crate) relay: Relay,
    pub(crate) terms: SeatTerms,
    pub(crate) limits: RoomLimits,
    pub(crate) tasks: TaskTracker,
    pub(crate) registry: Registry,
    pub(crate) across: Across,
    pub(crate) rooms: Rooms,
    pub(crate) persister: Persister,
    pub(crate) history: History,
    pub(crate) last_visit: LastVisit,
    /// Wakes the comparison with the database and the locks.
    pub(crate) reconcile_due: Notify,
    /// Wakes the look for grants that the database has lost.
    pub(crate) ratifying_due: Notify,
    /// No session is seated any more.
    pub(crate) draining: AtomicBool,
    pub(crate) budgets: UserBudgets,
    /// The turn of a session that stores the time of the name in its token.
    pub(crate) namings: Semaphore,
    /// Counts rates. Made once: that asks the processor what it is, slowly under a hypervisor.
    pub(crate) clock: DefaultClock,
    /// What was asked of the other servers.
    pub(crate) questions: Questions,
    /// Fires when the server begins to stop: nobody's seat is kept warm any more.
    pub(crate) stop: CancellationToken,
    /// Fires when the last seat is released and the last edit stored.
    pub(crate) finished: CancellationToken,
    /// Fires when a task that must live has ended before that.
    pub(crate) died: CancellationToken,
}

/// Lives as long as a task without which the server must not go on.
struct Vital {
    name: &'static str,
    finished: CancellationToken,
    died: CancellationToken,
}

impl Drop for Vital {
    fn drop(&mut self) {
        if !self.finished.is_cancelled() {
            tracing::error!(task = self.name, "a task that must live has ended");
            self.died.cancel();
        }
    }
}

impl Sessions {
    /// Starts the seat tick, the persister and the subscriptions. The queue is for [`Reviews::start`]: it
    /// holds the rooms that missed a change of a review.
    ///
    /// [`Reviews::start`]: crate::reviews::Reviews::start
    #[must_use]
    pub fn start(foundations: Foundations) -> (Self, MissedQueue) {
        let Foundations { storage, locks, relay, terms, limits, history: points, tasks } =
            foundations;
        let (persister, queue) = persister(storage.clone());
        let (history, orders) = history();
        let (missed, missed_queue) = missed();
        let rooms = Rooms::new(
            (storage.clone(), relay.clone()),
            (persister.clone(), missed),
            limits,
            tasks.clone(),
        );
        let finished = CancellationToken::new();
        let storing = persister::run(storage.clone(), relay.clone(), queue, finished.clone());
        let keeping =
            version_recorder::run(rooms.clone(), storage.clone(), points, orders, finished.clone());
        let shared = Shared {
            storage,
            locks,
            relay,
            terms,
            limits,
            tasks,
            registry: Registry::default(),
            across: Across::default(),
            rooms,
            persister,
            history,
            last_visit: LastVisit::now(),
            reconcile_due: Notify::new(),
            ratifying_due: Notify::new(),
            draining: AtomicBool::new(false),
            budgets: UserBudgets::new(&limits),
            namings: Semaphore::new(1),
            clock: DefaultClock::default(),
            questions: Questions::default(),
            stop: CancellationToken::new(),
            finished: finished.clone(),
            died: CancellationToken::new(),
        };
        let sessions = Self { shared: Arc::new(shared) };
        sessions.keep_alive("group commit", storing);
        sessions.keep_alive("history", keeping);
        sessions.keep_alive("renewal", tick::run(sessions.clone(), finished));
        sessions.keep_alive("cluster", sessions.clone().listen());
        sessions.keep_alive("reconcile", sessions.clone().reconcile_when_due());
        sessions.keep_alive("lost grants", sessions.clone().ratify_when_due());
        sessions.keep_alive("questions", sessions.clone().hear());
        (sessions, missed_queue)
    }

    pub(crate) fn keep_alive(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let (finished, died) = (self.shared.finished.clone(), self.shared.died.clone());
        let vital = Vital { name, finished, died };
        self.shared.tasks.spawn(async move {
            // Dropped with the task, whether it returns or panics.
            let _vital = vital;
            task.await;
        });
    }

    /// Resolves when a task has ended without which seats are not renewed or edits not stored.
    /// The process must stop then.
    pub async fn died(&self) {
        self.shared.died.cancelled().await;
    }

    /// The sessions of this process.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// How long things last.
    #[must_use]
    pub fn terms(&self) -> &SeatTerms {
        &self.shared.terms
    }

    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &RoomLimits {
        &self.shared.limits
    }

    /// The error of storage, while no edit can be stored.
    #[must_use]
    pub fn storage_trouble(&self) -> Option<StorageError> {
        self.shared.persister.error()
    }

    /// Removes the budgets of users that are idle; the upkeep calls it.
    pub fn forget_idle_users(&self) {
        self.shared.budgets.forget_idle();
    }

    /// Whether `user` holds `seat` now, on whatever server, and under which fence.
    ///
    /// O(1) without IO when the session is here; otherwise one question to the lock service.
    ///
    /// # Errors
    ///
    /// [`SeatError::Locks`] when it cannot be asked; the caller must deny then.
    pub async fn holds(&self, user: &UserId, seat: Seat) -> Result<Option<Fence>, SeatError> {
        if let Some(fence) = self.shared.registry.holds(user, seat, Instant::now()) {
            return Ok(Some(fence));
        }
        let holder = self.shared.locks.holder(&LockName::seat(seat)).await?;
        let here = self.shared.relay.node();
        Ok(holder
            // A session of this server that the registry does not vouch for is uncertain or gone.
            .filter(|holder| holder.owner.user.id == *user && holder.owner.node != here)
            .map(|holder| holder.fence))
    }

    /// Whether somebody works on the document on this server.
    #[must_use]
    pub fn is_open(&self, document: DocumentId) -> bool {
        self.shared.rooms.find(document).is_some()
    }

    /// The current text of a document, with what is relayed but not yet stored.
    ///
    /// # Errors
    ///
    /// [`RoomError::NoSuchDocument`], or storage's failure.
    pub async fn text(&self, document: DocumentId) -> Result<String, RoomError> {
        let snapshot = self.shared.rooms.snapshot(document).await?;
        self.shared.rooms.read_text(document, snapshot, Text::content).await
    }

    /// Whose doing it was that a renewal found the key gone.
    async fn why_lost(&self, holding: &Holding) -> LostReason {
        let name = LockName::seat(holding.sitter.seat);
        match self.shared.locks.holder(&name).await {
            Ok(Some(holder)) if holder.owner.user.id == holding.sitter.user.id => {
                LostReason::TakenOver
            }
            Ok(_) | Err(_) => LostReason::Expired,
        }
    }

    /// Seats no further session: each new socket is closed with 1012. Those that are seated stay.
    pub fn refuse(&self) {
        self.shared.draining.store(true, Ordering::Release);
    }

    /// Seats no further session, and closes every socket within `spread`, so that the clients do
    /// not all connect to the next server at once.
    pub async fn drain(&self, spread: Duration) {
        self.refuse();
        self.shared.stop.cancel();
        let sessions = self.shared.registry.all();
        let count = u32::try_from(sessions.len()).unwrap_or(u32::MAX).max(1);
        // Alone, nobody needs to be spread out.
        let step = if count < 50 { Duration::ZERO } else { spread / count };
        for (holding, place) in sessions.iter().zip(0_u32..) {
            tokio::time::sleep(step).await;
            let after = Duration::from_millis(u64::from(place % 20) * 25);
            let reconnect_after_ms = u64::try_from(after.as_millis()).unwrap_or_default();
            holding.tell(&Event::ServerDraining { reconnect_after_ms });
            holding.outbox().close(Close::Restart("draining"));
        }
    }

    /// Stores what is owed, gives back what is held, then stops renewing. Each step has a bound.
    ///
    /// Call it when every socket task has ended.
    pub async fn finish(&self, patience: Duration) {
        if !matches!(timeout(patience, self.shared.persister.flush(patience)).await, Ok(true)) {
            tracing::error!("storage did not take everything in time");
        }
        // All at once: one release after the other would wait for a slow Redis each time.
        for holding in self.shared.registry.all() {
            holding.end();
            if self.shared.registry.leave(&holding).is_some() {
                self.release_later(&holding.sitter);
            }
        }
        // Less patiently: without it, whoever writes next keeps that text.
        let less = patience / 4;
        if !matches!(timeout(less, self.shared.history.flush(less)).await, Ok(true)) {
            tracing::warn!("the last versions were not kept; the text itself is stored");
        }
        let rooms = self.shared.rooms.all();
        let chores = async {
            for room in &rooms {
                self.shared.rooms.do_chores(room, Occasion::Leaving).await;
            }
        };
        if timeout(less, chores).await.is_err() {
            tracing::warn!("some documents are left untidy; the next start reads more rows");
        }
        for room in rooms {
            room.retired.cancel();
        }
        self.shared.finished.cancel();
    }

    /// Makes the releases that are still owed, and hangs up on Redis.
    ///
    /// The last thing to do, when every task has ended: rooms say farewell to the other servers in
    /// theirs.
    pub async fn disconnect(&self) {
        self.shared.locks.close().await;
        self.shared.relay.close().await;
    }
}
