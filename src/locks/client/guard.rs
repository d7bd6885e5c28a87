//! Locks in hand.
//!
//! A guard is owned, and there is one of it: moving it into a task hands the lock over, and
//! nothing is re-entrant because there is nothing to re-enter with. It needs no task of its own.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::select_all;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::locks::Locks;
use crate::locks::client::guard_state::Hold;
use crate::locks::name::LockName;
use crate::locks::renewal::lease::Kept;
use crate::locks::renewal::lease::Tenant as _;
use crate::locks::types::{LocksError, Loss, Released, Verdict};

/// A lock that is held, from [`Locks::lock`] and its like.
///
/// Dropped, it is released in the background; [`Guard::release`] does so in the foreground and
/// says what came of it. Either way it is renewed no more from that moment.
///
/// It is `Send`, to be moved into a task, and there is one of it:
///
/// ```compile_fail,E0599
/// fn twice(guard: galley::locks::Guard) -> [galley::locks::Guard; 2] {
///     [guard.clone(), guard]
/// }
/// ```
#[must_use = "who drops it releases the lock"]
#[derive(Debug)]
pub struct Guard {
    locks: Locks,
    hold: Arc<Hold>,
    /// Its place in the register; none once it is out of it.
    kept: Option<Kept>,
}

impl Guard {
    pub(in crate::locks) fn new(locks: Locks, hold: Arc<Hold>, kept: Kept) -> Self {
        Self { locks, hold, kept: Some(kept) }
    }

    /// Which lock.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.hold.held.name
    }

    /// The number of the grant, for whatever can refuse lower ones.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold.held.fence
    }

    /// Since when, by the clock of whoever keeps the locks.
    #[must_use]
    pub fn since(&self) -> DateTime<Utc> {
        self.hold.held.since
    }

    /// How long the lock lives after each renewal.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.hold.rhythm.ttl
    }

    /// Whether it is held for certain, by this process's own clock. To be asked before each step
    /// that only the holder may take.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.loss(Instant::now()).is_none()
    }

    /// Resolves when the lock is lost, and says how. By then nobody else can have had it for
    /// longer than it took to hear of it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: once it is, every call says so.
    pub async fn lost(&self) -> Loss {
        self.hold.lost().await
    }

    /// Gives it back, and says whether it was still held.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer. The release is made in the background.
    ///
    /// # Cancel safety
    ///
    /// A release that is dropped while it is under way is made in the background.
    pub async fn release(mut self) -> Result<Released, LocksError> {
        let (hold, locks) = (Arc::clone(&self.hold), self.locks.clone());
        if hold.loss(Instant::now()).is_some() {
            // Dropped, it is released as well: it may be held still as Redis sees it.
            return Ok(Released::NotHeld);
        }
        if self.stop_keeping() {
            locks.release_after(&hold.held.name, &hold.held.value, hold.rest()).await
        } else {
            Ok(Released::NotHeld)
        }
    }

    /// Makes a lease whole that was handed over short, in the background and at once.
    pub(in crate::locks) fn make_whole(&self) {
        let (hold, locks) = (Arc::clone(&self.hold), self.locks.clone());
        let ttl = hold.rhythm.ttl;
        self.locks.0.tasks.spawn(async move {
            match locks.0.keeper.keep(&hold.held, ttl).await {
                Ok(Some(sent_at)) => hold.renewed(sent_at, Verdict::Renewed),
                // Lost, or not to be known: a round tells, and tries again.
                Ok(None) | Err(_) => locks.renew_ahead(ttl),
            }
        });
    }

    /// Gives it back in the background, if that is not done yet; nobody gets it for `rest`.
    fn free_after(&mut self, rest: Duration) {
        if self.stop_keeping() {
            let held = &self.hold.held;
            self.locks.0.keeper.release_soon(&held.name, &held.value, rest);
        }
    }

    /// Takes it out of the register. True for the first time.
    fn stop_keeping(&mut self) -> bool {
        let Some(kept) = self.kept.take() else { return false };
        let took = self.hold.began.elapsed();
        let class = self.hold.held.name.class();
        self.locks.0.alarms.ended(class, self.hold.began);
        metrics::histogram!("galley_lock_hold_seconds", "class" => class.to_owned()).record(took);
        if self.hold.loss(Instant::now()).is_none() {
            self.locks.0.estimates.learn(class, took);
        }
        kept.end()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.free_after(self.hold.rest());
    }
}

/// Several locks that are held, from [`Locks::lock_all`].
#[must_use = "who drops them releases the locks"]
#[derive(Debug)]
pub struct Guards(Vec<Guard>);

impl Guards {
    /// Each of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter()
    }

    /// Whether all are held for certain.
    #[must_use]
    pub fn are_held(&self) -> bool {
        self.0.iter().all(Guard::is_held)
    }

    /// Resolves when any is lost, and says which and how. Never, if there is none.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: once one is, every call says so.
    pub async fn lost(&self) -> (&LockName, Loss) {
        if self.0.is_empty() {
            std::future::pending::<()>().await;
        }
        let each =
            self.0.iter().map(|guard| Box::pin(async move { (guard.name(), guard.lost().await) }));
        select_all(each).await.0
    }

    /// Gives all back, the last one first, and says whether all were still held.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer. What is left is released in the background.
    ///
    /// # Cancel safety
    ///
    /// What is left is released in the background.
    pub async fn release(mut self) -> Result<Released, LocksError> {
        let mut all = Released::Freed;
        while let Some(guard) = self.0.pop() {
            if guard.release().await? == Released::NotHeld {
                all = Released::NotHeld;
            }
        }
        Ok(all)
    }
}

/// Some of several locks, while the others are asked for. Dropped, they are free at once, however
/// long they were to be had at least: nobody has begun what that is for.
#[derive(Debug)]
pub(in crate::locks) struct Part(pub(in crate::locks) Vec<Guard>);

impl Part {
    /// They are all.
    pub(in crate::locks) fn whole(mut self) -> Guards {
        Guards(std::mem::take(&mut self.0))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|guard| guard.free_after(Duration::ZERO));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::client::options::Wish;

    fn may_move(_it: impl Send + 'static) {}

    #[test]
    fn a_guard_and_what_gives_it_may_move_into_a_task() {
        let _compiles = |guard: Guard, guards: Guards| {
            may_move(guard);
            may_move(guards);
        };
        let _compiles = |locks: Locks, name: LockName, wish: Wish| {
            may_move(async move {
                let guard = locks.lock(&name, &wish).await?;
                locks.with_lock(&name, &wish, async |_fence| ()).await?;
                guard.lost().await;
                drop(guard.release().await);
                locks.lock_all(&[name], &wish).await
            });
        };
    }
}
