//! Locks for whoever needs one: tried for, waited for, held by a guard.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::domain::fence::Fence;
use crate::domain::ids::AcquisitionId;
use crate::domain::user::User;
use crate::locks::Locks;
use crate::locks::client::guard::{Guard, Guards, Part};
use crate::locks::client::guard_state::Hold;
use crate::locks::client::options::{BackOff, Patience, Policy, Rhythm, Wish};
use crate::locks::client::wait::Had;
use crate::locks::name::LockName;
use crate::locks::redis::connection::jittered;
use crate::locks::renewal::lease::Kept;
use crate::locks::types::{
    Claim, Claimed, Held, Holder, LockError, LocksError, Loss, Over, Owner, Place, Released,
};

impl Locks {
    /// Asks for a lock once, whatever the policy of the wish.
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`] when somebody else has it, or waited before; [`LockError::Unavailable`]
    /// when there is no telling; [`LockError::Lost`] when the answer came too late to trust.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it is under way, it leaves nothing: what may have been given is taken back.
    pub async fn try_lock(&self, name: &LockName, wish: &Wish) -> Result<Guard, LockError> {
        let began = Instant::now();
        let tried = self.attempt(name, wish).await;
        self.0.count(name, began, outcome(&tried));
        tried
    }

    /// Asks for a lock by the policy of the wish.
    ///
    /// # Errors
    ///
    /// As [`Locks::try_lock`], and [`LockError::WaitTimeout`] when it did not come free in the time
    /// that the policy gives.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it is under way, it leaves nothing: what may have been given is taken back, a
    /// place in the line is left, and a turn that had come is passed on.
    pub async fn lock(&self, name: &LockName, wish: &Wish) -> Result<Guard, LockError> {
        match wish.policy {
            Policy::FailAtOnce => self.try_lock(name, wish).await,
            Policy::BackOff(back_off) => {
                let began = Instant::now();
                let tried = self.back_off(name, wish, back_off).await;
                self.0.count(name, began, outcome(&tried));
                tried
            }
            Policy::WaitToBeTold(patience) => self.wait_for(name, wish, patience).await,
        }
    }

    /// Asks for several locks: all of them, or none. They are asked for in one order, whatever the
    /// caller's, so that two who want the same ones cannot each have what the other waits for. A
    /// name that comes twice counts once. The policy's total time is for all together.
    ///
    /// # Errors
    ///
    /// As [`Locks::lock`], for the first that cannot be had. The others are given back then, in the
    /// background, and are free at once, also where there is a minimum hold.
    ///
    /// # Cancel safety
    ///
    /// As [`Locks::lock`]; those that were had already are given back in the background.
    pub async fn lock_all(&self, names: &[LockName], wish: &Wish) -> Result<Guards, LockError> {
        let mut names: Vec<_> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        let began = Instant::now();
        let mut part = Part(Vec::with_capacity(names.len()));
        for name in names {
            let policy = wish.policy.after(began.elapsed());
            part.0.push(self.lock(name, &Wish { policy, ..wish.clone() }).await?);
        }
        // The first may have been lost while the last was waited for.
        let are_held = part.0.iter().all(Guard::is_held);
        if are_held { Ok(part.whole()) } else { Err(LockError::Lost(Loss::Expired)) }
    }

    /// Does `work` while holding a lock, and ends it where it stands when the lock is lost. The
    /// work is told the fence of the grant.
    ///
    /// # Errors
    ///
    /// As [`Locks::lock`], and [`LockError::Lost`] when the work was ended, or came to its end after
    /// the lock did.
    ///
    /// # Cancel safety
    ///
    /// As [`Locks::lock`]. Dropped while it works, it drops the work and releases the lock in the
    /// background.
    pub async fn with_lock<W: Future>(
        &self,
        name: &LockName,
        wish: &Wish,
        work: impl FnOnce(Fence) -> W,
    ) -> Result<W::Output, LockError> {
        let guard = self.lock(name, wish).await?;
        let work = work(guard.fence());
        let done = tokio::select! {
            // Looked at first: what is done after the lock was lost was not done under it.
            biased;
            loss = guard.lost() => return Err(LockError::Lost(loss)),
            done = work => done,
        };
        match guard.release().await {
            Ok(Released::Freed) => Ok(done),
            // Nobody had heard of it yet.
            Ok(Released::NotHeld) => Err(LockError::Lost(Loss::Taken)),
            Err(error) => {
                // What is done is done; the lock is freed in the background, or by its lease.
                tracing::debug!(%error, lock = %name, "a release is owed");
                Ok(done)
            }
        }
    }

    /// One attempt, with a value of its own.
    async fn attempt(&self, name: &LockName, wish: &Wish) -> Result<Guard, LockError> {
        let (claim, rhythm) = self.claim_for(name, wish);
        match self.ask(&claim).await? {
            Claimed::Granted(grant) => self.hold(claim, &Had { grant, until: None }, rhythm, wish),
            Claimed::Busy(holder) => Err(LockError::Busy(Box::new(place_behind(holder)))),
        }
    }

    async fn back_off(
        &self,
        name: &LockName,
        wish: &Wish,
        back_off: BackOff,
    ) -> Result<Guard, LockError> {
        let ends = Instant::now() + back_off.total;
        let mut pause = back_off.first.min(back_off.most);
        let mut retries = 0;
        loop {
            let error = match self.attempt(name, wish).await {
                Err(LockError::Busy(place)) => LockError::WaitTimeout(Some(place)),
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
        wish: &Wish,
        patience: Patience,
    ) -> Result<Guard, LockError> {
        let (claim, rhythm) = self.claim_for(name, wish);
        let had = self.wait(&claim, patience.total).look_every(patience.slice).had().await?;
        let guard = self.hold(claim, &had, rhythm, wish)?;
        if had.until.is_some() {
            guard.make_whole();
        }
        Ok(guard)
    }

    fn claim_for(&self, name: &LockName, wish: &Wish) -> (Claim, Rhythm) {
        let rhythm = wish.lease.rhythm(self.0.estimates.of(name.class()));
        let owner = wish.owner.clone().unwrap_or_else(|| self.0.owner.clone());
        let claim = Claim {
            name: name.clone(),
            value: AcquisitionId::generate().to_string(),
            owner,
            floor: wish.floor,
            ttl: rhythm.ttl,
            over: Over::Nobody,
        };
        (claim, rhythm)
    }

    /// From a grant to its guard. There is no await in it: a grant cannot get lost on the way.
    fn hold(
        &self,
        claim: Claim,
        Had { grant, until }: &Had,
        rhythm: Rhythm,
        wish: &Wish,
    ) -> Result<Guard, LockError> {
        let held = Held {
            name: claim.name,
            value: claim.value,
            owner: claim.owner,
            fence: grant.fence,
            since: grant.since,
        };
        let hold = Arc::new(Hold::new(held, rhythm, grant.sent_at, wish.min_hold, wish.max_hold));
        if let Some(until) = until {
            hold.trust_until(*until);
        }
        // An answer that was too long on its way is not acted on: nothing was held, for however short.
        let kept = match hold.loss(Instant::now()) {
            None => self.0.keep(hold.tenancy(), grant.sent_at).ok_or(Loss::Closed),
            Some(loss) => Err(loss),
        };
        let id = kept.map_err(|loss| {
            self.0.keeper.release_soon(&hold.held.name, &hold.held.value, Duration::ZERO);
            LockError::Lost(loss)
        })?;
        self.0.alarms.began(hold.held.name.class(), hold.began);
        Ok(Guard::new(self.clone(), hold, Kept::new(self.clone(), id)))
    }

    /// Gives a lock back; nobody gets it for `rest`.
    pub(in crate::locks) async fn release_after(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, LocksError> {
        self.0.keeper.release(name, value, rest).await
    }
}

impl Policy {
    /// What is left of it when some of the time is over.
    fn after(self, over: Duration) -> Self {
        match self {
            Self::FailAtOnce => self,
            Self::BackOff(it) => {
                Self::BackOff(BackOff { total: it.total.saturating_sub(over), ..it })
            }
            Self::WaitToBeTold(it) => {
                Self::WaitToBeTold(Patience { total: it.total.saturating_sub(over), ..it })
            }
        }
    }
}

/// The place of somebody who does not stand in the line.
fn place_behind(holder: Holder) -> Place {
    let ends = Instant::now().checked_add(holder.ttl);
    let retry_at = ends.unwrap_or_else(Instant::now);
    Place { position: holder.waiting + 1, holder, retry_at }
}

fn outcome(tried: &Result<Guard, LockError>) -> &'static str {
    match tried {
        Ok(_) => "granted",
        Err(LockError::Busy(_)) => "busy",
        Err(LockError::WaitTimeout(_)) => "timeout",
        Err(LockError::Lost(_) | LockError::Unavailable(_)) => "failed",
    }
}

/// Who holds what no person asked for: the process.
pub(in crate::locks) fn process_owner(server: crate::domain::ids::NodeId) -> Owner {
    let id = server.to_string().parse().unwrap_or_else(|_| crate::domain::ids::UserId::generate());
    Owner { user: User { id, name: String::new() }, node: server, pass: None }
}
