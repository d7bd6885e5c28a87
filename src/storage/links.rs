//! Share links: the one active invitation to work on a document.
//!
//! A document has at most one active link, also when several servers create it at once (G11): a
//! partial unique index enforces it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

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
    pub fn find_or_create_link<'a>(
        &'a self,
        new: &'a NewShareLink,
    ) -> StorageFuture<'a, Option<(ShareLink, FindOrCreate)>> {
        boxed_on_engine!(self, find_or_create_link(new))
    }

    /// Reads a link, also a revoked one.
    pub fn link(&self, id: ShareLinkId) -> StorageFuture<'_, Option<ShareLink>> {
        boxed_on_engine!(self, link(id))
    }

    /// Reads the active link of a document, if there is one.
    pub fn link_of(&self, document: DocumentId) -> StorageFuture<'_, Option<ShareLink>> {
        boxed_on_engine!(self, link_of(document))
    }

    /// Reads a page of the active links on which a user writes or reviews, newest first.
    pub fn links_of<'a>(
        &'a self,
        user: &'a UserId,
        page: &'a Page<ShareLinkId>,
    ) -> StorageFuture<'a, Vec<ShareLink>> {
        boxed_on_engine!(self, links_of(user, page))
    }

    /// Makes `user` the reviewer, unless the link has another. The link then stores the attempt. The
    /// caller must check that `user` is not the writer.
    pub fn join_link<'a>(
        &'a self,
        id: ShareLinkId,
        user: &'a User,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Joined> {
        boxed_on_engine!(self, join_link(id, user, now))
    }

    /// Revokes a link. From the commit on, the database rejects every guarded write of its seats, on
    /// every server. False: there is no such link, or it was revoked before.
    pub fn revoke_link(&self, id: ShareLinkId, now: DateTime<Utc>) -> StorageFuture<'_, bool> {
        boxed_on_engine!(self, revoke_link(id, now))
    }

    /// The titles of the documents of these links, also of revoked ones, read in one statement.
    pub fn titles_of<'a>(
        &'a self,
        links: &'a [ShareLinkId],
    ) -> StorageFuture<'a, HashMap<ShareLinkId, String>> {
        boxed_on_engine!(self, titles_of(links))
    }

    /// The links among `links` that are revoked or missing, read in one statement.
    pub fn revoked_among<'a>(
        &'a self,
        links: &'a [ShareLinkId],
    ) -> StorageFuture<'a, Vec<ShareLinkId>> {
        boxed_on_engine!(self, revoked_among(links))
    }
}
