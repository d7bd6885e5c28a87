//! How somebody wants a lock: how long they try for it, and how long they have it.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::locks::types::Owner;

/// The shortest and the longest lease. Below, renewals would come faster than a busy machine can
/// send them; above, a holder that died is found out by nobody.
pub(in crate::locks) const LEASES: (Duration, Duration) =
    (Duration::from_millis(60), Duration::from_secs(60 * 60));

/// What is done when somebody else has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing: that it is busy is an answer.
    FailAtOnce,
    /// It is tried again, after longer and longer pauses. For short sections that few want.
    BackOff(BackOff),
    /// One stands in the line until it is one's turn.
    WaitToBeTold(Patience),
}

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first one. Each is between half of what it may be and all of that, so that those who
    /// came together do not come back together.
    pub first: Duration,
    /// Each is twice the one before, up to this.
    pub most: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// How long it may all take. The last attempt begins before.
    pub total: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(1));
        Self { first, most, retries: 3, total: Duration::from_secs(5) }
    }
}

/// How long one waits in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// One looks this often even if nothing is told.
    pub slice: Duration,
    /// How long in all.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { slice: Duration::from_secs(1), total: Duration::from_secs(10) }
    }
}

/// How long a lock is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// For so long and no longer.
    Fixed(Duration),
    /// As long as the guard lives, and for no longer than this after its process died. Renewed each
    /// third of it.
    KeptAlive(Duration),
    /// For work that takes about so long: a lease of one and a half of that, renewed each half.
    Estimated(Duration),
    /// The same, where the estimate is what nineteen of twenty earlier holds of the class stayed
    /// below, in this process. This one counts until there are enough of them.
    Learnt(Duration),
}

/// The times of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    pub(in crate::locks) ttl: Duration,
    /// None if it is not renewed.
    pub(in crate::locks) renew_every: Option<Duration>,
}

impl Rhythm {
    /// A lock that lives for `ttl` after each renewal, of which there is one `every` so often. Both
    /// are kept within bounds: a lease is 60 ms to an hour long, and renewed twice in it at least.
    #[must_use]
    pub fn new(ttl: Duration, every: Duration) -> Self {
        let ttl = ttl.clamp(LEASES.0, LEASES.1);
        Self { ttl, renew_every: Some(every.clamp(LEASES.0 / 3, ttl / 2)) }
    }

    /// How long it lives after each renewal.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Until when its holder may trust in a lock whose last good claim or renewal was sent at
    /// `sent_at`: as [`LeaseTerms::trusted_until`](crate::domain::lease::LeaseTerms::trusted_until).
    #[must_use]
    pub fn trusted_until(&self, sent_at: Instant) -> Instant {
        sent_at + self.ttl - self.ttl / 8
    }
}

impl Lease {
    /// The times, where `learnt` is what earlier holds took, if that is known.
    pub(in crate::locks) fn rhythm(self, learnt: Option<Duration>) -> Rhythm {
        let bounded = |ttl: Duration| ttl.clamp(LEASES.0, LEASES.1);
        match self {
            Self::Fixed(ttl) => Rhythm { ttl: bounded(ttl), renew_every: None },
            // An estimate's lease is three of its halves: two renewals may fail in each.
            Self::KeptAlive(ttl) => renewed_thrice(bounded(ttl)),
            Self::Estimated(work) => renewed_thrice(bounded(work.saturating_mul(3) / 2)),
            Self::Learnt(guess) => Self::Estimated(learnt.unwrap_or(guess)).rhythm(None),
        }
    }
}

fn renewed_thrice(ttl: Duration) -> Rhythm {
    Rhythm { ttl, renew_every: Some(ttl / 3) }
}

/// How somebody wants a lock.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What is done when somebody else has it.
    pub policy: Policy,
    /// How long it is had.
    pub lease: Lease,
    /// Nobody else gets it for so long after it was given, even if it is given back before: a quick
    /// job is not run twice by two clocks that differ. Whoever gives it back sees to that: if the
    /// holder dies, or has no way to the keeper, it is free at the end of its lease, however soon.
    pub min_hold: Duration,
    /// It is taken away after so long, however alive its holder.
    pub max_hold: Option<Duration>,
    /// Who others are told has it. This process, if it is nobody.
    pub owner: Option<Owner>,
    /// The last fence that the database ratified for this lock, if it does that.
    pub floor: Fence,
}

impl Wish {
    /// To have it for `lease`, or fail at once.
    #[must_use]
    pub fn new(lease: Lease) -> Self {
        Self {
            policy: Policy::FailAtOnce,
            lease,
            min_hold: Duration::ZERO,
            max_hold: None,
            owner: None,
            floor: Fence::ZERO,
        }
    }

    /// The same, by another policy.
    #[must_use]
    pub fn with(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The same, backing off as usual: 100, 200, 400 ms, five seconds in all.
    #[must_use]
    pub fn backing_off(self) -> Self {
        self.with(Policy::BackOff(BackOff::default()))
    }

    /// The same, waiting in the line for at most `total`.
    #[must_use]
    pub fn waiting(self, total: Duration) -> Self {
        self.with(Policy::WaitToBeTold(Patience { total, ..Patience::default() }))
    }

    /// The same, had for no shorter.
    #[must_use]
    pub fn for_at_least(self, min_hold: Duration) -> Self {
        Self { min_hold, ..self }
    }

    /// The same, had for no longer.
    #[must_use]
    pub fn for_at_most(self, max_hold: Duration) -> Self {
        Self { max_hold: Some(max_hold), ..self }
    }

    /// The same, in the name of `owner`.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// The same, given above what the database ratified last.
    #[must_use]
    pub fn above(self, floor: Fence) -> Self {
        Self { floor, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_from_an_estimate_is_half_longer_and_renewed_each_half() {
        let work = Duration::from_secs(10);
        let by_estimate = Lease::Estimated(work).rhythm(None);
        assert_eq!(by_estimate.ttl, Duration::from_secs(15));
        assert_eq!(by_estimate.renew_every, Some(Duration::from_secs(5)));
        assert_eq!(Lease::Learnt(work).rhythm(None), by_estimate);
        let learnt = Lease::Learnt(work).rhythm(Some(Duration::from_secs(2)));
        assert_eq!(
            (learnt.ttl, learnt.renew_every),
            (Duration::from_secs(3), Some(Duration::from_secs(1)))
        );
    }

    #[test]
    fn g13_a_lease_has_bounds() {
        assert_eq!(Lease::Fixed(Duration::ZERO).rhythm(None).ttl, LEASES.0);
        assert_eq!(Lease::Estimated(Duration::MAX).rhythm(None).ttl, LEASES.1);
        assert_eq!(Rhythm::new(Duration::ZERO, Duration::ZERO).renew_every, Some(LEASES.0 / 3));
        assert_eq!(Rhythm::new(Duration::MAX, Duration::MAX).renew_every, Some(LEASES.1 / 2));
        assert_eq!(Lease::KeptAlive(Duration::ZERO).rhythm(None).renew_every, Some(LEASES.0 / 3));
    }
}
