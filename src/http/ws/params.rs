//! The user who opens a websocket, and the parameters of its address (`src/http/PROTOCOL.md`, *Query
//! parameters*).

use std::collections::HashMap;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_util::sync::CancellationToken;

use crate::domain::seat::Role;
use crate::http::auth::credential::Credential;
use crate::http::auth::tokens::{Identity, KEYS_UNAVAILABLE, SERVER_TOKEN, TokenRefused, Tokens};
use crate::outbox::close::Close;
use crate::seats::claim::SeatRequest;
use crate::seats::joining::Arriving;

/// The subprotocol that the server selects. A browser ends a connection whose offer has no answer.
pub(super) const PROTOCOL: &str = "galley";
/// The prefix of a token that a client offers as a further subprotocol: no proxy logs that header, and
/// each logs the query.
const TOKEN_PROTOCOL: &str = "galley.token.";
pub(super) const TOKEN_NOT_VALID: Close = Close::Unauthenticated("token-not-valid");
/// Maximum `wait` in seconds.
const WAIT_MAX: u16 = 300;

/// The tokens among the offered subprotocols, as parameters of the query. Two tokens, wherever they are,
/// are a repeated parameter, and the server rejects both.
pub(super) fn offered_tokens(headers: &HeaderMap) -> impl Iterator<Item = (String, String)> {
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offers = offers.filter_map(|offer| offer.to_str().ok()).flat_map(|offer| offer.split(','));
    let tokens = offers.filter_map(|offer| offer.trim().strip_prefix(TOKEN_PROTOCOL));
    tokens.map(|token| ("token".to_owned(), token.to_owned()))
}

/// Identifies the user of a socket. A token in the address takes precedence over cookie and bearer.
/// `log` receives the part at fault of an invalid token.
pub(super) fn identify(
    tokens: &Tokens,
    presented: Credential,
    query: &HashMap<String, String>,
    log: impl FnOnce(&'static str),
) -> Result<Identity, Close> {
    let refuse = |refused: TokenRefused| {
        log(refused.0);
        close_of(refused)
    };
    if let Some(token) = query.get("token") {
        return tokens.verify(token).map_err(refuse);
    }
    match presented {
        Credential::Person { identity, .. } => Ok(identity),
        Credential::Refused { cause, .. } => Err(refuse(cause)),
        Credential::Server { .. } => Err(refuse(SERVER_TOKEN)),
        Credential::Nothing | Credential::AdminToken => Err(Close::Unauthenticated("no-token")),
    }
}

/// The close for a refused token. A client repeats the attempt if the server has no keys now.
pub(super) fn close_of(refused: TokenRefused) -> Close {
    match refused {
        KEYS_UNAVAILABLE => Close::Unavailable("keys"),
        // A server has no seat.
        SERVER_TOKEN => Close::Forbidden("server-token"),
        TokenRefused(_) => TOKEN_NOT_VALID,
    }
}

pub(super) fn seat_request(
    identity: &Identity,
    link: &str,
    role: &str,
    query: &HashMap<String, String>,
) -> Result<SeatRequest, Close> {
    let role: Role = role.parse().map_err(|_| Close::Malformed("role"))?;
    // An id that cannot be parsed matches no link.
    let link = link.parse().map_err(|_| Close::NoSuchLink)?;
    let waits = query.get("wait").map_or(Ok(0), |text| text.parse::<u16>());
    let waits = waits.ok().filter(|seconds| *seconds <= WAIT_MAX);
    let waits = waits.ok_or(Close::Malformed("wait"))?;
    Ok(SeatRequest {
        user: identity.user.clone(),
        issued_at: identity.issued_at,
        link,
        role,
        wants_events: flag(query, "events")?,
        store_budget: None,
        resume: query.get("resume").cloned(),
        takes_over: flag(query, "takeover")?,
        waits: Duration::from_secs(waits.into()),
        gone: CancellationToken::new(),
        arriving: Arriving::default(),
    })
}

fn flag(query: &HashMap<String, String>, name: &'static str) -> Result<bool, Close> {
    match query.get(name).map(String::as_str) {
        None | Some("" | "0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(_) => Err(Close::Malformed(name)),
    }
}
