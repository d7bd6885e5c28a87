//! Failures of a request. Only this module maps a failure to a status code.
//!
//! Failed responses are problem documents (RFC 9457). `type` and `status` are contract, and `detail` is
//! prose for the caller. A 5xx hides its cause, which goes to the log.

mod contracts;
mod exports;
mod jobs;
mod offers;
mod partners;
mod rejections;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::deletion::Deletion;
use crate::domain::ids::ReviewId;
use crate::domain::review_request::RequestState;
use crate::exports::error::ExportError;
use crate::http::byte_budget::OverBudget;
use crate::http::error::contracts::{
    PRECONDITION_FAILED, review_contract, session_contract, version_contract,
};
use crate::http::readiness::Finding;
use crate::notify::NotifyError;
use crate::partners::PartnersError;
use crate::partners::offer_error::OfferError;
use crate::reviews::ReviewError;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::sharing::SharingError;
use crate::sharing::bin::Deleted;
use crate::storage::error::StorageError;
use crate::versions::VersionError;

/// The content type of a failed response.
pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// `Retry-After` for an unavailable dependency, in seconds. Most outages are a restart.
const UNAVAILABLE_RETRY_SECONDS: u64 = 2;
/// `Retry-After` for a spent byte budget: clients have read most responses by then.
const BYTES_RETRY: Duration = Duration::from_secs(1);

