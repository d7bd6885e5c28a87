//! Acquisition of locks by policy: one attempt, back-off, or the wait queue. A grant becomes a
//! guard.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Locks;
use crate::client::guard::{Guard, Guards, PartialGuards};
use crate::client::guard_state::GuardState;
use crate::client::options::{AcquireOptions, BackOff, Policy, RenewalTiming, WaitPolicy};
use crate::client::wait::EarlyGrant;
use crate::name::LockName;
use crate::redis_client::jittered;
use crate::renewal::lease::Registration;
use crate::types::{
    Claim, Claimed, HeldLock, Holder, LockError, LocksError, Loss, Owner, QueuePosition, Released,
    Takeover,
};
use galley_domain::fence::Fence;
use galley_domain::ids::AcquisitionId;

impl Locks {
    /// Claims a lock once, under any policy of the options.
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`] when another holder or an earlier waiter comes first;
    /// [`LockError::Unavailable`] when the backend did not reply; [`LockError::Lost`] when the
    /// reply came after the grant's deadline, or the locks were closed.
    ///
    /// # Cancel safety
    ///
    /// Dropped in flight, it leaves no trace: a background task releases a possible grant.
    pub async fn try_lock(
        &self,
        name: &LockName,
        options: &AcquireOptions,
    ) -> Result<Guard, LockError> {
        let began = Instant::now();
        let tried = self.attempt(name, options).await;
        self.0.count(name, began, outcome(&tried));
        tried
    }

    /// Acquires a lock by the policy of the options.
    ///
    /// # Errors
    ///
    /// As [`Locks::try_lock`], and [`LockError::WaitTimeout`] when the policy's time ends first.
    ///
    /// # Cancel safety
    ///
    /// Dropped in flight, it leaves no trace: a background task releases a possible grant, leaves
    /// the queue, and passes a hand-over on to the next waiter.
    pub async fn lock(
        &self,
        name: &LockName,
        options: &AcquireOptions,
    ) -> Result<Guard, LockError> {
        match options.policy {
            Policy::FailAtOnce => self.try_lock(name, options).await,
            Policy::BackOff(back_off) => {
                let began = Instant::now();
                let tried = self.back_off(name, options, back_off).await;
                self.0.count(name, began, outcome(&tried));
                tried
            }
            Policy::Queue(wait) => self.wait_for(name, options, wait).await,
        }
    }

    /// Acquires several locks: all of them, or none. It claims them in one order, independent of
    /// the caller's, so that two callers with the same names cannot deadlock. A repeated name
    /// counts once. The policy's total time covers all locks together.
    ///
    /// # Errors
    ///
    /// As [`Locks::lock`], for the first lock that fails. A background task then releases the
    /// others; they are free at once, without their minimum hold.
    ///
    /// # Cancel safety
    ///
    /// As [`Locks::lock`]; a background task releases the locks acquired so far.
    pub async fn lock_all(
        &self,
        names: &[LockName],
        options: &AcquireOptions,
    ) -> Result<Guards, LockError> {
        let mut names: Vec<_> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        let began = Instant::now();
        let mut part = PartialGuards(Vec::with_capacity(names.len()));
        for name in names {
            let policy = options.policy.after(began.elapsed());
            part.0.push(self.lock(name, &AcquireOptions { policy, ..options.clone() }).await?);
        }
        // The first lock may have been lost during the wait for the last.
        let are_held = part.0.iter().all(Guard::is_held);
        if are_held { Ok(part.whole()) } else { Err(LockError::Lost(Loss::Expired)) }
    }

    /// Runs `work` under a lock, and drops it when the lock is lost. `work` receives the fence of
    /// the grant.
    ///
    /// # Errors
    ///
    /// As [`Locks::lock`], and [`LockError::Lost`] when the lock was lost before `work` ended.
    ///
    /// # Cancel safety
    ///
    /// As [`Locks::lock`]. Dropped during `work`, it drops `work` and releases the lock in the
    /// background.
    pub async fn with_lock<W: Future>(
        &self,
        name: &LockName,
        options: &AcquireOptions,
        work: impl FnOnce(Fence) -> W,
    ) -> Result<W::Output, LockError> {
        let guard = self.lock(name, options).await?;
        let work = work(guard.fence());
        let done = tokio::select! {
            // Polled first: a result from after the loss was not produced under the lock.
            biased;
            loss = guard.lost() => return Err(LockError::Lost(loss)),
            done = work => done,
        };
        match guard.release().await {
            Ok(Released::Freed) => Ok(done),
            // The guard had not yet received the loss.
            Ok(Released::NotHeld) => Err(LockError::Lost(Loss::Taken)),
            Err(error) => {
                // The work is complete. A background task retries the release, or the lease ends.
                tracing::debug!(%error, lock = %name, "a release is pending");
                Ok(done)
            }
        }
    }

    async fn attempt(&self, name: &LockName, options: &AcquireOptions) -> Result<Guard, LockError> {
        let (claim, timing) = self.claim_for(name, options);
        match self.claim_unmetered(&claim).await? {
            Claimed::Granted(grant) => {
                self.guard_from_grant(claim, &EarlyGrant { grant, until: None }, timing, options)
            }
            Claimed::Busy(holder) => Err(LockError::Busy(Box::new(position_behind(holder)))),
        }
    }

    async fn back_off(
        &self,
        name: &LockName,
        options: &AcquireOptions,
        back_off: BackOff,
    ) -> Result<Guard, LockError> {
        let ends = Instant::now() + back_off.total;
        let mut pause = back_off.first.min(back_off.most);
        let mut retries = 0;
        loop {
            let error = match self.attempt(name, options).await {
                Err(LockError::Busy(position)) => LockError::WaitTimeout(Some(position)),
                Err(error @ LockError::Unavailable(LocksError::Unavailable(_))) => error,
                tried => return tried,
            };
            let rest = jittered(pause);
            if back_off.retries <= retries || ends <= Instant::now() + rest {
                return Err(error);
            }
            sleep(rest).await;
            retries += 1;
            pause = (pause * 2).min(back_off.most);
        }
    }

    async fn wait_for(
        &self,
        name: &LockName,
        options: &AcquireOptions,
        wait: WaitPolicy,
    ) -> Result<Guard, LockError> {
        let (claim, timing) = self.claim_for(name, options);
        let early = self.wait(&claim, wait.total).poll_every(wait.slice).granted_early().await?;
        let guard = self.guard_from_grant(claim, &early, timing, options)?;
        if early.until.is_some() {
            guard.extend_to_full_ttl();
        }
        Ok(guard)
    }

    fn claim_for(&self, name: &LockName, options: &AcquireOptions) -> (Claim, RenewalTiming) {
        let timing = options.lease.timing(self.0.estimates.of(name.class()));
        let node = self.0.server;
        let claim = Claim {
            name: name.clone(),
            value: AcquisitionId::generate().to_string(),
            owner: Owner { id: node.into(), name: String::new(), node, pass: None },
            floor: options.floor,
            ttl: timing.ttl,
            over: Takeover::None,
        };
        (claim, timing)
    }

    /// Makes a guard of a grant. It contains no await, so no cancellation can lose the grant.
    fn guard_from_grant(
        &self,
        claim: Claim,
        EarlyGrant { grant, until }: &EarlyGrant,
        timing: RenewalTiming,
        options: &AcquireOptions,
    ) -> Result<Guard, LockError> {
        let held = HeldLock {
            name: claim.name,
            value: claim.value,
            owner: claim.owner,
            fence: grant.fence,
            since: grant.since,
        };
        let state = Arc::new(GuardState::new(
            held,
            timing,
            grant.sent_at,
            options.min_hold,
            options.max_hold,
        ));
        if let Some(until) = until {
            state.trust_until(*until);
        }
        // A reply after the deadline grants nothing, and the release skips the minimum hold.
        let registered = match state.loss(Instant::now()) {
            None => self.0.register(state.entry(), grant.sent_at).ok_or(Loss::Closed),
            Some(loss) => Err(loss),
        };
        let id = registered.map_err(|loss| {
            self.0.backend.release_soon(&state.held.name, &state.held.value, Duration::ZERO);
            LockError::Lost(loss)
        })?;
        self.0.alarms.began(state.held.name.class(), state.began);
        Ok(Guard::new(self.clone(), state, Registration::new(self.clone(), id)))
    }

    pub(crate) async fn release_after(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, LocksError> {
        self.0.backend.release(name, value, rest).await
    }
}

impl Policy {
    /// Reduces the total time of the policy by `over`.
    fn after(self, over: Duration) -> Self {
        match self {
            Self::FailAtOnce => self,
            Self::BackOff(it) => {
                Self::BackOff(BackOff { total: it.total.saturating_sub(over), ..it })
            }
            Self::Queue(it) => {
                Self::Queue(WaitPolicy { total: it.total.saturating_sub(over), ..it })
            }
        }
    }
}

/// The state of the queue for a claimant outside it.
fn position_behind(holder: Holder) -> QueuePosition {
    let ends = Instant::now().checked_add(holder.ttl);
    let retry_at = ends.unwrap_or_else(Instant::now);
    QueuePosition { position: holder.waiting + 1, holder, retry_at }
}

fn outcome(tried: &Result<Guard, LockError>) -> &'static str {
    match tried {
        Ok(_) => "granted",
        Err(LockError::Busy(_)) => "busy",
        Err(LockError::WaitTimeout(_)) => "timeout",
        Err(LockError::Lost(_) | LockError::Unavailable(_)) => "failed",
    }
}
