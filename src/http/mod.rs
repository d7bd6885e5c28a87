//! HTTP: REST, pages, authentication, and the upgrade to websockets. It and the `http`
//! files of the features use axum.
//!
//! A request passes these layers from the outside in: response headers, metrics, problem documents for
//! bare failures, the panic handler, the timeout, the close after an unread body. On the way to `/api`
//! and `/ws` it also passes the verification of its token, the rate limit and the byte budget. Then the
//! handler runs. The server answers a plain websocket request without these layers ([`service`]).

pub mod access;
pub mod assets;
pub mod auth;
pub mod byte_budget;
pub mod connection_slots;
pub(crate) mod entity_tags;
pub mod error;
pub mod headers;
pub mod health;
pub mod host;
pub mod limit;
pub mod origin;
pub(crate) mod pagination;
pub mod peer;
pub mod readiness;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod response_budget;
pub mod serve;
pub mod service;
mod unread_body;

pub(crate) mod decisions;
pub(crate) mod documents;
pub(crate) mod extract;
pub mod guest_budgets;
pub(crate) mod links;
pub(crate) mod progress;
pub(crate) mod replies;
pub(crate) mod reviewers;
pub(crate) mod reviews;
pub(crate) mod routes;
pub(crate) mod sections;
pub mod security_log;
pub(crate) mod suggestions;
pub mod tarpit;
pub mod ws;

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRef};
use axum::http::Method;
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Extension, Router};
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowCredentials, CorsLayer};
use tower_http::timeout::TimeoutLayer;

use crate::accounts::Accounts;
use crate::domain::review::Decision;
use crate::http::access::Access;
use crate::http::auth::caller::Checks;
use crate::http::auth::tokens::Tokens;
use crate::http::byte_budget::ByteBudget;
use crate::http::error::ApiError;
use crate::http::extract::BodyMax;
use crate::http::guest_budgets::GuestBudgets;
use crate::http::headers::Policy;
use crate::http::health::MetricsHandle;
use crate::http::host::{Hosts, Proxies};
use crate::http::limit::Limiter;
use crate::http::origin::Origins;
use crate::http::readiness::Readiness;
use crate::http::request_id::REQUEST_ID;
use crate::http::routes::Routes;
use crate::http::security_log::SecurityLog;
use crate::http::tarpit::Tarpit;
use crate::reviews::Reviews;
use crate::rooms::texts::Texts;
use crate::seats::Seats;
use crate::sharing::Sharing;
use crate::tasks::Tasks;

/// Time limit from the end of a request's head to the beginning of its response.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Each handler extracts only the part that it uses.
#[derive(Clone, FromRef)]
pub struct HttpState {
    pub tokens: Tokens,
    pub accounts: Accounts,
    pub access: Access,
    pub limiter: Limiter,
    /// Bytes that the server holds in memory for clients.
    pub budget: ByteBudget,
    pub origins: Origins,
    pub hosts: Hosts,
    /// Proxies whose `X-Forwarded-For` the server trusts.
    pub proxies: Proxies,
    pub policy: Policy,
    pub sharing: Sharing,
    pub readiness: Readiness,
    pub scrape: MetricsHandle,
    pub tasks: Tasks,
    pub texts: Texts,
    pub seats: Seats,
    pub reviews: Reviews,
    pub tarpit: Tarpit,
    pub guest_budgets: GuestBudgets,
    pub security_log: SecurityLog,
}

/// The whole router, with the routes of the features. Bodies are at most `body_bytes` long.
fn router(state: HttpState, features: Routes, body_bytes: usize) -> Router {
    let checks = Checks {
        tokens: state.tokens.clone(),
        access: state.access.clone(),
        limiter: state.limiter.clone(),
        origins: state.origins.clone(),
        log: state.security_log.clone(),
        accounts: state.accounts.clone(),
        tasks: state.tasks.clone(),
    };
    let by_address = from_fn_with_state(state.limiter.clone(), limit::by_address);
    let guarded = guarded()
        .merge(features)
        .into_router()
        .route_layer(from_fn(guest_budgets::release_refused))
        .route_layer(from_fn_with_state(state.budget.clone(), response_budget::charge))
        .route_layer(from_fn_with_state(checks, auth::caller::identify));
    guarded
        .merge(open().into_router().merge(pages()).fallback(assets::file).layer(by_address))
        .merge(probes().into_router())
        .layer((DefaultBodyLimit::max(body_bytes), Extension(BodyMax(body_bytes))))
        .layer(from_fn(unread_body::close_after))
        .layer(TimeoutLayer::with_status_code(ApiError::TOO_SLOW, ANSWER_MAX))
        .layer(CatchPanicLayer::custom(request_log::after_panic))
        .layer(from_fn(request_log::explain))
        .layer(from_fn(request_log::observe))
        .layer(option_layer(cors(&state.origins)))
        .layer(from_fn_with_state(state.policy.clone(), headers::harden))
        .with_state(state)
}

