//! Locks for anything, held in Redis or inside the process. A seat is one of them.
//!
//! A lock is a key that expires, and whose value is a secret of whoever holds it. The holder
//! renews it; whoever stops renewing loses it without having to be told. Beside each lock stands
//! its *grant*: the last fence, and who the holder is. It outlives the lock by a day.
//!
//! Two ways to use them. With [`Locks::claim`] and [`Locks::release`] the caller has the lock in its
//! own hands, as the seats do, and may have it kept alive for a [`Tenant`] by [`Locks::keep`]. With
//! [`Locks::lock`] and its like a [`Guard`] holds it. One task renews for all that is kept and all
//! guards of the process, thousands in one pipeline:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use std::time::Duration;
//! use galley::locks::{Lease, LockError, LockName, Locks, Wish};
//!
//! let locks = Locks::connect("memory:").await?;
//! let name = LockName::named("export:doc_1");
//! let wish = Wish::new(Lease::KeptAlive(Duration::from_secs(12)));
//! let guard = locks.try_lock(&name, &wish).await?;
//! match locks.lock(&name, &wish.waiting(Duration::from_millis(20))).await {
//!     Err(LockError::WaitTimeout(Some(place))) => assert_eq!(place.position, 1),
//!     other => panic!("{other:?}"),
//! }
//! // To be told to whatever can refuse lower ones.
//! let fence = guard.fence();
//! // The task has the lock now, and gives it back.
//! let task = async move { guard.release().await };
//! task.await?;
//! # let _ = fence;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # What is always true
//!
//! - **K1** By the keeper's clock, at most one value holds a lock (G1).
//! - **K2** A later grant has a higher fence, through a release, an expiry, an empty restart and
//!   a clock that steps back, as long as the claimant brings the floor of the database.
//! - **K3** Only the value that holds a lock can renew or release it. A release never frees a
//!   later grant (G6).
//! - **K4** What was released, or granted to another since, is not raised by a late renewal (G6).
//! - **K5** Nothing is granted on a time-out. A claim whose answer was lost is taken back.
//! - **K6** Who waits is served in the order of coming. A lock that comes free is given to the
//!   first living waiter where it is freed, and that one alone is told; nobody comes in past the
//!   line, and a waiter that died holds nobody up for longer than its deadline in it (G5).
//!
//! K1 is not enough for two writers to be impossible: a paused process wakes up believing in its
//! lease. The holder's own deadline ([`crate::domain::lease`]) shortens that belief, and the
//! fence, checked by the database in every write, makes it harmless.
#![doc = ""]
#![doc = include_str!("GUIDE.md")]

mod alarms;
mod backend;
#[cfg(feature = "broken")]
pub(crate) mod broken;
mod client;
mod memory;
#[cfg(test)]
pub(crate) mod model;
mod name;
mod queries;
mod reclaim_token;
mod redis;
mod renewal;
mod types;

use std::sync::{Arc, Once};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::ids::NodeId;
use crate::locks::alarms::Alarms;
pub use crate::locks::alarms::{Alarm, AlarmKind};
use crate::locks::backend::Keeper;
use crate::locks::client::acquire::process_owner;
use crate::locks::client::estimates::Estimates;
pub use crate::locks::client::guard::{Guard, Guards};
pub use crate::locks::client::options::{BackOff, Lease, Patience, Policy, Rhythm, Wish};
pub use crate::locks::client::wait::{Waited, Waiting};
pub use crate::locks::name::LockName;
pub use crate::locks::reclaim_token::Pass;
use crate::locks::redis::Remote;
use crate::locks::renewal::actor::{self, Keeping};
pub use crate::locks::renewal::lease::{Kept, Lives, Tenant};
pub use crate::locks::types::{
    Claim, Claimed, Grant, Held, Holder, InLine, LockError, LocksError, Loss, Over, Owner, Place,
    Released, Round, Verdict,
};

/// How long a grant is remembered after its last use. Far longer than any pause of a process that
/// could still believe in it, and short enough that nothing piles up.
const GRANT_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How often the grants of what is held are kept from being forgotten. A renewal does not touch them;
/// that would double its work. Each lock has an hour of its own: a guard with a long lease is in few
/// rounds, and an hour of the process would be over in the rounds of others.
const GRANTS_KEPT_EVERY: Duration = Duration::from_secs(60 * 60);

// A lease lasts an hour at most.
const _: () = assert!(GRANTS_KEPT_EVERY.as_secs() * 4 < GRANT_KEPT_FOR.as_secs());

