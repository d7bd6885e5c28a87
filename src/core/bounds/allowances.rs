//! Token buckets by key, in time: a refused try costs nothing, and the error is the time after which the same
//! try passes.
//!
//! A try takes its part of the limit before the server begins, and its drop returns it. So a spent
//! address has no answer to any of many tries at the same moment. Names of users that no user has
//! are spent: they may be guesses, and otherwise the status of the next name would say whether a user
//! has it. A class room behind one address names its users as often as it likes. The limiters of
//! `governor` return nothing, so this bucket has its own arithmetic.
//!
//! A session of a guest holds the bucket of its address, so the charge for an edit is one atomic operation,
//! without a lock or a look-up.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Allowances<K = IpAddr> {
    terms: Terms,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// Times count in nanoseconds from `made`.
#[derive(Clone, Copy, Debug)]
struct Terms {
    made: Instant,
    /// The time in which a spent bucket is full again, and the part of it for one unit.
    period: u64,
    each: u64,
    most: NonZeroU32,
}

/// The bucket of one key. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct Bucket(Arc<Level>);

#[derive(Debug)]
struct Level {
    terms: Terms,
    /// When the bucket is full again.
    full_at: AtomicU64,
}

/// Units of a bucket: its drop returns them, `spend` uses them up. The default belongs to no bucket.
#[derive(Default)]
pub struct Allowance(Option<(Bucket, u64)>);

impl<K: Eq + Hash> Allowances<K> {
    /// Grants each key so many units at once, and as many again in `period`.
    pub fn per(period: Duration, most: NonZeroU32) -> Arc<Self> {
        let period = nanos(period);
        let terms =
            Terms { made: Instant::now(), period, each: period / u64::from(most.get()), most };
        Arc::new(Self { terms, buckets: Mutex::default() })
    }

    /// Grants each key so many units a second, and `burst` at once.
    pub fn rate(per_second: NonZeroU32, burst: NonZeroU32) -> Arc<Self> {
        let period = Duration::from_secs(burst.get().into()) / per_second.get();
        Self::per(period, burst)
    }

    /// One unit. The error is the time until the key has it.
    pub fn take(&self, key: K, now: Instant) -> Result<Allowance, Duration> {
        self.bucket(key).take(NonZeroU32::MIN, now)
    }

    pub fn bucket(&self, key: K) -> Bucket {
        let new = || Bucket(Arc::new(Level { terms: self.terms, full_at: AtomicU64::new(0) }));
        self.lock().entry(key).or_insert_with(new).clone()
    }

    /// Removes the buckets that are full again and that no session holds.
    pub fn forget_the_quiet(&self, now: Instant) {
        let now = self.terms.at(now);
        let is_full = |bucket: &Bucket| bucket.0.full_at.load(Ordering::Relaxed) <= now;
        self.lock().retain(|_, bucket| Arc::strong_count(&bucket.0) > 1 || !is_full(bucket));
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    /// Charges bytes that are about to be stored. `Err` is the wait until the bucket has them; it charges
    /// nothing.
    pub fn charge(&self, bytes: usize) -> Result<(), Duration> {
        self.take(units(bytes), Instant::now()).map(Allowance::spend)
    }

    /// Returns bytes that were charged and are not stored.
    pub fn release(&self, bytes: usize) {
        drop(Allowance(Some((self.clone(), self.0.terms.cost(units(bytes))))));
    }

    /// Whether the bucket has the bytes that a client announces. An announcement takes nothing from the
    /// other guests of the address.
    pub fn check(&self, announced: usize) -> Result<(), Duration> {
        let Level { terms, full_at } = &*self.0;
        let (cost, now) = (terms.cost(units(announced)), terms.at(Instant::now()));
        terms.charged(full_at.load(Ordering::Relaxed), cost, now).map(drop)
    }

    /// More units than a full bucket has cost all of them: a limit delays what another limit admits, and
    /// never refuses it for ever.
    fn take(&self, units: NonZeroU32, now: Instant) -> Result<Allowance, Duration> {
        let Level { terms, full_at } = &*self.0;
        let (cost, now) = (terms.cost(units), terms.at(now));
        let charge = |end| terms.charged(end, cost, now).ok();
        match full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charge) {
            Ok(_before) => Ok(Allowance(Some((self.clone(), cost)))),
            Err(end) => Err(terms.charged(end, cost, now).err().unwrap_or_default()),
        }
    }
}

impl Terms {
    /// When a bucket that is full at `end` is full again after that cost, or the wait for it.
    fn charged(&self, end: u64, cost: u64, now: u64) -> Result<u64, Duration> {
        let end = end.max(now).saturating_add(cost);
        match end.saturating_sub(now.saturating_add(self.period)) {
            0 => Ok(end),
            wait => Err(Duration::from_nanos(wait)),
        }
    }

    fn cost(&self, units: NonZeroU32) -> u64 {
        self.each * u64::from(units.min(self.most).get())
    }

    fn at(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.made))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

fn units(bytes: usize) -> NonZeroU32 {
    NonZeroU32::new(u32::try_from(bytes).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN)
}

