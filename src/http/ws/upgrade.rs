//! What serves a connection: the router, and before it a shorter way for sockets.
//!
//! After a restart thousands open their sockets at the same moment. The layers of the router are made
//! for answers that have a body, or take their time, and were a fifth of what a join cost. An
//! upgrade has neither body nor anything to wait for. What is plainly one is looked at here, by the
//! handler that the router has for it, with the same headers, figures and net for panics; whatever
//! else comes, and whatever is wrong with its address, goes to the router.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Query, Request};
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::future::RouteFuture;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use tokio::time::Instant;
use tower::Service as _;

use crate::http::auth::caller::Presented;
use crate::http::error::ApiError;
use crate::http::limit::Peer;
use crate::http::ws;
use crate::http::ws::inbound::Inbound;
use crate::http::{HttpState, request_log, router};

/// Answers requests. A cheap handle.
#[derive(Clone)]
pub struct Front {
    router: Router,
    state: Arc<HttpState>,
}

/// An answer that is there, or the router's.
type Answering = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

impl Front {
    /// Before the [`router`], whose bodies are at most `body_bytes` long.
    #[must_use]
    pub fn new(state: HttpState, body_bytes: usize) -> Self {
        Self { router: router(state.clone(), body_bytes), state: Arc::new(state) }
    }

    /// Whether a connection from `address` is a trusted proxy's.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.state.proxies.trusts(address)
    }

    /// Answers what `peer` asks for, over a connection whose transport counts `inbound`.
    pub(crate) fn answer(
        &self,
        mut request: Request,
        peer: Peer,
        inbound: &Arc<Inbound>,
    ) -> Answering {
        if let Err(error) = self.state.hosts.check(&request) {
            return Either::Left(ready(Ok(self.reject(&request, error))));
        }
        let peer = Peer(self.state.proxies.client(peer.0, request.headers()));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(Arc::clone(inbound));
        match self.open(request) {
            Ok(response) => Either::Left(ready(Ok(response))),
            Err(request) => Either::Right(self.router.clone().call(request)),
        }
    }

    /// Answers a request of a caller in this process. No connection carries it, so it opens no socket.
    pub async fn request(&self, request: Request, from: IpAddr) -> Response {
        let Ok(response) = self.answer(request, Peer(from), &Arc::default()).await;
        response
    }

    /// Rejects a request before the router. Its body may be left on the connection.
    fn reject(&self, request: &Request, error: ApiError) -> Response {
        let mut response = error.into_response();
        request_log::rejected(request.method(), &response);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        self.state.policy.harden(response.headers_mut());
        response
    }

    /// Opens the socket that is asked for; gives back what the router has to look at.
    #[expect(clippy::result_large_err, reason = "the request goes on to the router as it is")]
    fn open(&self, request: Request) -> Result<Response, Request> {
        let started_at = Instant::now();
        let Some((link, role)) = seat_of(&request) else { return Err(request) };
        let (mut parts, body) = request.into_parts();
        let Some((upgrade, pairs)) = upgrade_of(&mut parts) else {
            return Err(Request::from_parts(parts, body));
        };
        let state = &*self.state;
        let opening = catch_unwind(AssertUnwindSafe(|| {
            let presented = Presented::read(&parts.headers, &state.tokens, &state.gate);
            let from = ws::From::of(&parts.extensions);
            ws::open(state, presented, (&link, &role), from, pairs, &parts.headers, upgrade)
        }));
        let mut response = match opening {
            Ok(opened) => opened.into_response(),
            Err(panic) => request_log::after_panic(panic),
        };
        request_log::socket(&response, started_at);
        state.policy.harden(response.headers_mut());
        Ok(response)
    }
}

/// Which seat the address names, if it is that of a socket and has nothing in it to be decoded.
fn seat_of(request: &Request) -> Option<(String, String)> {
    // A body might be left lying, and then the router ends the connection.
    if request.method() != Method::GET || !request.body().is_end_stream() {
        return None;
    }
    let (link, role) = request.uri().path().strip_prefix("/ws/share-links/")?.split_once('/')?;
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['%', '/']);
    (is_plain(link) && is_plain(role)).then(|| (link.to_owned(), role.to_owned()))
}

/// The upgrade that is asked for, and with which query. None, and nothing is lost, if either is
/// not as it has to be.
fn upgrade_of(parts: &mut Parts) -> Option<(WebSocketUpgrade, Vec<(String, String)>)> {
    let Query(pairs) = Query::try_from_uri(&parts.uri).ok()?;
    // It has nothing to wait for, and takes the connection as the last thing it does.
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).now_or_never()?;
    Some((upgrade.ok()?, pairs))
}
