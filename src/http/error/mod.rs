//! Failures of a request as problem documents (RFC 9457).
//!
//! `type` and `status` are contract, and `detail` is prose for the caller. A 5xx hides its cause, which
//! goes to the log. A service states the contract of its failures by [`Failure`].

mod rejections;
pub(crate) mod services;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::http::auth::scopes::Scope;
use crate::http::byte_budget::OverBudget;
use crate::http::readiness::Finding;
use crate::rooms::RoomError;
use crate::seats::SeatError;

pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// `Retry-After` for an unavailable dependency, in seconds. Most outages are a restart.
const UNAVAILABLE_RETRY_SECONDS: u64 = 2;
/// `Retry-After` for a spent byte budget: clients have read most responses by then.
const BYTES_RETRY: Duration = Duration::from_secs(1);

pub(crate) type Contract = (StatusCode, &'static str, &'static str);

pub(crate) type Members = Map<String, Value>;

pub(crate) fn member(name: &str, value: impl Into<Value>) -> Members {
    Members::from_iter([(name.to_owned(), value.into())])
}

pub(crate) const STORAGE_FULL: Contract =
    (StatusCode::INSUFFICIENT_STORAGE, "storage-full", "The server has no room for anything new");

pub(crate) const UNAVAILABLE: Contract =
    (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Try again");

pub(crate) const PRECONDITION_FAILED: Contract =
    (StatusCode::PRECONDITION_FAILED, "version-mismatch", "It has changed");

/// A failure of a service, with its contract. `Display` is the detail for the caller.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    fn contract(&self) -> (StatusCode, &'static str, &'static str);

    /// When the caller may retry. A 503 has a default.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Further members of the problem.
    fn members(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// The reason why the server rejects a request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The resource does not exist, or the caller has no right to know that it does.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("this address does not take that method")]
    MethodNotAllowed,
    #[error("{0}")]
    Malformed(String),
    /// The request is well-formed and its content is invalid.
    #[error("{0}")]
    Invalid(String),
    #[error("send the body as application/json")]
    UnsupportedMediaType,
    #[error("send the body without a Content-Encoding; this server decodes none")]
    EncodedBody,
    #[error("the body is longer than this server takes")]
    TooLarge,
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The token is not valid now; names the part at fault.
    #[error("the token is not valid, or not any more")]
    TokenRefused(&'static str),
    #[error("the request comes from an origin that is not this server's")]
    ForeignOrigin,
    #[error(
        "this server has another name; use its address or its public one, or add the name to \
         server.hosts"
    )]
    WrongHost,
    #[error("this needs the admin token")]
    NotAdmin,
    #[error("this server takes no guests; come with a token")]
    GuestsOff,
    /// A user of the host application asked for another name.
    #[error("your name comes from the application that signed you in; change it there")]
    NameFromHost,
    /// A user of the host application asked for a code for another device.
    #[error("sign in on the other device as you did here")]
    NotAGuest,
    /// A session is exchanged for the token of a header, which no browser adds by itself.
    #[error("send the token as Authorization: Bearer; a cookie is a session already")]
    NeedsBearer,
    /// A guest's own token is the session.
    #[error("a guest has a session already; sign in with a token of the host application")]
    GuestSession,
    #[error("no server token opens this route")]
    NotForServers,
    #[error("the token has no scope {}", .0.as_str())]
    ScopeMissing(Scope),
    #[error("only a server token acts in the name of a user; send no Galley-User with this one")]
    ServerTokenRequired,
    /// `If-Match` names a version that never existed.
    #[error("the tag in If-Match is not one of this resource's")]
    UnknownTag,
    #[error("too many requests; try again later")]
    TooManyRequests { retry_after: Duration },
    #[error("unavailable: {0}")]
    Unavailable(String),
    #[error("down: {}", remedies(down))]
    NotReady { down: Vec<Finding>, age: Duration },
    #[error("internal: {0}")]
    Internal(String),
    #[error("{0}")]
    Service(Box<dyn Failure>),
}

#[derive(Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(flatten)]
    members: Members,
}