impl Allowance {
    pub fn spend(mut self) {
        self.0 = None;
    }
}

/// Spends units of two buckets, or of none. The error is the time until both have them.
pub fn spend_both(
    one: Result<Allowance, Duration>,
    other: Result<Allowance, Duration>,
) -> Result<(), Duration> {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            one.spend();
            other.spend();
            Ok(())
        }
        (one, other) => Err(one.err().max(other.err()).unwrap_or_default()),
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        if let Some((bucket, cost)) = &self.0 {
            let returned = |end: u64| Some(end.saturating_sub(*cost));
            let _before =
                bucket.0.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, returned);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn g17_an_address_with_too_many_guesses_names_no_user() {
        let guesses = Allowances::per(MINUTE, NonZeroU32::MIN.saturating_add(29));
        let now = Instant::now();
        let take = |address, now| guesses.take(address, now).map(Allowance::spend);
        let name = |now| guesses.take(ADDRESS, now).map(drop);
        for _ in 0..100 {
            assert_eq!(name(now), Ok(()), "names of users spend nothing");
        }
        assert!((0..30).all(|_| take(ADDRESS, now).is_ok()));
        let wait = Err(Duration::from_secs(2));
        assert_eq!((take(ADDRESS, now), take(ADDRESS, now)), (wait, wait));
        assert_eq!(take(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), now), Ok(()));
        let later = now + Duration::from_secs(2);
        assert_eq!((name(later), name(later)), (Ok(()), Ok(())));
        assert_eq!((take(ADDRESS, later), take(ADDRESS, later)), (Ok(()), wait));
        let much_later = later + 2 * MINUTE;
        assert!((0..30).all(|_| take(ADDRESS, much_later).is_ok()));
        assert_eq!(take(ADDRESS, much_later), wait);
    }

    /// The end of the wait of a client that tries again and again before it.
    fn passed(take: impl Fn(Instant) -> Result<(), Duration>, now: Instant) -> Instant {
        let Err(wait) = take(now) else { return now };
        for part in (0..20).map(|part| wait * part / 20) {
            assert_eq!(take(now + part), Err(wait - part));
        }
        assert_eq!(take(now + wait), Ok(()), "the time is over");
        now + wait
    }

    /// A refused try spent what came back meanwhile, and one above the burst was refused for ever.
    #[test]
    fn g17_a_client_that_obeys_the_wait_passes_and_its_refused_tries_cost_nothing() {
        let units = |number| NonZeroU32::new(number).expect("units");
        for (per_second, burst) in [(1, 1), (128 * 1_024, 2 * 1_024 * 1_024), (7, 3), (3, 1_000)] {
            let bucket = Allowances::rate(units(per_second), units(burst));
            let mut now = Instant::now();
            for each in [1, burst / 2 + 1, burst, burst.saturating_mul(3), 1, burst] {
                let take = |at| bucket.bucket(ADDRESS).take(units(each), at).map(Allowance::spend);
                now = passed(take, now);
            }
        }
    }

    #[test]
    fn g17_a_refusal_of_one_of_two_buckets_costs_neither_and_names_the_later_time() {
        let (one, two) = (
            Allowances::per(MINUTE, NonZeroU32::MIN),
            Allowances::per(2 * MINUTE, NonZeroU32::MIN),
        );
        let now = Instant::now();
        two.take(ADDRESS, now).expect("the first").spend();
        let try_both = |now| spend_both(one.take(7, now), two.take(ADDRESS, now));
        assert_eq!((try_both(now), try_both(now)), (Err(2 * MINUTE), Err(2 * MINUTE)));
        one.take(7, now).expect("a refused try costs nothing").spend();
        assert_eq!(try_both(now), Err(2 * MINUTE));
        assert_eq!(try_both(now + 2 * MINUTE), Ok(()));
    }

    #[test]
    fn g13_full_buckets_are_removed() {
        let tries = Allowances::per(MINUTE, NonZeroU32::MIN);
        let now = Instant::now();
        tries.take(ADDRESS, now).expect("the first").spend();
        tries.forget_the_quiet(now);
        assert_eq!(tries.lock().len(), 1);
        tries.forget_the_quiet(now + MINUTE);
        assert!(tries.lock().is_empty());
    }

    fn budget(per_hour: u32) -> Bucket {
        let per_hour = NonZeroU32::new(per_hour).expect("not zero");
        Allowances::per(Duration::from_hours(1), per_hour).bucket(ADDRESS)
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
    fn g13_a_bucket_stays_while_it_is_spent_or_held() {
        let buckets = Allowances::per(Duration::from_hours(1), NonZeroU32::MAX);
        let held = buckets.bucket(ADDRESS);
        buckets.bucket(IpAddr::V4(Ipv4Addr::BROADCAST)).charge(10_000_000).expect("room");
        buckets.forget_the_quiet(Instant::now());
        assert_eq!(buckets.lock().len(), 2);
        drop(held);
        buckets.forget_the_quiet(Instant::now());
        assert_eq!(buckets.lock().len(), 1);
    }
}
