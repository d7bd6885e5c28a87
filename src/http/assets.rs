//! The pages and their files, embedded in the binary.
//!
//! No cache stores a page, because each response carries a new nonce. Caches store its files and
//! revalidate them by tag. They store bundles with a hash in their name forever, because other content
//! has another name. The build [compresses](crate::http::compressed_assets) the files; the server sends
//! a page uncompressed.

use axum::extract::State;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::compressed_assets;
use crate::http::error::ApiError;
use crate::http::headers::{Nonce, Policy};

/// The service worker among the files.
const SERVICE_WORKER: &str = "service_worker.js";
/// The placeholder of the nonce in a page.
const NONCE_MARK: &str = "{{nonce}}";
/// The page of an unknown address.
const NOT_FOUND: &str = "not_found.html";
/// Third-party bundles, built once and named by their hash.
const VENDOR: &str = "vendor/";
/// Minimum of hexadecimal digits that count as a hash.
const HASH_DIGITS_MIN: usize = 8;

#[derive(RustEmbed)]
#[folder = "static/"]
struct Files;

/// `GET /`
pub(crate) async fn start_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("index.html", &policy)
}

/// `GET /d/{document_id}`, `GET /s/{share_link_id}`: the same page, which reads the kind from its own
/// address.
pub(crate) async fn editor_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("editor.html", &policy)
}

/// `GET /admin`
pub(crate) async fn admin_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("admin.html", &policy)
}

/// `GET /service-worker.js`: the script that receives pushes. A browser grants it the folder of its address,
/// so it stands at the root: a click on a notification finds every open page.
pub(crate) async fn service_worker(headers: HeaderMap) -> Result<Response, ApiError> {
    let file = Files::get(SERVICE_WORKER).ok_or(ApiError::NotFound("service worker"))?;
    Ok(answer(SERVICE_WORKER, file, &headers))
}

/// Every other address: a file of the pages, or 404. A browser gets a page, every other client a problem
/// document.
pub(crate) async fn file(
    State(policy): State<Policy>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let name = uri.path().trim_start_matches('/');
    if !matches!(method, Method::GET | Method::HEAD) {
        return Err(ApiError::NotFound("address"));
    }
    let file = Files::get(name);
    match file {
        Some(_) if name.ends_with(".html") => page(name, &policy),
        Some(file) => Ok(answer(name, file, &headers)),
        None if wants_page(&headers) => {
            let vary = [(VARY, "accept")];
            Ok((StatusCode::NOT_FOUND, vary, page(NOT_FOUND, &policy)?).into_response())
        }
        None => Err(ApiError::NotFound("address")),
    }
}

/// Whether a browser opens the address. Scripts, images and API clients do not request `text/html`.
fn wants_page(request_headers: &HeaderMap) -> bool {
    let is_page = |kind: &str| kind.trim_start().starts_with("text/html");
    let accepted = request_headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|kinds| kinds.split(',')).any(is_page)
}

fn page(name: &str, policy: &Policy) -> Result<Response, ApiError> {
    let file = Files::get(name).ok_or(ApiError::NotFound("page"))?;
    let nonce = Nonce::generate().map_err(|error| ApiError::Internal(error.to_string()))?;
    let html = String::from_utf8_lossy(&file.data).replace(NONCE_MARK, nonce.as_str());
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, policy.of_page(&nonce)),
    ];
    Ok((headers, html).into_response())
}

fn answer(name: &str, file: EmbeddedFile, request_headers: &HeaderMap) -> Response {
    let tag = tag(&file.metadata.sha256_hash());
    let keep = if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [(CACHE_CONTROL, keep.to_owned()), (ETAG, tag.clone())];
    let headers = (headers, [(VARY, "accept-encoding")]);
    if is_unchanged(request_headers, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let kind = [(CONTENT_TYPE, content_type(file.metadata.mimetype()))];
    match compressed_assets::find(name, &file.data)
        .filter(|_| compressed_assets::is_taken(request_headers))
    {
        Some(packed) => (headers, kind, [(CONTENT_ENCODING, "gzip")], packed).into_response(),
        None => (headers, kind, file.data).into_response(),
    }
}

/// Whether the client's cached copy has this tag.
pub(crate) fn is_unchanged(request_headers: &HeaderMap, tag: &str) -> bool {
    request_headers.get_all(IF_NONE_MATCH).iter().any(|value| names(value, tag))
}

/// A weak tag, because a response carries the same file compressed or not.
fn tag(hash: &[u8; 32]) -> String {
    let digits = hash.iter().take(16).fold(String::new(), |digits, byte| {
        let (high, low) = (byte >> 4, byte & 15);
        [high, low].iter().fold(digits, |mut digits, nibble| {
            digits.extend(char::from_digit(u32::from(*nibble), 16));
            digits
        })
    });
    format!("W/\"{digits}\"")
}

/// Whether an `If-None-Match` names the tag, by weak comparison (RFC 9110 §13.1.2).
fn names(value: &HeaderValue, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let wanted = opaque(tag);
    value.to_str().is_ok_and(|list| {
        list.trim() == "*" || list.split(',').any(|candidate| opaque(candidate) == wanted)
    })
}

/// Whether the name of a bundle contains its hash, as in `vendor/editor-0123abcd.js`.
fn is_hashed(name: &str) -> bool {
    let is_hash = |part: &str| {
        HASH_DIGITS_MIN <= part.len() && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    name.strip_prefix(VENDOR).is_some_and(|name| name.split(['.', '-', '/']).any(is_hash))
}

/// Adds the charset to text types.
fn content_type(kind: &str) -> String {
    let is_text = kind.starts_with("text/") || matches!(kind, "application/json" | "image/svg+xml");
    if is_text { format!("{kind}; charset=utf-8") } else { kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_with_a_hash_in_its_name_is_cached_for_ever() {
        assert!(is_hashed("vendor/editor-0123abcd.js"));
        assert!(is_hashed("vendor/editor.0123abcdef.js"));
        assert!(!is_hashed("vendor/editor.js"));
        assert!(!is_hashed("js/editor-0123abcd.js"));
    }

    #[test]
    fn a_tag_is_recognised_in_a_list() {
        let tag = tag(&[0xab; 32]);
        assert_eq!(tag, format!("W/\"{}\"", "ab".repeat(16)));
        let strong = format!("\"x\", {}", tag.trim_start_matches("W/"));
        for list in [tag.as_str(), "*", &strong] {
            assert!(names(&HeaderValue::try_from(list).expect("a header"), &tag), "{list}");
        }
        assert!(!names(&HeaderValue::from_static("W/\"ab\""), &tag));
    }
}
