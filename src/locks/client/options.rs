//! Options of an acquisition: policy, lease, minimum and maximum hold.

use std::time::Duration;

use tokio::time::Instant;

use galley_domain::fence::Fence;
use galley_domain::lease;

/// The shortest and the longest lease. Below the minimum, renewals would come faster than a busy
/// machine can send them. Above the maximum, the lock of a dead holder would stay held for hours.
pub(crate) const LEASES: (Duration, Duration) =
    (Duration::from_millis(60), Duration::from_secs(60 * 60));

const LEARNT_MIN: Duration = Duration::from_secs(1);

/// How a claimant proceeds when the lock is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It fails with the current holder.
    FailAtOnce,
    /// It retries after growing pauses. For short sections with few claimants.
    BackOff(BackOff),
    /// It joins the wait queue.
    Queue(WaitPolicy),
}

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first pause. Each pause is drawn between half and all of its length, so that
    /// simultaneous claimants do not retry together.
    pub first: Duration,
    /// Each pause doubles, up to this.
    pub most: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// The total time. The last attempt begins before it ends.
    pub total: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(1));
        Self { first, most, retries: 3, total: Duration::from_secs(5) }
    }
}

/// Times of a wait in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// The longest interval between two polls without a message.
    pub slice: Duration,
    /// The total time.
    pub total: Duration,
}

/// The lease of a lock and its renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// This lease, never renewed.
    Fixed(Duration),
    /// As long as the guard lives, and at most this lease after the process died. Renewed every
    /// third of it.
    Renewed(Duration),
    /// For work of this estimated length: a lease of one and a half times as long, renewed every
    /// half.
    Estimated(Duration),
    /// As [`Lease::Estimated`], by the 95th percentile of this process's earlier holds of the class,
    /// but at least a second, or the given estimate if that is shorter: a busy Redis delays renewals by
    /// more than the holds of a short job take. The given estimate applies until enough holds are
    /// recorded.
    Learnt(Duration),
}

/// TTL and renewal interval of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalTiming {
    pub(crate) ttl: Duration,
    /// None for a lease without renewal.
    pub(crate) renew_every: Option<Duration>,
}

impl RenewalTiming {
    /// A lease of `ttl`, renewed once `every` interval. Both are clamped: a lease lasts 60 ms to an
    /// hour, with at least two renewals in it.
    #[must_use]
    pub fn new(ttl: Duration, every: Duration) -> Self {
        let ttl = ttl.clamp(LEASES.0, LEASES.1);
        Self { ttl, renew_every: Some(every.clamp(LEASES.0 / 3, ttl / 2)) }
    }

    /// The TTL after each renewal.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The deadline after the last successful claim or renewal was sent at `sent_at`: as
    /// [`LeaseTerms::trusted_until`](galley_domain::lease::LeaseTerms::trusted_until).
    #[must_use]
    pub fn trusted_until(&self, sent_at: Instant) -> Instant {
        lease::trusted_until(sent_at, self.ttl)
    }
}

impl Lease {
    /// TTL and renewal interval, where `learnt` is the estimate from earlier holds, if any.
    pub(crate) fn timing(self, learnt: Option<Duration>) -> RenewalTiming {
        let bounded = |ttl: Duration| ttl.clamp(LEASES.0, LEASES.1);
        match self {
            Self::Fixed(ttl) => RenewalTiming { ttl: bounded(ttl), renew_every: None },
            // The lease of an estimate is three halves of it: two renewals may fail in each lease.
            Self::Renewed(ttl) => renewed_thrice(bounded(ttl)),
            Self::Estimated(work) => renewed_thrice(bounded(work.saturating_mul(3) / 2)),
            Self::Learnt(guess) => Self::Estimated(estimated(learnt, guess)).timing(None),
        }
    }
}

