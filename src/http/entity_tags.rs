//! The tags of clients: what their caches hold, and what their changes require (RFC 9110 §13.1).
//!
//! A proxy that compresses a response adds an ending to its tag: Apache makes `"1-gzip"` of `"1"`. The client
//! returns that one, and no tag of this server has such an ending.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue};

const CODINGS: [&str; 5] = ["gzip", "br", "zstd", "deflate", "gz"];

/// Whether the client has the representation of this tag already, by weak comparison.
pub(crate) fn is_cached(request_headers: &HeaderMap, tag: &str) -> bool {
    let lists = request_headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',').map(str::trim));
    let opaque = |tag: &str| text_of(tag.trim_start_matches("W/")).map(str::to_owned);
    tags.any(|cached| cached == "*" || opaque(cached).is_some_and(|it| Some(it) == opaque(tag)))
}

/// The texts of the tags of which the present state must have one. `None`: the change takes any state. A tag of
/// another form, such as a weak one, matches no state.
pub(crate) fn required(request_headers: &HeaderMap) -> Option<Vec<String>> {
    let mut lists = request_headers.get_all(IF_MATCH).iter().peekable();
    lists.peek()?;
    let lists = lists.map(|list| list.to_str().unwrap_or_default());
    let tags: Vec<_> = lists.flat_map(|list| list.split(',').map(str::trim)).collect();
    let is_any = tags.contains(&"*");
    (!is_any).then(|| tags.into_iter().filter_map(text_of).map(str::to_owned).collect())
}

/// The tag of a text of a document, without its quotes: equal for equal texts.
pub(crate) fn mark_of(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(16).fold(String::new(), |mut mark, byte| {
        let _infallible = write!(mark, "{byte:02x}");
        mark
    })
}

pub(crate) fn tag(mark: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{mark}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// The text of a strong tag, without the ending of a proxy. `None`: it is no strong tag.
pub(crate) fn text_of(tag: &str) -> Option<&str> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    let own = CODINGS.iter().find_map(|coding| {
        let before = text.strip_suffix(coding)?;
        let own = before.trim_end_matches(['-', ';']);
        (own != before).then_some(own)
    });
    own.or(Some(text))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_tag_is_recognised_in_a_list_and_behind_a_proxy_that_compresses() {
        let has = |list: &'static str, tag: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(list));
            is_cached(&headers, tag)
        };
        for list in [
            "W/\"abab\"",
            "*",
            "\"x\", \"abab\"",
            "\"abab-gzip\"",
            "W/\"abab-gzip\"",
            "\"x-br\",\"abab-br\"",
            "\"abab--gzip\"",
            "\"abab;gz\"",
        ] {
            assert!(has(list, "W/\"abab\"") && has(list, "\"abab\""), "{list}");
        }
        for list in ["W/\"ab\"", "\"ababgzip\"", "\"abab-x\"", "\"gzip\"", "abab", ""] {
            assert!(!has(list, "\"abab\""), "{list}");
        }
        assert!(!is_cached(&HeaderMap::new(), "\"abab\""));
    }
}
