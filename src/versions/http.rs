//! `/api/documents/{id}/versions`: the history of a document, for all who may read it.
//!
//! Only the owner names a version. Restoring one requires the writer's seat.

use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::text::count_characters;
use crate::http::auth::caller::Caller;
use crate::http::entity_tags::{mark_of, required, tag};
use crate::http::error::services::DOCUMENT_TOO_LARGE;
use crate::http::error::{ApiError, Contract, Failure, PRECONDITION_FAILED};
use crate::http::extract::{JsonBody, Limit, Path, Query, TextBody};
use crate::http::guest_budgets::Storing;
use crate::http::routes::Routes;
use crate::sharing::{Sharing, SharingError};
use crate::storage::documents::Document;
use crate::storage::versions::Version;
use crate::versions::replace::Precondition;
use crate::versions::restore::Restored;
use crate::versions::{Against, Difference, VersionError, Versions};

const ROWS_DEFAULT: u32 = 50;
const ROWS_MAX: u32 = 100;

pub(crate) fn routes() -> Routes {
    const ALL: &str = "/api/documents/{id}/versions";
    Routes::default()
        .get(ALL, list)
        .post(ALL, name)
        .get("/api/documents/{id}/versions/{vid}", show)
        .get("/api/documents/{id}/versions/{vid}/diff", diff)
        .post("/api/documents/{id}/versions/{vid}/restore", restore)
        .put_text("/api/documents/{id}/text", replace)
}

type VersionPath = (DocumentId, VersionId);

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "VersionWithText"))]
pub(crate) struct WithText {
    #[serde(flatten)]
    version: Version,
    text: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VersionList {
    versions: Vec<Version>,
    /// The cursor of the next page; `null` on the last.
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ListQuery {
    limit: Option<Limit>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Label"))]
pub(crate) struct LabelBody {
    /// One line of 1 to 100 characters.
    #[cfg_attr(test, schemars(length(max = 100)))]
    label: String,
}

#[derive(Deserialize)]
struct DiffQuery {
    against: Option<String>,
}

#[derive(Deserialize)]
struct ReplaceQuery {
    #[serde(default)]
    while_open: bool,
}

/// `GET …/versions`
async fn list(
    State(sharing): State<Sharing>,
    Extension(versions): Extension<Versions>,
    caller: Caller,
    Path(document): Path<DocumentId>,
    Query(query): Query<ListQuery>,
) -> Result<Json<VersionList>, ApiError> {
    let limit = query.limit.map_or(Ok(ROWS_DEFAULT), |limit| limit.rows(ROWS_MAX))?;
    let before = query.cursor.map(|cursor| cursor.parse::<i64>()).transpose();
    let before = before.map_err(|_| ApiError::Invalid("cursor: not a valid cursor".to_owned()))?;
    sharing.may_read(&caller.user().id, document).await?;
    // The extra row shows whether a next page exists.
    let mut rows = versions.list(document, limit + 1, before).await?;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = wanted < rows.len();
    rows.truncate(wanted);
    let next_cursor = rows.last().filter(|_| more).map(|last| last.number.to_string());
    Ok(Json(VersionList { versions: rows, next_cursor }))
}

/// `POST …/versions`
async fn name(
    State(sharing): State<Sharing>,
    Extension(versions): Extension<Versions>,
    caller: Caller,
    Path(document): Path<DocumentId>,
    JsonBody(body): JsonBody<LabelBody>,
) -> Result<Response, ApiError> {
    let user = caller.user();
    sharing.may_read(&user.id, document).await?;
    // A reader of the document knows that it exists, so the response names the missing right.
    match sharing.document(&user.id, document).await {
        Err(SharingError::NotFound(_)) => return Err(SharingError::NotTheWriter.into()),
        other => other?,
    };
    let version = versions.name(user, &caller.requester(), document, &body.label).await?;
    Ok(made(version))
}

/// `GET …/versions/{vid}`
async fn show(
    State(sharing): State<Sharing>,
    Extension(versions): Extension<Versions>,
    caller: Caller,
    Path((document, id)): Path<VersionPath>,
) -> Result<Response, ApiError> {
    sharing.may_read(&caller.user().id, document).await?;
    let (version, text) = versions.get(&caller.requester(), document, id).await?;
    Ok(Json(WithText { version, text }).into_response())
}

/// `GET …/versions/{vid}/diff`
async fn diff(
    State(sharing): State<Sharing>,
    Extension(versions): Extension<Versions>,
    caller: Caller,
    Path((document, id)): Path<VersionPath>,
    Query(query): Query<DiffQuery>,
) -> Result<Json<Difference>, ApiError> {
    sharing.may_read(&caller.user().id, document).await?;
    let against = query.against.map_or(Ok(Against::Current), |against| against.parse());
    // An id that cannot be parsed matches no version.
    let against = against.map_err(|_| ApiError::NotFound("version"))?;
    Ok(Json(versions.difference(&caller.requester(), document, id, against).await?))
}

/// `POST …/versions/{vid}/restore`
async fn restore(
    State(sharing): State<Sharing>,
    Extension(versions): Extension<Versions>,
    caller: Caller,
    Path((document, id)): Path<VersionPath>,
) -> Result<Response, ApiError> {
    let user = caller.user();
    sharing.may_read(&user.id, document).await?;
    match versions.restore(user, &caller.requester(), document, id).await? {
        Restored::Now(version) => Ok(made(version)),
        Restored::Already(version) => Ok(Json(version).into_response()),
    }
}

/// `PUT /api/documents/{id}/text`
async fn replace(
    (State(sharing), Extension(versions)): (State<Sharing>, Extension<Versions>),
    storing: Storing,
    caller: Caller,
    Path(document): Path<DocumentId>,
    Query(ReplaceQuery { while_open }): Query<ReplaceQuery>,
    headers: HeaderMap,
    TextBody(text): TextBody,
) -> Result<Response, ApiError> {
    let user = caller.user();
    sharing.document(&user.id, document).await?;
    storing.charge(text.len())?;
    let precondition = Precondition { marks: required(&headers), while_open };
    let requester = caller.requester();
    let text = versions.replace(user, &requester, document, text, &precondition).await?;
    let characters = count_characters(&text);
    let document = Document { characters, ..sharing.document(&user.id, document).await? };
    Ok(([(ETAG, tag(&mark_of(&text)))], Json(document)).into_response())
}

fn made(version: Version) -> Response {
    let path = format!("/api/documents/{}/versions/{}", version.document, version.id);
    (StatusCode::CREATED, [(LOCATION, path)], Json(version)).into_response()
}

impl Failure for VersionError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::SeatHeld => (Is::CONFLICT, "seat-held", "The writer's seat is held"),
            Self::Changed => PRECONDITION_FAILED,
            Self::SeatNotHeld => (Is::FORBIDDEN, "seat-not-held", "Seat not held"),
            Self::Label(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
            Self::Full => (Is::CONFLICT, "too-many", "Too many"),
            Self::Contended => (Is::CONFLICT, "text-changing", "The text is changing"),
            Self::TooLarge => DOCUMENT_TOO_LARGE,
            Self::Session(error) => error.contract(),
        }
    }
}