impl ApiError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::MethodNotAllowed => {
                (Is::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed")
            }
            Self::Malformed(_) => (Is::BAD_REQUEST, "malformed", "Malformed request"),
            Self::Invalid(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
            Self::UnsupportedMediaType | Self::EncodedBody => {
                (Is::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type")
            }
            Self::TooLarge => (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large"),
            Self::Unauthenticated(_) | Self::TokenRefused(_) => {
                (Is::UNAUTHORIZED, "unauthenticated", "Who are you?")
            }
            Self::ForeignOrigin => (Is::FORBIDDEN, "foreign-origin", "Foreign origin"),
            Self::WrongHost => (Is::MISDIRECTED_REQUEST, "wrong-host", "Another host"),
            Self::NotAdmin => (Is::FORBIDDEN, "not-admin", "Not an administrator"),
            Self::GuestsOff => (Is::FORBIDDEN, "guests-off", "No guests"),
            Self::NameFromHost => {
                (Is::FORBIDDEN, "name-from-host", "The name comes from elsewhere")
            }
            Self::NeedsBearer => (Is::FORBIDDEN, "bearer-required", "A bearer token is required"),
            Self::GuestSession => (Is::CONFLICT, "guest-session", "A guest has a session"),
            Self::NotAGuest => (Is::FORBIDDEN, "not-a-guest", "Not a guest"),
            Self::NotForServers => (Is::FORBIDDEN, "not-for-servers", "Not for server tokens"),
            Self::ScopeMissing(_) => (Is::FORBIDDEN, "scope-missing", "A scope is missing"),
            Self::ServerTokenRequired => {
                (Is::FORBIDDEN, "server-token-required", "A server token is required")
            }
            Self::UnknownTag => PRECONDITION_FAILED,
            Self::TooManyRequests { .. } => {
                (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
            }
            Self::Unavailable(_) => UNAVAILABLE,
            Self::NotReady { .. } => (Is::SERVICE_UNAVAILABLE, "not-ready", "Not ready"),
            Self::Internal(_) => (Is::INTERNAL_SERVER_ERROR, "internal", "Our fault"),
            Self::Service(failure) => failure.contract(),
        }
    }

    /// The status of the timeout layer.
    pub(crate) const TOO_SLOW: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

    pub(crate) fn of_bare_status(status: StatusCode) -> Self {
        use StatusCode as Is;
        match status {
            Is::NOT_FOUND => Self::NotFound("address"),
            Is::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            Is::PAYLOAD_TOO_LARGE => Self::TooLarge,
            Is::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            Is::UNPROCESSABLE_ENTITY => {
                Self::Invalid("the request is not what this address takes".into())
            }
            Self::TOO_SLOW => Self::Unavailable("the answer took too long".into()),
            status if status.is_client_error() => {
                Self::Malformed("the request is not what this address takes".into())
            }
            status => Self::Internal(format!("a bare {status}")),
        }
    }

    /// The `WWW-Authenticate` of RFC 6750 §3: bare without a token, with the cause for a rejected token.
    fn challenge(&self) -> HeaderValue {
        let bare = HeaderValue::from_static("Bearer");
        let Self::TokenRefused(cause) = self else { return bare };
        let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{cause}\"");
        HeaderValue::try_from(challenge).unwrap_or(bare)
    }

    fn retry_after(&self) -> Option<u64> {
        let by_limit = match self {
            Self::TooManyRequests { retry_after } => Some(*retry_after),
            Self::Service(failure) => failure.retry_after(),
            _other => None,
        };
        if let Some(wait) = by_limit {
            // Rounded up: the limit would reject a client that retries too soon.
            return Some(wait.as_secs() + u64::from(wait.subsec_nanos() != 0));
        }
        let (status, _, _) = self.contract();
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(UNAVAILABLE_RETRY_SECONDS)
    }
}

/// Joins the remedies in one line, each behind the name of its probe.
pub(crate) fn remedies(found: &[Finding]) -> String {
    let each: Vec<_> = found.iter().map(|it| format!("{}: {}", it.name, it.remedy)).collect();
    each.join("; ")
}

impl ApiError {
    pub(crate) fn problem(&self, request_id: Option<String>) -> Problem {
        let (status, name, title) = self.contract();
        // A 5xx reports that the server failed and hides the cause.
        let detail = status.is_client_error().then(|| self.to_string());
        let members = match self {
            // A remedy contains no secret, so every client may read it.
            Self::NotReady { down, age } => {
                let names: Vec<_> = down.iter().map(|it| it.name).collect();
                Members::from_iter([
                    ("age_ms".to_owned(), json!(age.as_millis())),
                    ("down".to_owned(), json!(names)),
                    ("remedy".to_owned(), remedies(down).into()),
                ])
            }
            Self::ScopeMissing(scope) => member("scope", scope.as_str()),
            Self::Service(failure) => failure.members(),
            _other => Members::new(),
        };
        let kind = format!("/problems/{name}");
        Problem { kind, title, status: status.as_u16(), detail, request_id, members }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, _, _) = self.contract();
        // `observe` adds the id of the request.
        let problem = Json(self.problem(None));
        let mut response = (status, [(CONTENT_TYPE, PROBLEM_JSON)], problem).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, self.challenge());
        }
        if matches!(self, Self::EncodedBody) {
            // The codings that a request may have (RFC 9110 §12.5.3).
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        // `observe` logs the error once, at the end of the request.
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl<E: Failure> From<E> for ApiError {
    fn from(failure: E) -> Self {
        Self::Service(Box::new(failure))
    }
}

impl From<RoomError> for ApiError {
    fn from(error: RoomError) -> Self {
        SeatError::from(error).into()
    }
}

impl From<OverBudget> for ApiError {
    fn from(over: OverBudget) -> Self {
        match over {
            OverBudget::Share => Self::TooManyRequests { retry_after: BYTES_RETRY },
            OverBudget::All => Self::Unavailable(over.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_typed_and_its_cause_goes_to_the_log() {
        let retry_after = Duration::from_millis(1_200);
        let response = ApiError::TooManyRequests { retry_after }.into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(response.headers().get_all(CONTENT_TYPE).iter().count(), 1);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert!(response.extensions().get::<Arc<ApiError>>().is_some());
    }

    #[tokio::test]
    async fn a_server_fault_has_no_detail_in_its_response() {
        let response = ApiError::Internal("disk sda1 is on fire".to_owned()).into_response();
        let body = axum::body::to_bytes(response.into_body(), 1_024).await.expect("a body");
        let problem: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(problem["type"], "/problems/internal");
        assert_eq!(problem["status"], 500);
        assert_eq!(problem.get("detail"), None);
    }
}
