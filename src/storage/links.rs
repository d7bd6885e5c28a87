//! Share links: the one live invitation to work on a document.
//!
//! At most one per document is active, whatever the number of servers that are asked at once
//! (G11): a partial unique index decides it.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, on_engine};

/// A link to be made, unless there is one.
#[derive(Clone, Debug)]
pub struct NewShareLink {
    /// Its name if it is made.
    pub id: ShareLinkId,
    /// The document. Its owner is the writer.
    pub document_id: DocumentId,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    /// When.
    pub now: DateTime<Utc>,
}

/// A share link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareLink {
    /// Its name.
    pub id: ShareLinkId,
    /// The document.
    pub document_id: DocumentId,
    /// What the document is called now.
    pub title: String,
    /// The document's owner.
    pub writer: User,
    /// Who joined.
    pub reviewer: Option<User>,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was revoked. `None`: it is active.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ShareLink {
    /// The place in a list after which the next page begins, if this is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<ShareLinkId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

/// Whether a link was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was made now.
    Created,
    /// It was there.
    Existing,
}

/// What became of joining a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The caller is the reviewer, now or since before.
    Reviewer(ShareLink),
    /// Somebody else is.
    ReviewerExists,
    /// There is no such link, or it was revoked.
    Gone,
}

impl Storage {
    /// The active link of a document, made if there is none. `None`: there is no such document.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn find_or_create_link(
        &self,
        new: &NewShareLink,
    ) -> Result<Option<(ShareLink, Found)>, StorageError> {
        on_engine!(self, find_or_create_link(new))
    }

    /// The link of that name, also a revoked one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn link(&self, id: ShareLinkId) -> Result<Option<ShareLink>, StorageError> {
        on_engine!(self, link(id))
    }

    /// The active link of a document, if there is one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn link_of(&self, document: DocumentId) -> Result<Option<ShareLink>, StorageError> {
        on_engine!(self, link_of(document))
    }

    /// The active links on which a user writes or reviews, newest first.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn links_of(
        &self,
        user: &UserId,
        page: &Page<ShareLinkId>,
    ) -> Result<Vec<ShareLink>, StorageError> {
        on_engine!(self, links_of(user, page))
    }

    /// Makes `user` the reviewer, unless somebody else is. That the caller is not the writer is
    /// for the caller to see to.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn join_link(
        &self,
        id: ShareLinkId,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<Joined, StorageError> {
        on_engine!(self, join_link(id, user, now))
    }

    /// Revokes a link. From the commit on every write in the right of its seats is refused, on
    /// every server. False: there is no such link, or it was revoked before.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn revoke_link(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        on_engine!(self, revoke_link(id, now))
    }

    /// Those of `links` that are revoked, or not there, in one statement.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn revoked_among(
        &self,
        links: &[ShareLinkId],
    ) -> Result<Vec<ShareLinkId>, StorageError> {
        on_engine!(self, revoked_among(links))
    }
}
