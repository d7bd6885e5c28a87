//! The service of all connections: the router, and before it a shorter path for sockets.
//!
//! After a restart thousands of clients open their sockets at the same moment. The router's layers serve
//! responses that have a body or take time, and were a fifth of the cost of a join. An upgrade has
//! neither. A plain upgrade therefore bypasses the router. The same handler serves it, with the same
//! headers, metrics and panic handler. Every other request, also one with a fault in its address, goes
//! to the router.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Query, Request};
use axum::http::header::{CONNECTION, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::future::RouteFuture;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use tokio::time::Instant;
use tower::Service as _;

use crate::http::auth::credential::Credential;
use crate::http::error::ApiError;
use crate::http::peer::Peer;
use crate::http::request_id::RequestNames;
use crate::http::routes::Routes;
use crate::http::ws;
use crate::http::ws::inbound::Inbound;
use crate::http::{HttpState, request_log, router};

#[derive(Clone)]
pub struct HttpService {
    router: Router,
    state: Arc<HttpState>,
}

type Answering = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

impl HttpService {
    /// Puts the short path before the [`router`], whose bodies are at most `body_bytes` long.
    pub(crate) fn new(state: HttpState, features: Routes, body_bytes: usize) -> Self {
        Self { router: router(state.clone(), features, body_bytes), state: Arc::new(state) }
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.state.proxies.trusts(address)
    }

    pub(crate) fn answer(
        &self,
        mut request: Request,
        peer: Peer,
        inbound: &Arc<Inbound>,
    ) -> Answering {
        let names = RequestNames::read(&request);
        request.extensions_mut().insert(names);
        if let Err(error) = self.state.hosts.check(&request) {
            self.state.security_log.host_refused(request.headers().get(HOST), peer);
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
        let names = RequestNames::of(request.extensions());
        names.stamp(&mut response);
        request_log::rejected(request.method(), &names, &response);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        self.state.policy.harden(response.headers_mut());
        response
    }

    /// Opens the requested socket, or returns the request for the router.
    #[expect(clippy::result_large_err, reason = "the request goes on to the router as it is")]
    fn open(&self, request: Request) -> Result<Response, Request> {
        let started_at = Instant::now();
        let Some((link, role)) = seat_of(&request) else { return Err(request) };
        let (mut parts, body) = request.into_parts();
        let Some((upgrade, pairs)) = upgrade_of(&mut parts) else {
            return Err(Request::from_parts(parts, body));
        };
        let state = &*self.state;
        let names = RequestNames::of(&parts.extensions);
        let span = names.span("GET", request_log::SOCKET).entered();
        let opening = catch_unwind(AssertUnwindSafe(|| {
            let presented = Credential::read(&parts.headers, &state.tokens, &state.access);
            let from = ws::From::of(&parts.extensions);
            ws::open(state, presented, (&link, &role), from, pairs, &parts.headers, upgrade)
        }));
        let mut response = match opening {
            Ok(opened) => opened.into_response(),
            Err(panic) => request_log::after_panic(panic),
        };
        request_log::socket(&response, started_at);
        drop(span);
        names.stamp(&mut response);
        state.policy.harden(response.headers_mut());
        Ok(response)
    }
}

/// The seat in the address, if it is a socket's address without percent-encoding.
fn seat_of(request: &Request) -> Option<(String, String)> {
    // An unread body would stay on the connection; the router closes it then.
    if request.method() != Method::GET || !request.body().is_end_stream() {
        return None;
    }
    let (link, role) = request.uri().path().strip_prefix("/ws/share-links/")?.split_once('/')?;
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['%', '/']);
    (is_plain(link) && is_plain(role)).then(|| (link.to_owned(), role.to_owned()))
}

/// The requested upgrade and its query. `None` if either is invalid; `parts` stay intact then.
fn upgrade_of(parts: &mut Parts) -> Option<(WebSocketUpgrade, Vec<(String, String)>)> {
    let Query(pairs) = Query::try_from_uri(&parts.uri).ok()?;
    // The extractor never waits, and takes the connection out of `parts` only on success.
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).now_or_never()?;
    Some((upgrade.ok()?, pairs))
}
