//! `/api/documents`: the caller's own documents, and their bin.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, ExternalId};
use crate::domain::section::NewSection;
use crate::domain::text::count_characters;
use crate::http::auth::caller::Caller;
use crate::http::entity_tags::{mark_of, tag};
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Limit, Path, Query};
use crate::http::guest_budgets::Storing;
use crate::http::pagination::PageQuery;
use crate::http::peer::{Peer, network};
use crate::http::routes::Routes;
use crate::http::sections::SectionBody;
use crate::reviews::Reviews;
use crate::rooms::RoomError;
use crate::rooms::texts::Texts;
use crate::seats::Seats;
use crate::sharing::Sharing;
use crate::sharing::documents::DocumentDraft;
use crate::storage::documents::Document;
use crate::yjs::text::Text;

const ROWS_DEFAULT: u32 = 50;
const ROWS_MAX: u32 = 100;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post_text("/api/documents", create)
        .put_text("/api/documents/by-external-id/{external_id}", find_or_create)
        .get("/api/documents", list)
        .get("/api/documents/{id}", show)
        .patch("/api/documents/{id}", rename)
        .delete("/api/documents/{id}", delete)
        .post("/api/documents/{id}/restore", restore)
        .get("/api/documents/{id}/text", text)
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    deleted: bool,
    limit: Option<Limit>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct DeleteQuery {
    /// Deletes a document of the bin for ever.
    #[serde(default)]
    permanent: bool,
}

#[derive(Deserialize)]
struct TextQuery {
    view: Option<TextView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TextView {
    Accepted,
}

/// The open suggestions that the text does not have.
pub(crate) const LEFT: HeaderName = HeaderName::from_static("galley-suggestions-left");

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewDocument"))]
pub(crate) struct NewDocumentBody {
    /// One line of 1 to 200 characters; trimmed.
    title: String,
    /// Plain text.
    #[serde(default)]
    text: String,
    /// The settings of the sections of `text`, as `PUT /api/documents/{id}/sections` has them.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 100)))]
    sections: Vec<SectionBody>,
    #[cfg_attr(test, schemars(with = "Option<ExternalId>"))]
    external_id: Option<String>,
}

impl NewDocumentBody {
    fn draft(self) -> Result<DocumentDraft, ApiError> {
        let Self { title, text, sections, external_id } = self;
        let sections = sections.into_iter().map(NewSection::from).collect();
        let external_id = external_id.as_deref().map(external_id_of).transpose()?;
        Ok(DocumentDraft { title, text, sections, external_id })
    }
}

fn external_id_of(text: &str) -> Result<ExternalId, ApiError> {
    let form = "external_id: 1 to 128 characters of A-Z a-z 0-9 _ . : -";
    text.parse().map_err(|_invalid| ApiError::Invalid(form.to_owned()))
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Title"))]
pub(crate) struct TitleBody {
    /// One line of 1 to 200 characters; trimmed.
    title: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "DocumentList"))]
pub(crate) struct DocumentList<T> {
    documents: Vec<T>,
    /// `cursor` of the next page; `null` on the last.
    next_cursor: Option<String>,
    /// Of a bin: how long it keeps a document. 0: a deletion is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "u64"))]
    retention_seconds: Option<u64>,
}

/// `POST /api/documents`
async fn create(
    State(sharing): State<Sharing>,
    storing: Storing,
    peer: Option<Extension<Peer>>,
    caller: Caller,
    JsonBody(new): JsonBody<NewDocumentBody>,
) -> Result<Response, ApiError> {
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
    storing.charge(new.text.len())?;
    caller.save_name(&sharing).await?;
    let (owner, address) = (caller.user(), network(peer.0));
    let document = sharing.create_document(owner, address, new.draft()?, Utc::now()).await?;
    Ok(created(document))
}

fn created(document: Document) -> Response {
    let location = [(LOCATION, format!("/api/documents/{}", document.id))];
    (StatusCode::CREATED, location, Json(document)).into_response()
}

/// `PUT /api/documents/by-external-id/{external_id}`
async fn find_or_create(
    (State(sharing), State(texts)): (State<Sharing>, State<Texts>),
    storing: Storing,
    peer: Option<Extension<Peer>>,
    caller: Caller,
    Path(external_id): Path<String>,
    JsonBody(new): JsonBody<NewDocumentBody>,
) -> Result<Response, ApiError> {
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
    let external_id = external_id_of(&external_id)?;
    let draft = new.draft()?;
    if draft.external_id.as_ref().is_some_and(|other| *other != external_id) {
        let fault = "external_id: the body has another one than the address";
        return Err(ApiError::Invalid(fault.to_owned()));
    }
    storing.charge(draft.text.len())?;
    caller.save_name(&sharing).await?;
    let (owner, address) = (caller.user(), network(peer.0));
    let finding = sharing.find_or_create_document(owner, address, external_id, draft, Utc::now());
    let (mut document, is_new) = finding.await?;
    if is_new {
        return Ok(created(document));
    }
    count_now(&mut document, &texts, &caller.requester()).await?;
    Ok(Json(document).into_response())
}

