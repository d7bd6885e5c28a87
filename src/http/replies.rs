//! Replies over HTTP: `/api/share-links/{id}/reviews/{rid}/replies`.

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId};
use crate::domain::review::{Reply, Review};
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path};
use crate::http::guest_budgets::Storing;
use crate::http::reviews::{etag, expected_version, tagged};
use crate::http::routes::Routes;
use crate::reviews::Reviews;
use crate::sharing::Sharing;

pub(crate) fn routes() -> Routes {
    const ALL: &str = "/api/share-links/{id}/reviews/{rid}/replies";
    const ONE: &str = "/api/share-links/{id}/reviews/{rid}/replies/{reply}";
    Routes::default().post_review(ALL, create).patch_review(ONE, edit).delete(ONE, delete)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NewReply {
    /// At most 16 KiB.
    body: String,
}

type ReplyPath = (ShareLinkId, ReviewId, ReplyId);

/// A reply, and the review that has it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Replied {
    #[serde(flatten)]
    reply: Reply,
    review: Review,
}

/// `POST …/reviews/{rid}/replies`
async fn create(
    State(reviews): State<Reviews>,
    State(sharing): State<Sharing>,
    storing: Storing,
    caller: Caller,
    Path((link, id)): Path<(ShareLinkId, ReviewId)>,
    JsonBody(new): JsonBody<NewReply>,
) -> Result<Response, ApiError> {
    storing.charge(new.body.len())?;
    caller.save_name(&sharing).await?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let review = reviews.reply(&link, id, new.body).await?;
    let reply = review.replies.last().cloned().ok_or(ApiError::NotFound("reply"))?;
    let etag = etag(&review);
    Ok((StatusCode::CREATED, [(ETAG, etag)], Json(Replied { reply, review })).into_response())
}

/// `PATCH …/replies/{reply}`
async fn edit(
    State(reviews): State<Reviews>,
    storing: Storing,
    caller: Caller,
    Path((link, id, reply)): Path<ReplyPath>,
    headers: HeaderMap,
    JsonBody(changed): JsonBody<NewReply>,
) -> Result<Response, ApiError> {
    storing.charge(changed.body.len())?;
    let expected = expected_version(&headers)?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    Ok(tagged(reviews.edit_reply(&link, (id, reply), changed.body, expected).await?))
}

/// `DELETE …/replies/{reply}`
async fn delete(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path((link, id, reply)): Path<ReplyPath>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let expected = expected_version(&headers)?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    Ok(tagged(reviews.delete_reply(&link, (id, reply), expected).await?))
}
