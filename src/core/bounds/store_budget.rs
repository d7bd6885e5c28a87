//! Store budgets: the bytes that the guests of one address may store in an hour (G17).
//!
//! Guest accounts are free, so a quota for each user does not bound what one person stores. All
//! guests of an address share a budget. The server charges new documents and accepted edits to it.
//! A session holds a handle of the budget, so the charge for an edit is one atomic operation,
//! without a lock or a look-up.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds.
const HOUR: u64 = 3_600 * 1_000_000_000;

/// The budget of one address. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct StoreBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    per_hour: NonZeroU32,
    /// When the budget was made. Times count in nanoseconds from it.
    made: Instant,
    /// When the budget is full again.
    full_at: AtomicU64,
}

impl StoreBudget {
    /// A full budget: `per_hour` bytes at once, and as many again within an hour.
    #[must_use]
    pub fn new(per_hour: NonZeroU32) -> Self {
        Self(Arc::new(Inner { per_hour, made: Instant::now(), full_at: AtomicU64::new(0) }))
    }

    /// Charges bytes that are about to be stored. A larger update than the whole budget costs all of
    /// it. Otherwise a small setting would reject an edit of one message for ever. `Err` is the wait
    /// until the budget has room for them; it charges nothing.
    pub fn charge(&self, bytes: usize) -> Result<(), Duration> {
        let full_at = &self.0.full_at;
        let now = self.now();
        let charge = |end| self.charged(end, bytes, now).ok();
        match full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charge) {
            Ok(_before) => Ok(()),
            Err(end) => self.charged(end, bytes, now).map(drop),
        }
    }

    /// Releases bytes that were charged and are not stored.
    pub fn release(&self, bytes: usize) {
        let cost = self.cost(bytes);
        let release = |end: u64| Some(end.saturating_sub(cost));
        let _before = self.0.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, release);
    }

    /// Checks whether the budget has room for the bytes that a client announces. `Err` is the wait until
    /// it has. An announcement takes no share from the other guests of the address.
    pub fn check(&self, announced: usize) -> Result<(), Duration> {
        self.charged(self.0.full_at.load(Ordering::Relaxed), announced, self.now()).map(drop)
    }

    /// When a budget that is full at `end` is full again after the bytes, or the wait for them.
    fn charged(&self, end: u64, bytes: usize, now: u64) -> Result<u64, Duration> {
        let end = end.max(now) + self.cost(bytes);
        match end.saturating_sub(now + HOUR) {
            0 => Ok(end),
            wait => Err(Duration::from_nanos(wait)),
        }
    }

    fn cost(&self, bytes: usize) -> u64 {
        let per_hour = u64::from(self.0.per_hour.get());
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).clamp(1, per_hour);
        bytes * (HOUR / per_hour)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.made.elapsed().as_nanos()).unwrap_or(u64::MAX / 2)
    }

    /// Whether the budget is full and has no other handle. A new budget equals it, so its owner may
    /// drop it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.full_at.load(Ordering::Relaxed) <= self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(per_hour: u32) -> StoreBudget {
        StoreBudget::new(NonZeroU32::new(per_hour).expect("not zero"))
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
    fn g17_released_bytes_are_there_again() {
        let budget = budget(65_536);
        for _ in 0..10 {
            assert_eq!(budget.charge(60_000), Ok(()));
            assert!(budget.charge(60_000).is_err());
            budget.release(60_000);
        }
    }

    #[test]
    fn g13_a_store_budget_stays_while_it_is_spent_or_in_use() {
        let spent = budget(65_536);
        assert_eq!(spent.charge(10_000), Ok(()));
        assert!(!spent.is_idle());
        let used = budget(65_536);
        let handle = used.clone();
        assert!(!used.is_idle());
        drop(handle);
        assert!(used.is_idle());
    }
}
