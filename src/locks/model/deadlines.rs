//! The holder's deadline: the real rule of guards, and wrong rules for comparison.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::guard_state::GuardState;
use crate::client::options::RenewalTiming;
use crate::renewal::lease::LeaseHolder;
use crate::types::{HeldLock, Loss, Verdict};

/// The rule by which the holder of a lock computes its deadline.
pub trait DeadlineRule {
    /// The grant of a claim sent at `sent_at`, with its reply at `now`.
    fn begin(held: HeldLock, ttl: Duration, sent_at: Instant, now: Instant) -> Self;
    /// The renewal sent at `sent_at`, with its reply at `now`.
    fn renewed(&self, sent_at: Instant, now: Instant);
    /// Whether the holder may write.
    fn may_write(&self, now: Instant) -> bool;
    /// The renewal task checks the lock. Returns false if it no longer renews it.
    fn is_renewable(&self, now: Instant) -> bool;
    /// The lock is released or lost.
    fn end(&self);
}

/// The rule of guards ([`GuardState`]). A lock stays lost after its deadline.
///
/// The model's clocks are ahead of this process's clock by more than any test takes. Where a guard
/// state reads the process's clock, the lock is held.
impl DeadlineRule for GuardState {
    fn begin(held: HeldLock, ttl: Duration, sent_at: Instant, _now: Instant) -> Self {
        let timing = RenewalTiming { ttl, renew_every: Some(ttl / 3) };
        Self::new(held, timing, sent_at, Duration::ZERO, None)
    }

    fn renewed(&self, sent_at: Instant, now: Instant) {
        // First by the model's clock: a lost lock stays lost.
        if self.loss(now).is_none() {
            LeaseHolder::renewed(self, sent_at, Verdict::Renewed);
        }
    }

    fn may_write(&self, now: Instant) -> bool {
        self.loss(now).is_none()
    }

    fn is_renewable(&self, now: Instant) -> bool {
        self.loss(now).is_none()
    }

    fn end(&self) {
        LeaseHolder::lost(self, Loss::Closed);
    }
}

/// Wrong: computes the deadline from the time of the reply.
pub(crate) struct CountsFromReply(GuardState);

impl DeadlineRule for CountsFromReply {
    fn begin(held: HeldLock, ttl: Duration, _sent_at: Instant, now: Instant) -> Self {
        Self(GuardState::begin(held, ttl, now, now))
    }

    fn renewed(&self, _sent_at: Instant, now: Instant) {
        DeadlineRule::renewed(&self.0, now, now);
    }

    fn may_write(&self, now: Instant) -> bool {
        self.0.may_write(now)
    }

    fn is_renewable(&self, now: Instant) -> bool {
        self.0.is_renewable(now)
    }

    fn end(&self) {
        self.0.end();
    }
}

/// Wrong: holds the lock until a verdict is `Lost`.
pub(crate) struct NeverDoubts(AtomicBool);

impl DeadlineRule for NeverDoubts {
    fn begin(_held: HeldLock, _ttl: Duration, _sent_at: Instant, _now: Instant) -> Self {
        Self(AtomicBool::new(true))
    }

    fn renewed(&self, _sent_at: Instant, _now: Instant) {}

    fn may_write(&self, _now: Instant) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn is_renewable(&self, _now: Instant) -> bool {
        true
    }

    fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
