//! Documents: the title, owner and counts of each; [`log`](super::log) stores the text.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::{DocumentId, ExternalId};
use crate::domain::section::StoredSection;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

#[derive(Clone, Debug)]
pub struct NewDocument {
    /// Its id; never used before.
    pub id: DocumentId,
    pub title: String,
    /// Its id in the host application, if it has one: unique for its owner.
    pub external_id: Option<ExternalId>,
    /// The owner, who is also the writer.
    pub owner: User,
    /// The first update, which gets number 1. Empty: there is none.
    pub update: Bytes,
    pub characters: i64,
    pub sections: Vec<StoredSection>,
    pub now: DateTime<Utc>,
}

/// A document, alone or of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    pub id: DocumentId,
    pub title: String,
    pub external_id: Option<ExternalId>,
    pub owner: User,
    pub characters: i64,
    pub created_at: DateTime<Utc>,
    /// The time of the last change of title or text.
    pub updated_at: DateTime<Utc>,
}

impl Document {
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.updated_at, id: self.id }
    }
}
