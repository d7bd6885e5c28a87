//! The pages and their files, embedded in the binary by `build.rs`.
//!
//! No cache stores a page, because each response carries a new nonce. Caches store its bundles, which
//! have a hash in their name, for ever, because other content has another name. They revalidate all other
//! files by tag. The build compresses the files; the server sends a page uncompressed.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::http::entity_tags::is_cached;
use crate::http::error::ApiError;
use crate::http::extract::Path;
use crate::http::headers::{Nonce, Policy};

const SERVICE_WORKER: &str = "service_worker.js";
const NONCE_MARK: &str = "{{nonce}}";
const NOT_FOUND: &str = "not_found.html";
/// The page of the API, by Swagger UI: the only one with style attributes and `data:` icons.
const DOCS: &str = "docs.html";
const VENDOR: &str = "vendor/";
const HASH_LENGTH: usize = 8;

struct File {
    name: &'static str,
    kind: &'static str,
    tag: &'static str,
    whole: &'static [u8],
    packed: Option<&'static [u8]>,
}

/// Sorted by name.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

impl File {
    fn find(name: &str) -> Option<&'static Self> {
        let index = FILES.binary_search_by_key(&name, |file| file.name).ok()?;
        FILES.get(index)
    }
}

/// `GET /`
pub(crate) async fn start_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page("index.html", &policy)
}

/// `GET /d/{document_id}`, `GET /s/{share_link_id}`: the page reads the kind from its own address.
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
    answer(SERVICE_WORKER, &headers).ok_or(ApiError::NotFound("service worker"))
}

/// `GET /openapi.json`: the contract, by hand. A test compares it with the routes, in both directions.
pub(crate) async fn openapi(headers: HeaderMap) -> Result<Response, ApiError> {
    answer("openapi.json", &headers).ok_or(ApiError::NotFound("document"))
}

/// `GET /problems/{name}`: the sentences of `/openapi.json` that name the problem (RFC 9457 §3.1.1).
pub(crate) async fn problem(Path(name): Path<String>) -> Result<String, ApiError> {
    let document = File::find("openapi.json").map_or(&[][..], |file| file.whole);
    let (document, mark) = (String::from_utf8_lossy(document), format!("`{name}`"));
    let descriptions = document.split("\"description\": \"").skip(1);
    let sentences = descriptions
        .filter_map(|rest| rest.split_once('"'))
        .flat_map(|(text, _)| text.split_inclusive(". "))
        .filter(|sentence| sentence.contains(&mark));
    let sentences = Vec::from_iter(sentences.map(str::trim).collect::<BTreeSet<_>>()).join("\n");
    let text = format!("{name}\n\n{sentences}\n\nThe routes are at /docs.\n");
    (!sentences.is_empty()).then_some(text).ok_or(ApiError::NotFound("problem"))
}

/// `GET /docs`: the page that shows `/openapi.json`.
pub(crate) async fn docs_page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    page(DOCS, &policy)
}

/// Every other address. A browser gets a page for an unknown one, another client a problem document.
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
    if name.ends_with(".html") && File::find(name).is_some() {
        return page(name, &policy);
    }
    match answer(name, &headers) {
        Some(answer) => Ok(answer),
        None if wants_page(&headers) => {
            let vary = [(VARY, "accept")];
            Ok((StatusCode::NOT_FOUND, vary, page(NOT_FOUND, &policy)?).into_response())
        }
        None => Err(ApiError::NotFound("address")),
    }
}

fn wants_page(request_headers: &HeaderMap) -> bool {
    let is_page = |kind: &str| kind.trim_start().starts_with("text/html");
    let accepted = request_headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|kinds| kinds.split(',')).any(is_page)
}

fn page(name: &str, policy: &Policy) -> Result<Response, ApiError> {
    let file = File::find(name).ok_or(ApiError::NotFound("page"))?;
    let nonce = Nonce::generate().map_err(|error| ApiError::Internal(error.to_string()))?;
    let html = String::from_utf8_lossy(file.whole).replace(NONCE_MARK, nonce.as_str());
    let policy = if name == DOCS { policy.of_docs() } else { policy.of_page(&nonce) };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(file.kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, policy),
    ];
    Ok((headers, html).into_response())
}

