//! Limits by address of tries that cost nothing if they fail, or nothing unless they fail.
//!
//! A try takes its part of the limit before the server begins, and its drop returns it. So a spent
//! address has no answer to any of many tries at the same moment. Names of users that no user has
//! are spent: they may be guesses, and otherwise the status of the next name would say whether a user
//! has it. A class room behind one address names its users as often as it likes. The limiters of
//! `governor` return nothing, so this bucket has its own arithmetic.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub struct Allowances {
    /// The time in which a spent bucket is full again, and the part of it for one try.
    period: Duration,
    each: Duration,
    /// When the bucket of an address is full again.
    full_at: Mutex<HashMap<IpAddr, Instant>>,
}

/// A try: its drop returns it to the address, `spend` uses it up. The default belongs to no address.
#[derive(Default)]
pub struct Allowance(Option<(Arc<Allowances>, IpAddr)>);

impl Allowances {
    /// Grants each address so many tries at once, and as many again in `period`.
    pub fn per(period: Duration, tries: NonZeroU32) -> Arc<Self> {
        Arc::new(Self { period, each: period / tries.get(), full_at: Mutex::default() })
    }

    /// The error is the time until the address has a try.
    pub fn take(self: &Arc<Self>, address: IpAddr, now: Instant) -> Result<Allowance, Duration> {
        let mut full_at = self.lock();
        let end = full_at.entry(address).or_insert(now);
        let (next, latest) = ((*end).max(now) + self.each, now + self.period);
        if latest < next {
            return Err(next - latest);
        }
        *end = next;
        Ok(Allowance(Some((self.clone(), address))))
    }

    pub fn forget_the_quiet(&self, now: Instant) {
        self.lock().retain(|_, full_at| now < *full_at);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Allowance {
    pub fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        if let Some((tries, address)) = &self.0
            && let Some(end) = tries.lock().get_mut(address)
        {
            *end = end.checked_sub(tries.each).unwrap_or(*end);
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
