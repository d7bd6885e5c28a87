//! Security events in the log: rejected tokens, origins and rights, guests, sign-ins, sign-outs. And the ends of
//! sessions and of claims, by which an operator finds out why a user lost a seat.
//!
//! A line contains the cause and the peer's address, and never a token, an invite or a name. An attacker
//! controls the rate of events, so each kind has a budget of lines; the next line reports how many lines
//! were omitted.

use std::collections::HashMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::seat::Seat;
use crate::http::error::ApiError;
use crate::http::limit::at_least_one;
use crate::http::origin::Origins;
use crate::http::peer::Peer;
use crate::outbox::close::Close;
use crate::seats::handle::SocketEnd;
use crate::sessions::session::Session;

/// Log lines of one kind of security event per minute, and at once. A flood does not fill the disk,
/// and the log still shows one address's burst line by line.
const SECURITY_LINES_PER_MINUTE: NonZeroU32 = at_least_one(60);
/// See [`SECURITY_LINES_PER_MINUTE`].
const SECURITY_LINES_BURST: NonZeroU32 = at_least_one(60);

/// Maximum bytes of a foreign `Origin` in a line: the longest host name has 253.
const HEADER_BYTES_SHOWN: usize = 300;

#[derive(Clone)]
pub struct SecurityLog(Arc<Budgets>);

struct Budgets {
    tokens: Budget,
    rights: Budget,
    guests: Budget,
    sign_ins: Budget,
    sign_outs: Budget,
    transfers: Budget,
    hosts: Budget,
    origins: Budget,
    /// By event and close code: the refused claims of one user hide no end of a session.
    sockets: Mutex<HashMap<(&'static str, u16), Arc<Budget>>>,
}

impl Default for SecurityLog {
    fn default() -> Self {
        // A wrong `public_url` rejects every socket: one line a minute is enough to find it.
        let origins = Budget::new(NonZeroU32::MIN, NonZeroU32::MIN);
        Self(Arc::new(Budgets {
            tokens: Budget::often(),
            rights: Budget::often(),
            guests: Budget::often(),
            sign_ins: Budget::often(),
            sign_outs: Budget::often(),
            transfers: Budget::often(),
            hosts: Budget::often(),
            origins,
            sockets: Mutex::default(),
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
            let origin = shown(origin);
            tracing::warn!(
                ?origin,
                public_url = %own.own(),
                peer = %peer.0,
                omitted,
                "a request from another origin was refused; if the page is Galley's, set \
                 server.public_url to its origin, and if it is your product's, server.allowed_origins"
            );
        });
    }

    /// Logs a request for another server or without a name: an attack by DNS, or a name that is missing in
    /// `server.hosts`.
    pub(crate) fn host_refused(&self, host: Option<&HeaderValue>, peer: Peer) {
        self.0.hosts.write(|omitted| {
            let host = shown(host);
            tracing::info!(
                ?host,
                peer = %peer.0,
                omitted,
                "a request for another host was refused; if the name is yours, add it to server.hosts"
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

    pub(crate) fn signed_in(&self, user: &UserId, peer: Peer) {
        self.0.sign_ins.write(|omitted| {
            tracing::info!(%user, peer = %peer.0, omitted, "a user signed in at the provider");
        });
    }

    /// Logs why a sign-in at the provider has failed: the page shows a sentence without the cause.
    pub(crate) fn sign_in_failed(&self, cause: &impl Display, peer: Peer) {
        self.0.sign_ins.write(|omitted| {
            tracing::info!(%cause, peer = %peer.0, omitted, "a sign-in at the provider failed");
        });
    }

    pub(crate) fn signed_out(&self, user: &UserId, peer: Peer) {
        self.0.sign_outs.write(|omitted| {
            tracing::info!(%user, peer = %peer.0, omitted, "a user signed out");
        });
    }
}

fn shown(header: Option<&HeaderValue>) -> String {
    let header = header.map_or(&b"none"[..], HeaderValue::as_bytes);
    String::from_utf8_lossy(header.get(..HEADER_BYTES_SHOWN).unwrap_or(header)).into_owned()
}

/// The code in the log of a connection that broke (RFC 6455 §7.1.5).
const BROKEN: u16 = 1006;

/// A socket of a claim or of a session, as the log names it.
pub(crate) struct SocketLog {
    pub(crate) log: SecurityLog,
    pub(crate) server: NodeId,
    /// None: the address names no seat.
    pub(crate) seat: Option<Seat>,
    pub(crate) user: Option<UserId>,
    pub(crate) peer: Peer,
    /// When the claim began; when it succeeded, for a session.
    pub(crate) since: Instant,
}

impl SocketLog {
    pub(crate) fn refused(&self, close: &Close, session: Option<&Session>) {
        metrics::counter!("galley_seat_denials_total", "reason" => close.cause()).increment(1);
        self.write("a claim of a seat was refused", (close.code(), close.cause()), session);
    }

    pub(crate) fn ended(&self, ending: &SocketEnd, session: &Session) {
        let close = match ending {
            SocketEnd::Closed(close) => Some(close.clone()),
            // The server cuts the socket of a client that does not read its close.
            SocketEnd::Broken => {
                let lost = session.lost_reason().map(Close::Lost);
                lost.or_else(|| session.outbox().close_reason())
            }
        };
        let of = |close: Close| (close.code(), close.cause());
        let why = close.map_or((BROKEN, "connection-broke"), of);
        self.write("a session ended", why, Some(session));
    }

    fn write(&self, event: &'static str, (code, reason): (u16, &str), session: Option<&Session>) {
        let label = code.to_string();
        metrics::counter!("galley_sockets_closed_total", "code" => label).increment(1);
        let budget = {
            let budgets = &self.log.0.sockets;
            let mut budgets = budgets.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(budgets.entry((event, code)).or_insert_with(|| Arc::new(Budget::often())))
        };
        budget.write(|omitted| {
            let identity = session.map(|session| &session.identity);
            let fence = session.map(Session::fence).filter(|fence| *fence != Fence::ZERO);
            tracing::info!(
                seat = self.seat.map(tracing::field::display),
                document = identity.map(|it| tracing::field::display(it.document)),
                user = self.user.as_ref().map(tracing::field::display),
                session = identity.map(|it| tracing::field::display(it.session)),
                fence = fence.map(tracing::field::display),
                code,
                reason,
                seconds = self.since.elapsed().as_secs(),
                peer = %self.peer.0,
                server = %self.server,
                omitted,
                "{event}"
            );
        });
    }
}

struct Budget {
    lines: DefaultDirectRateLimiter,
    omitted: AtomicU64,
}

impl Budget {
    fn often() -> Self {
        Self::new(SECURITY_LINES_BURST, SECURITY_LINES_PER_MINUTE)
    }

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
        let budget = Budget::often();
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
