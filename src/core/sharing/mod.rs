//! Documents and share links, between the HTTP edge and storage.
//!
//! Only this module decides who may act on them. A document belongs to its owner and a share link to its
//! writer. The reviewer is the first user who joins with the invite, or a later one whom the owner lets
//! in. A user without rights receives `NotFound`.

pub mod bin;
pub mod documents;
pub mod invite;
pub mod links;
pub mod quota;
pub mod reviewers;
pub mod sections;

use chrono::{DateTime, Utc};
use tokio_util::task::TaskTracker;

use crate::domain::ids::UserId;
use crate::domain::line::{InvalidLine, Line};
use crate::domain::section::SectionFault;
use crate::domain::user::User;
use crate::sharing::bin::Deleted;
use crate::sharing::invite::Invites;
use crate::sharing::quota::{CreationPermits, DocumentQuota};
use crate::storage::Storage;
use crate::storage::error::StorageError;

#[derive(Clone)]
pub struct Sharing {
    storage: Storage,
    invites: Invites,
    document_bytes: usize,
    quota: DocumentQuota,
    permits: CreationPermits,
    tasks: TaskTracker,
}

impl Sharing {
    /// `document_bytes` bounds a document, and `quota` what a user stores.
    #[must_use]
    pub fn new(
        storage: Storage,
        invites: Invites,
        document_bytes: usize,
        quota: DocumentQuota,
        tasks: TaskTracker,
    ) -> Self {
        let permits = CreationPermits::new(storage.has_one_writer());
        Self { storage, invites, document_bytes, quota, permits, tasks }
    }

    /// Stores the name of a token of `issued_at`, unless a newer token gave another.
    pub async fn save_name(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        Ok(self.storage.save_user(user, issued_at).await?)
    }

    pub async fn rename_guest(
        &self,
        id: UserId,
        name: &str,
        now: DateTime<Utc>,
    ) -> Result<User, SharingError> {
        let user = User { id, name: Line::Name.parse(name)? };
        self.storage.rename_user(&user, now).await?;
        Ok(user)
    }

    pub async fn set_guest_requests(&self, user: &User, takes: bool) -> Result<(), SharingError> {
        Ok(self.storage.set_guest_requests(user, takes).await?)
    }

    /// The stored name may be newer than that of the token. Also whether the user takes requests of
    /// guests.
    pub async fn stored(&self, user: &User) -> Result<(User, bool), SharingError> {
        let stored = self.storage.profile_of(&user.id).await?;
        let (name, takes) = stored.unwrap_or_else(|| (user.name.clone(), true));
        Ok((User { id: user.id.clone(), name }, takes))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The document is in the bin of its owner, and the caller was a member of its link.
    #[error("{} deleted this document", .0.deletion.by.name)]
    Deleted(Box<Deleted>),
    #[error("only the writer of this share link may do that")]
    NotTheWriter,
    #[error("the invite is not the one of this share link; copy the whole link again")]
    WrongInvite,
    #[error("you are the writer of this document")]
    AlreadyWriter,
    #[error("this share link has no reviewer")]
    NoReviewer,
    #[error("this user is no partner of yours, and this share link did not refuse them")]
    NotAPartner,
    #[error("this share link has another reviewer")]
    ReviewerExists,
    #[error(transparent)]
    Title(#[from] InvalidLine),
    #[error(transparent)]
    Section(#[from] SectionFault),
    #[error("another document of yours has this external id")]
    ExternalIdTaken,
    #[error("the document with this external id is in the bin; restore it, or delete it for ever")]
    InBin,
    #[error("the sections have changed since you read them; read them again")]
    SectionsChanged,
    #[error("the body is longer than this server takes")]
    TooLong,
    #[error("you have as many {0} as you may; delete some first")]
    QuotaSpent(&'static str),
    #[error("the server has no room for new documents")]
    StorageSpent,
    #[error("too many documents are being created")]
    Busy,
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("a worker failed: {0}")]
    Worker(#[from] tokio::task::JoinError),
}
