//! Names of users that no user has, by address: they may be guesses.
//!
//! Each name takes a guess from its address before the server looks it up, and a name that a user has
//! returns it. So a spent address names no user at all: otherwise the status of the next name would say
//! whether a user has it, also for many names at the same moment. A class room behind one address names
//! its users as often as it likes. The limiters of `governor` return nothing, so this bucket has its
//! own arithmetic.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time in which a spent bucket is full again.
const PERIOD: Duration = Duration::from_secs(60);

/// A bucket for each address.
pub(super) struct Guesses {
    /// The time that one guess takes to be forgotten.
    each: Duration,
    /// When the bucket of an address is full again.
    full_at: Mutex<HashMap<IpAddr, Instant>>,
}

impl Guesses {
    /// Grants each address so many guesses at once, and as many again in a minute.
    pub(super) fn per_minute(guesses: NonZeroU32) -> Self {
        Self { each: PERIOD / guesses.get(), full_at: Mutex::default() }
    }

    /// Takes a guess.
    ///
    /// # Errors
    ///
    /// The time until the address has one.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.lock();
        let end = full_at.entry(address).or_insert(now);
        let (next, latest) = ((*end).max(now) + self.each, now + PERIOD);
        if latest < next {
            return Err(next - latest);
        }
        *end = next;
        Ok(())
    }

    /// Returns a guess: a user has the name.
    pub(super) fn give(&self, address: IpAddr) {
        if let Some(end) = self.lock().get_mut(&address) {
            *end = end.checked_sub(self.each).unwrap_or(*end);
        }
    }

    /// Removes full buckets.
    pub(super) fn forget_the_quiet(&self, now: Instant) {
        self.lock().retain(|_, full_at| now < *full_at);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn g17_an_address_with_too_many_guesses_names_no_user() {
        let guesses = Guesses::per_minute(NonZeroU32::MIN.saturating_add(29));
        let now = Instant::now();
        let take = |address, now| guesses.take(address, now);
        for _ in 0..100 {
            assert_eq!(take(ADDRESS, now), Ok(()), "names of users spend nothing");
            guesses.give(ADDRESS);
        }
        assert!((0..30).all(|_| take(ADDRESS, now).is_ok()));
        let wait = Err(Duration::from_secs(2));
        assert_eq!((take(ADDRESS, now), take(ADDRESS, now)), (wait, wait));
        assert_eq!(take(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), now), Ok(()));
        let later = now + Duration::from_secs(2);
        assert_eq!((take(ADDRESS, later), take(ADDRESS, later)), (Ok(()), wait));
        guesses.give(ADDRESS);
        assert_eq!((take(ADDRESS, later), take(ADDRESS, later)), (Ok(()), wait));
        let much_later = later + 2 * PERIOD;
        assert!((0..30).all(|_| take(ADDRESS, much_later).is_ok()));
        assert_eq!(take(ADDRESS, much_later), wait);
    }

    #[test]
    fn g13_full_buckets_are_removed() {
        let guesses = Guesses::per_minute(NonZeroU32::MIN);
        let now = Instant::now();
        guesses.take(ADDRESS, now).expect("the first");
        guesses.forget_the_quiet(now);
        assert_eq!(guesses.lock().len(), 1);
        guesses.forget_the_quiet(now + PERIOD);
        assert!(guesses.lock().is_empty());
    }
}
