//! Documents: the title, owner and counts of each; [`log`](super::log) stores the text.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::user::User;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

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

/// A document of a list.
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

impl Storage {
    /// Creates a document, and stores its owner's name.
    ///
    /// # Errors
    ///
    /// [`StorageError`](crate::storage::error::StorageError) when the database cannot be written; `Refused` when the id is in use.
    pub fn create_document<'a>(&'a self, new: &'a NewDocument) -> StorageFuture<'a, Document> {
        boxed_on_engine!(self, create_document(new))
    }

    /// Reads a document.
    pub fn document(&self, id: DocumentId) -> StorageFuture<'_, Option<Document>> {
        boxed_on_engine!(self, document(id))
    }

    /// Reads a page of a user's own documents, last updated first.
    pub fn documents_of<'a>(
        &'a self,
        owner: &'a UserId,
        page: &'a Page<DocumentId>,
    ) -> StorageFuture<'a, Vec<Document>> {
        boxed_on_engine!(self, documents_of(owner, page))
    }

    /// Sets the title of a document. `None`: there is no such document.
    pub fn rename_document<'a>(
        &'a self,
        id: DocumentId,
        title: &'a str,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Option<Document>> {
        boxed_on_engine!(self, rename_document(id, title, now))
    }

    /// Deletes a document with its text, links, seats, reviews and versions. False: there is no such
    /// document.
    pub fn delete_document(&self, id: DocumentId) -> StorageFuture<'_, bool> {
        boxed_on_engine!(self, delete_document(id))
    }

    /// Stores the character count of a document. It is not an edit: `updated_at` stays.
    pub fn set_characters(&self, id: DocumentId, characters: i64) -> StorageFuture<'_, ()> {
        boxed_on_engine!(self, set_characters(id, characters))
    }
}
