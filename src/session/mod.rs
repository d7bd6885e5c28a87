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

mod abreast;
mod accept;
mod across;
pub mod admin;
pub mod arriving;
mod budgets;
pub mod close;
mod deciding;
mod delivery;
mod editing;
mod error;
pub mod event;
pub mod held;
pub mod history;
pub mod holding;
#[cfg(test)]
mod holding_tests;
mod lanes;
#[cfg(test)]
mod lease_model;
mod missed_reviews;
pub mod options;
pub mod outbox;
#[cfg(test)]
mod panics;
mod parts;
pub mod persist;
mod placing;
mod questions;
pub mod queue;
#[cfg(test)]
mod races;
mod readings;
pub mod registry;
pub mod renewal;
pub mod restore;
pub mod reviews;
pub mod room;
pub mod rooms;
pub mod seated;
pub mod seating;
mod sentence;
mod set_back;
pub mod store_budget;
#[cfg(test)]
mod stored_document;
pub mod turns;
pub mod versions;
mod waiting;
pub mod why;

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
use crate::relay::Relay;
use crate::session::across::Across;
use crate::session::budgets::UserBudgets;
use crate::session::close::{Close, LostReason};
use crate::session::event::Event;
use crate::session::history::{History, history};
use crate::session::holding::Holding;
use crate::session::missed_reviews::missed;
use crate::session::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::session::persist::{Persister, persister};
use crate::session::registry::Registry;
use crate::session::renewal::LastVisit;
use crate::session::room::Occasion;
use crate::session::rooms::Rooms;
use crate::session::why::Questions;
use crate::storage::Storage;
use crate::sync::text::Text;

pub use self::error::SessionError;

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
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    storage: Storage,
    locks: Locks,
    relay: Relay,
    terms: SeatTerms,
    limits: RoomLimits,
    tasks: TaskTracker,
    registry: Registry,
    across: Across,
    rooms: Rooms,
    persister: Persister,
    history: History,
    last_visit: LastVisit,
    /// Wakes the comparison with the database and the locks.
    reconcile_due: Notify,
    /// Wakes the look for grants that the database has lost.
    ratifying_due: Notify,
    /// No session is seated any more.
    draining: AtomicBool,
    budgets: UserBudgets,
    /// The turn of a session that stores the time of the name in its token.
    namings: Semaphore,
    /// Counts rates. Made once: that asks the processor what it is, slowly under a hypervisor.
    clock: DefaultClock,
    /// What was asked of the other servers.
    questions: Questions,
    /// Fires when the server begins to stop: nobody's seat is kept warm any more.
    stop: CancellationToken,
    /// Fires when the last seat is released and the last edit stored.
    finished: CancellationToken,
    /// Fires when a task that must live has ended before that.
    died: CancellationToken,
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
    /// Starts the scheduler, the group commit and the ear for the other servers.
    #[must_use]
    pub fn start(foundations: Foundations) -> Self {
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
        let storing = persist::run(storage.clone(), relay.clone(), queue, finished.clone());
        let keeping =
            history::run(rooms.clone(), storage.clone(), points, orders, finished.clone());
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
        sessions.keep_alive("renewal", renewal::run(sessions.clone(), finished));
        sessions.keep_alive("cluster", sessions.clone().listen());
        sessions.keep_alive("reconcile", sessions.clone().reconcile_when_due());
        sessions.keep_alive("lost grants", sessions.clone().ratify_when_due());
        let reading = sessions.clone().read_missed_reviews(missed_queue);
        sessions.keep_alive("missed reviews", reading);
        sessions.keep_alive("questions", sessions.clone().hear());
        sessions
    }

    fn keep_alive(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
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
    /// [`SessionError::Locks`] when it cannot be asked; the caller must deny then.
    pub async fn holds(&self, user: &UserId, seat: Seat) -> Result<Option<Fence>, SessionError> {
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
    /// [`SessionError::NoSuchDocument`], or storage's failure.
    pub async fn text(&self, document: DocumentId) -> Result<String, SessionError> {
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
