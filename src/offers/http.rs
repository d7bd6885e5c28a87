//! `/api/review-offers`: offers of a number of reviews, and the claims of their places.

use axum::{Extension, Json};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ClaimId, OfferId};
use crate::domain::limits::TITLE_CHARS_MAX;
use crate::domain::offer::OfferState;
use crate::domain::user::User;
use crate::http::auth::caller::Caller;
use crate::http::error::{ApiError, Contract, Failure, Members, STORAGE_FULL, UNAVAILABLE, member};
use crate::http::extract::{JsonBody, Path, Query};
use crate::http::guest_budgets::{self, Storing};
use crate::http::origin::Origins;
use crate::http::pagination::PageQuery;
use crate::http::routes::{MESSAGE_REQUEST_BYTES_MAX, Routes};
use crate::offers::error::OfferError;
use crate::offers::offer::{Offer, OfferClaim};
use crate::offers::{OFFER_MESSAGE_CHARS_MAX, OfferTerms, Offers};
use crate::sharing::Sharing;
use crate::tasks::Tasks;

const _: () = assert!((TITLE_CHARS_MAX + OFFER_MESSAGE_CHARS_MAX) * 12 < MESSAGE_REQUEST_BYTES_MAX);

const ROWS_DEFAULT: u32 = 50;
/// All claims of an offer.
const ROWS_MAX: u32 = 100;

/// Bytes of the row of an offer or a claim beside its texts.
const ROW_BYTES: usize = 512;

pub(crate) fn routes() -> Routes {
    const ALL: &str = "/api/review-offers";
    const CLAIMS: &str = "/api/review-offers/{id}/claims";
    Routes::default()
        .post_message(ALL, create)
        .get(ALL, list)
        .get("/api/review-offers/{id}", show)
        .post("/api/review-offers/{id}/close", close)
        .post_waiting(CLAIMS, claim)
        .get(CLAIMS, claims)
        .delete("/api/review-offers/{id}/claims/{cid}", end_claim)
        .post("/api/review-offers/{id}/claims/{cid}/accept", accept_claim)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Offer"))]
pub(crate) struct OfferBody {
    id: OfferId,
    owner: User,
    title: String,
    /// A text for its readers.
    message: Option<String>,
    /// The number of places.
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    capacity: u32,
    /// The free places.
    #[cfg_attr(test, schemars(with = "i64", range(min = 0)))]
    remaining: u32,
    state: OfferState,
    created_at: DateTime<Utc>,
    closed_at: Option<DateTime<Utc>>,
    /// The start page with the offer behind the `#`.
    url: String,
}

impl OfferBody {
    fn new(offer: Offer, origins: &Origins) -> Self {
        let (remaining, state) = (offer.remaining(), offer.state());
        let url = format!("{}/#offer={}", origins.page(), offer.id);
        let Offer { id, owner, title, message, capacity, created_at, closed_at, .. } = offer;
        Self { id, owner, title, message, capacity, remaining, state, created_at, closed_at, url }
    }
}

#[derive(Serialize)]
struct ViewBody {
    #[serde(flatten)]
    offer: OfferBody,
    claim: Option<OfferClaim>,
}

#[derive(Serialize)]
struct AcceptedBody {
    partner: User,
    claim: OfferClaim,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewOffer"))]
pub(crate) struct NewOfferBody {
    /// One line of 1 to 200 characters.
    title: String,
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    capacity: i64,
    /// At most 1,000 characters.
    message: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewOfferClaim"))]
pub(crate) struct NewClaimBody {
    /// A text for the owner, at most 1,000 characters.
    message: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "OfferList"))]
pub(crate) struct OfferListBody {
    offers: Vec<OfferBody>,
    /// `cursor` of the next page; `null` on the last.
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "OfferClaimList"))]
pub(crate) struct ClaimListBody {
    claims: Vec<OfferClaim>,
    /// `cursor` of the next page; `null` on the last.
    next_cursor: Option<String>,
}

/// `POST /api/review-offers`
async fn create(
    Extension(offers): Extension<Offers>,
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    storing: Storing,
    caller: Caller,
    JsonBody(new): JsonBody<NewOfferBody>,
) -> Result<Response, ApiError> {
    let message = new.message.as_deref();
    storing.charge(ROW_BYTES + new.title.len() + message.map_or(0, str::len))?;
    // A number beyond the range is as invalid as one beyond the maximum.
    let capacity = u32::try_from(new.capacity).unwrap_or(0);
    let terms = OfferTerms { title: &new.title, capacity, message };
    caller.save_name(&sharing).await?;
    let offer = offers.create(caller.user(), terms, Utc::now()).await?;
    let location = [(LOCATION, format!("/api/review-offers/{}", offer.id))];
    let body = Json(OfferBody::new(offer, &origins));
    Ok((StatusCode::CREATED, location, body).into_response())
}

