//! Token buckets by key, in time: a refused try costs nothing, and the error is the time after which the same
//! try passes.
//!
//! A try takes its part of the limit before the server begins, and its drop returns it. So a spent
//! address has no answer to any of many tries at the same moment. Names of users that no user has
//! are spent: they may be guesses, and otherwise the status of the next name would say whether a user
//! has it. A class room behind one address names its users as often as it likes. The limiters of
//! `governor` return nothing, so this bucket has its own arithmetic.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Allowances<K = IpAddr> {
    /// The time in which a spent bucket is full again, and the part of it for one unit.
    period: Duration,
    each: Duration,
    most: NonZeroU32,
    /// When the bucket of a key is full again.
    full_at: Mutex<HashMap<K, Instant>>,
}

/// Units of a bucket: its drop returns them, `spend` uses them up. The default belongs to no bucket.
pub struct Allowance<K: Eq + Hash = IpAddr>(Option<(Arc<Allowances<K>>, K, Duration)>);

impl<K: Eq + Hash> Default for Allowance<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: Clone + Eq + Hash> Allowances<K> {
    /// Grants each key so many units at once, and as many again in `period`.
    pub fn per(period: Duration, most: NonZeroU32) -> Arc<Self> {
        let full_at = Mutex::default();
        Arc::new(Self { period, each: period / most.get(), most, full_at })
    }

    /// Grants each key so many units a second, and `burst` at once.
    pub fn rate(per_second: NonZeroU32, burst: NonZeroU32) -> Arc<Self> {
        let period = Duration::from_secs(burst.get().into()) / per_second.get();
        Self::per(period, burst)
    }

    /// One unit. The error is the time until the key has it.
    pub fn take(self: &Arc<Self>, key: K, now: Instant) -> Result<Allowance<K>, Duration> {
        self.take_units(key, NonZeroU32::MIN, now)
    }

    /// As [`take`](Self::take). More units than a full bucket has cost all of them: a limit delays what
    /// another limit admits, and never refuses it for ever.
    pub fn take_units(
        self: &Arc<Self>,
        key: K,
        units: NonZeroU32,
        now: Instant,
    ) -> Result<Allowance<K>, Duration> {
        let cost = self.each * units.min(self.most).get();
        let mut full_at = self.lock();
        let end = full_at.get(&key).map_or(now, |end| now.max(*end)) + cost;
        if now + self.period < end {
            return Err(end - (now + self.period));
        }
        full_at.insert(key.clone(), end);
        drop(full_at);
        Ok(Allowance(Some((self.clone(), key, cost))))
    }

    pub fn forget_the_quiet(&self, now: Instant) {
        self.lock().retain(|_, full_at| now < *full_at);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl<K> Allowances<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Allowance<K> {
    pub fn spend(mut self) {
        self.0 = None;
    }
}

/// Spends units of two buckets, or of none. The error is the time until both have them.
pub fn spend_both<A: Eq + Hash, B: Eq + Hash>(
    one: Result<Allowance<A>, Duration>,
    other: Result<Allowance<B>, Duration>,
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

impl<K: Eq + Hash> Drop for Allowance<K> {
    fn drop(&mut self) {
        if let Some((tries, key, cost)) = &self.0
            && let Some(end) = tries.lock().get_mut(key)
        {
            *end = end.checked_sub(*cost).unwrap_or(*end);
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
                let take = |at| bucket.take_units(ADDRESS, units(each), at).map(Allowance::spend);
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
}
