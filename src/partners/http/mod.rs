//! People and partners: `/api/me/address`, `/api/people/find` and `/api/partners`.

pub(crate) mod requests;

use axum::{Extension, Json};
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::bounds::allowances::Allowance;
use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::http::auth::caller::Caller;
use crate::http::auth::credential::Credential;
use crate::http::error::{ApiError, Contract, Failure, Members, STORAGE_FULL, UNAVAILABLE, member};
use crate::http::extract::{JsonBody, Path, Query};
use crate::http::guest_budgets::{self, Storing};
use crate::http::limit::Limiter;
use crate::http::origin::Origins;
use crate::http::pagination::PageQuery;
use crate::http::peer::Peer;
use crate::http::routes::Routes;
use crate::partners::people::Reachable;
use crate::partners::{Partners, PartnersError};
use crate::sharing::Sharing;
use crate::storage::partners::Partner;

pub(super) const ROWS: u32 = 50;
pub(super) const ROWS_MAX: u32 = 100;
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/me/address", address)
        .put("/api/me/address", set_handle)
        .post("/api/me/address/renew", renew)
        .post("/api/people/find", find)
        .get("/api/partners", partners)
        .delete("/api/partners/{user_id}", remove)
        .merge(requests::routes())
}

/// How other users reach the caller.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Address"))]
pub(crate) struct AddressBody {
    /// Without the `@`.
    handle: Option<String>,
    link: LinkBody,
}

/// The personal link. The token stands behind the `#`: browsers send no fragment.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct LinkBody {
    token: String,
    /// The start page with the token behind the `#`.
    url: String,
}

impl AddressBody {
    fn new(reachable: &Reachable, origins: &Origins) -> Self {
        let token = reachable.token.as_str().to_owned();
        let url = format!("{}/#ask={token}", origins.page());
        let handle = reachable.handle.as_ref().map(ToString::to_string);
        Self { handle, link: LinkBody { token, url } }
    }
}

