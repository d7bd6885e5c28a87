//! Progress of a share link over HTTP: `…/seen` and `…/turn`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::domain::ids::ShareLinkId;
use crate::domain::progress::ReviewTurn;
use crate::domain::seat::{InvalidRole, Role};
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path};
use crate::http::routes::Routes;
use crate::reviews::Reviews;
use crate::sharing::Sharing;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .put("/api/share-links/{id}/seen", mark_seen)
        .post("/api/share-links/{id}/turn", pass_turn)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Seen"))]
pub(crate) struct SeenBody {
    /// The highest `change` of a review that the caller has seen.
    #[cfg_attr(test, schemars(with = "i64", range(min = 0)))]
    change: u64,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PassTurn"))]
pub(crate) struct PassBody {
    #[cfg_attr(test, schemars(with = "Role"))]
    to: String,
}

#[derive(Serialize)]
struct TurnBody {
    turn: ReviewTurn,
}

/// `PUT …/seen`
async fn mark_seen(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    JsonBody(seen): JsonBody<SeenBody>,
) -> Result<StatusCode, ApiError> {
    let change = i64::try_from(seen.change).unwrap_or(i64::MAX);
    reviews.mark_seen(caller.user(), link, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST …/turn`
async fn pass_turn(
    State(reviews): State<Reviews>,
    State(sharing): State<Sharing>,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    JsonBody(pass): JsonBody<PassBody>,
) -> Result<Json<TurnBody>, ApiError> {
    let to: Role =
        pass.to.parse().map_err(|error: InvalidRole| ApiError::Invalid(format!("to: {error}")))?;
    caller.save_name(&sharing).await?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let turn = reviews.pass_turn(&link, to).await?;
    Ok(Json(TurnBody { turn }))
}
