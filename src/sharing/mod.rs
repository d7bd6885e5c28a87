//! Documents and share links, between the edge and storage.
//!
//! Who may do what with them is decided here and nowhere else: a document is its owner's, a share
//! link its writer's, and its reviewer is whoever came first with the invite. What somebody may not
//! know of is not found.

pub mod documents;
pub mod invite;
pub mod links;
pub mod quota;

use chrono::{DateTime, Utc};

use crate::domain::text::InvalidTitle;
use crate::domain::user::User;
use crate::sharing::invite::Invites;
use crate::sharing::quota::{Quota, Turns};
use crate::storage::Storage;
use crate::storage::error::StorageError;

/// Documents and share links. A cheap handle.
#[derive(Clone)]
pub struct Sharing {
    storage: Storage,
    invites: Invites,
    document_bytes: usize,
    quota: Quota,
    turns: Turns,
}

impl Sharing {
    /// Over `storage`, with invites made by `invites`; a document is at most `document_bytes` long, and
    /// a user stores what `quota` says.
    #[must_use]
    pub fn new(storage: Storage, invites: Invites, document_bytes: usize, quota: Quota) -> Self {
        let turns = Turns::new(storage.has_one_writer());
        Self { storage, invites, document_bytes, quota, turns }
    }

    /// Stores the name that a token of `issued_at` gives its user, unless a newer token gave another.
    ///
    /// # Errors
    ///
    /// [`SharingError`] if the database cannot be written.
    pub async fn save_name(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        Ok(self.storage.save_user(user, issued_at).await?)
    }
}

/// Why a document or share link could not be had. Knows nothing of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// It is not there, or the caller may not know that it is.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Only the writer may do that.
    #[error("only the writer of this share link may do that")]
    NotTheWriter,
    /// The invite does not open this link.
    #[error("the invite is not the one of this share link")]
    WrongInvite,
    /// The writer asked to be the reviewer.
    #[error("the writer of a document cannot review it")]
    AlreadyWriter,
    /// Somebody else is the reviewer.
    #[error("somebody else is the reviewer")]
    ReviewerExists,
    /// Not a title.
    #[error(transparent)]
    Title(#[from] InvalidTitle),
    /// Longer than a document may be.
    #[error("the text is longer than this server takes")]
    TooLong,
    /// The user has stored as much as a user may.
    #[error("you have as many {0} as you may; delete some first")]
    QuotaSpent(&'static str),
    /// The database is above its bound.
    #[error("the server has no room for new documents")]
    StorageSpent,
    /// Too many documents are being created.
    #[error("too many documents are being created")]
    Busy,
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A worker thread failed.
    #[error("a worker failed: {0}")]
    Worker(#[from] tokio::task::JoinError),
}
