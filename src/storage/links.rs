//! Share links: the one active invitation to work on a document.
//!
//! A document has at most one active link, also when several servers create it at once (G11): a
//! partial unique index enforces it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, on_engine};

/// A link to create, unless the document has one.
#[derive(Clone, Debug)]
pub struct NewShareLink {
    /// Its id if it is created.
    pub id: ShareLinkId,
    /// The document. Its owner is the writer.
    pub document_id: DocumentId,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    /// The time of creation.
    pub now: DateTime<Utc>,
}

/// A share link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareLink {
    /// Its id.
    pub id: ShareLinkId,
    /// The document.
    pub document_id: DocumentId,
    /// The document's current title.
    pub title: String,
    /// The document's owner.
    pub writer: User,
    /// The user who joined.
    pub reviewer: Option<User>,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of its revocation. `None`: it is active.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ShareLink {
    /// The cursor of the next page, if this link is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<ShareLinkId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

/// Whether a link existed before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindOrCreate {
    /// The call created it.
    Created,
    /// It existed.
    Existing,
}

/// The outcome of joining a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The caller is the reviewer, as of this call or before it.
    Reviewer(ShareLink),
    /// Another user is the reviewer.
    ReviewerExists {
        /// The document of the link.
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
    /// There is no such link, or it is revoked.
    Gone,
}

impl Storage {
    /// Reads the active link of a document, and creates it if there is none. `None`: there is no such
    /// document.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn find_or_create_link(
        &self,
        new: &NewShareLink,
    ) -> Result<Option<(ShareLink, FindOrCreate)>, StorageError> {
        on_engine!(self, find_or_create_link(new))
    }

    /// Reads a link, also a revoked one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn link(&self, id: ShareLinkId) -> Result<Option<ShareLink>, StorageError> {
        on_engine!(self, link(id))
    }

    /// Reads the active link of a document, if there is one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn link_of(&self, document: DocumentId) -> Result<Option<ShareLink>, StorageError> {
        on_engine!(self, link_of(document))
    }

    /// Reads a page of the active links on which a user writes or reviews, newest first.
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

    /// Makes `user` the reviewer, unless the link has another. The link then stores the attempt. The
    /// caller must check that `user` is not the writer.
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

    /// Revokes a link. From the commit on, the database rejects every guarded write of its seats, on
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

    /// The titles of the documents of these links, also of revoked ones, read in one statement.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn titles_of(
        &self,
        links: &[ShareLinkId],
    ) -> Result<HashMap<ShareLinkId, String>, StorageError> {
        on_engine!(self, titles_of(links))
    }

    /// The links among `links` that are revoked or missing, read in one statement.
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