/// Requests of the pages of `server.allowed_origins`: with a token, and never with the cookie. Only
/// [`SESSION`] sets one.
fn cors(origins: &Origins) -> Option<CorsLayer> {
    let allowed: Vec<_> =
        origins.allowed().iter().filter_map(|it| it.to_string().try_into().ok()).collect();
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, REQUEST_ID])
        .allow_credentials(AllowCredentials::predicate(|_, parts| parts.uri.path() == SESSION))
        .expose_headers([ETAG, LOCATION, RETRY_AFTER, documents::LEFT, REQUEST_ID])
        .max_age(Duration::from_secs(2 * 3_600));
    (!allowed.is_empty()).then(|| layer.allow_origin(allowed))
}

const SESSION: &str = "/api/auth/session";

fn guarded() -> Routes {
    Routes::default()
        .get("/api/auth", auth::guest::entry)
        .post("/api/auth/guest", auth::guest::enter)
        .post(SESSION, auth::session::exchange)
        .get("/api/me", auth::guest::me)
        .patch("/api/me", auth::guest::change)
        .merge(auth::sign_outs::routes())
        .merge(documents::routes())
        .merge(sections::routes())
        .merge(links::routes())
        .merge(reviewers::routes())
        .merge(progress::routes())
        .merge(replies::routes())
        .merge(reviewing())
}

fn reviewing() -> Routes {
    const ALL: &str = "/api/share-links/{id}/reviews";
    const ONE: &str = "/api/share-links/{id}/reviews/{rid}";
    Routes::default()
        .get(ALL, reviews::list)
        .post_review(ALL, reviews::create)
        .get(ONE, reviews::show)
        .patch_review(ONE, reviews::edit)
        .delete(ONE, reviews::delete)
        .post("/api/share-links/{id}/reviews/{rid}/accept", |reviews, caller, path, headers| {
            reviews::decide(reviews, caller, path, headers, Decision::Accept)
        })
        .post("/api/share-links/{id}/reviews/{rid}/reject", |reviews, caller, path, headers| {
            reviews::decide(reviews, caller, path, headers, Decision::Reject)
        })
        .post("/api/share-links/{id}/reviews/{rid}/resolve", |reviews, caller, path, headers| {
            reviews::decide(reviews, caller, path, headers, Decision::Resolve)
        })
        .post("/api/share-links/{id}/reviews/{rid}/reopen", |reviews, caller, path, headers| {
            reviews::decide(reviews, caller, path, headers, Decision::Reopen)
        })
        .post_text("/api/share-links/{id}/suggestions", suggestions::suggest)
        .post_review("/api/share-links/{id}/decisions", decisions::decide)
        .post("/api/share-links/{id}/decisions/{did}/undo", decisions::undo)
        .get(request_log::SOCKET, ws::connect)
}

#[cfg(test)]
pub(crate) fn routes() -> Routes {
    guarded().merge(open()).merge(probes())
}

fn open() -> Routes {
    Routes::default().get("/metrics", health::metrics).get("/openapi.json", assets::openapi)
}

/// No rate limit counts probes: many may share an address, and the server answers each from memory.
fn probes() -> Routes {
    Routes::default().get("/healthz", health::healthz).get("/readyz", health::readyz)
}

fn pages() -> Router<HttpState> {
    Router::new()
        .route("/", get(assets::start_page))
        .route("/d/{document_id}", get(assets::editor_page))
        .route("/d/{document_id}/", get(assets::editor_page))
        .route("/s/{share_link_id}", get(assets::editor_page))
        .route("/s/{share_link_id}/", get(assets::editor_page))
        .route("/admin", get(assets::admin_page))
        .route("/admin/", get(assets::admin_page))
        .route("/service-worker.js", get(assets::service_worker))
        .route("/problems/{name}", get(assets::problem))
        .route("/docs", get(assets::docs_page))
        .route("/docs/", get(assets::docs_page))
}
