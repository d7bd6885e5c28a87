//! `/openapi.json`, the contract for programs, and `/docs`, which shows it.
//!
//! The document is written by hand beside the routes. A test compares both, in both directions. The
//! files of `/docs` are compressed in the binary; the server unpacks them for a client without gzip.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use utoipa_swagger_ui::Config;

use crate::http::error::ApiError;
use crate::http::headers::Policy;
use crate::http::{assets, compressed_assets};

/// The `OpenAPI` document.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

/// The documentation calls no online validator.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::new(["/openapi.json"]).validator_url("none")));

/// `GET /openapi.json`
pub(crate) async fn openapi(headers: HeaderMap) -> Response {
    let kind = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    let kind = (kind, [(VARY, "accept-encoding")]);
    let packed = compressed_assets::find("openapi.json", OPENAPI.as_bytes());
    match packed.filter(|_| compressed_assets::is_taken(&headers)) {
        Some(packed) => (kind, [(CONTENT_ENCODING, "gzip")], packed).into_response(),
        None => (kind, OPENAPI).into_response(),
    }
}

/// `GET /docs`: redirects to the address with a slash, because its files are relative to it.
pub(crate) async fn redirect() -> Redirect {
    Redirect::permanent("/docs/")
}

/// `GET /docs/`
pub(crate) async fn page(
    State(policy): State<Policy>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    serve("index.html", &policy, &headers)
}

/// `GET /docs/{*file}`
pub(crate) async fn file(
    State(policy): State<Policy>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    serve(&name, &policy, &headers)
}

fn serve(name: &str, policy: &Policy, request_headers: &HeaderMap) -> Result<Response, ApiError> {
    let internal = |error: &dyn std::fmt::Display| ApiError::Internal(error.to_string());
    let file = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG))
        .map_err(|error| internal(&error))?
        .ok_or(ApiError::NotFound("page"))?;
    let body = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let fixed = [(CACHE_CONTROL, "no-cache"), (VARY, "accept-encoding")];
    let policy = [(CONTENT_SECURITY_POLICY, policy.of_docs())];
    let kind = [(CONTENT_TYPE, file.content_type)];
    if !file.gzpipped {
        return Ok((fixed, policy, kind, body).into_response());
    }
    let tag = tag(&body);
    let tagged = (fixed, policy, [(ETAG, tag.clone())]);
    if assets::is_unchanged(request_headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, tagged).into_response());
    }
    if compressed_assets::is_taken(request_headers) {
        let packed = [(CONTENT_ENCODING, "gzip")];
        return Ok((tagged, kind, packed, body).into_response());
    }
    let whole = compressed_assets::unpack(&body).map_err(|error| internal(&error))?;
    Ok((tagged, kind, whole).into_response())
}

/// A weak tag of a gzip file: its last eight bytes are checksum and length of the original.
fn tag(packed: &[u8]) -> String {
    let end = packed.last_chunk::<8>().copied().unwrap_or_default();
    let digits = end.iter().fold(String::new(), |mut digits, byte| {
        let _written = write!(digits, "{byte:02x}");
        digits
    });
    format!("W/\"{digits}\"")
}
