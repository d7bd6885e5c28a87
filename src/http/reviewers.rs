//! The reviewer of a share link: `…/invite`, `…/invite/check`, `…/reviewer` and `…/membership` under `/api/share-links/{id}`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::http::auth::caller::Caller;
use crate::http::auth::credential::Credential;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path};
use crate::http::links::{JoinBody, LinkBody, shown};
use crate::http::origin::Origins;
use crate::http::routes::Routes;
use crate::reviews::Reviews;
use crate::seats::Seats;
use crate::sharing::Sharing;
use crate::sharing::reviewers::{Preview, ReviewerChanged};

pub(crate) fn routes() -> Routes {
    const REVIEWER: &str = "/api/share-links/{id}/reviewer";
    Routes::default()
        .post("/api/share-links/{id}/invite", renew)
        .post("/api/share-links/{id}/invite/check", check)
        .put(REVIEWER, replace)
        .delete(REVIEWER, remove)
        .delete("/api/share-links/{id}/membership", leave)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "InvitePreview"))]
pub(crate) struct PreviewBody {
    title: String,
    writer: WriterName,
    /// Whether the link has no reviewer.
    free: bool,
    /// Whether the caller is its writer or its reviewer.
    yours: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct WriterName {
    name: String,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewReviewer"))]
pub(crate) struct ReplacementBody {
    /// A user of `attempts`, or a partner.
    user_id: UserId,
}

/// `POST /api/share-links/{id}/invite`: a new invite; every older one is void.
async fn renew(
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
) -> Result<Json<LinkBody>, ApiError> {
    let link = sharing.renew_invite(&caller.user().id, id, Utc::now()).await?;
    let invite_state = sharing.invite_state(id, Role::Writer).await?;
    let invite_state = invite_state.ok_or(ApiError::NotFound("share link"))?;
    let invite = sharing.invite_of(id, &invite_state);
    Ok(Json(LinkBody::with_invite(link, &invite, invite_state, &origins)))
}

/// `POST /api/share-links/{id}/invite/check`: needs no token, so that a page can refuse a visitor
/// before it asks for a name.
async fn check(
    State(sharing): State<Sharing>,
    presented: Option<Extension<Credential>>,
    Path(id): Path<ShareLinkId>,
    JsonBody(body): JsonBody<JoinBody>,
) -> Result<Json<PreviewBody>, ApiError> {
    let caller = presented.as_ref().and_then(|Extension(presented)| presented.user());
    let Preview { link, is_yours } = sharing.preview(caller, id, &body.invite).await?;
    Ok(Json(PreviewBody {
        title: link.title,
        writer: WriterName { name: link.writer.name },
        free: link.reviewer.is_none(),
        yours: is_yours,
    }))
}

/// `PUT /api/share-links/{id}/reviewer`: a refused user becomes the reviewer.
async fn replace(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    State(reviews): State<Reviews>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
    JsonBody(body): JsonBody<ReplacementBody>,
) -> Result<Json<LinkBody>, ApiError> {
    let owner = &caller.user().id;
    let changed = sharing.replace_reviewer(owner, id, &body.user_id, Utc::now()).await?;
    end_former(&seats, id, &changed).await;
    shown(&sharing, &seats, &reviews, &caller, id).await
}

/// `DELETE /api/share-links/{id}/reviewer`
async fn remove(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
) -> Result<StatusCode, ApiError> {
    let changed = sharing.remove_reviewer(&caller.user().id, id, Utc::now()).await?;
    end_former(&seats, id, &changed).await;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/share-links/{id}/membership`: the reviewer leaves.
async fn leave(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
) -> Result<StatusCode, ApiError> {
    let user = &caller.user().id;
    sharing.leave(user, id, Utc::now()).await?;
    tracing::info!(link = %id, %user, "a reviewer left");
    seats.reviewer_removed(id, user).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn end_former(seats: &Seats, link: ShareLinkId, changed: &ReviewerChanged) {
    if let Some(former) = &changed.former {
        tracing::info!(%link, document = %changed.document, user = %former, "a reviewer was removed");
        seats.reviewer_removed(link, former).await;
    }
}
