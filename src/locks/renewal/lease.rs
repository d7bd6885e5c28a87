//! The holder of a lock that the renewal actor renews.
//!
//! The actor knows when to renew; only the lease holder knows whether. A process that renews without a
//! query holds a lock for ever after its user has left. So the actor queries the lease holder before each
//! renewal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument;

use crate::client::options::RenewalTiming;
use crate::types::{HeldLock, Loss, Verdict};
use crate::{Inner, Locks};

/// The holder of a registered lock. The renewal task of the whole process calls it, so a method
/// must not block.
///
/// A round in flight when [`Registration`] is dropped may still deliver its verdict. An ended lease holder
/// ignores it.
pub trait LeaseHolder: fmt::Debug + Send + Sync {
    /// Whether the actor may renew the lock at `now`. The actor queries this before each renewal,
    /// and when the deadline of the last one passes.
    fn lives(&self, now: Instant) -> Renewable;

    /// The actor renewed the lock, or reasserted it after the backend lost it. The request was sent
    /// at `sent_at`: the lease starts there.
    fn renewed(&self, sent_at: Instant, verdict: Verdict);

    /// Another holder has the lock, or the locks were closed. The actor has removed the entry and
    /// sends no further notification.
    fn lost(&self, loss: Loss);
}

/// Whether a lock may be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewable {
    /// The actor renews it.
    Yes,
    /// The actor skips it and queries again soon; without a change the lock expires with its lease.
    Later,
    /// The actor removes the entry and releases the lock.
    Release,
}

#[derive(Clone, Debug)]
pub(crate) struct LeaseEntry {
    pub(crate) held: Arc<HeldLock>,
    pub(crate) timing: RenewalTiming,
    /// End of the maximum hold: the actor queries the lease holder then, even after a successful renewal.
    pub(crate) ends: Option<Instant>,
    /// End of the minimum hold: the backend grants the lock to no other claimant before.
    pub(crate) rests_until: Option<Instant>,
    pub(crate) lease_holder: Arc<dyn LeaseHolder>,
}

impl LeaseEntry {
    pub(crate) fn rest(&self, now: Instant) -> Duration {
        self.rests_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

/// The registration of a lock, from [`Locks::register`]. A drop ends the renewal at once and does not
/// release the lock; the caller releases it next.
#[must_use = "a drop ends the renewal"]
#[derive(Debug)]
pub struct Registration {
    locks: Locks,
    id: u64,
}

impl Registration {
    pub(crate) fn new(locks: Locks, id: u64) -> Self {
        Self { locks, id }
    }

    /// Removes the entry. False if the lock was lost, which removed it before.
    #[must_use = "a lost lock needs no release"]
    pub fn end(self) -> bool {
        self.locks.0.renewal.leave(self.id)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.locks.0.renewal.leave(self.id);
    }
}

impl Locks {
    /// Registers a lock for renewal that the caller claimed, with a claim sent at `sent_at`. One
    /// task renews all registered locks and all guards, in one pipeline a round. It queries and
    /// notifies `lease_holder`. None once the locks are closed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::Duration;
    /// use galley_domain::{fence::Fence, ids::NodeId};
    /// use galley_locks::{
    ///     Claim, Claimed, HeldLock, Renewable, LockName, Locks, Loss, Takeover, Owner, RenewalTiming, LeaseHolder, Verdict,
    /// };
    /// use tokio::time::Instant;
    ///
    /// /// A connection that holds a lock while its client is connected.
    /// #[derive(Debug, Default)]
    /// struct Connection {
    ///     is_open: AtomicBool,
    ///     is_lost: AtomicBool,
    /// }
    ///
    /// impl LeaseHolder for Connection {
    ///     fn lives(&self, _now: Instant) -> Renewable {
    ///         if self.is_open.load(Ordering::Acquire) { Renewable::Yes } else { Renewable::Release }
    ///     }
    ///     fn renewed(&self, _sent_at: Instant, _verdict: Verdict) {}
    ///     fn lost(&self, _loss: Loss) {
    ///         self.is_lost.store(true, Ordering::Release);
    ///     }
    /// }
    ///
    /// let locks = Locks::connect("memory:").await?;
    /// let (id, name) = ("caller-7".parse()?, "Kim".to_owned());
    /// let owner = Owner { id, name, node: NodeId::generate(), pass: None };
    /// let timing = RenewalTiming::new(Duration::from_secs(12), Duration::from_secs(4));
    /// let (name, value) = (LockName::named("call:1"), "drawn at random".to_owned());
    /// let claim = Claim { name, value, owner, floor: Fence::ZERO, ttl: timing.ttl(), over: Takeover::None };
    /// let Claimed::Granted(grant) = locks.claim(&claim).await? else { panic!("busy") };
    ///
    /// let connection = Arc::new(Connection { is_open: true.into(), ..Connection::default() });
    /// let Claim { name, value, owner, .. } = claim;
    /// let held = HeldLock { name, value, owner, fence: grant.fence, since: grant.since };
    /// let registration = locks.register(held.clone(), timing, grant.sent_at, connection).expect("not closed");
    /// // The registration ends first, so that no renewal is in flight for a released lock.
    /// drop(registration);
    /// locks.release(&held.name, &held.value).await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use = "a drop ends the renewal"]
    pub fn register(
        &self,
        held: HeldLock,
        timing: RenewalTiming,
        sent_at: Instant,
        lease_holder: Arc<dyn LeaseHolder>,
    ) -> Option<Registration> {
        let held = Arc::new(held);
        let entry = LeaseEntry { held, timing, ends: None, rests_until: None, lease_holder };
        let id = self.0.register(entry, sent_at)?;
        Some(Registration::new(self.clone(), id))
    }

    /// Runs one round now for all registered locks that are due within `ahead`. For a caller with
    /// its own tick that checks its lease holders first: their renewals then fall into step with those
    /// checks.
    ///
    /// Returns at once. During a round, the request runs the next round after it.
    pub fn renew_ahead(&self, ahead: Duration) {
        self.0.renewal.wake_before(Instant::now() + ahead);
    }

    /// Resolves when renewal has ended: the locks were closed or dropped, or the renewal task died,
    /// after which every lock soon expires. Callers that depend on renewal must stop then.
    ///
    /// # Cancel safety
    ///
    /// Once renewal has ended, every call resolves at once.
    pub async fn stopped_renewing(&self) {
        self.0.stopped_renewing.cancelled().await;
    }
}

impl Inner {
    /// Registers a lock for renewal. None once the locks are closed.
    pub(crate) fn register(&self, entry: LeaseEntry, sent_at: Instant) -> Option<u64> {
        let id = self.renewal.enter(entry, sent_at)?;
        self.renewal_start.call_once(|| {
            let run = Arc::clone(&self.renewal).run(self.backend.clone(), self.stop.clone());
            // Dropped with the task, on return and on panic.
            let stopped = self.stopped_renewing.clone().drop_guard();
            let run = async move {
                let _stopped = stopped;
                run.await;
            };
            #[expect(clippy::disallowed_methods, reason = "once in a process")]
            self.tasks.spawn(run.instrument(tracing::info_span!("locks", task = "renewal")));
        });
        Some(id)
    }
}
