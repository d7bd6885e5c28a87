//! Security events in the log: rejected tokens, origins and rights, guests, sign-outs.
//!
//! A line contains the cause and the peer's address, and never a token, an invite or a name. An attacker
//! controls the rate of events, so each kind has a budget of lines; the next line reports how many lines
//! were omitted.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::domain::ids::UserId;
use crate::http::error::ApiError;
use crate::http::limit::at_least_one;
use crate::http::origin::Origins;
use crate::http::peer::Peer;

/// Log lines of one kind of security event per minute, and at once. A flood does not fill the disk,
/// and the log still shows one address's burst line by line.
const SECURITY_LINES_PER_MINUTE: NonZeroU32 = at_least_one(60);
/// See [`SECURITY_LINES_PER_MINUTE`].
const SECURITY_LINES_BURST: NonZeroU32 = at_least_one(60);

/// Maximum bytes of a foreign `Origin` in a line: the longest host name has 253.
const ORIGIN_BYTES_SHOWN: usize = 300;

#[derive(Clone)]
pub struct SecurityLog(Arc<Budgets>);

struct Budgets {
    tokens: Budget,
    rights: Budget,
    guests: Budget,
    sign_outs: Budget,
    transfers: Budget,
    origins: Budget,
}

impl Default for SecurityLog {
    fn default() -> Self {
        let often = || Budget::new(SECURITY_LINES_BURST, SECURITY_LINES_PER_MINUTE);
        // A wrong `public_url` rejects every socket: one line a minute is enough to find it.
        let origins = Budget::new(NonZeroU32::MIN, NonZeroU32::MIN);
        Self(Arc::new(Budgets {
            tokens: often(),
            rights: often(),
            guests: often(),
            sign_outs: often(),
            transfers: often(),
            origins,
        }))
    }
}

impl SecurityLog {
    /// Logs the cause if `response` rejects a request from `origin` for a reason of security.
    pub(crate) fn refused(
        &self,
        response: &Response,
        peer: Peer,
        user: Option<&UserId>,
        origin: Option<&HeaderValue>,
        own: &Origins,
    ) {
        let status = response.status();
        if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
            return;
        }
        let Some(error) = response.extensions().get::<Arc<ApiError>>() else { return };
        match **error {
            ApiError::TokenRefused(cause) => self.token_refused(cause, peer),
            // A visitor without a sign-in is no security event.
            ApiError::Unauthenticated(_) => {}
            ApiError::ForeignOrigin => self.origin_refused(origin, own, peer),
            _ => self.0.rights.write(|omitted| {
                let user = user.map_or("-", UserId::as_str);
                tracing::info!(%error, user, peer = %peer.0, omitted, "a request was refused");
            }),
        }
    }

    pub(crate) fn token_refused(&self, cause: &'static str, peer: Peer) {
        self.0.tokens.write(|omitted| {
            tracing::info!(cause, peer = %peer.0, omitted, "a token was refused");
        });
    }

    /// Logs a foreign `Origin`, which is an attack or a wrong `server.public_url`.
    pub(crate) fn origin_refused(&self, origin: Option<&HeaderValue>, own: &Origins, peer: Peer) {
        self.0.origins.write(|omitted| {
            let origin = origin.map_or(&b"none"[..], HeaderValue::as_bytes);
            let shown = origin.get(..ORIGIN_BYTES_SHOWN).unwrap_or(origin);
            let origin = String::from_utf8_lossy(shown);
            tracing::warn!(
                ?origin,
                public_url = %own.own(),
                peer = %peer.0,
                omitted,
                "a request from another origin was refused; if the page is yours, set \
                 server.public_url to its origin"
            );
        });
    }

    pub(crate) fn guest_entered(&self, user: &UserId, peer: Peer) {
        self.0.guests.write(|omitted| {
            tracing::info!(%user, peer = %peer.0, omitted, "a guest entered");
        });
    }

    /// Logs a code for another device that was refused: a mistake or a guess.
    pub(crate) fn transfer_refused(&self, cause: &'static str, peer: Peer) {
        self.0.transfers.write(|omitted| {
            tracing::info!(cause, peer = %peer.0, omitted, "a code for another device was refused");
        });
    }

    pub(crate) fn transferred(&self, user: &UserId, peer: Peer) {
        self.0.guests.write(|omitted| {
            tracing::info!(%user, peer = %peer.0, omitted, "a guest entered by a code");
        });
    }

    pub(crate) fn signed_out(&self, user: &UserId, peer: Peer) {
        self.0.sign_outs.write(|omitted| {
            tracing::info!(%user, peer = %peer.0, omitted, "a user signed out");
        });
    }
}

struct Budget {
    lines: DefaultDirectRateLimiter,
    omitted: AtomicU64,
}

impl Budget {
    fn new(burst: NonZeroU32, per_minute: NonZeroU32) -> Self {
        let lines = RateLimiter::direct(Quota::per_minute(per_minute).allow_burst(burst));
        Self { lines, omitted: AtomicU64::new(0) }
    }

    /// Calls `line` with the number of events since the last line, or counts one more.
    fn write(&self, line: impl FnOnce(u64)) {
        if self.lines.check().is_ok() {
            line(self.omitted.swap(0, Ordering::Relaxed));
        } else {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_a_flood_of_events_writes_a_bounded_number_of_lines() {
        let budget = Budget::new(SECURITY_LINES_BURST, SECURITY_LINES_PER_MINUTE);
        let (mut lines, mut events) = (0_u64, 0_u64);
        for _ in 0..10_000 {
            budget.write(|omitted| {
                lines += 1;
                events += omitted + 1;
            });
        }
        assert!(lines <= 2 * u64::from(SECURITY_LINES_BURST.get()), "{lines} lines");
        assert_eq!(events + budget.omitted.load(Ordering::Relaxed), 10_000);
    }
}
