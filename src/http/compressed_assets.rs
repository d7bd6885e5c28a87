//! Files that `build.rs` compressed, and the negotiation of gzip.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;

/// Name, hash of the original, and the compressed file; sorted by name.
type Table = &'static [(&'static str, u64, &'static [u8])];

const TABLE: Table = include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// Maximum size of a file that the server unpacks for a client without gzip.
const UNPACKED_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// The compressed file `name`, if it was made from `whole`.
pub(crate) fn find(name: &str, whole: &[u8]) -> Option<&'static [u8]> {
    let index = TABLE.binary_search_by_key(&name, |(name, _, _)| name).ok()?;
    let (_, hash, packed) = TABLE.get(index)?;
    // A debug build reads the files from the disk, where they may be newer.
    if cfg!(debug_assertions) {
        let mut hasher = DefaultHasher::new();
        hasher.write(whole);
        return (hasher.finish() == *hash).then_some(packed);
    }
    Some(packed)
}

/// Whether the client accepts gzip (RFC 9110 §12.5.3).
pub(crate) fn is_taken(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let lists = values.filter_map(|value| value.to_str().ok());
    let mut by_star = false;
    for part in lists.flat_map(|list| list.split(',')) {
        let (coding, weight) = part.split_once(';').unwrap_or((part, ""));
        let weight = weight.trim().trim_start_matches("q=").parse::<f32>();
        let is_wanted = weight.is_ok_and(|weight| 0.0 < weight) || !part.contains(';');
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case("gzip") => return is_wanted,
            "*" => by_star = is_wanted,
            _ => {}
        }
    }
    by_star
}

/// Unpacks a compressed file.
pub(crate) fn unpack(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    flate2::read::GzDecoder::new(packed).take(UNPACKED_BYTES_MAX).read_to_end(&mut whole)?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_every_script_and_style_is_compressed_at_build_time() {
        let names: Vec<_> = TABLE.iter().map(|(name, _, _)| *name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for name in ["js/lib/api.js", "css/base.css", "openapi.json"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let openapi = include_bytes!("openapi.json");
        let packed = find("openapi.json", openapi).expect("compressed");
        assert_eq!(unpack(packed).expect("gzip"), openapi);
        assert_eq!(find("openapi.json", b"newer"), None, "a file on the disk may be newer");
    }

    #[test]
    fn a_client_accepts_gzip_if_it_names_it_with_a_weight() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, text.parse().expect("a header"));
            is_taken(&headers)
        };
        for text in ["gzip", "br, GZIP;q=0.5", "*", "deflate, *;q=0.1", "identity, gzip; q=1"] {
            assert!(takes(text), "{text}");
        }
        for text in ["", "br", "gzip;q=0", "*;q=0", "gzip;q=0.0, *", "x-gzip-not"] {
            assert!(!takes(text), "{text}");
        }
        assert!(!is_taken(&HeaderMap::new()));
    }
}
