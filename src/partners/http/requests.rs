//! `/api/review-requests`: requests of one user to another.

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use chrono::{SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::ids::{DocumentId, RequestId, ShareLinkId};
use crate::domain::review_request::RequestState;
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::http::auth::caller::Caller;
use crate::http::auth::credential::Credential;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Limit, Path, Query};
use crate::http::guest_budgets::{self, Storing};
use crate::http::pagination::PageQuery;
use crate::http::peer::{Peer, network};
use crate::http::routes::{MESSAGE_REQUEST_BYTES_MAX, Routes};
use crate::outbox::event::Event;
use crate::partners::http::{MayName, ROWS, ROWS_MAX};
use crate::partners::request::{
    AcceptedRequest, Direction, LinkOutcome, Refusal, RequestFilter, ReviewRequest,
};
use crate::partners::requests::NewReviewRequest;
use crate::partners::{Partners, REQUEST_MESSAGE_CHARS_MAX};
use crate::push::Notify;
use crate::push::background::Cause;
use crate::push::notification::{Notification, NotificationKind};
use crate::seats::Seats;
use crate::sharing::Sharing;

const _: () = assert!(REQUEST_MESSAGE_CHARS_MAX * 12 < MESSAGE_REQUEST_BYTES_MAX);

/// Bytes of a request's row and its index entries, besides its message, that the address of a guest pays.
const REQUEST_BYTES: usize = 1_024;

const REQUESTS_PAGE: &str = "/#requests";

/// The caller is charged with the pushes.
struct Delivery {
    notify: Notify,
    cause: Cause,
}

impl<S: Send + Sync> FromRequestParts<S> for Delivery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        let cause = match parts.extensions.get::<Credential>() {
            Some(Credential::Person { identity, .. }) if !identity.is_guest() => {
                Cause::User(identity.user.id.clone())
            }
            _ => Cause::Address(network(peer.0)),
        };
        let notify = Extension::<Notify>::from_request_parts(parts, state).await;
        let Extension(notify) = notify.map_err(|error| ApiError::Internal(error.to_string()))?;
        Ok(Self { notify, cause })
    }
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post_message("/api/review-requests", create)
        .get("/api/review-requests", list)
        .get("/api/review-requests/{id}", show)
        .post("/api/review-requests/decline-all", decline_all)
        .post("/api/review-requests/{id}/accept", accept)
        .post("/api/review-requests/{id}/decline", |partners, caller, id| {
            refuse(partners, caller, id, Refusal::Decline)
        })
        .post("/api/review-requests/{id}/withdraw", |partners, caller, id| {
            refuse(partners, caller, id, Refusal::Withdraw)
        })
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewReviewRequest"))]
pub(crate) struct NewRequestBody {
    /// `@handle`, the token of a personal link, or a user id.
    to: String,
    /// The role that the caller would have: `writer` asks for a review, `reviewer` offers one.
    #[serde(rename = "as")]
    sender_role: Role,
    /// At most 1,000 characters.
    message: Option<String>,
    /// An own document, with `writer` only: the acceptance makes the receiver its reviewer.
    document_id: Option<DocumentId>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReviewRequestList"))]
pub(crate) struct RequestsBody {
    requests: Vec<ReviewRequest>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "AcceptedRequest"))]
pub(crate) struct AcceptedBody {
    request: ReviewRequest,
    partner: User,
    /// The share link whose reviewer the caller is.
    share_link_id: Option<ShareLinkId>,
    /// The effect of the acceptance on the document. `reviewer-exists`: the link has another reviewer.
    /// `document-gone`: the document is in the bin. `null`: the request names none.
    #[cfg_attr(test, schemars(extend("enum" = ["joined", "reviewer-exists", "document-gone", null])))]
    share_link: Option<&'static str>,
}

impl From<AcceptedRequest> for AcceptedBody {
    fn from(AcceptedRequest { request, link, .. }: AcceptedRequest) -> Self {
        let (share_link_id, share_link) = match link {
            LinkOutcome::NoDocument => (None, None),
            LinkOutcome::Joined(id) => (Some(id), Some("joined")),
            LinkOutcome::ReviewerExists { .. } => (None, Some("reviewer-exists")),
            LinkOutcome::DocumentGone => (None, Some("document-gone")),
        };
        Self { partner: request.from.clone(), request, share_link_id, share_link }
    }
}

#[derive(Deserialize)]
struct ListQuery {
    state: Option<String>,
    direction: Option<String>,
    limit: Option<Limit>,
    cursor: Option<String>,
}