/// The reason why the server rejects a request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The resource does not exist, or the caller has no right to know that it does.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The document is in the bin, and the caller was a member of its share link.
    #[error("{} deleted this document", .0.deletion.by.name)]
    Deleted(Box<Deleted>),
    /// The address does not support the method.
    #[error("this address does not take that method")]
    MethodNotAllowed,
    /// The request cannot be parsed.
    #[error("{0}")]
    Malformed(String),
    /// The request is well-formed and its content is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The content type of the body is not JSON.
    #[error("send the body as application/json")]
    UnsupportedMediaType,
    /// The body is longer than the limit.
    #[error("the body is longer than this server takes")]
    TooLarge,
    /// The request carries no valid token.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The token is not valid now; names the part at fault.
    #[error("the token is not valid, or not any more")]
    TokenRefused(&'static str),
    /// A page of another site sent the request.
    #[error("the request comes from an origin that is not this server's")]
    ForeignOrigin,
    /// The request names a host that is not one of this server's.
    #[error(
        "this server has another name; use its address or its public one, or add the name to \
         server.hosts"
    )]
    WrongHost,
    /// The right of an administrator is missing.
    #[error("this needs the admin token")]
    NotAdmin,
    /// The right of the writer is missing.
    #[error("only the writer of this share link may do that")]
    NotTheWriter,
    /// The settings allow no guests.
    #[error("this server takes no guests; come with a token")]
    GuestsOff,
    /// The invite does not belong to this share link.
    #[error("the invite is not the one of this share link; copy the whole link again")]
    WrongInvite,
    /// The caller is the writer, and a writer cannot become reviewer of the same document.
    #[error("you are the writer of this document")]
    AlreadyWriter,
    /// The user's quota is spent.
    #[error("you have as many {0} as you may; delete some first")]
    QuotaSpent(&'static str),
    /// A user of the host application asked for another name.
    #[error("your name comes from the application that signed you in; change it there")]
    NameFromHost,
    /// A user of the host application asked for a code for another device.
    #[error("sign in on the other device as you did here")]
    NotAGuest,
    /// The code for another device is wrong, used or expired.
    #[error("the code is wrong, used or expired; make a new one on the other device")]
    WrongCode,
    /// The link has no reviewer.
    #[error("this share link has no reviewer")]
    NoReviewer,
    /// Another user is the reviewer already.
    #[error("somebody else is the reviewer of this share link")]
    ReviewerExists,
    /// The owner named a user who is neither a partner nor refused.
    #[error("this user is no partner of yours, and this share link did not refuse them")]
    NotAPartner,
    /// A request, a handle or a partner could not be read or changed.
    #[error(transparent)]
    Partners(#[from] PartnersError),
    /// A review could not be created or changed.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// A version could not be read, created or restored.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// An export or an import failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// An offer could not be created, claimed or changed.
    #[error(transparent)]
    Offer(OfferError),
    /// A session or a room failed.
    #[error(transparent)]
    Session(#[from] SeatError),
    /// The settings switch Web Push off.
    #[error("this server sends no pushes")]
    PushOff,
    /// The browser's subscription is not one to which the server pushes.
    #[error("{0}")]
    InvalidSubscription(String),
    /// A field of the settings of reminders is invalid.
    #[error("{field}: {fault}")]
    InvalidReminders {
        /// The field.
        field: &'static str,
        /// Its fault.
        fault: String,
    },
    /// `If-Match` names a version that never existed.
    #[error("the tag in If-Match is not one of this resource's")]
    UnknownTag,
    /// The rate limit rejects the request.
    #[error("too many requests; try again later")]
    TooManyRequests {
        /// When the limit accepts the next request.
        retry_after: Duration,
    },
    /// A dependency of the server is unavailable.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// At least one dependency of the server is down.
    #[error("down: {}", remedies(down))]
    NotReady {
        /// The findings of the probes.
        down: Vec<Finding>,
    },
    /// A fault of the server.
    #[error("internal: {0}")]
    Internal(String),
}

/// The body of a failed response.
#[derive(Serialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    down: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<DeletedBody>,
    /// The reviews that prevent an undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    reviews: Option<Vec<ReviewId>>,
    /// The pending request of the same pair, or the caller's claim of the offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The state of a request that is not pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<RequestState>,
    /// The field that is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'static str>,
}

/// The deletion of the document that the request names.
#[derive(Serialize)]
struct DeletedBody {
    #[serde(flatten)]
    deletion: Deletion,
    purge_at: DateTime<Utc>,
}

impl ApiError {
    /// The status, the name and the title of the failure.
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound(_) | Self::Deleted(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::MethodNotAllowed => {
                (Is::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed")
            }
            Self::Malformed(_) => (Is::BAD_REQUEST, "malformed", "Malformed request"),
            Self::Invalid(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
            Self::UnsupportedMediaType => {
                (Is::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type")
            }
            Self::TooLarge => (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large"),
            Self::Unauthenticated(_) | Self::TokenRefused(_) => {
                (Is::UNAUTHORIZED, "unauthenticated", "Who are you?")
            }
            Self::ForeignOrigin => (Is::FORBIDDEN, "foreign-origin", "Foreign origin"),
            Self::WrongHost => (Is::MISDIRECTED_REQUEST, "wrong-host", "Another host"),
            Self::NotAdmin => (Is::FORBIDDEN, "not-admin", "Not an administrator"),
            Self::NotTheWriter => (Is::FORBIDDEN, "not-the-writer", "Not the writer"),
            Self::GuestsOff => (Is::FORBIDDEN, "guests-off", "No guests"),
            Self::WrongInvite => (Is::FORBIDDEN, "wrong-invite", "Wrong invite"),
            Self::NameFromHost => {
                (Is::FORBIDDEN, "name-from-host", "The name comes from elsewhere")
            }
            Self::NotAGuest => (Is::FORBIDDEN, "not-a-guest", "Not a guest"),
            Self::WrongCode => (Is::NOT_FOUND, "transfer-code-invalid", "The code is not valid"),
            Self::NoReviewer => (Is::NOT_FOUND, "no-reviewer", "There is no reviewer"),
            Self::AlreadyWriter => (Is::CONFLICT, "already-writer", "Already the writer"),
            Self::ReviewerExists => (Is::CONFLICT, "reviewer-exists", "There is a reviewer"),
            Self::NotAPartner => (Is::NOT_FOUND, "not-a-partner", "Not a partner"),
            Self::Partners(error) => partners::contract(error),
            Self::QuotaSpent(_) => (Is::CONFLICT, "quota-spent", "The quota is spent"),
            Self::PushOff => (Is::NOT_FOUND, "push-off", "No pushes"),
            Self::InvalidSubscription(_) => {
                (Is::UNPROCESSABLE_ENTITY, "invalid-subscription", "The subscription is not valid")
            }
            Self::InvalidReminders { .. } => {
                (Is::UNPROCESSABLE_ENTITY, "invalid-reminders", "The settings are not valid")
            }
            Self::UnknownTag => PRECONDITION_FAILED,
            Self::Review(error) => review_contract(error),
            Self::Version(error) => version_contract(error),
            Self::Export(error) => exports::contract(error),
            Self::Offer(error) => offers::offer_contract(error),
            Self::Session(error) => session_contract(error),
            Self::TooManyRequests { .. } => {
                (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
            }
            Self::Unavailable(_) => (Is::SERVICE_UNAVAILABLE, "unavailable", "Try again"),
            Self::NotReady { .. } => (Is::SERVICE_UNAVAILABLE, "not-ready", "Not ready"),
            Self::Internal(_) => (Is::INTERNAL_SERVER_ERROR, "internal", "Our fault"),
        }
    }

    /// The status of the timeout layer.
    pub(crate) const TOO_SLOW: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

    /// The error for a failed response that a layer made without a problem document.
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
            Self::TooManyRequests { retry_after }
            | Self::Export(ExportError::TooFast(retry_after))
            | Self::Review(ReviewError::TooFast(retry_after)) => Some(*retry_after),
            Self::Partners(error) => partners::retry_after(error),
            Self::Offer(error) => offers::retry_after(error),
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

/// Status, name and title.
type Contract = (StatusCode, &'static str, &'static str);

/// Joins the remedies in one line, each behind the name of its probe.
fn remedies(found: &[Finding]) -> String {
    let each: Vec<_> = found.iter().map(|it| format!("{}: {}", it.name, it.remedy)).collect();
    each.join("; ")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, name, title) = self.contract();
        // A 5xx reports that the server failed and hides the cause.
        let detail = status.is_client_error().then(|| self.to_string());
        let kind = format!("/problems/{name}");
        let status_number = status.as_u16();
        let mut problem = Problem {
            kind,
            title,
            status: status_number,
            detail,
            down: None,
            remedy: None,
            deleted: None,
            reviews: None,
            id: None,
            state: None,
            field: None,
        };
        if let Self::InvalidReminders { field, .. } = &self {
            problem.field = Some(field);
        }
        if let Self::Review(ReviewError::UndoConflict(changed)) = &self {
            problem.reviews = Some(changed.clone());
        }
        if let Self::Partners(error) = &self {
            problem.id = partners::pending(error).map(|id| id.to_string());
            problem.state = partners::state(error);
        }
        if let Self::Offer(OfferError::AlreadyClaimed(claim)) = &self {
            problem.id = Some(claim.to_string());
        }
        if let Self::Deleted(it) = &self {
            let Deleted { deletion, purge_at } = it.as_ref().clone();
            problem.deleted = Some(DeletedBody { deletion, purge_at });
        }
        // A remedy contains no secret, so every client may read it.
        if let Self::NotReady { down } = &self {
            problem.down = Some(down.iter().map(|it| it.name).collect());
            problem.remedy = Some(remedies(down));
        }
        if let Self::Export(error @ ExportError::NotAvailable) = &self {
            problem.remedy = Some(error.to_string());
        }
        let mut response = (status, [(CONTENT_TYPE, PROBLEM_JSON)], Json(problem)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, self.challenge());
        }
        // `observe` logs the error once, at the end of the request.
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<RoomError> for ApiError {
    fn from(error: RoomError) -> Self {
        Self::Session(error.into())
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

impl From<NotifyError> for ApiError {
    fn from(error: NotifyError) -> Self {
        match error {
            NotifyError::Off => Self::PushOff,
            NotifyError::Invalid { .. } => Self::InvalidSubscription(error.to_string()),
            NotifyError::StorageSpent => Self::Session(SeatError::Room(RoomError::StorageSpent)),
            NotifyError::Storage(error) => Self::Session(error.into()),
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        Self::Session(error.into())
    }
}

impl From<SharingError> for ApiError {
    fn from(error: SharingError) -> Self {
        match error {
            SharingError::NotFound(what) => Self::NotFound(what),
            SharingError::Deleted(deleted) => Self::Deleted(deleted),
            SharingError::NotTheWriter => Self::NotTheWriter,
            SharingError::WrongInvite => Self::WrongInvite,
            SharingError::AlreadyWriter => Self::AlreadyWriter,
            SharingError::NoReviewer => Self::NoReviewer,
            SharingError::NotAPartner => Self::NotAPartner,
            SharingError::ReviewerExists => Self::ReviewerExists,
            SharingError::WrongCode => Self::WrongCode,
            SharingError::NoRandomness => Self::Internal(error.to_string()),
            SharingError::Title(error) => Self::Invalid(error.to_string()),
            SharingError::TooLong => Self::TooLarge,
            SharingError::QuotaSpent(what) => Self::QuotaSpent(what),
            SharingError::StorageSpent => Self::Session(SeatError::Room(RoomError::StorageSpent)),
            SharingError::Busy => Self::Unavailable(error.to_string()),
            SharingError::Storage(error) => Self::Session(error.into()),
            SharingError::Worker(error) => Self::Internal(error.to_string()),
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
        let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(problem["type"], "/problems/internal");
        assert_eq!(problem["status"], 500);
        assert_eq!(problem.get("detail"), None);
    }
}
