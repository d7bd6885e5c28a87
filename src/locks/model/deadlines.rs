//! What a holder believes of its lock: the real rule of guards, and wrong ones for comparison.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::locks::client::guard_state::Hold;
use crate::locks::client::options::Rhythm;
use crate::locks::renewal::lease::Tenant;
use crate::locks::types::{Held, Loss, Verdict};

/// How the holder of a lock keeps count of its trust in it.
pub(crate) trait Belief {
    /// It was given by what left at `sent_at` and was answered at `now`.
    fn begin(held: Held, ttl: Duration, sent_at: Instant, now: Instant) -> Self;
    /// It was renewed by what left at `sent_at` and was answered at `now`.
    fn renewed(&self, sent_at: Instant, now: Instant);
    /// Whether a write may go through.
    fn may_write(&self, now: Instant) -> bool;
    /// The scheduler comes by. False if there is nothing to be renewed any more.
    fn visit(&self, now: Instant) -> bool;
    /// It is given back, or lost.
    fn end(&self);
}

/// That of guards ([`Hold`]). What was lost by the clock is lost for good.
///
/// The model's clocks are all ahead of this process's own, by more than any test takes: where a
/// hold looks at that one, it sees a lock that is held.
impl Belief for Hold {
    fn begin(held: Held, ttl: Duration, sent_at: Instant, _now: Instant) -> Self {
        let rhythm = Rhythm { ttl, renew_every: Some(ttl / 3) };
        Self::new(held, rhythm, sent_at, Duration::ZERO, None)
    }

    fn renewed(&self, sent_at: Instant, now: Instant) {
        // By the model's clock first: what is lost stays so.
        if self.loss(now).is_none() {
            Tenant::renewed(self, sent_at, Verdict::Renewed);
        }
    }

    fn may_write(&self, now: Instant) -> bool {
        self.loss(now).is_none()
    }

    fn visit(&self, now: Instant) -> bool {
        self.loss(now).is_none()
    }

    fn end(&self) {
        Tenant::lost(self, Loss::Closed);
    }
}

/// Wrong: trusts the lock from when the answer came.
pub(crate) struct CountsFromReply(Hold);

impl Belief for CountsFromReply {
    fn begin(held: Held, ttl: Duration, _sent_at: Instant, now: Instant) -> Self {
        Self(Hold::begin(held, ttl, now, now))
    }

    fn renewed(&self, _sent_at: Instant, now: Instant) {
        Belief::renewed(&self.0, now, now);
    }

    fn may_write(&self, now: Instant) -> bool {
        self.0.may_write(now)
    }

    fn visit(&self, now: Instant) -> bool {
        self.0.visit(now)
    }

    fn end(&self) {
        self.0.end();
    }
}

/// Wrong: trusts the lock until somebody says that it is lost.
pub(crate) struct NeverDoubts(AtomicBool);

impl Belief for NeverDoubts {
    fn begin(_held: Held, _ttl: Duration, _sent_at: Instant, _now: Instant) -> Self {
        Self(AtomicBool::new(true))
    }

    fn renewed(&self, _sent_at: Instant, _now: Instant) {}

    fn may_write(&self, _now: Instant) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn visit(&self, _now: Instant) -> bool {
        true
    }

    fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
