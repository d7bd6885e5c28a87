//! Store budgets: the bytes that the guests of one address may store in an hour (G17).
//!
//! Guest accounts are free, so a quota for each user does not bound what one person stores. All
//! guests of an address share a budget. The server charges new documents and accepted edits to it.
//! A session holds a handle of the budget, so the charge for an edit is one atomic operation,
//! without a lock or a look-up.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

const HOUR: Duration = Duration::from_secs(3_600);

/// The budget of one address. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct StoreBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
    per_hour: NonZeroU32,
    clock: DefaultClock,
}

impl StoreBudget {
    /// A full budget: `per_hour` bytes at once, and as many again within an hour.
    #[must_use]
    pub fn new(per_hour: NonZeroU32, clock: &DefaultClock) -> Self {
        let every = (HOUR / per_hour.get()).max(Duration::from_nanos(1));
        let quota = Quota::with_period(every).unwrap_or_else(|| Quota::per_hour(per_hour));
        // One byte more, which `check` spends.
        let quota = quota.allow_burst(per_hour.saturating_add(1));
        let bytes = RateLimiter::direct_with_clock(quota, clock.clone()).with_middleware();
        Self(Arc::new(Inner { bytes, per_hour, clock: clock.clone() }))
    }

    /// Charges bytes that are about to be stored. A larger update than the whole budget costs all of
    /// it. Otherwise a small setting would reject an edit of one message for ever. `Err` is the wait
    /// until the budget has room for them.
    pub fn charge(&self, bytes: usize) -> Result<(), Duration> {
        self.spend(bytes).map(drop)
    }

    /// Checks whether the budget has room for the bytes that a client announces. The check spends one
    /// byte: an announcement alone takes no share from the other guests of the address. `Err` is the
    /// wait until the budget has room for them.
    pub fn check(&self, announced: usize) -> Result<(), Duration> {
        let left = self.spend(1)?;
        let per_hour = self.0.per_hour.get();
        let announced = u32::try_from(announced).unwrap_or(u32::MAX).min(per_hour);
        match announced.saturating_sub(left) {
            0 => Ok(()),
            missing => Err(HOUR.mul_f64(f64::from(missing) / f64::from(per_hour))),
        }
    }

    fn spend(&self, bytes: usize) -> Result<u32, Duration> {
        let Inner { bytes: bucket, per_hour, clock } = &*self.0;
        let bytes = NonZeroU32::new(u32::try_from(bytes).unwrap_or(u32::MAX));
        let bytes = bytes.unwrap_or(NonZeroU32::MIN).min(*per_hour);
        match bucket.check_n(bytes) {
            Ok(Ok(state)) => Ok(state.remaining_burst_capacity()),
            Ok(Err(until)) => Err(until.wait_time_from(clock.now())),
            // Excluded by the minimum above.
            Err(_) => Err(HOUR),
        }
    }

    /// Whether the budget is full and has no other handle. A new budget equals it, so its owner may
    /// drop it. The check spends the budget.
    #[must_use]
    pub fn take_if_full(&self) -> bool {
        Arc::strong_count(&self.0) == 1
            && matches!(self.0.bytes.check_n(self.0.per_hour), Ok(Ok(_full)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(per_hour: u32) -> StoreBudget {
        StoreBudget::new(NonZeroU32::new(per_hour).expect("not zero"), &DefaultClock::default())
    }

    #[test]
    fn g17_all_handles_of_a_store_budget_spend_the_same_bytes() {
        let budget = budget(1_000_000);
        let other = budget.clone();
        assert_eq!(budget.charge(600_000), Ok(()));
        let wait = other.charge(600_000).expect_err("a fifth is missing");
        assert!((600..=720).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(other.charge(300_000), Ok(()));
    }

    #[test]
    fn g17_an_edit_above_a_whole_store_budget_takes_all_of_it() {
        let budget = budget(65_536);
        assert_eq!(budget.charge(2_000_000), Ok(()));
        assert!(budget.charge(1_000).is_err());
    }

    #[test]
    fn g17_an_announcement_above_the_rest_of_a_store_budget_is_rejected_and_takes_nothing() {
        let budget = budget(1_000_000);
        assert_eq!(budget.check(usize::MAX), Ok(()));
        assert_eq!(budget.charge(600_000), Ok(()));
        for _ in 0..100 {
            let wait = budget.check(600_000).expect_err("a fifth is missing");
            assert!((600..=720).contains(&wait.as_secs()), "{wait:?}");
        }
        assert_eq!(budget.check(300_000), Ok(()));
        assert_eq!(budget.charge(399_000), Ok(()));
    }

    #[test]
    fn g13_a_store_budget_stays_while_it_is_spent_or_in_use() {
        let spent = budget(65_536);
        assert_eq!(spent.charge(10_000), Ok(()));
        assert!(!spent.take_if_full());
        let used = budget(65_536);
        let handle = used.clone();
        assert!(!used.take_if_full());
        drop(handle);
        assert!(used.take_if_full());
    }
}
