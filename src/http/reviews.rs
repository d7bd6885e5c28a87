//! Reviews over HTTP: `/api/share-links/{id}/reviews`.

use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::anchor::AnchorRequest;
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::{REVIEW_PAGE_BYTES_MAX, REVIEW_PAGE_ROWS_MAX};
use crate::domain::review::{Decision, Review, ReviewKind, ReviewStatus};
use crate::http::auth::caller::Caller;
use crate::http::entity_tags::{required, tag};
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Limit, Object, Path, Query};
use crate::http::guest_budgets::Storing;
use crate::http::response_budget::BodyCharge;
use crate::reviews::{Draft, Reviews, Revision};
use crate::sharing::Sharing;
use crate::storage::pagination::InvalidCursor;
use crate::tasks::Tasks;

/// The server charges a page of reviews before it reads it, at the maximum size: the first part of a
/// suggestion stands in it twice.
const PAGE_BYTES: u64 = 2 * REVIEW_PAGE_BYTES_MAX.unsigned_abs();

type ReviewPath = (ShareLinkId, ReviewId);

/// An unknown field is an error: a misspelt `suggestion` would create a comment without its words.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["anchor"])))]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReview {
    /// `null`: a remark on the whole text.
    #[serde(deserialize_with = "null_or_object")]
    #[cfg_attr(test, schemars(with = "Option<AnchorRequest>"))]
    anchor: Option<Object<AnchorRequest>>,
    /// The comment, at most 16 KiB; stored by the rule for text (PROTOCOL, Text from clients).
    #[serde(default)]
    body: String,
    /// The text that replaces the quote, at most 64 KiB; stored by the rule for text (PROTOCOL, Text from
    /// clients).
    #[serde(default)]
    suggestion: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReviewChanges"))]
pub(crate) struct Changes {
    /// Another comment.
    #[serde(default)]
    body: Option<String>,
    /// Another suggestion; `null` removes it. Absent: unchanged.
    #[serde(default, deserialize_with = "present")]
    suggestion: Option<Option<String>>,
}

/// The query of the list; without a limit, as many rows as a page holds.
#[derive(Deserialize)]
pub(crate) struct ListQuery {
    limit: Option<Limit>,
    cursor: Option<String>,
    status: Option<ReviewStatus>,
    kind: Option<ReviewKind>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReviewList {
    reviews: Vec<Review>,
    /// `cursor` of the next page; `null` on the last.
    next_cursor: Option<String>,
}

/// `GET …/reviews`
pub(crate) async fn list(
    State(reviews): State<Reviews>,
    State(tasks): State<Tasks>,
    charge: Option<Extension<BodyCharge>>,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    Query(query): Query<ListQuery>,
) -> Result<Response, ApiError> {
    if let Some(Extension(charge)) = charge {
        charge.grow(PAGE_BYTES)?;
    }
    let limit = query.limit.map(|limit| limit.rows(REVIEW_PAGE_ROWS_MAX)).transpose()?;
    let after = query.cursor.map(|cursor| cursor.parse()).transpose();
    let after =
        after.map_err(|error: InvalidCursor| ApiError::Invalid(format!("cursor: {error}")))?;
    let rows = limit.unwrap_or(REVIEW_PAGE_ROWS_MAX);
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let (page, next) = reviews.list(&link, after, rows, query.status, query.kind).await?;
    let body = ReviewList { reviews: page, next_cursor: next.map(|next| next.to_string()) };
    // A page has a megabyte, and the writing of it would delay the edits of others.
    #[expect(clippy::disallowed_methods, reason = "under the charge")]
    let writing = tasks.tracker.spawn_blocking(move || Json(body).into_response());
    writing.await.map_err(|panicked| ApiError::Internal(panicked.to_string()))
}

/// `POST …/reviews`
pub(crate) async fn create(
    State(reviews): State<Reviews>,
    State(sharing): State<Sharing>,
    storing: Storing,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    JsonBody(new): JsonBody<NewReview>,
) -> Result<Response, ApiError> {
    let suggested = new.suggestion.as_ref().map_or(0, String::len);
    let anchor = new.anchor.map(|anchor| anchor.0);
    let quoted = anchor.as_ref().map_or(0, |anchor| anchor.quote.len());
    storing.charge(quoted + new.body.len() + suggested)?;
    let draft = Draft { anchor, body: new.body, suggestion: new.suggestion };
    caller.save_name(&sharing).await?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let review = reviews.create(&link, draft).await?;
    let location = format!("/api/share-links/{}/reviews/{}", link.id, review.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], tagged(review)).into_response())
}