fn answer(name: &str, request_headers: &HeaderMap) -> Option<Response> {
    let file = File::find(name)?;
    let keep =
        if is_hashed(file.name) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = [(CONTENT_TYPE, file.kind)];
    let headers = [(CACHE_CONTROL, keep), (ETAG, file.tag), (VARY, "accept-encoding")];
    if is_cached(request_headers, file.tag) {
        return Some((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Some(match file.packed.filter(|_| takes_gzip(request_headers)) {
        Some(packed) => (headers, kind, [(CONTENT_ENCODING, "gzip")], packed).into_response(),
        None => (headers, kind, file.whole).into_response(),
    })
}

/// Whether the name of a bundle contains its hash, as in `vendor/start-0123ABCD.js`.
fn is_hashed(name: &str) -> bool {
    let after = name.strip_prefix(VENDOR).and_then(|name| name.rsplit_once('-'));
    let hash = after.and_then(|(_, end)| end.split_once('.')).map(|(hash, _)| hash.as_bytes());
    hash.is_some_and(|hash| hash.len() == HASH_LENGTH && hash.iter().all(u8::is_ascii_alphanumeric))
}

/// Whether the client accepts gzip (RFC 9110 §12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let lists = values.filter_map(|value| value.to_str().ok());
    let mut by_star = false;
    for part in lists.flat_map(|list| list.split(',')) {
        let (coding, weight) = part.split_once(';').unwrap_or((part, ""));
        let weight = weight.trim().trim_start_matches("q=").parse::<f32>();
        let is_wanted = weight.is_ok_and(|weight| weight > 0.0) || !part.contains(';');
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case("gzip") => return is_wanted,
            "*" => by_star = is_wanted,
            _ => {}
        }
    }
    by_star
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn a_bundle_with_a_hash_in_its_name_is_cached_for_ever() {
        assert!(is_hashed("vendor/start-0123ABCZ.js"));
        assert!(is_hashed("vendor/pre_paint-01234567.css"));
        for name in ["vendor/editor.js", "vendor/LICENSES.txt", "js/start-0123ABCZ.js"] {
            assert!(!is_hashed(name), "{name}");
        }
    }

    #[test]
    fn the_pages_load_bundles_alone_and_the_program_has_no_source() {
        for page in FILES.iter().filter(|file| file.name.ends_with(".html")) {
            let html = String::from_utf8_lossy(page.whole);
            let paths = html.split(['"', '\'']).filter_map(|part| part.strip_prefix('/'));
            let files = Vec::from_iter(paths.filter(|path| path.contains('.')));
            assert!(files.len() >= 2, "{}: {files:?}", page.name);
            for path in files {
                assert!(File::find(path).is_some(), "{}: {path}", page.name);
                let is_bundle = is_hashed(path) || path == "icon.svg" || page.name == DOCS;
                assert!(is_bundle, "{}: {path}", page.name);
            }
        }
        let sources = ["js/", "css/", "client/session.", "vendor/editor.", "vendor/entry."];
        assert!(FILES.iter().all(|file| sources.iter().all(|it| !file.name.starts_with(it))));
    }

    #[test]
    fn g17_every_script_and_style_is_compressed_at_build_time() {
        assert!(FILES.is_sorted_by_key(|file| file.name));
        for file in FILES.iter().filter(|file| !file.name.ends_with(".html")) {
            let name = file.name;
            let mut whole = Vec::new();
            let mut unpacked = GzDecoder::new(file.packed.expect("compressed"));
            unpacked.read_to_end(&mut whole).expect("gzip");
            assert!(whole == file.whole, "{name}");
        }
        let by_tag: BTreeMap<_, _> = FILES.iter().map(|file| (file.tag, file.whole)).collect();
        assert!(FILES.iter().all(|file| by_tag[file.tag] == file.whole), "each has its own tag");
    }

    #[test]
    fn a_page_is_not_compressed_and_every_file_has_a_content_type() {
        for file in FILES {
            let is_page = file.name.ends_with(".html");
            assert_eq!(file.kind == "text/html; charset=utf-8", is_page, "{}", file.name);
            assert!(!is_page || file.packed.is_none(), "{}", file.name);
        }
        let kind = |name| File::find(name).expect(name).kind;
        assert_eq!(kind("vendor/docs.css"), "text/css; charset=utf-8");
        assert_eq!(kind("client/galley.js"), "text/javascript; charset=utf-8");
        assert_eq!(kind("client/galley.d.ts"), "text/plain; charset=utf-8");
        assert_eq!(kind("icon.svg"), "image/svg+xml; charset=utf-8");
        assert_eq!(kind(SERVICE_WORKER), "text/javascript; charset=utf-8");
        assert_eq!(kind("openapi.json"), "application/json");
        assert_eq!(kind("vendor/LICENSES.txt"), "text/plain; charset=utf-8");
    }

    #[test]
    fn a_client_accepts_gzip_if_it_names_it_with_a_weight() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, text.parse().expect("a header"));
            takes_gzip(&headers)
        };
        for text in ["gzip", "br, GZIP;q=0.5", "*", "deflate, *;q=0.1", "identity, gzip; q=1"] {
            assert!(takes(text), "{text}");
        }
        for text in ["", "br", "gzip;q=0", "*;q=0", "gzip;q=0.0, *", "x-gzip-not"] {
            assert!(!takes(text), "{text}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
