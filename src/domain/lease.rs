//! Lease arithmetic.
//!
//! A holder treats its lease as valid until `sent_at + ttl − margin` by its own monotonic clock.
//! `sent_at` is the moment at which the holder *sent* the last successful renewal. The reply may
//! arrive late, and Redis starts the key's TTL when it executes the command, never before the
//! request was sent.

use std::time::Duration;

use tokio::time::Instant;

/// TTL and renewal period of a seat's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// TTL of the key after each renewal.
    pub ttl: Duration,
    /// Period of the renewal.
    pub renew_every: Duration,
}

/// TTL and renewal period contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTerms {
    /// A healthy holder survives two failed renewals.
    #[error("a lease must be at least three renewals long")]
    TooShort,
    /// The renewal task cannot tick this fast.
    #[error("a lease may not be renewed more often than every 50ms")]
    TooFrequent,
}

impl LeaseTerms {
    /// Validates the terms.
    ///
    /// # Errors
    ///
    /// [`InvalidTerms`] when `ttl < 3 × renew_every` or the period is below 50 ms.
    pub fn new(ttl: Duration, renew_every: Duration) -> Result<Self, InvalidTerms> {
        if renew_every < Duration::from_millis(50) {
            return Err(InvalidTerms::TooFrequent);
        }
        if ttl < renew_every * 3 {
            return Err(InvalidTerms::TooShort);
        }
        Ok(Self { ttl, renew_every })
    }

    /// How long before the earliest expiry of the key the holder stops writing: an eighth of the
    /// TTL.
    ///
    /// The margin covers the drift between the clocks of Redis and this server over one lease, and
    /// the time between check and write.
    #[must_use]
    pub fn margin(&self) -> Duration {
        margin(self.ttl)
    }

    /// The deadline of a lease whose last renewal was sent at `sent_at`.
    #[must_use]
    pub fn trusted_until(&self, sent_at: Instant) -> Instant {
        trusted_until(sent_at, self.ttl)
    }
}

/// The defaults of `config/default.toml`.
impl Default for LeaseTerms {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(12), renew_every: Duration::from_secs(4) }
    }
}

/// The part of a TTL in which its holder no longer writes (G3): the only home of this fraction.
#[must_use]
pub fn margin(ttl: Duration) -> Duration {
    ttl / 8
}

/// The deadline of a holder whose claim or renewal was sent at `sent_at`.
#[must_use]
pub fn trusted_until(sent_at: Instant, ttl: Duration) -> Instant {
    sent_at + ttl - margin(ttl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_passes_before_the_key_can_expire() {
        let terms = LeaseTerms::default();
        let sent_at = Instant::now();
        assert!(terms.trusted_until(sent_at) < sent_at + terms.ttl);
        // A healthy holder survives two failed renewals.
        assert!(sent_at + 2 * terms.renew_every < terms.trusted_until(sent_at));
    }

    #[test]
    fn a_lease_shorter_than_three_renewals_is_rejected() {
        let renew = Duration::from_secs(4);
        assert_eq!(LeaseTerms::new(renew * 2, renew), Err(InvalidTerms::TooShort));
        assert!(LeaseTerms::new(renew * 3, renew).is_ok());
    }
}
