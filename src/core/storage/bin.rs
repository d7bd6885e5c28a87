//! The bin: deleted documents, until their owners restore them or a server purges them.
//!
//! The deletion revokes the document's active link in the same transaction, so the guards of its
//! seats fail from the commit on (D2). It also raises the fences: a restored link accepts no write
//! of a session from before the deletion.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::deletion::Deletion;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::Storage;
use crate::storage::documents::Document;
use crate::storage::error::StorageError;
use crate::storage::pagination::Cursor;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BinnedDocument {
    #[serde(flatten)]
    pub document: Document,
    pub deleted_at: DateTime<Utc>,
}

impl BinnedDocument {
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.deleted_at, id: self.document.id }
    }
}

/// The deletion of a document, and the users who may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersDeletion {
    pub owner: User,
    pub reviewer: Option<UserId>,
    pub at: DateTime<Utc>,
}

impl MembersDeletion {
    #[must_use]
    pub fn concerns(&self, user: &UserId) -> bool {
        self.owner.id == *user || self.reviewer.as_ref() == Some(user)
    }

    #[must_use]
    pub fn deletion(self) -> Deletion {
        Deletion { by: self.owner, at: self.at }
    }
}

/// Why a share link is not active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Its writer or an administrator revoked it.
    Revoked,
    /// The owner deleted the document. `None`: it is not in the bin any more.
    Deleted(Option<Deletion>),
}

impl Storage {
    pub async fn end_of_link(&self, link: ShareLinkId) -> Result<LinkEnd, StorageError> {
        let deletion = self.deletion_of_link(link).await?;
        if deletion.is_some() || self.link(link).await?.is_none() {
            return Ok(LinkEnd::Deleted(deletion.map(MembersDeletion::deletion)));
        }
        Ok(LinkEnd::Revoked)
    }
}
