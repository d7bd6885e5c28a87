//! Documents: what is known of a text besides the text.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, on_engine};

/// A document to be made.
#[derive(Clone, Debug)]
pub struct NewDocument {
    /// Its name; never used before.
    pub id: DocumentId,
    /// What it is called.
    pub title: String,
    /// Who owns it, and writes.
    pub owner: User,
    /// The first update, which becomes number 1; without bytes there is none.
    pub update: Bytes,
    /// How many characters that puts into it.
    pub characters: i64,
    /// When.
    pub now: DateTime<Utc>,
}

/// A document as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub id: DocumentId,
    /// What it is called.
    pub title: String,
    /// Who owns it.
    pub owner: User,
    /// How many characters it had when they were last counted.
    pub characters: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When its title or text last changed.
    pub updated_at: DateTime<Utc>,
}

impl Document {
    /// The place in a list after which the next page begins, if this is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.updated_at, id: self.id }
    }
}

impl Storage {
    /// Makes a document, and writes down its owner's name.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written; `Refused` when the id is in use.
    pub async fn create_document(&self, new: &NewDocument) -> Result<Document, StorageError> {
        on_engine!(self, create_document(new))
    }

    /// The document of that name.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn document(&self, id: DocumentId) -> Result<Option<Document>, StorageError> {
        on_engine!(self, document(id))
    }

    /// A user's own documents, newest updated first.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn documents_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Document>, StorageError> {
        on_engine!(self, documents_of(owner, page))
    }

    /// Gives a document another title. `None`: there is no such document.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn rename_document(
        &self,
        id: DocumentId,
        title: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Document>, StorageError> {
        on_engine!(self, rename_document(id, title, now))
    }

    /// Deletes a document with everything that hangs on it: text, links, seats, reviews.
    /// False: there was none.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn delete_document(&self, id: DocumentId) -> Result<bool, StorageError> {
        on_engine!(self, delete_document(id))
    }

    /// Notes how many characters a document has. Not an edit: `updated_at` stays.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn set_characters(
        &self,
        id: DocumentId,
        characters: i64,
    ) -> Result<(), StorageError> {
        on_engine!(self, set_characters(id, characters))
    }
}
