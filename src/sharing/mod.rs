//! Documents and share links, between the HTTP edge and storage.
//!
//! Only this module decides who may act on them. A document belongs to its owner and a share link
//! to its writer. The reviewer is the first user who joins with the invite. A user without rights
//! receives `NotFound`.

pub mod bin;
pub mod documents;
pub mod invite;
pub mod links;
pub mod quota;

use chrono::{DateTime, Utc};

use crate::domain::line::InvalidLine;
use crate::domain::user::User;
use crate::sharing::bin::Deleted;
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
    /// Creates the handle over `storage`. `invites` creates the invites, `document_bytes` bounds a
    /// document, and `quota` bounds what a user stores.
    #[must_use]
    pub fn new(storage: Storage, invites: Invites, document_bytes: usize, quota: Quota) -> Self {
        let turns = Turns::new(storage.has_one_writer());
        Self { storage, invites, document_bytes, quota, turns }
    }

    /// Stores the name that a token of `issued_at` gives its user, unless a newer token gave
    /// another.
    ///
    /// # Errors
    ///
    /// [`SharingError`] if the database cannot commit.
    pub async fn save_name(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        Ok(self.storage.save_user(user, issued_at).await?)
    }
}

/// Failures of documents and share links. Independent of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// The resource does not exist, or the caller may not know that it does.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The document is in the bin of its owner, and the caller was a member of its link.
    #[error("{} deleted this document", .0.deletion.by.name)]
    Deleted(Box<Deleted>),
    /// Only the writer may do this.
    #[error("only the writer of this share link may do that")]
    NotTheWriter,
    /// The invite does not open this link.
    #[error("the invite is not the one of this share link")]
    WrongInvite,
    /// The writer asked to join as the reviewer.
    #[error("the writer of a document cannot review it")]
    AlreadyWriter,
    /// Another user is the reviewer.
    #[error("another user is the reviewer")]
    ReviewerExists,
    /// The title is invalid.
    #[error(transparent)]
    Title(#[from] InvalidLine),
    /// The text exceeds the limit of a document.
    #[error("the text is longer than this server takes")]
    TooLong,
    /// The user's quota is spent.
    #[error("you have as many {0} as you may; delete some first")]
    QuotaSpent(&'static str),
    /// The database is above its bound.
    #[error("the server has no room for new documents")]
    StorageSpent,
    /// Too many creations wait for their turn.
    #[error("too many documents are being created")]
    Busy,
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A worker thread failed.
    #[error("a worker failed: {0}")]
    Worker(#[from] tokio::task::JoinError),
}
