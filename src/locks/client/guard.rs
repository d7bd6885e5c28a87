//! Guards of held locks.
//!
//! A guard is owned and cannot be cloned. A move into a task moves the lock. Locks are not
//! re-entrant: a second acquisition by the holder competes like any other. A guard needs no task of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::Locks;
use crate::client::guard_state::GuardState;
use crate::name::LockName;
use crate::renewal::lease::LeaseHolder as _;
use crate::renewal::lease::Registration;
use crate::types::{LocksError, Loss, Released, Verdict};
use galley_domain::fence::Fence;

/// A held lock, from [`Locks::lock`] and its variants.
///
/// A drop releases the lock in the background. [`Guard::release`] awaits the release and returns
/// its result. Renewal stops at that moment in both cases.
///
/// A guard is `Send`, so it can move into a task, and it cannot be cloned:
///
/// ```compile_fail,E0599
/// fn twice(guard: galley_locks::Guard) -> [galley_locks::Guard; 2] {
///     [guard.clone(), guard]
/// }
/// ```
#[must_use = "a drop releases the lock"]
#[derive(Debug)]
pub struct Guard {
    locks: Locks,
    state: Arc<GuardState>,
    /// The guard's registration with the renewal actor; none once removed.
    registration: Option<Registration>,
}

impl Guard {
    pub(crate) fn new(locks: Locks, state: Arc<GuardState>, registration: Registration) -> Self {
        Self { locks, state, registration: Some(registration) }
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.state.held.name
    }

    /// The fence of the grant, for resources that reject lower fences.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.held.fence
    }

    /// The time of the grant, by the backend's clock.
    #[must_use]
    pub fn since(&self) -> DateTime<Utc> {
        self.state.held.since
    }

    /// The TTL after each renewal.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.state.timing.ttl
    }

    /// Whether the guard certainly holds the lock: no verdict reported its loss, and its deadline,
    /// by this process's own clock, has not passed. Callers check this before each step that
    /// requires the lock.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.state.loss(Instant::now()).is_none()
    }

    /// Resolves with the reason when the lock is lost. Another holder can have acquired the lock at
    /// most one notification delay earlier.
    ///
    /// # Cancel safety
    ///
    /// Once the lock is lost, every call resolves at once.
    pub async fn lost(&self) -> Loss {
        self.state.lost().await
    }

    /// Releases the lock, and returns whether the guard still held it.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply. A background task retries the release.
    ///
    /// # Cancel safety
    ///
    /// A background task finishes a release that is dropped in flight.
    pub async fn release(mut self) -> Result<Released, LocksError> {
        let (state, locks) = (Arc::clone(&self.state), self.locks.clone());
        if state.loss(Instant::now()).is_some() {
            // The drop releases it too: Redis may still store the key.
            return Ok(Released::NotHeld);
        }
        if self.end_renewal() {
            locks.release_after(&state.held.name, &state.held.value, state.rest()).await
        } else {
            Ok(Released::NotHeld)
        }
    }

    /// Extends a short handed-over lease to its full TTL, at once and in the background.
    pub(crate) fn extend_to_full_ttl(&self) {
        let (state, locks) = (Arc::clone(&self.state), self.locks.clone());
        let ttl = state.timing.ttl;
        #[expect(clippy::disallowed_methods, reason = "one for each guard")]
        self.locks.0.tasks.spawn(async move {
            match locks.0.backend.renew_one(&state.held, ttl).await {
                Ok(Some(sent_at)) => state.renewed(sent_at, Verdict::Renewed),
                // Lost or unknown: the next renewal round decides and retries.
                Ok(None) | Err(_) => locks.renew_ahead(ttl),
            }
        });
    }

    /// Releases the lock in the background, unless that is done; the backend grants it to no other
    /// claimant for `rest`.
    fn free_after(&mut self, rest: Duration) {
        if self.end_renewal() {
            let held = &self.state.held;
            self.locks.0.backend.release_soon(&held.name, &held.value, rest);
        }
    }

    /// Removes the guard's registration. True for the first call, unless the actor removed it
    /// before.
    fn end_renewal(&mut self) -> bool {
        let Some(registration) = self.registration.take() else { return false };
        let took = self.state.began.elapsed();
        let class = self.state.held.name.class();
        self.locks.0.alarms.ended(class, self.state.began);
        metrics::histogram!("galley_lock_hold_seconds", "class" => class.to_owned()).record(took);
        if self.state.loss(Instant::now()).is_none() {
            self.locks.0.estimates.learn(class, took);
        }
        registration.end()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.free_after(self.state.rest());
    }
}

/// Several held locks, from [`Locks::lock_all`].
#[must_use = "a drop releases the locks"]
#[derive(Debug)]
pub struct Guards(Vec<Guard>);

impl Guards {
    /// Whether all guards certainly hold their locks.
    #[must_use]
    pub fn are_held(&self) -> bool {
        self.0.iter().all(Guard::is_held)
    }

    /// Releases all locks, the last first, and returns whether the guards still held all of them.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply. Background tasks release the remaining locks.
    ///
    /// # Cancel safety
    ///
    /// Background tasks release the remaining locks.
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

/// The guards acquired so far by [`Locks::lock_all`]. A drop frees their locks at once, without
/// minimum hold: the guarded work has not begun.
#[derive(Debug)]
pub(crate) struct PartialGuards(pub(crate) Vec<Guard>);

impl PartialGuards {
    pub(crate) fn whole(mut self) -> Guards {
        Guards(std::mem::take(&mut self.0))
    }
}

impl Drop for PartialGuards {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|guard| guard.free_after(Duration::ZERO));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::options::AcquireOptions;

    fn may_move(_it: impl Send + 'static) {}

    #[test]
    fn a_guard_and_its_acquisition_may_move_into_a_task() {
        let _compiles = |guard: Guard, guards: Guards| {
            may_move(guard);
            may_move(guards);
        };
        let _compiles = |locks: Locks, name: LockName, options: AcquireOptions| {
            may_move(async move {
                let guard = locks.lock(&name, &options).await?;
                locks.with_lock(&name, &options, async |_fence| ()).await?;
                guard.lost().await;
                drop(guard.release().await);
                locks.lock_all(&[name], &options).await
            });
        };
    }
}