/// The field must be there: `null` removes the handle.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewHandle", extend("required" = ["handle"])))]
pub(crate) struct HandleBody {
    /// 2 to 30 characters of `a-z 0-9 _` and Hangul syllables; ASCII upper case is folded. `null` removes the
    /// handle.
    #[serde(deserialize_with = "Option::deserialize")]
    handle: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FindPerson"))]
pub(crate) struct FindBody {
    /// `@handle`, or the token of a personal link.
    to: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FoundPerson"))]
pub(crate) struct FoundBody {
    user: User,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PartnerList"))]
pub(crate) struct PartnersBody {
    partners: Vec<Partner>,
    next_cursor: Option<String>,
}

/// Proves that the caller may name another user now. As an extractor it runs before the body is read.
pub(super) struct MayName(Allowance);

impl MayName {
    pub(super) fn counted<T>(self, found: Result<T, PartnersError>) -> Result<T, ApiError> {
        if matches!(found, Err(PartnersError::UnknownUser)) {
            self.0.spend();
        }
        Ok(found?)
    }
}

impl<S> FromRequestParts<S> for MayName
where
    S: Send + Sync,
    Limiter: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let limiter = Limiter::from_ref(state);
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        // `Caller` rejects a request without a user.
        let user = parts.extensions.get::<Credential>().and_then(Credential::user);
        let guess = user.map(|user| limiter.check_people(user, peer)).transpose();
        let guess = guess.map_err(|retry_after| ApiError::TooManyRequests { retry_after })?;
        Ok(Self(guess.unwrap_or_default()))
    }
}

/// `GET /api/me/address`
async fn address(
    Extension(partners): Extension<Partners>,
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    caller: Caller,
) -> Result<Json<AddressBody>, ApiError> {
    caller.save_name(&sharing).await?;
    let reachable = partners.address(caller.user(), Utc::now()).await?;
    Ok(Json(AddressBody::new(&reachable, &origins)))
}

/// `PUT /api/me/address`: a taken handle is a user's, so each try counts as a name.
async fn set_handle(
    Extension(partners): Extension<Partners>,
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    caller: Caller,
    _counted: MayName,
    storing: Storing,
    JsonBody(body): JsonBody<HandleBody>,
) -> Result<Json<AddressBody>, ApiError> {
    let taken =
        body.handle.as_ref().map(|_handle| storing.take(guest_budgets::HANDLES)).transpose()?;
    caller.save_name(&sharing).await?;
    let handle = body.handle.as_deref();
    let reachable = partners.set_handle(caller.user(), handle, Utc::now()).await?;
    taken.unwrap_or_default().spend();
    Ok(Json(AddressBody::new(&reachable, &origins)))
}

/// `POST /api/me/address/renew`: a new personal link; the older one is unknown.
async fn renew(
    Extension(partners): Extension<Partners>,
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    caller: Caller,
) -> Result<Json<AddressBody>, ApiError> {
    caller.save_name(&sharing).await?;
    let reachable = partners.renew_link(caller.user(), Utc::now()).await?;
    Ok(Json(AddressBody::new(&reachable, &origins)))
}

/// `POST /api/people/find`: the user with this handle or personal link.
async fn find(
    Extension(partners): Extension<Partners>,
    _caller: Caller,
    may_name: MayName,
    JsonBody(body): JsonBody<FindBody>,
) -> Result<Json<FoundBody>, ApiError> {
    let user = may_name.counted(partners.find(&body.to).await)?;
    Ok(Json(FoundBody { user }))
}

/// `GET /api/partners`
async fn partners(
    Extension(partners): Extension<Partners>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PartnersBody>, ApiError> {
    let page = query.parse(ROWS, ROWS_MAX)?;
    let mut rows = partners.partners_of(&caller.user().id, &page.page()).await?;
    let next_cursor = page.cut(&mut rows, Partner::cursor);
    Ok(Json(PartnersBody { partners: rows, next_cursor }))
}

/// `DELETE /api/partners/{user_id}`
async fn remove(
    Extension(partners): Extension<Partners>,
    caller: Caller,
    Path(partner): Path<UserId>,
) -> Result<StatusCode, ApiError> {
    partners.remove(&caller.user().id, &partner, Utc::now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Failure for PartnersError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::UnknownUser => (Is::NOT_FOUND, "unknown-user", "Unknown user"),
            Self::OwnSelf => (Is::UNPROCESSABLE_ENTITY, "own-self", "This is you"),
            Self::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::Handle(_) => (Is::UNPROCESSABLE_ENTITY, "invalid-handle", "Invalid handle"),
            Self::HandleTaken => (Is::CONFLICT, "handle-taken", "The handle is taken"),
            Self::Message | Self::DocumentOfReviewer => {
                (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid")
            }
            Self::AlreadySent(_) => (Is::CONFLICT, "request-already-sent", "A request is pending"),
            Self::AlreadyReceived(_) => {
                (Is::CONFLICT, "request-already-received", "A request of this user is pending")
            }
            Self::AlreadyPartners => (Is::CONFLICT, "already-partners", "Partners already"),
            Self::NotPending(_) => (Is::CONFLICT, "request-not-pending", "The request is decided"),
            Self::NotTheReceiver => {
                (Is::FORBIDDEN, "not-the-receiver", "Not the receiver of the request")
            }
            Self::NotTheSender => {
                (Is::FORBIDDEN, "not-the-sender", "Not the sender of the request")
            }
            Self::GuestLimit { .. } => {
                (Is::TOO_MANY_REQUESTS, "guest-limit", "Too often for guests")
            }
            Self::NoGuestRequests => (Is::FORBIDDEN, "no-guest-requests", "No requests of guests"),
            Self::TooManyPending(_) | Self::TooManyToday { .. } => {
                (Is::TOO_MANY_REQUESTS, "request-limit", "Too many review requests")
            }
            Self::PartnersFull => (Is::CONFLICT, "too-many", "Too many"),
            Self::LockTimeout => (Is::SERVICE_UNAVAILABLE, "lock-wait-timeout", "Try again"),
            Self::StorageSpent => STORAGE_FULL,
            Self::Locks(_) => UNAVAILABLE,
            Self::Storage(error) => error.contract(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyToday { retry_after } | Self::GuestLimit { retry_after, .. } => {
                Some(*retry_after)
            }
            _other => None,
        }
    }

    fn members(&self) -> Members {
        match self {
            Self::AlreadySent(id) | Self::AlreadyReceived(id) => member("id", id.to_string()),
            Self::NotPending(state) => member("state", state.as_str()),
            _other => Members::new(),
        }
    }
}
