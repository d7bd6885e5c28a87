//! What the guests of one address may store in an hour.
//!
//! A guest is free, so a quota by user does not bound what one person stores. The bound by address is for
//! guests alone: a host application creates the documents of all its users from one address.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::http::auth::tokens::Identity;
use crate::http::error::ApiError;
use crate::http::limit::{Peer, network};

/// The time in which a spent budget is full again.
const HOUR: Duration = Duration::from_secs(3_600);

/// Counts the bytes of new documents. A cheap handle.
#[derive(Clone)]
pub struct GuestBytes(Arc<DefaultKeyedRateLimiter<IpAddr>>);

impl GuestBytes {
    /// Lets the guests of each address store so many bytes at once, and as many again in an hour.
    #[must_use]
    pub fn new(per_hour: NonZeroU32) -> Self {
        let every = HOUR / per_hour.get();
        let quota = Quota::with_period(every.max(Duration::from_nanos(1)));
        let quota = quota.unwrap_or_else(|| Quota::per_hour(per_hour)).allow_burst(per_hour);
        Self(Arc::new(RateLimiter::keyed(quota)))
    }

    /// Charges a new document to the address of a guest.
    ///
    /// # Errors
    ///
    /// `TooManyRequests` when the budget has no room for it.
    pub(crate) fn charge(
        &self,
        identity: &Identity,
        peer: Peer,
        bytes: usize,
    ) -> Result<(), ApiError> {
        if !identity.is_guest() {
            return Ok(());
        }
        let bytes = NonZeroU32::new(u32::try_from(bytes).unwrap_or(u32::MAX));
        let bytes = bytes.unwrap_or(NonZeroU32::MIN);
        match self.0.check_key_n(&network(peer.0), bytes) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(until)) => {
                let retry_after = until.wait_time_from(DefaultClock::default().now());
                Err(ApiError::TooManyRequests { retry_after })
            }
            // More than an hour's bytes in one document.
            Err(_) => Err(ApiError::TooLarge),
        }
    }

    /// Removes the budgets that are full again; the upkeep calls it.
    pub fn forget_idle(&self) {
        self.0.retain_recent();
    }
}