/// `GET /api/review-offers`: the caller's own offers, newest first.
async fn list(
    Extension(offers): Extension<Offers>,
    State(origins): State<Origins>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<OfferListBody>, ApiError> {
    let request = query.parse(ROWS_DEFAULT, ROWS_MAX)?;
    let mut rows = offers.offers_of(&caller.user().id, &request.page()).await?;
    let next_cursor = request.cut(&mut rows, Offer::cursor);
    let offers = rows.into_iter().map(|offer| OfferBody::new(offer, &origins)).collect();
    Ok(Json(OfferListBody { offers, next_cursor }))
}

/// `GET /api/review-offers/{id}`: one statement, because pages poll it.
async fn show(
    Extension(offers): Extension<Offers>,
    State(origins): State<Origins>,
    caller: Caller,
    Path(id): Path<OfferId>,
) -> Result<Json<ViewBody>, ApiError> {
    let view = offers.offer(&caller.user().id, id).await?;
    let claim = view.claim;
    Ok(Json(ViewBody { offer: OfferBody::new(view.offer, &origins), claim }))
}

/// `POST /api/review-offers/{id}/close`
async fn close(
    Extension(offers): Extension<Offers>,
    State(origins): State<Origins>,
    caller: Caller,
    Path(id): Path<OfferId>,
) -> Result<Json<OfferBody>, ApiError> {
    let closed = offers.close(&caller.user().id, id, Utc::now()).await?;
    Ok(Json(OfferBody::new(closed, &origins)))
}

/// `POST /api/review-offers/{id}/claims`: waits for the offer's lock and claims a place. A client that
/// disconnects leaves the wait queue.
async fn claim(
    Extension(offers): Extension<Offers>,
    State(tasks): State<Tasks>,
    State(sharing): State<Sharing>,
    storing: Storing,
    caller: Caller,
    Path(id): Path<OfferId>,
    body: Option<JsonBody<NewClaimBody>>,
) -> Result<Response, ApiError> {
    let taken = storing.take(guest_budgets::CLAIMS)?;
    let message = body.and_then(|JsonBody(body)| body.message);
    storing.charge(ROW_BYTES + message.as_ref().map_or(0, String::len))?;
    let grant = offers.await_grant(caller.user(), id, message.as_deref()).await?;
    // From the grant on, the claim runs to its end: its client does not delay the next waiter.
    let claiming = async move {
        let claim = offers.claim(grant, Utc::now()).await?;
        taken.spend();
        // The claim holds its place with an older name as well.
        let saved = caller.save_name(&sharing).await;
        let _older = saved.inspect_err(|error| tracing::debug!(%error, "a name is not stored"));
        Ok::<_, ApiError>(claim)
    };
    let claim = tasks.complete(claiming).await?;
    let location = [(LOCATION, format!("/api/review-offers/{id}/claims/{}", claim.id))];
    Ok((StatusCode::CREATED, location, Json(claim)).into_response())
}

/// `GET /api/review-offers/{id}/claims`
async fn claims(
    Extension(offers): Extension<Offers>,
    caller: Caller,
    Path(id): Path<OfferId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<ClaimListBody>, ApiError> {
    let request = query.parse(ROWS_DEFAULT, ROWS_MAX)?;
    let mut rows = offers.claims(&caller.user().id, id, &request.page()).await?;
    let next_cursor = request.cut(&mut rows, OfferClaim::cursor);
    Ok(Json(ClaimListBody { claims: rows, next_cursor }))
}

/// `DELETE /api/review-offers/{id}/claims/{cid}`: the claimant withdraws, or the owner declines.
async fn end_claim(
    Extension(offers): Extension<Offers>,
    caller: Caller,
    Path((offer, claim)): Path<(OfferId, ClaimId)>,
) -> Result<StatusCode, ApiError> {
    offers.end_claim(&caller.user().id, offer, claim, Utc::now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/review-offers/{id}/claims/{cid}/accept`: both users are partners.
async fn accept_claim(
    Extension(offers): Extension<Offers>,
    caller: Caller,
    Path((offer, claim)): Path<(OfferId, ClaimId)>,
) -> Result<Json<AcceptedBody>, ApiError> {
    let claim = offers.accept_claim(&caller.user().id, offer, claim, Utc::now()).await?;
    Ok(Json(AcceptedBody { partner: claim.user.clone(), claim }))
}

impl Failure for OfferError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NoOffer | Self::NoClaim => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::NotTheOwner => (Is::FORBIDDEN, "not-the-owner", "Not the owner"),
            Self::OwnOffer => (Is::UNPROCESSABLE_ENTITY, "own-offer", "Your own offer"),
            Self::AlreadyClaimed(_) => (Is::CONFLICT, "already-claimed", "Claimed already"),
            Self::SoldOut => (Is::CONFLICT, "sold-out", "All places are taken"),
            Self::OfferClosed => (Is::CONFLICT, "offer-closed", "The offer is closed"),
            Self::ClaimAccepted => (Is::CONFLICT, "claim-accepted", "The claim is accepted"),
            Self::PartnersFull => (Is::CONFLICT, "too-many", "Too many"),
            Self::TooManyOpen => (Is::CONFLICT, "quota-spent", "The quota is spent"),
            Self::ClaimLimit { .. } => {
                (Is::TOO_MANY_REQUESTS, "claim-limit", "Too many claims in a day")
            }
            Self::TooManyAtOnce { .. } => {
                (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
            }
            Self::LockWaitTimeout => {
                (Is::SERVICE_UNAVAILABLE, "lock-wait-timeout", "Your turn did not come in time")
            }
            Self::Title(_) | Self::Capacity | Self::Message => {
                (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid")
            }
            Self::StorageSpent => STORAGE_FULL,
            Self::Locks(_) => UNAVAILABLE,
            Self::Storage(error) => error.contract(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::ClaimLimit { retry_after } | Self::TooManyAtOnce { retry_after } => {
                Some(*retry_after)
            }
            _other => None,
        }
    }

    fn members(&self) -> Members {
        match self {
            Self::AlreadyClaimed(claim) => member("id", claim.to_string()),
            _other => Members::new(),
        }
    }
}
