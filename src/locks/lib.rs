//! Locks of any kind, in Redis or in this process. A seat is one of them.
//!
//! A lock is a key that expires. Its value is a secret of the holder. The holder renews the key;
//! the lock expires when its holder stops renewing, and no message is needed. Beside each lock
//! Redis stores its *grant*: the last fence, and the holder. The grant outlives the lock by a day.
//!
//! The module has two interfaces. With [`Locks::claim`] and [`Locks::release`] the caller claims
//! and releases the lock itself, as the seats do; [`Locks::register`] registers it for renewal on
//! behalf of a [`LeaseHolder`]. With [`Locks::lock`] and its variants a [`Guard`] holds the lock. One
//! task renews all registered locks and all guards of the process, thousands in one pipeline:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use std::time::Duration;
//! use galley_locks::{AcquireOptions, Lease, LockError, LockName, Locks, Policy, WaitPolicy};
//!
//! let locks = Locks::connect("memory:").await?;
//! let name = LockName::named("export:doc_1");
//! let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
//! let guard = locks.try_lock(&name, &options).await?;
//! let [slice, total] = [10, 20].map(Duration::from_millis);
//! match locks.lock(&name, &options.with(Policy::Queue(WaitPolicy { slice, total }))).await {
//!     Err(LockError::WaitTimeout(Some(queued))) => assert_eq!(queued.position, 1),
//!     other => panic!("{other:?}"),
//! }
//! // A resource that rejects lower fences receives this one.
//! let fence = guard.fence();
//! // The task owns the guard now and releases the lock.
//! let task = async move { guard.release().await };
//! task.await?;
//! # let _ = fence;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Invariants
//!
//! - **K1** By the backend's clock, at most one value holds a lock (G1), unless someone deletes its key in a running
//!   Redis (`FLUSHALL`).
//! - **K2** A later grant has a higher fence: after a release, an expiry, an empty restart and a
//!   clock that steps back. The claimant must bring the floor of the database.
//! - **K3** Only the value that holds a lock can renew or release it. A release never frees a later
//!   grant (G6).
//! - **K4** A late renewal does not restore a lock that was released, or granted to another value
//!   since (G6). A backend that restarted empty stores the last released value alone: there it may
//!   restore the lock of an ended session for one lease.
//! - **K5** A time-out grants nothing. The client releases a claim whose reply was lost.
//! - **K6** The backend serves waiters in order of arrival. The script that frees a lock hands it
//!   over to the first live waiter and notifies that waiter alone. No claim of a free lock
//!   overtakes the queue. A dead waiter delays the next one until its queue deadline at most (G5).
//!
//! K1 alone does not exclude two writers: a paused process resumes and still trusts its lease. The
//! holder's own deadline ([`galley_domain::lease`]) shortens that window. The fence makes it
//! harmless: the database checks it in every write.
//!
//! # Glossary
//!
//! - *lock*: a named key in Redis or memory, with value, TTL and fence; a seat is one.
//! - *claim*, *acquire*: a claim is the request; acquire is the operation that ends in a grant.
//! - *grant*: a successful acquisition with fence, time and holder, stored in the companion hash.
//! - *holder*: the session or guard that holds a lock, as any server reads it.
//! - *lease*: how long a grant stays valid without renewal, which is the TTL of the key.
//! - *fence*: the number of a grant, strictly rising for each lock.
//! - *floor*: the last fence that the database ratified; a new fence exceeds it.
//! - *ratify*: register a fence in the database, which then rejects writes under any other fence.
//! - *deadline*, `trusted_until`: `sent_at + ttl − margin`; the holder accepts no write after it.
//! - *release*: compare-and-delete of the key, with hand-over in one script.
//! - *pending release*: a release without a reply; a task retries it.
//! - *minimum hold*: time after a grant in which a release does not free the lock for another
//!   claimant.
//! - *wait queue*, *waiter*: the claimants of one lock in order of arrival; position 1 is next.
//! - *hand-over*: Redis grants a released lock to the first live waiter and notifies its server.
//! - *poll*: a waiter's own query of the queue; the backstop for lost messages.
//! - *renewal round*: one pipeline that renews all due locks of a server.
//! - *verdict*: the result of a round for one lock: renewed, reasserted, lost or unknown.
//! - *reassert*: set a vanished key again, when its grant proves that no other holder came in
//!   between.
//! - *reassert grace*: time (≤ 2 s) in which an empty Redis grants no new lock, so that holders
//!   reassert first.
//! - *takeover*: a claim that replaces the holder: same owner, exact value, or reclaim token.
//! - *reclaim token*: the hash, in Redis, of the secret that lets its owner take a lock over again.
//! - *backend*: the store of the locks: Redis, or a table in this process.
//! - *job*: work that one server of all does; its lock selects the server, its fence guards the writes.
//! - *class*: the first part of a lock's name, the label of its metrics and alarms.
//! - *replica*: a Redis node that copies a primary with a delay; a fail-over promotes it.
//! - *half-open*: of a TCP connection: one end is gone, and the other has not noticed.
//! - *server identity*: run id and uptime of a Redis node; detects an empty restart.
#![doc = ""]
#![doc = include_str!("GUIDE.md")]