/// `GET /api/documents`
async fn list(
    State(sharing): State<Sharing>,
    State(texts): State<Texts>,
    caller: Caller,
    Query(ListQuery { deleted, limit, cursor }): Query<ListQuery>,
) -> Result<Response, ApiError> {
    let request = PageQuery { limit, cursor }.parse(ROWS_DEFAULT, ROWS_MAX)?;
    if deleted {
        let mut rows = sharing.bin_of(&caller.user().id, &request.page()).await?;
        let next_cursor = request.cut(&mut rows, |binned| binned.row.cursor());
        let retention_seconds = Some(sharing.bin_retention().as_secs());
        return Ok(
            Json(DocumentList { documents: rows, next_cursor, retention_seconds }).into_response()
        );
    }
    let mut rows = sharing.documents_of(&caller.user().id, &request.page()).await?;
    let next_cursor = request.cut(&mut rows, Document::cursor);
    for row in &mut rows {
        // A list with an older count is better than none. The document may also have been deleted
        // meanwhile.
        let counted = count_now(row, &texts, &caller.requester()).await;
        let _older = counted.inspect_err(|error| tracing::debug!(%error, "characters not counted"));
    }
    Ok(Json(DocumentList { documents: rows, next_cursor, retention_seconds: None }).into_response())
}

/// `GET /api/documents/{id}`
async fn show(
    State(sharing): State<Sharing>,
    State(texts): State<Texts>,
    caller: Caller,
    Path(id): Path<DocumentId>,
) -> Result<Json<Document>, ApiError> {
    let mut document = sharing.document(&caller.user().id, id).await?;
    count_now(&mut document, &texts, &caller.requester()).await?;
    Ok(Json(document))
}

/// The open room has a newer count while a session edits. For a document that is damaged, busy or too
/// slow to read, the stored count remains.
async fn count_now(
    document: &mut Document,
    texts: &Texts,
    requester: &Requester,
) -> Result<(), ApiError> {
    if texts.is_open(document.id) {
        match texts.read(document.id, requester, Text::content).await {
            Ok(text) => document.characters = count_characters(&text),
            Err(RoomError::Unreadable | RoomError::TooCostly | RoomError::Busy) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// `PATCH /api/documents/{id}`
async fn rename(
    State(sharing): State<Sharing>,
    State(texts): State<Texts>,
    caller: Caller,
    Path(id): Path<DocumentId>,
    JsonBody(body): JsonBody<TitleBody>,
) -> Result<Json<Document>, ApiError> {
    let mut renamed =
        sharing.rename_document(&caller.user().id, id, &body.title, Utc::now()).await?;
    // The title is stored: an older count is better than a failure.
    let _older = count_now(&mut renamed, &texts, &caller.requester()).await;
    Ok(Json(renamed))
}

/// `DELETE /api/documents/{id}`
async fn delete(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    caller: Caller,
    Path(id): Path<DocumentId>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, ApiError> {
    let user = caller.user();
    if query.permanent {
        // A document of the bin has no sessions.
        sharing.purge_document(&user.id, id).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    // One transaction moves the document and revokes its link. From then on no claim succeeds and no
    // edit is stored. Then the server ends each session.
    let deletion = sharing.delete_document(user, id, Utc::now()).await?;
    seats.document_deleted(id, deletion).await;
    sharing.bound_bin(&user.id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/documents/{id}/restore`
async fn restore(
    State(sharing): State<Sharing>,
    peer: Option<Extension<Peer>>,
    caller: Caller,
    Path(id): Path<DocumentId>,
) -> Result<Json<Document>, ApiError> {
    let address = network(peer.map_or_else(Peer::default, |Extension(peer)| peer).0);
    Ok(Json(sharing.restore_document(&caller.user().id, address, id, Utc::now()).await?))
}

/// `GET /api/documents/{id}/text`: for the owner, and the reviewer of its share link.
async fn text(
    State(sharing): State<Sharing>,
    State(reviews): State<Reviews>,
    State(texts): State<Texts>,
    caller: Caller,
    Path(id): Path<DocumentId>,
    Query(TextQuery { view }): Query<TextQuery>,
) -> Result<Response, ApiError> {
    sharing.may_read(&caller.user().id, id).await?;
    let plain = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    match view {
        None => {
            let text = texts.read(id, &caller.requester(), Text::content).await?;
            Ok((plain, [(ETAG, tag(&mark_of(&text)))], text).into_response())
        }
        Some(TextView::Accepted) => {
            let (text, left) = reviews.accepted_text(id, &caller.requester()).await?;
            Ok((plain, [(LEFT, HeaderValue::from(left))], text).into_response())
        }
    }
}
