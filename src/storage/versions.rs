//! Versions: the text of a document at points of its log.
//!
//! Rows of the log are merged into snapshots, and what was deleted is forgotten then; so a version
//! has its text for itself, compressed, and equal texts of a document are kept once. What becomes
//! of a version that is to be kept, and which older ones go for it, is decided by plain code.

use std::fmt;
use std::io::{Read, Write};

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::limits::VERSION_TEXT_BYTES_MAX;
use crate::domain::text::count_characters;
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::seats::Guarded;
use crate::storage::{Storage, on_engine};

/// A text as it is stored. Packing and unpacking take time that grows with the text: on a thread
/// that may block.
#[derive(Clone, PartialEq, Eq)]
pub struct Packed {
    /// SHA-256 of the text.
    pub(crate) hash: [u8; 32],
    /// The text, deflated.
    pub(crate) bytes: Vec<u8>,
    /// What a reader counts.
    pub(crate) characters: i64,
}

impl Packed {
    /// Packs a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Into memory: nothing that could fail.
        let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        Self {
            hash: Sha256::digest(text).into(),
            bytes: written.unwrap_or_default(),
            characters: count_characters(text),
        }
    }

    /// The text again.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is not what was packed.
    pub fn unpack(&self) -> Result<String, StorageError> {
        let corrupt = || StorageError::Corrupt("a version's text cannot be unpacked".to_owned());
        let mut text = String::new();
        // A damaged row must not take all memory.
        let mut reader = DeflateDecoder::new(self.bytes.as_slice()).take(VERSION_TEXT_BYTES_MAX);
        reader.read_to_string(&mut text).map_err(|_| corrupt())?;
        let hash: [u8; 32] = Sha256::digest(&text).into();
        if hash == self.hash { Ok(text) } else { Err(corrupt()) }
    }

    /// What it takes, in bytes.
    #[must_use]
    pub fn length(&self) -> i64 {
        i64::try_from(self.bytes.len()).unwrap_or(i64::MAX)
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the text itself.
        f.debug_struct("Packed").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// A version to be kept.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its name; never used before.
    pub id: VersionId,
    /// Of which document.
    pub document: DocumentId,
    /// Why.
    pub kind: VersionKind,
    /// What somebody called it.
    pub label: Option<String>,
    /// Whose doing the text is, and the version.
    pub authors: Vec<User>,
    /// The number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update that is in it: it must be stored.
    pub seq: i64,
    /// The text.
    pub text: Packed,
    /// When.
    pub now: DateTime<Utc>,
}

/// A version as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its name.
    pub id: VersionId,
    /// Of which document.
    pub document: DocumentId,
    /// Its place among the document's versions: a later one has a higher number.
    pub number: i64,
    /// Why it was kept.
    pub kind: VersionKind,
    /// What somebody called it.
    pub label: Option<String>,
    /// Whose doing it is, under the names they had.
    pub authors: Vec<User>,
    /// The number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update that is in it.
    pub seq: i64,
    /// How many characters its text has.
    pub characters: i64,
    /// When it was kept.
    pub created_at: DateTime<Utc>,
}

/// What became of a version that was to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is one now.
    Stored(Version),
    /// There is a version of a later point; or it is automatic, and the newest one has this text.
    NotNew,
    /// There is no room for another named one.
    Full,
    /// There is no such document.
    Gone,
}

impl Storage {
    /// Keeps versions, in one transaction, with one outcome each, by position. Older ones that
    /// make room go.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written; then none is kept.
    pub async fn keep_versions(&self, batch: &[NewVersion]) -> Result<Vec<Kept>, StorageError> {
        on_engine!(self, keep_versions(batch))
    }

    /// The versions of a document, newest first: at most `limit`, and only those below number
    /// `before`.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn versions(
        &self,
        document: DocumentId,
        limit: u32,
        before: Option<i64>,
    ) -> Result<Vec<Version>, StorageError> {
        on_engine!(self, versions(document, limit, before))
    }

    /// One version with its text.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn version(
        &self,
        document: DocumentId,
        id: VersionId,
    ) -> Result<Option<(Version, Packed)>, StorageError> {
        on_engine!(self, version(document, id))
    }

    /// Stores an edit that restores a version, and keeps the text from before it, if that is new,
    /// and the text after it, in one transaction. The edit must carry the guard of a writer's seat
    /// and name in `expected_seq` what it was made on. An edit under a Yjs client id that is
    /// somebody else's is `Stale`: make it again. The answer has the number of the edit.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn restore_version(
        &self,
        edit: &Append,
        before: &NewVersion,
        after: &NewVersion,
    ) -> Result<Guarded<(Version, i64)>, StorageError> {
        on_engine!(self, restore_version(edit, before, after))
    }
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
    fn what_was_damaged_is_not_handed_out_as_a_text() {
        let packed = Packed::of("a text of some length, which says something");
        let mut cut = packed.clone();
        cut.bytes.truncate(8);
        assert!(matches!(cut.unpack(), Err(StorageError::Corrupt(_))));
        let other = Packed { hash: [0; 32], ..packed };
        assert!(matches!(other.unpack(), Err(StorageError::Corrupt(_))));
    }
}
