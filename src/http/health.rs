//! Liveness, readiness, and the metrics endpoint.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::http::error::{ApiError, Members, remedies};
use crate::http::readiness::{Findings, Readiness};

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> Response {
    (NO_STORE, Json(json!({ "status": "ok" }))).into_response()
}

/// `GET /readyz`: 200 if the server serves requests, else the findings with their remedies.
pub(crate) async fn readyz(State(readiness): State<Readiness>) -> Response {
    let (Findings { down, degraded, warnings }, age) = readiness.look().await;
    if !down.is_empty() {
        return (NO_STORE, ApiError::NotReady { down, age }).into_response();
    }
    let mut body = Members::new();
    body.insert("status".to_owned(), "ready".into());
    body.insert("age_ms".to_owned(), json!(age.as_millis()));
    if !degraded.is_empty() {
        let names: Vec<_> = degraded.iter().map(|finding| finding.name).collect();
        body.insert("degraded".to_owned(), names.into());
        body.insert("remedy".to_owned(), remedies(&degraded).into());
    }
    if !warnings.is_empty() {
        body.insert("warnings".to_owned(), json!(warnings));
    }
    (NO_STORE, Json(body)).into_response()
}

const NO_STORE: [(axum::http::HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

#[derive(Clone)]
pub struct MetricsHandle(Option<Arc<dyn Fn() -> String + Send + Sync>>);

impl MetricsHandle {
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(render)))
    }

    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }
}

/// `GET /metrics`
pub(crate) async fn metrics(
    State(scrape): State<MetricsHandle>,
    State(readiness): State<Readiness>,
) -> Result<Response, ApiError> {
    let render = scrape.0.ok_or(ApiError::NotFound("address"))?;
    // Its check sets `galley_ready`, on a server without probes, too.
    readiness.look().await;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((NO_STORE, kind, render()).into_response())
}