/// Where the locks are. Cheap to clone; all clones speak for the same keeper.
#[derive(Clone, Debug)]
pub struct Locks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keeper: Keeper,
    /// The name under which this process is told of hand-overs.
    server: NodeId,
    /// Who has what no person asked for.
    owner: Owner,
    /// What is kept alive.
    keeping: Arc<Keeping>,
    /// Done when the renewal actor runs: with the first lock that is kept.
    keeps: Once,
    /// Fires when it does not run any more.
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
        Self::kept_by(Keeper::Memory(Arc::default()), NodeId::generate())
    }

    /// Locks at `url`: `memory:`, `redis://…` or `rediss://…` for a single Redis,
    /// `redis+sentinel://HOST:PORT,HOST:PORT/NAME[/DB]` for one that Sentinels watch over, and
    /// `redis+cluster://HOST:PORT,HOST:PORT` for some nodes of a Cluster; the last two also with
    /// `rediss+…`.
    ///
    /// Does not wait for Redis and does not fail when it is away: it is connected to, and
    /// connected to again, in the background.
    ///
    /// # Errors
    ///
    /// [`LocksError::Unsupported`] for another scheme, [`LocksError::Misconfigured`] for an address
    /// that makes no sense.
    ///
    /// # Cancel safety
    ///
    /// It waits for nothing.
    pub async fn connect(url: &str) -> Result<Self, LocksError> {
        Self::connect_as(url, NodeId::generate()).await
    }

    /// As [`Locks::connect`], under a name of the caller's: hand-overs to this process are told on
    /// `lock:release:<server>`.
    ///
    /// # Errors
    ///
    /// As [`Locks::connect`].
    ///
    /// # Cancel safety
    ///
    /// It waits for nothing.
    pub async fn connect_as(url: &str, server: NodeId) -> Result<Self, LocksError> {
        if url == "memory:" {
            return Ok(Self::kept_by(Keeper::Memory(Arc::default()), server));
        }
        let remote = Remote::connect(url, server)?;
        Ok(Self::kept_by(Keeper::Redis(Arc::new(remote)), server))
    }

    fn kept_by(keeper: Keeper, server: NodeId) -> Self {
        Self(Arc::new(Inner {
            keeper,
            server,
            owner: process_owner(server),
            keeping: Arc::default(),
            keeps: Once::new(),
            stopped_renewing: CancellationToken::new(),
            estimates: Estimates::default(),
            alarms: Alarms::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Asks for a lock. A claim repeated with the same value is the same grant, with the same
    /// fence and a lease that runs anew.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer. The claim is then taken back in the
    /// background, and its value is spent, as that of a released lock is: claim again with a new
    /// one.
    ///
    /// From a Redis that has just come back empty it may take two seconds longer: whoever held a
    /// lock before has so long to come back to it.
    ///
    /// # Cancel safety
    ///
    /// A claim that is dropped while it is under way is taken back too.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        let began = Instant::now();
        let claimed = self.ask(claim).await;
        let outcome = match &claimed {
            Ok(Claimed::Granted(_)) => "granted",
            Ok(Claimed::Busy(_)) => "busy",
            Err(_) => "failed",
        };
        self.0.count(&claim.name, began, outcome);
        claimed
    }

    /// Gives a lock back, if `value` still holds it.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer. The release is still owed, and is made in
    /// the background.
    ///
    /// # Cancel safety
    ///
    /// A release that is dropped while it is under way is made in the background.
    pub async fn release(&self, name: &LockName, value: &str) -> Result<Released, LocksError> {
        self.0.keeper.release(name, value, Duration::ZERO).await
    }

    /// As [`Locks::claim`], not counted.
    async fn ask(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        self.0.keeper.claim(claim).await
    }

    /// Renews all of `held` in one go, for a caller that does so itself; asks nothing when there is
    /// none. What is kept alive ([`Locks::keep`]) need not be renewed here. On a Cluster a node that
    /// gives no answer leaves its own locks [`Verdict::Unknown`], and no others.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer. Nothing is lost by that: each lock may or
    /// may not have been renewed, and its old deadline stays in force.
    ///
    /// # Cancel safety
    ///
    /// As without an answer: each lock may or may not have been renewed.
    pub async fn renew(&self, held: &[Held], ttl: Duration) -> Result<Round, LocksError> {
        if held.is_empty() {
            return Ok(Round { sent_at: Instant::now(), verdicts: Vec::new() });
        }
        let held: Vec<_> = held.iter().map(|held| (held, ttl)).collect();
        actor::renew(&self.0.keeper, &held, None, Duration::MAX).await
    }

    /// The key under which a lock is held, where the locks are.
    #[must_use]
    pub fn key_of(&self, name: &LockName) -> String {
        self.0.keeper.key_of(name)
    }

    /// Stands in the line for a lock, for at most `patience`: see [`Waiting`].
    ///
    /// Nothing is asked before [`Waiting::next`] is.
    pub fn wait(&self, claim: &Claim, patience: Duration) -> Waiting {
        Waiting::new(self.clone(), claim.clone(), patience)
    }

    /// What the last check found that is not as it should be, although locks can be trusted: each
    /// in one line, with what to do about it.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        self.0.keeper.warnings()
    }

    /// How far the clock by which [`Grant::since`] is told is ahead of this server's, by the last
    /// check.
    #[must_use]
    pub fn clock_ahead(&self) -> TimeDelta {
        self.0.keeper.clock_ahead()
    }

    /// What is wrong with a class of locks, as this process has seen it of late. Raises and clears
    /// what is due: to be asked every few seconds by whoever has a clock, if alarms are to be
    /// cleared also where nothing happens any more.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        self.0.alarms.in_force()
    }

    /// Resolves once after each time that the connection for renewals was lost and is back: the
    /// moment to renew, for Redis may have come back empty. What is kept alive is renewed then
    /// without anybody's doing. For one task to wait on.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: what happened while nobody waited is told to the next who does.
    pub async fn reconnected(&self) {
        self.0.keeper.reconnected().await;
    }

    /// Releases what is still kept in this process, and tells its tenants; makes the releases that
    /// are owed, if the keeper can be reached; and ends the background tasks. The last thing to do
    /// with locks: afterwards there is no connection.
    ///
    /// # Cancel safety
    ///
    /// What is kept is renewed no more, and left to its leases, unless it is called again.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        for tenancy in self.0.keeping.close() {
            let (held, rest) = (&tenancy.held, tenancy.rest(Instant::now()));
            self.0.keeper.release_soon(&held.name, &held.value, rest);
        }
        self.0.stopped_renewing.cancel();
        self.0.keeper.close().await;
    }
}

impl Inner {
    /// Counts an attempt at a lock, by its class: names are without number.
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