mod alarms;
mod backend;
mod client;
mod memory;
#[cfg(any(test, feature = "model"))]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tests of this crate run the wrong rules too")
)]
#[expect(clippy::indexing_slicing, clippy::panic, reason = "a fault of the model ends its test")]
pub mod model;
mod name;
mod queries;
mod reclaim_token;
mod redis;
pub mod redis_client;
mod renewal;
mod types;
mod wait_queue;

use std::sync::{Arc, Once};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::alarms::Alarms;
pub use crate::alarms::{Alarm, AlarmKind};
use crate::backend::Backend;
use crate::client::estimates::Estimates;
pub use crate::client::guard::{Guard, Guards};
use crate::client::options::estimated;
pub use crate::client::options::{
    AcquireOptions, BackOff, Lease, Policy, RenewalTiming, WaitPolicy,
};
pub use crate::client::wait::{WaitOutcome, Waiter};
pub use crate::name::LockName;
pub use crate::reclaim_token::ReclaimToken;
use crate::redis::Remote;
use crate::renewal::actor::RenewalActor;
pub use crate::renewal::lease::{LeaseHolder, Registration, Renewable};
pub use crate::types::{
    Claim, Claimed, Grant, HeldLock, Holder, LockError, LocksError, Loss, Owner, QueuePosition,
    QueuedClaim, Released, Round, Takeover, Verdict,
};
use galley_domain::ids::NodeId;

/// How long the backend stores a grant after its last use. Far longer than any pause of a process
/// that could still trust it, and short enough that grants do not accumulate.
const GRANT_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The reassert grace: time for the holders after an empty restart. They try to connect with a
/// back-off of at most half a second, and renew at once after that.
const REASSERT_GRACE: Duration = Duration::from_secs(2);

/// How often a renewal extends the expiry of a held lock's grant. Other renewals do not touch the
/// grant: that would double their work. Each lock counts its own hours: a guard with a long lease
/// is in few rounds, and an hour of the process could elapse in the rounds of other locks.
const GRANT_EXTENSION_INTERVAL: Duration = Duration::from_secs(60 * 60);

// A lease lasts an hour at most.
const _: () = assert!(GRANT_EXTENSION_INTERVAL.as_secs() * 4 < GRANT_TTL.as_secs());

