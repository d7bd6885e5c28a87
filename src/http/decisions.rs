//! Decisions over HTTP: `/api/share-links/{id}/decisions`.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{DecisionId, ReviewId, ShareLinkId};
use crate::domain::limits::{DECIDED_ONE_BY_ONE_MAX, REVIEW_PAGE_BYTES_MAX};
use crate::domain::review::Verdict;
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Object, Path};
use crate::http::response_budget::BodyCharge;
use crate::reviews::Reviews;
use crate::reviews::plan::Selection;

/// The server charges a decision about many reviews before it reads them, as a page of the list.
const READ_BYTES: u64 = REVIEW_PAGE_BYTES_MAX.unsigned_abs();

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NewDecision {
    decision: Verdict,
    /// Each review once, in the version that the caller has read.
    #[cfg_attr(test, schemars(with = "Vec<Named>", length(min = 1, max = 2000)))]
    reviews: Vec<Object<Named>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct Named {
    id: ReviewId,
    version: i64,
    /// The guessed places that a person has seen: the `relative.start` of each `moved` anchor, in the order of
    /// the parts.
    #[serde(default)]
    moved: Vec<String>,
}

impl Named {
    fn selection(self) -> Selection {
        // A faulty position is none that the server guesses.
        let decode = |position: &String| STANDARD.decode(position).unwrap_or_default();
        let moved = self.moved.iter().map(decode).collect();
        Selection { id: self.id, version: Some(self.version), moved }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "DecisionMade"))]
pub(crate) struct Made {
    /// Null if every suggestion was left.
    id: Option<DecisionId>,
    decision: Verdict,
    /// The decided reviews, in the order of the request.
    done: Vec<ReviewId>,
    /// The reviews that are left, in the order of the request.
    skipped: Vec<SkippedReview>,
    /// Until when the writer can undo it.
    undo_until: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct SkippedReview {
    id: ReviewId,
    #[cfg_attr(test, schemars(extend("enum" = [
        "version", "decided", "not-found", "no-suggestion", "anchor-moved", "moved",
        "overlaps",
    ])))]
    reason: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "DecisionUndone"))]
pub(crate) struct Undone {
    id: DecisionId,
    /// The suggestions that are open again.
    undone: Vec<ReviewId>,
}

/// `POST …/decisions`
pub(crate) async fn decide(
    State(reviews): State<Reviews>,
    charge: Option<Extension<BodyCharge>>,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    JsonBody(new): JsonBody<NewDecision>,
) -> Result<Response, ApiError> {
    if let Some(Extension(charge)) = charge
        && new.reviews.len() > DECIDED_ONE_BY_ONE_MAX
    {
        charge.grow(READ_BYTES)?;
    }
    let named = new.reviews.into_iter();
    let selections = named.map(|Object(named)| named.selection());
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let result = reviews.decide_many(&link, new.decision, selections.collect()).await?;
    let (id, undo_until) = result.made.unzip();
    let skipped = result.skipped.into_iter();
    let skipped = skipped.map(|(id, reason)| SkippedReview { id, reason: reason.as_str() });
    let skipped = skipped.collect();
    let made = Made { id, decision: new.decision, done: result.done, skipped, undo_until };
    Ok(Json(made).into_response())
}

/// `POST …/decisions/{did}/undo`
pub(crate) async fn undo(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path((link, id)): Path<(ShareLinkId, DecisionId)>,
) -> Result<Response, ApiError> {
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let undone = reviews.undo(&link, id).await?;
    Ok(Json(Undone { id, undone }).into_response())
}
