//! Documents as files: `GET /api/share-links/{id}/export`, `GET /api/export-formats`,
//! `POST /api/documents/import`.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::domain::export::{ExportFailure, ExportFormat};
use crate::domain::ids::ShareLinkId;
use crate::domain::reminder::{InvalidTimeZone, TimeZone};
use crate::exports::build::{Export, Exports, Lookup};
use crate::exports::error::ExportError;
use crate::exports::store::{ExportKey, StoredExport};
use crate::files::error::ImportError;
use crate::files::import::changes::ImportChanges;
use crate::files::import::{self, IMPORT_BYTES_MAX, ImportFormat};
use crate::http::auth::caller::Caller;
use crate::http::entity_tags::is_cached;
use crate::http::error::{ApiError, Contract, Failure, Members, member};
use crate::http::extract::{Path, Query, RawBody};
use crate::http::guest_budgets::Storing;
use crate::http::limit::Limiter;
use crate::http::peer::{Peer, network};
use crate::http::response_budget::BodyCharge;
use crate::http::routes::Routes;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::sharing::Sharing;
use crate::sharing::documents::DocumentDraft;
use crate::storage::documents::Document;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/share-links/{id}/export", export)
        .get("/api/export-formats", formats)
        .post_text("/api/documents/import", import)
}

const RETRY_SECONDS: u64 = 1;
/// Longest name of a file, in bytes of UTF-8: file systems take 255, with the extension.
const FILE_NAME_BYTES_MAX: usize = 180;

#[derive(Deserialize)]
struct ExportQuery {
    format: Option<String>,
    reviews: Option<String>,
    zone: Option<String>,
}

#[derive(Deserialize)]
struct ImportQuery {
    title: Option<String>,
    name: Option<String>,
}

