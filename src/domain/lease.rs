//! Lease arithmetic.
//!
//! A holder trusts its lock until `sent_at + ttl − margin` by its own monotonic clock, counted
//! from when the last good renewal was *sent*: the answer may have been long on its way, and the
//! key's time runs from when Redis worked, which is never before the request left.

use std::time::Duration;

use tokio::time::Instant;

/// How long a seat's key lives, and how much of that its holder does not trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// TTL of the key after each renewal.
    pub ttl: Duration,
    /// How often it is renewed.
    pub renew_every: Duration,
}

/// The terms contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTerms {
    /// Two renewals must be allowed to fail before a healthy holder loses its seat.
    #[error("a lease must be at least three renewals long")]
    TooShort,
    /// The scheduler cannot tick this fast.
    #[error("a lease may not be renewed more often than every 50ms")]
    TooFrequent,
}

impl LeaseTerms {
    /// Checked terms.
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

    /// How long before the key can expire the holder stops: an eighth of the lease.
    ///
    /// It covers the drift between Redis's clock and ours over one lease, and the time between
    /// the check and the write.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.ttl / 8
    }

    /// The last moment at which a lease whose renewal left at `sent_at` may be trusted.
    #[must_use]
    pub fn trusted_until(&self, sent_at: Instant) -> Instant {
        sent_at + self.ttl - self.margin()
    }
}

/// The defaults of CONTRACT §1.
impl Default for LeaseTerms {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(12), renew_every: Duration::from_secs(4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_before_the_key_can() {
        let terms = LeaseTerms::default();
        let sent_at = Instant::now();
        assert!(terms.trusted_until(sent_at) < sent_at + terms.ttl);
        // Two failed renewals leave a healthy holder its seat.
        assert!(sent_at + 2 * terms.renew_every < terms.trusted_until(sent_at));
    }

    #[test]
    fn a_lease_shorter_than_three_renewals_is_refused() {
        let renew = Duration::from_secs(4);
        assert_eq!(LeaseTerms::new(renew * 2, renew), Err(InvalidTerms::TooShort));
        assert!(LeaseTerms::new(renew * 3, renew).is_ok());
    }
}
