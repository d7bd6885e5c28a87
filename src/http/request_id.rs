//! The id and the trace of a request.
//!
//! The id is in each log line of the request, in its response and in its problem, so that a report of a user leads
//! to the log. The server accepts the id of a proxy, and replaces a header that could forge or flood a log.

use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Extensions, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use tracing::Span;

use crate::domain::ids::HttpRequestId;
use crate::http::error::{ApiError, PROBLEM_JSON};
use crate::storage::trace::TraceParent;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id in bytes: a UUID has 36, an id of a proxy with addresses and times 80.
const ID_BYTES_MAX: usize = 128;

#[derive(Clone)]
pub(crate) struct RequestNames(Arc<Inner>);

struct Inner {
    id: HeaderValue,
    trace: Option<TraceParent>,
}

impl RequestNames {
    /// Reads the headers of a request. A repeated header is ambiguous, and counts as an invalid one.
    pub(crate) fn read(request: &Request) -> Self {
        let only = |name: &str| {
            let mut values = request.headers().get_all(name).iter();
            values.next().filter(|_| values.next().is_none())
        };
        let id = only(REQUEST_ID.as_str()).filter(|id| is_id(id.as_bytes())).cloned();
        let generated = || HeaderValue::try_from(HttpRequestId::generate().to_string());
        // An id of the domain is ASCII, so this cannot fail.
        let id = id.or_else(|| generated().ok()).unwrap_or(HeaderValue::from_static("none"));
        let trace = only("traceparent").and_then(|it| it.to_str().ok()?.parse().ok());
        Self(Arc::new(Inner { id, trace }))
    }

    /// The ids that the service put into the request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Self::read(&Request::default()))
    }

    pub(crate) fn trace(&self) -> Option<TraceParent> {
        self.0.trace.clone()
    }

    pub(crate) fn id(&self) -> &str {
        self.0.id.to_str().unwrap_or_default()
    }

    /// The span of the request. Its level is that of the gravest line, so that every filter shows the id.
    pub(crate) fn span(&self, method: &str, route: &str) -> Span {
        let traceparent = self.0.trace.as_ref().map(TraceParent::as_str);
        tracing::error_span!("request", method, route, request_id = self.id(), traceparent)
    }

    /// Puts the id into the response, and into its problem document.
    pub(crate) fn stamp(&self, response: &mut Response) {
        response.headers_mut().insert(REQUEST_ID, self.0.id.clone());
        let error = response.extensions().get::<Arc<ApiError>>().cloned();
        if let Some(error) = error
            && response.headers().get(CONTENT_TYPE) == Some(&PROBLEM_JSON)
        {
            let problem = Json(error.problem(Some(self.id().to_owned())));
            *response.body_mut() = problem.into_response().into_body();
        }
    }
}

fn is_id(id: &[u8]) -> bool {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.iter().all(is_safe)
}
