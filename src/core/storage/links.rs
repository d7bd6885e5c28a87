//! Share links: the one active invitation to work on a document.
//!
//! A document has at most one active link, also when several servers create it at once (G11): a
//! partial unique index enforces it.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

/// A link to create, unless the document has one.
#[derive(Clone, Debug)]
pub struct NewShareLink {
    pub id: ShareLinkId,
    /// The document. Its owner is the writer.
    pub document_id: DocumentId,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    pub now: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareLink {
    pub id: ShareLinkId,
    pub document_id: DocumentId,
    pub title: String,
    /// The document's owner.
    pub writer: User,
    pub reviewer: Option<User>,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    pub created_at: DateTime<Utc>,
    /// The time of its revocation. `None`: it is active.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ShareLink {
    /// The role of a user on the link.
    #[must_use]
    pub fn role_of(&self, user: &UserId) -> Option<Role> {
        if self.writer.id == *user {
            return Some(Role::Writer);
        }
        self.reviewer.as_ref().filter(|reviewer| reviewer.id == *user).map(|_| Role::Reviewer)
    }

    #[must_use]
    pub fn cursor(&self) -> Cursor<ShareLinkId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindOrCreate {
    Created,
    Existing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The caller is the reviewer, as of this call or before it.
    Reviewer(ShareLink),
    ReviewerExists {
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
    /// There is no such link, or it is revoked.
    Gone,
}