/// The new document, and what its file has that a text shows in another way.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ImportedDocument"))]
pub(crate) struct ImportBody {
    #[serde(flatten)]
    document: Document,
    import: ImportChanges,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ExportBuilding"))]
pub(crate) struct BuildingBody {
    #[cfg_attr(test, schemars(extend("const" = "building")))]
    status: &'static str,
    #[cfg_attr(test, schemars(range(max = 99)))]
    progress: u8,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ExportFormats"))]
pub(crate) struct FormatsBody {
    #[cfg_attr(test, schemars(extend("items" = {"enum": ["docx", "html", "md", "pdf", "txt"]})))]
    formats: Vec<&'static str>,
}

/// `GET /api/export-formats`
async fn formats(Extension(exports): Extension<Exports>, _caller: Caller) -> Json<FormatsBody> {
    Json(FormatsBody { formats: exports.formats().into_iter().map(ExportFormat::as_str).collect() })
}

/// `GET …/export`
async fn export(
    (Extension(exports), State(limiter)): (Extension<Exports>, State<Limiter>),
    charge: Option<Extension<BodyCharge>>,
    peer: Option<Extension<Peer>>,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    Query(query): Query<ExportQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (format, has_reviews) = query.parse()?;
    let zone = query.zone.map_or(Ok(TimeZone::UTC), |name| name.parse());
    let zone =
        zone.map_err(|error: InvalidTimeZone| ApiError::Invalid(format!("zone: {error}")))?;
    let key = ExportKey { link, format, has_reviews, zone };
    let found = match exports.look_up(caller.user(), key).await? {
        Lookup::Found(found) => found,
        Lookup::Due(state) => {
            let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
            let charge = || limiter.check_build(&caller.user().id, peer);
            exports.build(key, *state, caller.requester(), charge).await?
        }
    };
    let (file, title) = match found {
        Export::Ready { file, title } => (file, title),
        Export::Building { progress } => return Ok(building(progress)),
    };
    let tag = tag_of(&file);
    if is_cached(&headers, tag.to_str().unwrap_or_default()) {
        let headers = [(ETAG, tag), (CACHE_CONTROL, PRIVATE)];
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    if let Some(Extension(charge)) = charge {
        charge.grow(file.length.unsigned_abs())?;
    }
    let Some(bytes) = exports.bytes(key, &file).await? else {
        // Another build has replaced it in this moment.
        return Ok(building(99));
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(format.media_type())),
        (CONTENT_DISPOSITION, attachment(&title, format)),
        (ETAG, tag),
        (CACHE_CONTROL, PRIVATE),
    ];
    Ok((headers, bytes).into_response())
}

/// A browser stores the file for its user and asks each time whether it is current.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");

impl ExportQuery {
    fn parse(&self) -> Result<(ExportFormat, bool), ExportError> {
        let has_reviews = match self.reviews.as_deref() {
            None | Some("1") => true,
            Some("0") => false,
            Some(_) => return Err(ExportError::UnknownFormat),
        };
        match self.format.as_deref() {
            Some(name) => {
                let format = name.parse().map_err(|_| ExportError::UnknownFormat)?;
                Ok((format, has_reviews))
            }
            None => Err(ExportError::UnknownFormat),
        }
    }
}

fn building(progress: u8) -> Response {
    let body = Json(BuildingBody { status: "building", progress });
    (StatusCode::ACCEPTED, [(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))], body).into_response()
}

/// The strong tag of a file: the beginning of its hash.
fn tag_of(file: &StoredExport) -> HeaderValue {
    let hex: String = file.hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(format!("\"{hex}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// `Content-Disposition` with a safe name of the file, in the forms of RFC 6266 and RFC 8187.
fn attachment(title: &str, format: ExportFormat) -> HeaderValue {
    let name = file_name(title);
    let mut encoded = String::with_capacity(name.len() * 3);
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    let value =
        format!("attachment; filename=\"document.{format}\"; filename*=UTF-8''{encoded}.{format}");
    // All of it is ASCII.
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("attachment"))
}

/// A name that every file system takes: no separator, no reserved name of Windows, no dot at an end.
fn file_name(title: &str) -> String {
    let is_reserved = |c: char| {
        c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
    };
    let name: String = title.chars().map(|c| if is_reserved(c) { '_' } else { c }).collect();
    let end = name.floor_char_boundary(FILE_NAME_BYTES_MAX);
    let name = name.get(..end).unwrap_or_default().trim_matches([' ', '.']);
    let stem = name.split('.').next().unwrap_or(name).trim().to_ascii_uppercase();
    let is_device = matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|c: char| c.is_ascii_digit()));
    match name {
        "" => "document".to_owned(),
        name if is_device => format!("_{name}"),
        name => name.to_owned(),
    }
}

/// `POST /api/documents/import`
async fn import(
    (State(sharing), Extension(exports)): (State<Sharing>, Extension<Exports>),
    (State(limiter), peer): (State<Limiter>, Option<Extension<Peer>>),
    storing: Storing,
    caller: Caller,
    Query(query): Query<ImportQuery>,
    headers: HeaderMap,
    body: RawBody<IMPORT_BYTES_MAX>,
) -> Result<Response, ApiError> {
    let media_type = headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap_or("?"));
    let format = ImportFormat::of(media_type, query.name.as_deref()).map_err(ExportError::from)?;
    let too_large = |error| match error {
        ApiError::TooLarge => ExportError::from(ImportError::TooLarge("the file itself")).into(),
        error => error,
    };
    let bytes = body.0.map_err(too_large)?;
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
    // To read a file costs as much as to build one.
    limiter.check_build(&caller.user().id, peer).map_err(ExportError::TooFast)?;
    let file = exports.text_of(format, bytes, &caller.requester()).await?;
    let ImportQuery { title, name } = query;
    let title = title.unwrap_or_else(|| import::title_of(&file, name.as_deref()));
    storing.charge(file.text.len())?;
    caller.save_name(&sharing).await?;
    let (owner, address) = (caller.user(), network(peer.0));
    let draft = DocumentDraft { title, text: file.text, ..DocumentDraft::default() };
    let document = sharing.create_document(owner, address, draft, Utc::now()).await?;
    let location = [(LOCATION, format!("/api/documents/{}", document.id))];
    let body = ImportBody { document, import: file.changes };
    Ok((StatusCode::CREATED, location, Json(body)).into_response())
}