/// `POST /api/review-requests`
async fn create(
    Extension(partners): Extension<Partners>,
    State(sharing): State<Sharing>,
    delivery: Delivery,
    caller: Caller,
    may_name: MayName,
    storing: Storing,
    JsonBody(body): JsonBody<NewRequestBody>,
) -> Result<Response, ApiError> {
    let Delivery { notify, cause } = delivery;
    let taken = storing.take(guest_budgets::REQUESTS)?;
    caller.save_name(&sharing).await?;
    storing.charge(REQUEST_BYTES + body.message.as_ref().map_or(0, String::len))?;
    let NewRequestBody { to, sender_role, message, document_id: document } = body;
    let is_guest = caller.identity.is_guest();
    let new = NewReviewRequest { to, sender_role, message, document, is_guest };
    // The response has the time that the database stores.
    let now = Utc::now().trunc_subsecs(3);
    let request = may_name.counted(partners.request(caller.user(), new, now).await)?;
    taken.spend();
    notify.push_in_background(cause, request.to.id.clone(), received(&request));
    let location = [(LOCATION, format!("/api/review-requests/{}", request.id))];
    Ok((StatusCode::CREATED, location, Json(request)).into_response())
}

fn received(request: &ReviewRequest) -> Notification {
    let role = request.sender_role.as_str();
    let notification = Notification::new(NotificationKind::RequestReceived, REQUESTS_PAGE)
        .with("from", request.from.name.as_str())
        .with("as", role);
    about(notification, request)
}

/// The notification of a request's sender. It opens the document, which the sender owns.
fn acceptance_of(request: &ReviewRequest) -> Notification {
    let page = request.document.map(|document| format!("/d/{document}"));
    let page = page.unwrap_or_else(|| REQUESTS_PAGE.to_owned());
    let notification = Notification::new(NotificationKind::RequestAccepted, page)
        .with("by", request.to.name.as_str());
    about(notification, request)
}

/// Adds the title and the topic: a notification replaces no other of the same request.
fn about(notification: Notification, request: &ReviewRequest) -> Notification {
    let topic = format!("{} {}", notification.kind.as_str(), request.id);
    let notification = notification.about(topic);
    match &request.title {
        Some(title) => notification.with("title", title.as_str()),
        None => notification,
    }
}

/// `GET /api/review-requests`: sent and received ones, newest first.
async fn list(
    Extension(partners): Extension<Partners>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<RequestsBody>, ApiError> {
    let ListQuery { state, direction, limit, cursor } = query;
    let page = PageQuery { limit, cursor }.parse(ROWS, ROWS_MAX)?;
    let state = state.map(|state| state.parse::<RequestState>()).transpose();
    let state = state.map_err(|error| ApiError::Invalid(format!("state: {error}")))?;
    let direction = match direction.as_deref() {
        None => Direction::Either,
        Some("sent") => Direction::Sent,
        Some("received") => Direction::Received,
        Some(_) => return Err(ApiError::Invalid("direction is `sent` or `received`".into())),
    };
    let user = caller.user().id.clone();
    let filter = RequestFilter { user, direction, state, now: Utc::now() };
    let mut requests = partners.requests_of(&filter, &page.page()).await?;
    let next_cursor = page.cut(&mut requests, ReviewRequest::cursor);
    Ok(Json(RequestsBody { requests, next_cursor }))
}

/// `GET /api/review-requests/{id}`
async fn show(
    Extension(partners): Extension<Partners>,
    caller: Caller,
    Path(id): Path<RequestId>,
) -> Result<Json<ReviewRequest>, ApiError> {
    let request = partners.request_of(&caller.user().id, id, Utc::now()).await?;
    Ok(Json(request))
}

/// `POST /api/review-requests/{id}/accept`
async fn accept(
    Extension(partners): Extension<Partners>,
    State(seats): State<Seats>,
    delivery: Delivery,
    caller: Caller,
    Path(id): Path<RequestId>,
) -> Result<Json<AcceptedBody>, ApiError> {
    let Delivery { notify, cause } = delivery;
    let now = Utc::now().trunc_subsecs(3);
    let accepted = partners.accept(&caller.user().id, id, now).await?;
    if let LinkOutcome::ReviewerExists { document, is_noted: true } = accepted.link {
        let refused = Event::InviteRefused { user: &accepted.request.to, at: now };
        seats.notify_writer(document, &refused).await;
    }
    if accepted.is_first {
        let sender = accepted.request.from.id.clone();
        notify.push_in_background(cause, sender, acceptance_of(&accepted.request));
    }
    Ok(Json(accepted.into()))
}

/// `POST /api/review-requests/decline-all`: every pending request to the caller.
async fn decline_all(
    Extension(partners): Extension<Partners>,
    caller: Caller,
) -> Result<Json<Value>, ApiError> {
    let declined = partners.decline_all(&caller.user().id, Utc::now()).await?;
    Ok(Json(json!({ "declined": declined })))
}

/// `POST /api/review-requests/{id}/decline`, and `withdraw`.
async fn refuse(
    Extension(partners): Extension<Partners>,
    caller: Caller,
    Path(id): Path<RequestId>,
    refusal: Refusal,
) -> Result<Json<ReviewRequest>, ApiError> {
    let now = Utc::now().trunc_subsecs(3);
    Ok(Json(partners.refuse(&caller.user().id, id, refusal, now).await?))
}
