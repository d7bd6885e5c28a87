//! HTTP: REST, pages, authentication, and the upgrade to websockets. The only module that uses axum.
//!
//! A request passes these layers from the outside in: response headers, metrics, problem documents for
//! bare failures, the panic handler, the timeout, the close after an unread body. On the way to `/api`
//! and `/ws` it also passes the verification of its token, the rate limit and the byte budget. Then the
//! handler runs. The server answers a plain websocket request without these layers ([`ws::upgrade`]).

pub mod access;
pub mod assets;
pub mod auth;
pub mod byte_budget;
pub mod connection_slots;
pub mod error;
pub mod headers;
pub mod health;
pub mod host;
pub mod limit;
#[cfg(test)]
mod openapi_tests;
pub mod origin;
mod pagination;
pub mod peer;
pub mod readiness;
mod request_log;
mod response_budget;
pub mod serve;
mod unread_body;

mod admin;
mod allowances;
mod decisions;
mod documents;
mod exports;
mod extract;
pub mod guest_budgets;
mod jobs;
mod links;
mod offers;
mod partners;
mod progress;
mod push;
mod reminders;
mod replies;
mod review_requests;
mod reviewers;
mod reviews;
mod routes;
pub mod security_log;
pub mod tarpit;
mod versions;
mod webhooks;
pub mod ws;

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRef};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::domain::review::Decision;
use crate::exports::build::Exports;
use crate::http::access::Access;
use crate::http::assets::Pages;
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
use crate::http::routes::Routes;
use crate::http::security_log::SecurityLog;
use crate::http::tarpit::Tarpit;
use crate::jobs::Jobs;
use crate::notify::Notify;
use crate::notify::webhooks::Webhooks;
use crate::partners::Partners;
use crate::partners::offers::Offers;
use crate::reviews::Reviews;
use crate::seats::SeatService;
use crate::sharing::Sharing;
use crate::versions::Versions;

/// Time limit from the end of a request's head to the beginning of its response.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The state of the handlers. Each handler extracts only the part that it uses.
#[derive(Clone, FromRef)]
pub struct HttpState {
    /// Signs and verifies tokens.
    pub tokens: Tokens,
    /// Policy of guests, and the admin token.
    pub access: Access,
    /// Rate limits.
    pub limiter: Limiter,
    /// Bytes that the server holds in memory for clients.
    pub budget: ByteBudget,
    /// The server's own origins.
    pub origins: Origins,
    /// The names under which the server answers.
    pub hosts: Hosts,
    /// Proxies whose `X-Forwarded-For` the server trusts.
    pub proxies: Proxies,
    /// Response headers, with the content security policy.
    pub policy: Policy,
    /// The pages and their files.
    pub pages: Pages,
    /// Documents and share links.
    pub sharing: Sharing,
    /// People, review requests and partners.
    pub partners: Partners,
    /// Probes of the dependencies.
    pub readiness: Readiness,
    /// The metrics endpoint.
    pub scrape: MetricsHandle,
    /// Seats and sessions.
    pub sessions: SeatService,
    /// Review offers.
    pub offers: Offers,
    /// Reviews.
    pub reviews: Reviews,
    /// Versions of the documents.
    pub versions: Versions,
    /// Documents as files.
    pub exports: Exports,
    /// Web Push.
    pub notify: Notify,
    /// Jobs, and the settings of reminders.
    pub jobs: Jobs,
    /// Webhooks of the host product.
    pub webhooks: Webhooks,
    /// Delays of repeated claims of a held seat.
    pub tarpit: Tarpit,
    /// Budgets of guests.
    pub guest_budgets: GuestBudgets,
    /// Security events in the log.
    pub security_log: SecurityLog,
}

impl FromRef<HttpState> for auth::caller::Checks {
    fn from_ref(state: &HttpState) -> Self {
        let HttpState { tokens, access, limiter, origins, security_log, .. } = state;
        let (tokens, access, limiter) = (tokens.clone(), access.clone(), limiter.clone());
        (tokens, access, limiter, origins.clone(), security_log.clone())
    }
}

/// The whole router. Bodies are at most `body_bytes` long.
fn router(state: HttpState, body_bytes: usize) -> Router {
    let counted: auth::caller::Checks = FromRef::from_ref(&state);
    let by_address = from_fn_with_state(state.limiter.clone(), limit::by_address);
    let guarded = guarded()
        .into_router()
        .merge(reviewing().into_router())
        .route_layer(from_fn_with_state(state.budget.clone(), response_budget::charge))
        .route_layer(from_fn_with_state(counted, auth::caller::identify));
    guarded
        .merge(open().into_router().merge(pages()).fallback(assets::file).layer(by_address))
        .merge(probes().into_router())
        .layer((DefaultBodyLimit::max(body_bytes), Extension(BodyMax(body_bytes))))
        .layer(from_fn(unread_body::close_after))
        .layer(TimeoutLayer::with_status_code(ApiError::TOO_SLOW, ANSWER_MAX))
        .layer(CatchPanicLayer::custom(request_log::after_panic))
        .layer(from_fn(request_log::explain))
        .layer(from_fn(request_log::observe))
        .layer(from_fn_with_state(state.policy.clone(), headers::harden))
        .with_state(state)
}

/// Routes that verify the token and count the request.
fn guarded() -> Routes {
    let entry = Routes::default()
        .get("/api/auth", auth::guest::entry)
        .post("/api/auth/guest", auth::guest::enter)
        .post("/api/auth/leave", auth::guest::leave)
        .post("/api/auth/transfer", auth::transfer::redeem)
        .get("/api/me", auth::guest::me)
        .patch("/api/me", auth::guest::change)
        .post("/api/me/transfer", auth::transfer::create);
    let shared = reviewers::routes(links::routes(versions::routes(documents::routes(entry))));
    let reminding = jobs::routes(reminders::routes(webhooks::routes(shared)));
    push::routes(admin::routes(offers::routes(review_requests::routes(partners::routes(
        exports::routes(reminding),
    )))))
}

/// Routes of reviews, and of the websocket.
fn reviewing() -> Routes {
    const ALL: &str = "/api/share-links/{id}/reviews";
    const ONE: &str = "/api/share-links/{id}/reviews/{rid}";
    progress::routes(replies::routes(Routes::default()))
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
        .post_review("/api/share-links/{id}/decisions", decisions::decide)
        .post("/api/share-links/{id}/decisions/{did}/undo", decisions::undo)
        .get(request_log::SOCKET, ws::connect)
}

/// Routes for programs without a token.
fn open() -> Routes {
    Routes::default().get("/metrics", health::metrics).get("/openapi.json", assets::openapi)
}

/// Routes for load balancers. No rate limit counts them: many probes may share an address, and the
/// server answers each from memory.
fn probes() -> Routes {
    Routes::default().get("/healthz", health::healthz).get("/readyz", health::readyz)
}

/// Pages and their files.
fn pages() -> Router<HttpState> {
    Router::new()
        .route("/", get(assets::start_page))
        .route("/d/{document_id}", get(assets::editor_page))
        .route("/s/{share_link_id}", get(assets::editor_page))
        .route("/admin", get(assets::admin_page))
        .route("/service-worker.js", get(assets::service_worker))
        .route("/problems/{name}", get(assets::problem))
        .route("/docs", get(assets::docs_page))
        .route("/docs/", get(assets::docs_page))
}