/// The estimate from earlier holds, or the caller's.
pub(crate) fn estimated(learnt: Option<Duration>, guess: Duration) -> Duration {
    learnt.map_or(guess, |learnt| learnt.max(guess.min(LEARNT_MIN)))
}

fn renewed_thrice(ttl: Duration) -> RenewalTiming {
    RenewalTiming { ttl, renew_every: Some(ttl / 3) }
}

/// Options of an acquisition.
#[derive(Clone, Debug)]
pub struct AcquireOptions {
    /// How the claimant proceeds when the lock is busy.
    pub policy: Policy,
    /// The lease and its renewal.
    pub lease: Lease,
    /// Minimum hold: an earlier release frees the lock only after this time. Two servers with
    /// different clocks then do not run a short job twice. The release enforces it: if the holder
    /// dies or cannot reach the backend, the lock is free when its lease ends, even before the
    /// minimum.
    pub min_hold: Duration,
    /// Maximum hold: the lock is lost after this time, even with a live holder.
    pub max_hold: Option<Duration>,
    /// The last fence that the database ratified for this lock, if it ratifies fences.
    pub floor: Fence,
}

impl AcquireOptions {
    /// Options with `lease` that fail at once on a busy lock.
    #[must_use]
    pub fn new(lease: Lease) -> Self {
        Self {
            policy: Policy::FailAtOnce,
            lease,
            min_hold: Duration::ZERO,
            max_hold: None,
            floor: Fence::ZERO,
        }
    }

    /// Sets the policy.
    #[must_use]
    pub fn with(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Retries with the default back-off: 100, 200, 400 ms, five seconds in all.
    #[must_use]
    pub fn backing_off(self) -> Self {
        self.with(Policy::BackOff(BackOff::default()))
    }

    /// Sets the minimum hold.
    #[must_use]
    pub fn for_at_least(self, min_hold: Duration) -> Self {
        Self { min_hold, ..self }
    }

    /// Sets the maximum hold.
    #[must_use]
    pub fn for_at_most(self, max_hold: Duration) -> Self {
        Self { max_hold: Some(max_hold), ..self }
    }

    /// Demands a fence above the last that the database ratified.
    #[must_use]
    pub fn above(self, floor: Fence) -> Self {
        Self { floor, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_from_an_estimate_is_half_longer_and_renewed_every_half() {
        let work = Duration::from_secs(10);
        let by_estimate = Lease::Estimated(work).timing(None);
        assert_eq!(by_estimate.ttl, Duration::from_secs(15));
        assert_eq!(by_estimate.renew_every, Some(Duration::from_secs(5)));
        assert_eq!(Lease::Learnt(work).timing(None), by_estimate);
        let learnt = Lease::Learnt(work).timing(Some(Duration::from_secs(2)));
        assert_eq!(
            (learnt.ttl, learnt.renew_every),
            (Duration::from_secs(3), Some(Duration::from_secs(1)))
        );
        let short = Duration::from_millis(4);
        assert_eq!(Lease::Learnt(work).timing(Some(short)).ttl, Duration::from_millis(1_500));
        let guess = Duration::from_millis(100);
        assert_eq!(Lease::Learnt(guess).timing(Some(short)).ttl, Duration::from_millis(150));
    }

    #[test]
    fn g13_a_lease_has_bounds() {
        assert_eq!(Lease::Fixed(Duration::ZERO).timing(None).ttl, LEASES.0);
        assert_eq!(Lease::Estimated(Duration::MAX).timing(None).ttl, LEASES.1);
        assert_eq!(
            RenewalTiming::new(Duration::ZERO, Duration::ZERO).renew_every,
            Some(LEASES.0 / 3)
        );
        assert_eq!(
            RenewalTiming::new(Duration::MAX, Duration::MAX).renew_every,
            Some(LEASES.1 / 2)
        );
        assert_eq!(Lease::Renewed(Duration::ZERO).timing(None).renew_every, Some(LEASES.0 / 3));
    }
}