impl Failure for ExportError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::UnknownFormat => (Is::UNPROCESSABLE_ENTITY, "unknown-format", "Unknown format"),
            Self::NotAvailable => (
                Is::NOT_IMPLEMENTED,
                "format-not-available",
                "This server does not make this format",
            ),
            Self::TooFast(_) => (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests"),
            Self::Failed(ExportFailure::TooLarge) => {
                (Is::CONFLICT, "export-too-large", "The file would be too large")
            }
            Self::Failed(ExportFailure::TooCostly) => {
                SeatError::Room(RoomError::TooCostly).contract()
            }
            Self::Failed(ExportFailure::Damaged) => {
                SeatError::Room(RoomError::Unreadable).contract()
            }
            Self::Failed(ExportFailure::Unavailable) => SeatError::Room(RoomError::Busy).contract(),
            Self::Import(ImportError::Format) => {
                (Is::UNSUPPORTED_MEDIA_TYPE, "import-format", "Unknown kind of file")
            }
            Self::Import(ImportError::Unreadable(_) | ImportError::Encoding(_)) => {
                (Is::UNPROCESSABLE_ENTITY, "import-unreadable", "The file cannot be read")
            }
            Self::Import(ImportError::TooLarge(_)) => {
                (Is::PAYLOAD_TOO_LARGE, "import-too-large", "The file is too large")
            }
            Self::Import(ImportError::TextTooLong) => {
                (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large")
            }
            Self::Session(error) => error.contract(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooFast(retry_after) => Some(*retry_after),
            _other => None,
        }
    }

    fn members(&self) -> Members {
        match self {
            Self::NotAvailable => member("remedy", self.to_string()),
            Self::Import(ImportError::Encoding(encoding)) => member("encoding", *encoding),
            _other => Members::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_safe_name_of_a_file() {
        for (title, name) in [
            ("자기소개서 (최종)", "자기소개서 (최종)"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("a\\b:c*d?e\"f<g>h|i", "a_b_c_d_e_f_g_h_i"),
            ("con", "_con"),
            ("COM1.txt", "_COM1.txt"),
            ("COMA", "COMA"),
            (" . ", "document"),
            ("끝.", "끝"),
        ] {
            assert_eq!(file_name(title), name);
        }
        assert!(file_name(&"가".repeat(200)).len() <= FILE_NAME_BYTES_MAX);
        let header = attachment("글 \"1\"\r\n", ExportFormat::Docx);
        let expected = "attachment; filename=\"document.docx\"; \
                        filename*=UTF-8''%EA%B8%80%20_1___.docx";
        assert_eq!(header.to_str().expect("ASCII"), expected);
    }

    #[test]
    fn the_query_names_a_format_and_whether_reviews_are_in_it() {
        let parse = |format: Option<&str>, reviews: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            ExportQuery { format: owned(format), reviews: owned(reviews), zone: None }.parse()
        };
        assert!(matches!(parse(Some("docx"), None), Ok((ExportFormat::Docx, true))));
        assert!(matches!(parse(Some("txt"), Some("0")), Ok((ExportFormat::Text, false))));
        assert!(matches!(parse(Some("pdf"), None), Ok((ExportFormat::Pdf, true))));
        for (format, reviews) in
            [(None, None), (Some(""), None), (Some("doc"), None), (Some("md"), Some("yes"))]
        {
            assert!(matches!(parse(format, reviews), Err(ExportError::UnknownFormat)));
        }
    }
}
