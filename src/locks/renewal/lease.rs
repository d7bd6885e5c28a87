//! Who has a lock that the renewal actor keeps alive.
//!
//! The actor knows when; only the tenant knows whether. A process that renews whatever it once
//! took keeps a lock for ever for somebody who has long gone, so before each renewal the tenant is
//! asked if it lives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument;

use crate::locks::client::options::Rhythm;
use crate::locks::renewal::schedule::Tenancy;
use crate::locks::types::{Held, Loss, Verdict};
use crate::locks::{Inner, Locks};

/// Who has a lock that is kept alive. It is asked and told by the one task that renews for the
/// whole process: whatever takes long is to be done elsewhere.
///
/// A round that was on its way when [`Kept`] was dropped may still tell of its verdict. A tenant
/// knows that it has ended, and does not rise again.
pub trait Tenant: fmt::Debug + Send + Sync {
    /// Whether the lock may be renewed at `now`. Asked before each renewal, and when the time is
    /// over for which the last one could be trusted.
    fn lives(&self, now: Instant) -> Lives;

    /// It was renewed, or put back where the keeper had lost it, by what was sent at `sent_at`:
    /// its lease is counted from there.
    fn renewed(&self, sent_at: Instant, verdict: Verdict);

    /// It is somebody else's, or the locks were closed. It is out of the register, and nothing
    /// more is told of it.
    fn lost(&self, loss: Loss);
}

/// Whether a lock may be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Yes.
    Yes,
    /// Not now. It is asked again soon; if nothing changes, the lock ends with its lease.
    NotNow,
    /// No more: it is taken out of the register, and released.
    NoMore,
}

/// A lock that is kept alive, from [`Locks::keep`]. Dropped, it is renewed no more from that
/// moment; it is not released by that, which is the next thing to do.
#[must_use = "who drops it is renewed no more"]
#[derive(Debug)]
pub struct Kept {
    locks: Locks,
    /// Its number in the register.
    id: u64,
}

impl Kept {
    pub(in crate::locks) fn new(locks: Locks, id: u64) -> Self {
        Self { locks, id }
    }

    /// Takes it out of the register. False if it was lost before, and is out of it already.
    #[must_use = "what was lost need not be released"]
    pub fn end(self) -> bool {
        self.locks.0.keeping.leave(self.id)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.locks.0.keeping.leave(self.id);
    }
}

impl Locks {
    /// Has a lock kept alive that the caller claimed, with a claim sent at `sent_at`. One task
    /// renews for all that is kept, and for all guards, in one pipeline a round; `tenant` is asked
    /// and told. Nothing once the locks are closed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::Duration;
    /// use galley::domain::{fence::Fence, ids::{NodeId, UserId}, user::User};
    /// use galley::locks::{
    ///     Claim, Claimed, Held, Lives, LockName, Locks, Loss, Over, Owner, Rhythm, Tenant, Verdict,
    /// };
    /// use tokio::time::Instant;
    ///
    /// /// A connection that holds a lock for as long as somebody is at its other end.
    /// #[derive(Debug, Default)]
    /// struct Connection {
    ///     is_open: AtomicBool,
    ///     is_lost: AtomicBool,
    /// }
    ///
    /// impl Tenant for Connection {
    ///     fn lives(&self, _now: Instant) -> Lives {
    ///         if self.is_open.load(Ordering::Acquire) { Lives::Yes } else { Lives::NoMore }
    ///     }
    ///     fn renewed(&self, _sent_at: Instant, _verdict: Verdict) {}
    ///     fn lost(&self, _loss: Loss) {
    ///         self.is_lost.store(true, Ordering::Release);
    ///     }
    /// }
    ///
    /// let locks = Locks::connect("memory:").await?;
    /// let user = User { id: UserId::generate(), name: "Kim".to_owned() };
    /// let owner = Owner { user, node: NodeId::generate(), pass: None };
    /// let rhythm = Rhythm::new(Duration::from_secs(12), Duration::from_secs(4));
    /// let (name, value) = (LockName::named("call:1"), "drawn at random".to_owned());
    /// let claim = Claim { name, value, owner, floor: Fence::ZERO, ttl: rhythm.ttl(), over: Over::Nobody };
    /// let Claimed::Granted(grant) = locks.claim(&claim).await? else { panic!("busy") };
    ///
    /// let connection = Arc::new(Connection { is_open: true.into(), ..Connection::default() });
    /// let Claim { name, value, owner, .. } = claim;
    /// let held = Held { name, value, owner, fence: grant.fence, since: grant.since };
    /// let kept = locks.keep(held.clone(), rhythm, grant.sent_at, connection).expect("not closed");
    /// // Out of the register first, so that no renewal is for what is being released.
    /// drop(kept);
    /// locks.release(&held.name, &held.value).await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use = "who drops it is renewed no more"]
    pub fn keep(
        &self,
        held: Held,
        rhythm: Rhythm,
        sent_at: Instant,
        tenant: Arc<dyn Tenant>,
    ) -> Option<Kept> {
        let held = Arc::new(held);
        let tenancy = Tenancy { held, rhythm, ends: None, rests_until: None, tenant };
        let id = self.0.keep(tenancy, sent_at)?;
        Some(Kept::new(self.clone(), id))
    }

    /// Has everything renewed now, in one round, that is kept and would be due within `ahead`. For
    /// a caller with a clock of its own, who looks after its tenants and then asks for this: they
    /// are in step then, and have been looked after before each renewal.
    ///
    /// Returns at once. Asked while a round is under way, the next one follows it.
    pub fn renew_ahead(&self, ahead: Duration) {
        self.0.keeping.ring(Instant::now() + ahead);
    }

    /// Resolves when nothing is renewed any more: the locks were closed, or dropped, or the task
    /// has died that renews, and with it soon every lock. Whoever relies on that task has to stop
    /// then.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: once it is so, every call says so.
    pub async fn stopped_renewing(&self) {
        self.0.stopped_renewing.cancelled().await;
    }
}

impl Inner {
    /// Keeps a lock from now on. Nothing once the locks are closed.
    pub(in crate::locks) fn keep(&self, tenancy: Tenancy, sent_at: Instant) -> Option<u64> {
        let id = self.keeping.enter(tenancy, sent_at)?;
        self.keeps.call_once(|| {
            let run = Arc::clone(&self.keeping).run(self.keeper.clone(), self.stop.clone());
            // Dropped with the task, whether that returns or panics.
            let stopped = self.stopped_renewing.clone().drop_guard();
            let run = async move {
                let _stopped = stopped;
                run.await;
            };
            self.tasks.spawn(run.instrument(tracing::info_span!("locks", task = "keeping")));
        });
        Some(id)
    }
}
