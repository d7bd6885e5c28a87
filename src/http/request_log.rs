//! Counts and times every request, and logs each failure of the server. No other module does.
//!
//! Labels and log lines name the route, never the path: a path contains ids, and a query may contain a
//! token.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use tracing::Instrument;

use crate::http::error::{ApiError, PROBLEM_JSON};
use crate::http::request_id::RequestNames;
use crate::storage::trace;

/// The route of requests that matched none: pages, files and unknown addresses.
const UNMATCHED: &str = "other";
pub(crate) const SOCKET: &str = "/ws/share-links/{id}/{role}";

/// Counts, times and logs a request.
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let started_at = Instant::now();
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let names = RequestNames::of(request.extensions());
    let span = names.span(method, route);
    let answering = trace::within(names.trace(), next.run(request));
    let mut response = answering.instrument(span.clone()).await;
    names.stamp(&mut response);
    let status = response.status();
    span.in_scope(|| log(&response));
    let RequestMetrics { requests, seconds } = request_metrics(method, route, status);
    seconds.record(started_at.elapsed());
    requests.increment(1);
    response
}

/// Counts, times and logs a websocket request that bypassed the router, whether or not it was upgraded.
pub(crate) fn socket(response: &Response, started_at: Instant) {
    /// Cached handles: thousands of sockets open at the same moment.
    static OPENED: LazyLock<RequestMetrics> =
        LazyLock::new(|| request_metrics("GET", SOCKET, StatusCode::SWITCHING_PROTOCOLS));
    let status = response.status();
    log(response);
    let other;
    let RequestMetrics { requests, seconds } = if status == StatusCode::SWITCHING_PROTOCOLS {
        &*OPENED
    } else {
        other = request_metrics("GET", SOCKET, status);
        &other
    };
    seconds.record(started_at.elapsed());
    requests.increment(1);
}

/// Counts and logs a request that the service rejected before the router.
pub(crate) fn rejected(method: &Method, names: &RequestNames, response: &Response) {
    let method = method_name(method);
    names.span(method, UNMATCHED).in_scope(|| log(response));
    request_metrics(method, UNMATCHED, response.status()).requests.increment(1);
}

struct RequestMetrics {
    requests: metrics::Counter,
    seconds: metrics::Histogram,
}

fn request_metrics(method: &'static str, route: &str, status: StatusCode) -> RequestMetrics {
    let labels = [("method", method.to_owned()), ("route", route.to_owned())];
    let seconds = metrics::histogram!("galley_http_request_seconds", &labels);
    let [method, route] = labels;
    let labels = [method, route, ("status", status.as_str().to_owned())];
    let requests = metrics::counter!("galley_http_requests_total", &labels);
    RequestMetrics { requests, seconds }
}

fn log(response: &Response) {
    let status = response.status();
    match response.extensions().get::<Arc<ApiError>>() {
        // `Readiness` logs changes of state itself.
        Some(error) if matches!(**error, ApiError::NotReady { .. }) => {
            tracing::debug!(status = status.as_u16(), %error, "not ready");
        }
        // 501 tells the caller what this server does not make: no fault of the server.
        Some(error) if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            tracing::error!(status = status.as_u16(), %error, "request failed");
        }
        Some(error) => tracing::debug!(status = status.as_u16(), %error, "request refused"),
        None => tracing::debug!(status = status.as_u16(), "request done"),
    }
}

/// A client may invent methods, so an unknown method is no label.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => UNMATCHED,
    }
}

pub(crate) async fn explain(request: Request, next: Next) -> Response {
    let bare = next.run(request).await;
    let status = bare.status();
    let is_failure = status.is_client_error() || status.is_server_error();
    let kind = bare.headers().get(CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if !is_failure || is_page || kind == Some(&PROBLEM_JSON) {
        return bare;
    }
    let mut problem = ApiError::of_bare_status(status).into_response();
    // Headers of the layer stay: Allow, Retry-After.
    for (name, value) in bare.headers() {
        if name.as_str() == "allow" || name.as_str() == "retry-after" {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands the panic over")]
pub(crate) fn after_panic(panic: Box<dyn Any + Send + 'static>) -> Response {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ApiError::Internal(format!("a handler panicked: {words}")).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt as _;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    async fn request(path: &str) -> (StatusCode, serde_json::Value) {
        let router: Router = Router::new()
            .route("/panics", get(async || -> &'static str { panic!("at the disco") }))
            .route("/teapot", get(async || StatusCode::IM_A_TEAPOT))
            .layer(CatchPanicLayer::custom(after_panic))
            .layer(from_fn(explain));
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("an answer");
        assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
        let status = response.status();
        let body = to_bytes(response.into_body(), 4_096).await.expect("a body");
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn g12_a_panic_is_a_response_that_hides_its_cause() {
        let (status, problem) = request("/panics").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(problem["type"], "/problems/internal");
        assert!(!problem.to_string().contains("disco"));
    }

    #[tokio::test]
    async fn a_bare_failure_becomes_a_problem_document() {
        assert_eq!(request("/nowhere").await.1["type"], "/problems/not-found");
        assert_eq!(request("/teapot").await.1["status"], 400);
    }
}
