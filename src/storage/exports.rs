//! Exports: the last file of each format of a share link, and the builds of these files.
//!
//! The lock of a build carries a fence. [`begin_export`](crate::storage::Storage::begin_export) ratifies
//! it; from then on the database rejects the file of every earlier build. So of two builds that overlap, because a server
//! froze beyond its lease, only the later one stores its file.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::export::{ExportFailure, ExportFormat};
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::reminder::TimeZone;
use crate::domain::user::User;

/// The name of a file among all exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExportKey {
    /// The share link, whose members read the file.
    pub link: ShareLinkId,
    /// The format.
    pub format: ExportFormat,
    /// Whether the file contains the reviews of the link.
    pub has_reviews: bool,
    /// The zone of its times. The database stores the file of one zone, the last that was asked for.
    pub zone: TimeZone,
}

/// The state of a document that a file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportMark {
    /// The number of the last update.
    pub seq: i64,
    /// The number of the last change of the reviews.
    pub change: i64,
    /// The title.
    pub title: String,
    /// The names of its writer and of the authors of its reviews.
    pub names: String,
    /// The name of the zone of its times.
    pub zone: String,
}

/// A stored file without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredExport {
    /// The state of the document in it.
    pub mark: ExportMark,
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    /// The number of bytes.
    pub length: i64,
    /// How long the build took, in milliseconds.
    pub took_ms: i64,
    /// When the build ended.
    pub built_at: DateTime<Utc>,
}

/// The last build of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportBuild {
    /// The fence of its lock.
    pub fence: Fence,
    /// The progress, 0 to 100.
    pub progress: u8,
    /// Why it produced no file. `None`: it runs, it has stored its file, or its server died.
    pub failure: Option<ExportFailure>,
    /// When the row last changed.
    pub changed_at: DateTime<Utc>,
}

/// A document with the last file of a key and its last build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportState {
    /// The document.
    pub document: DocumentId,
    /// Its owner.
    pub writer: User,
    /// The reviewer of the link.
    pub reviewer: Option<UserId>,
    /// Its current state.
    pub now: ExportMark,
    /// The last file.
    pub stored: Option<StoredExport>,
    /// The last build.
    pub build: Option<ExportBuild>,
}

impl ExportState {
    /// Whether the user reads the document by this link.
    #[must_use]
    pub fn has_member(&self, user: &UserId) -> bool {
        self.writer.id == *user || self.reviewer.as_ref() == Some(user)
    }
}

/// A file to store.
#[derive(Clone, Debug)]
pub struct NewExport {
    /// Its key.
    pub key: ExportKey,
    /// The file without its bytes.
    pub export: StoredExport,
    /// The bytes.
    pub bytes: Bytes,
}

/// The bounds of all stored files.
#[derive(Clone, Copy, Debug)]
pub struct ExportBounds {
    /// Files.
    pub rows: i64,
    /// Bytes of all files.
    pub bytes: i64,
    /// Bytes of the files of one link.
    pub link_bytes: i64,
    /// Files that were built before this time are deleted.
    pub built_after: DateTime<Utc>,
}
