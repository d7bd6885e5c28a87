//! Texts and secrets as the database stores them: packed, or as a hash.

use std::fmt;
use std::io::{Read, Write};

use aws_lc_rs::digest::{SHA256, digest};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::domain::limits::VERSION_TEXT_BYTES_MAX;
use crate::domain::text::count_characters;
use crate::storage::error::StorageError;

/// A text as it is stored. Packing and unpacking take time in proportion to the text: callers run
/// them on a thread that may block.
#[derive(Clone, PartialEq, Eq)]
pub struct Packed {
    /// SHA-256 of the text.
    pub(crate) hash: [u8; 32],
    /// The text, deflated.
    pub(crate) bytes: Vec<u8>,
    /// The characters of the text.
    pub(crate) characters: i64,
}

impl Packed {
    /// Packs a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        Self {
            hash: sha256(text.as_bytes()),
            bytes: written.unwrap_or_default(),
            characters: count_characters(text),
        }
    }

    /// Unpacks the text.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the text does not match its hash.
    pub fn unpack(&self) -> Result<String, StorageError> {
        let corrupt = || StorageError::Corrupt("a version's text cannot be unpacked".to_owned());
        let mut text = String::new();
        // Bounded: a damaged row must not exhaust the memory.
        let mut reader = DeflateDecoder::new(self.bytes.as_slice()).take(VERSION_TEXT_BYTES_MAX);
        reader.read_to_string(&mut text).map_err(|_| corrupt())?;
        if sha256(text.as_bytes()) == self.hash { Ok(text) } else { Err(corrupt()) }
    }

    /// The bytes of the packed text.
    #[must_use]
    pub fn length(&self) -> i64 {
        i64::try_from(self.bytes.len()).unwrap_or(i64::MAX)
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never prints the text itself.
        f.debug_struct("Packed").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The SHA-256 of a stored text or secret.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_survives_being_packed() {
        for text in ["", "한글 👩‍👩‍👧 e\u{301}\n", &"같은 말 ".repeat(10_000)] {
            let packed = Packed::of(text);
            assert_eq!(packed.unpack().unwrap(), text);
            assert!(packed.bytes.len() <= text.len() + 16);
        }
        assert_eq!(Packed::of("각").characters, 1);
    }

    #[test]
    fn a_damaged_version_is_not_returned_as_a_text() {
        let packed = Packed::of("a text of some length, which says something");
        let mut cut = packed.clone();
        cut.bytes.truncate(8);
        assert!(matches!(cut.unpack(), Err(StorageError::Corrupt(_))));
        let other = Packed { hash: [0; 32], ..packed };
        assert!(matches!(other.unpack(), Err(StorageError::Corrupt(_))));
    }
}