/// Handle to the locks of one backend. Cheap to clone; all clones share the backend.
#[derive(Clone, Debug)]
pub struct Locks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Backend,
    /// The name under which Redis notifies this process of hand-overs.
    server: NodeId,
    renewal: Arc<RenewalActor>,
    /// Completed when the renewal actor runs, which the first registered lock starts.
    renewal_start: Once,
    stopped_renewing: CancellationToken,
    estimates: Estimates,
    alarms: Alarms,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Locks {
    /// Locks inside this process, for one server alone.
    #[must_use]
    pub fn memory() -> Self {
        Self::with_backend(Backend::Memory(Arc::default()), NodeId::generate())
    }

    /// Locks at `url`: `memory:`, `redis://…` or `rediss://…` for a single Redis,
    /// `redis+sentinel://HOST:PORT,HOST:PORT/NAME[/DB]` for a primary that Sentinels monitor, and
    /// `redis+cluster://HOST:PORT,HOST:PORT` for some nodes of a Cluster; the last two also with
    /// `rediss+…`.
    ///
    /// Neither waits for Redis nor fails when Redis is unavailable: a supervisor connects, and
    /// reconnects, in the background.
    ///
    /// # Errors
    ///
    /// [`LocksError::Unsupported`] for another scheme, [`LocksError::Misconfigured`] for an invalid
    /// address.
    ///
    /// # Cancel safety
    ///
    /// The call never suspends.
    pub async fn connect(url: &str) -> Result<Self, LocksError> {
        Self::connect_as(url, NodeId::generate()).await
    }

    /// As [`Locks::connect`], under the caller's server id: Redis notifies this process of
    /// hand-overs on `lock:release:<server>`.
    ///
    /// # Errors
    ///
    /// As [`Locks::connect`].
    ///
    /// # Cancel safety
    ///
    /// The call never suspends.
    pub async fn connect_as(url: &str, server: NodeId) -> Result<Self, LocksError> {
        if url == "memory:" {
            return Ok(Self::with_backend(Backend::Memory(Arc::default()), server));
        }
        let remote = Remote::connect(url, server)?;
        Ok(Self::with_backend(Backend::Redis(Arc::new(remote)), server))
    }

    fn with_backend(backend: Backend, server: NodeId) -> Self {
        Self(Arc::new(Inner {
            backend,
            server,
            renewal: Arc::default(),
            renewal_start: Once::new(),
            stopped_renewing: CancellationToken::new(),
            estimates: Estimates::default(),
            alarms: Alarms::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Claims a lock. A claim repeated with the same value returns the same grant, with the same
    /// fence and a fresh lease.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply. A background task then releases the claim,
    /// and its value is spent like that of a released lock: claim again with a new value.
    ///
    /// A Redis that restarted empty may delay the reply by two seconds (reassert grace), so that
    /// previous holders reassert their locks first.
    ///
    /// # Cancel safety
    ///
    /// A background task releases a claim that is dropped in flight.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        let began = Instant::now();
        let claimed = self.claim_unmetered(claim).await;
        let outcome = match &claimed {
            Ok(Claimed::Granted(_)) => "granted",
            Ok(Claimed::Busy(_)) => "busy",
            Err(_) => "failed",
        };
        self.0.count(&claim.name, began, outcome);
        claimed
    }

    /// Releases a lock if `value` still holds it.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply. The release stays pending, and a background
    /// task retries it.
    ///
    /// # Cancel safety
    ///
    /// A background task finishes a release that is dropped in flight.
    pub async fn release(&self, name: &LockName, value: &str) -> Result<Released, LocksError> {
        self.0.backend.release(name, value, Duration::ZERO).await
    }

    /// As [`Locks::release`], in a task of its own.
    pub fn release_in_background(&self, name: LockName, value: String) {
        let backend = self.0.backend.clone();
        #[expect(clippy::disallowed_methods, reason = "one for each ended lease")]
        self.0.tasks.spawn(async move {
            if let Err(error) = backend.release(&name, &value, Duration::ZERO).await {
                tracing::debug!(%error, lock = %name, "a release is pending");
            }
        });
    }

    async fn claim_unmetered(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        self.0.backend.claim(claim).await
    }

    /// The backend's key of a lock.
    #[must_use]
    pub fn key_of(&self, name: &LockName) -> String {
        self.0.backend.key_of(name)
    }

    /// Joins the wait queue of a lock for at most `time_limit`: see [`Waiter`].
    ///
    /// Sends nothing before the first call of [`Waiter::next`].
    pub fn wait(&self, claim: &Claim, time_limit: Duration) -> Waiter {
        Waiter::new(self.clone(), claim.clone(), time_limit)
    }

    /// Findings of the last check that do not make locks unsafe: one line each, with its remedy.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        self.0.backend.warnings()
    }

    /// How far the backend's clock, which sets [`Grant::since`], is ahead of this server's, by the
    /// last check.
    #[must_use]
    pub fn clock_ahead(&self) -> TimeDelta {
        self.0.backend.clock_ahead()
    }

    /// The estimate under [`Lease::Learnt`] for the next hold of a class: `guess` until enough holds are
    /// recorded.
    #[must_use]
    pub fn estimate(&self, class: &str, guess: Duration) -> Duration {
        estimated(self.0.estimates.of(class), guess)
    }

    /// Alarms of each class of locks, as this process measured them recently. Raises and clears
    /// alarms that are due. A periodic task should call this every few seconds: without calls, an
    /// alarm of an idle class stays raised.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        self.0.alarms.in_force()
    }

    /// Releases all registered locks and notifies their lease holders, retries pending releases if the
    /// backend is reachable, and ends the background tasks. The last call on locks: it drops the
    /// connections.
    ///
    /// # Cancel safety
    ///
    /// If dropped, registered locks are no longer renewed and expire with their leases. A second
    /// call finishes the work.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        for entry in self.0.renewal.close() {
            let (held, rest) = (&entry.held, entry.rest(Instant::now()));
            self.0.backend.release_soon(&held.name, &held.value, rest);
        }
        self.0.stopped_renewing.cancel();
        self.0.backend.close().await;
    }
}

impl Inner {
    /// Counts an acquisition attempt by the class of the lock: the number of names is unbounded.
    fn count(&self, name: &LockName, began: Instant, outcome: &'static str) {
        let (class, took) = (name.class().to_owned(), began.elapsed());
        self.alarms.attempted(&class, took, outcome);
        metrics::histogram!("galley_lock_wait_seconds", "class" => class.clone()).record(took);
        metrics::counter!("galley_lock_acquisitions_total", "class" => class, "outcome" => outcome)
            .increment(1);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