/// `GET …/reviews/{rid}`
pub(crate) async fn show(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path((link, id)): Path<ReviewPath>,
) -> Result<Response, ApiError> {
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    Ok(tagged(reviews.get(&link, id).await?))
}

/// `PATCH …/reviews/{rid}`
pub(crate) async fn edit(
    State(reviews): State<Reviews>,
    storing: Storing,
    caller: Caller,
    Path((link, id)): Path<ReviewPath>,
    headers: HeaderMap,
    JsonBody(changes): JsonBody<Changes>,
) -> Result<Response, ApiError> {
    let suggested = changes.suggestion.as_ref().and_then(Option::as_ref);
    let texts = [changes.body.as_ref(), suggested];
    storing.charge(texts.into_iter().flatten().map(String::len).sum())?;
    let revision = Revision { body: changes.body, suggestion: changes.suggestion };
    let expected = expected_version(&headers)?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    Ok(tagged(reviews.edit(&link, id, revision, expected).await?))
}

/// `DELETE …/reviews/{rid}`
pub(crate) async fn delete(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path((link, id)): Path<ReviewPath>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    reviews.delete(&link, id, expected_version(&headers)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST …/reviews/{rid}/accept`, `reject`, `resolve` and `reopen`.
pub(crate) async fn decide(
    State(reviews): State<Reviews>,
    caller: Caller,
    Path((link, id)): Path<ReviewPath>,
    headers: HeaderMap,
    decision: Decision,
) -> Result<Response, ApiError> {
    let expected = expected_version(&headers)?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    Ok(tagged(reviews.decide(&link, id, decision, expected).await?))
}

/// The version that `If-Match` requires; `*` and a missing header require none.
///
/// One tag of a list suffices (RFC 9110 §13.1.1). Versions only rise, so only the highest tag of a list
/// can be the current version.
pub(crate) fn expected_version(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(tags) = required(headers) else { return Ok(None) };
    let highest = tags.iter().filter_map(|version| version.parse().ok()).max();
    highest.map(Some).ok_or(ApiError::UnknownTag)
}

pub(crate) fn tagged(review: Review) -> Response {
    ([(ETAG, etag(&review))], Json(review)).into_response()
}

pub(crate) fn etag(review: &Review) -> HeaderValue {
    version_tag(review.version)
}

pub(crate) fn version_tag(version: i64) -> HeaderValue {
    tag(&version.to_string())
}

/// A field that must be present: an object or `null`.
fn null_or_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Object<T>>, D::Error> {
    Option::<Object<T>>::deserialize(deserializer)
}

/// Distinguishes a field that is `null` from an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use axum::http::header::IF_MATCH;

    use super::*;

    #[test]
    fn tags_are_versions_in_quotes_or_a_star() {
        let with = |tag: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, HeaderValue::from_static(tag));
            expected_version(&headers)
        };
        assert!(matches!(with("\"3\""), Ok(Some(3))));
        assert!(matches!(with("\"3-gzip\""), Ok(Some(3))));
        assert!(matches!(with("*"), Ok(None)));
        assert!(matches!(with("3"), Err(ApiError::UnknownTag)));
        assert!(matches!(with("W/\"3\""), Err(ApiError::UnknownTag)));
        assert!(matches!(with("\"2\", \"other\",\"3\""), Ok(Some(3))));
        assert!(matches!(expected_version(&HeaderMap::new()), Ok(None)));
    }

    #[test]
    fn a_suggestion_is_left_if_absent_and_removed_by_null() {
        let left: Changes = serde_json::from_str("{}").expect("changes");
        assert_eq!(left.suggestion, None);
        let taken: Changes = serde_json::from_str(r#"{"suggestion":null}"#).expect("changes");
        assert_eq!(taken.suggestion, Some(None));
    }
}
