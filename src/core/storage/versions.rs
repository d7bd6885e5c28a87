//! Versions: the text of a document at points of its log.
//!
//! A compaction merges rows of the log into a snapshot and drops deleted text. So each version has
//! its own text, compressed; the database stores equal texts of a document once. `version_plan`
//! decides whether a new version is stored, and which older versions are deleted for it.

use std::fmt;
use std::io::{Read, Write};

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::limits::VERSION_TEXT_BYTES_MAX;
use crate::domain::text::count_characters;
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
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

/// A version to store.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id; never used before.
    pub id: VersionId,
    /// The document.
    pub document: DocumentId,
    /// Why the version is due.
    pub kind: VersionKind,
    /// The name that a user gave it.
    pub label: Option<String>,
    /// The authors of the text and of the version.
    pub authors: Vec<User>,
    /// The number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update in it. The database must have that update.
    pub seq: i64,
    /// The text.
    pub text: Packed,
    /// The time of the version.
    pub now: DateTime<Utc>,
}

/// A version of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The document.
    #[serde(rename = "document_id")]
    pub document: DocumentId,
    /// Its number in the document: a later version has a higher one.
    pub number: i64,
    /// Why it was due.
    pub kind: VersionKind,
    /// The name that a user gave it.
    pub label: Option<String>,
    /// The authors, under their names at the time.
    pub authors: Vec<User>,
    /// The number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update in it.
    #[serde(skip)]
    pub seq: i64,
    /// The characters of its text.
    pub characters: i64,
    /// The time of the version.
    pub created_at: DateTime<Utc>,
}

/// The outcome of storing a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The database stored it.
    Stored(Version),
    /// A version of a later point exists; or it is automatic, and the newest one has this text.
    NotNew,
    /// The document has no room for another named version.
    Full,
    /// There is no such document.
    Gone,
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
