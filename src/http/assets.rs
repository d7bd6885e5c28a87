//! The pages and their files, embedded in the binary.
//!
//! A page is never kept by a cache, because it carries a nonce that must be new each time. Its
//! files are kept and asked for again by their tag; bundles that have a hash in their name are kept
//! for ever, since another content would have another name. Files were [compressed](crate::http::compressed_assets)
//! at build time; a page is sent as it is.

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::compressed_assets;
use crate::http::error::ApiError;
use crate::http::headers::{Nonce, Policy};

/// What stands in a page where its nonce belongs.
const NONCE_MARK: &str = "{{nonce}}";
/// Bundles of other people's code, made once and named by their hash.
const VENDOR: &str = "vendor/";
/// Fewest hexadecimal digits that are taken for a hash.
const HASH_DIGITS_MIN: usize = 8;

#[derive(RustEmbed)]
#[folder = "static/"]
struct Files;

/// `GET /`
pub(crate) async fn start_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("index.html", &policy)
}

/// `GET /d/{document_id}`, `GET /s/{share_link_id}`: which one it is, the page reads from its
/// address.
pub(crate) async fn editor_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("editor.html", &policy)
}

/// `GET /admin`
pub(crate) async fn admin_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("admin.html", &policy)
}

/// Every other address: a file of the pages, or nothing.
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
    if name.ends_with(".html") {
        return page(name, &policy);
    }
    let file = Files::get(name).ok_or(ApiError::NotFound("address"))?;
    Ok(answer(name, file, &headers))
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

fn answer(name: &str, file: EmbeddedFile, asked: &HeaderMap) -> Response {
    let tag = tag(&file.metadata.sha256_hash());
    let keep = if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [(CACHE_CONTROL, keep.to_owned()), (ETAG, tag.clone())];
    let headers = (headers, [(VARY, "accept-encoding")]);
    if is_unchanged(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let kind = [(CONTENT_TYPE, content_type(file.metadata.mimetype()))];
    match compressed_assets::find(name, &file.data).filter(|_| compressed_assets::is_taken(asked)) {
        Some(packed) => (headers, kind, [(CONTENT_ENCODING, "gzip")], packed).into_response(),
        None => (headers, kind, file.data).into_response(),
    }
}

/// Whether the client has the file with this tag.
pub(crate) fn is_unchanged(asked: &HeaderMap, tag: &str) -> bool {
    asked.get_all(IF_NONE_MATCH).iter().any(|value| names(value, tag))
}

/// A weak tag: the same file may travel compressed or not.
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

/// Whether an `If-None-Match` names the tag; compared weakly, as RFC 9110 §13.1.2 has it.
fn names(value: &HeaderValue, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let wanted = opaque(tag);
    value.to_str().is_ok_and(|list| {
        list.trim() == "*" || list.split(',').any(|candidate| opaque(candidate) == wanted)
    })
}

/// Whether a bundle has its hash in its name, as in `vendor/editor-0123abcd.js`.
fn is_hashed(name: &str) -> bool {
    let is_hash = |part: &str| {
        HASH_DIGITS_MIN <= part.len() && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    name.strip_prefix(VENDOR).is_some_and(|name| name.split(['.', '-', '/']).any(is_hash))
}

/// Text says that it is UTF-8.
fn content_type(kind: &str) -> String {
    let is_text = kind.starts_with("text/") || matches!(kind, "application/json" | "image/svg+xml");
    if is_text { format!("{kind}; charset=utf-8") } else { kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_with_a_hash_in_its_name_is_kept_for_ever() {
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
