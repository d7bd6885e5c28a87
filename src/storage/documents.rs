//! Documents: the title, owner and counts of each; [`log`](super::log) stores the text.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::DocumentId;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

/// A document to create.
#[derive(Clone, Debug)]
pub struct NewDocument {
    /// Its id; never used before.
    pub id: DocumentId,
    /// The title.
    pub title: String,
    /// The owner, who is also the writer.
    pub owner: User,
    /// The first update, which gets number 1. Empty: there is none.
    pub update: Bytes,
    /// The characters of that update's text.
    pub characters: i64,
    /// The time of creation.
    pub now: DateTime<Utc>,
}

/// A document, alone or of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// The title.
    pub title: String,
    /// The owner.
    pub owner: User,
    /// The characters at the last count.
    pub characters: i64,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last change of title or text.
    pub updated_at: DateTime<Utc>,
}

impl Document {
    /// The cursor of the next page, if this document is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.updated_at, id: self.id }
    }
}
