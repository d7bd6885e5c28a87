//! Whether the server lives, whether it can serve, and its figures.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::error::ApiError;

/// A probe that takes longer counts as down.
const PROBE_MAX: Duration = Duration::from_secs(2);
/// How long a finding is served before it is looked for again: whoever asks often shall not make
/// the server ask Redis as often.
const FINDING_KEPT: Duration = Duration::from_millis(500);

/// A question that is answered with "it works", or with why it does not.
type Question = dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

/// One thing that the server needs.
#[derive(Clone)]
pub struct Probe {
    name: &'static str,
    question: Arc<Question>,
}

impl Probe {
    /// A probe called `name`, which the outside may read.
    pub fn new<Q, F>(name: &'static str, question: Q) -> Self
    where
        Q: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self { name, question: Arc::new(move || Box::pin(question())) }
    }

    /// Whether it works; why not goes to the log.
    async fn works(&self) -> bool {
        let answer = timeout(PROBE_MAX, (self.question)()).await;
        let why = match answer {
            Ok(Ok(())) => return true,
            Ok(Err(why)) => why,
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        tracing::warn!(probe = self.name, why, "not ready");
        false
    }
}

/// Everything that the server needs. A cheap handle.
#[derive(Clone)]
pub struct Readiness(Arc<Inner>);

struct Inner {
    probes: Vec<Probe>,
    found: Mutex<Option<(Instant, Vec<&'static str>)>>,
}

impl Readiness {
    /// Ready when all `probes` are.
    #[must_use]
    pub fn new(probes: Vec<Probe>) -> Self {
        Self(Arc::new(Inner { probes, found: Mutex::new(None) }))
    }

    /// What is down.
    pub async fn down(&self) -> Vec<&'static str> {
        if let Some(down) = self.fresh() {
            return down;
        }
        let mut down = Vec::new();
        for probe in &self.0.probes {
            if !probe.works().await {
                down.push(probe.name);
            }
        }
        let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some((Instant::now(), down.clone()));
        down
    }

    fn fresh(&self) -> Option<Vec<&'static str>> {
        let found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, down) = found.as_ref()?;
        (at.elapsed() < FINDING_KEPT).then(|| down.clone())
    }
}

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> Response {
    (NOT_KEPT, Json(json!({ "status": "ok" }))).into_response()
}

/// `GET /readyz`: what it needs is there, or which of it is not.
pub(crate) async fn readyz(State(readiness): State<Readiness>) -> Response {
    let down = readiness.down().await;
    if down.is_empty() {
        return (NOT_KEPT, Json(json!({ "status": "ready" }))).into_response();
    }
    (NOT_KEPT, ApiError::NotReady { down }).into_response()
}

const NOT_KEPT: [(axum::http::HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// Renders the figures, if they are kept.
#[derive(Clone)]
pub struct Scrape(Option<Arc<dyn Fn() -> String + Send + Sync>>);

impl Scrape {
    /// Figures as `render` gives them.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(render)))
    }

    /// No figures.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }
}

/// `GET /metrics`
pub(crate) async fn metrics(State(scrape): State<Scrape>) -> Result<Response, ApiError> {
    let render = scrape.0.ok_or(ApiError::NotFound("address"))?;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((NOT_KEPT, kind, render()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_does_not_answer_is_down() {
        let readiness = Readiness::new(vec![
            Probe::new("storage", || async { Ok(()) }),
            Probe::new("locks", std::future::pending),
        ]);
        assert_eq!(readiness.down().await, ["locks"]);
    }
}
