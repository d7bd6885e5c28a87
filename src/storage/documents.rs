//! Documents: what is known of a text besides the text.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::{Storage, on_engine};

/// Rows of one page of a list, at most.
pub const PAGE_ROWS_MAX: u32 = 200;

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
    pub fn cursor(&self) -> Cursor {
        Cursor { updated_at: self.updated_at, id: self.id }
    }
}

/// A place in a list of documents, newest updated first. Opaque text outside: see `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the document at that place last changed.
    pub updated_at: DateTime<Utc>,
    /// Its name, which decides between two of the same moment.
    pub id: DocumentId,
}

/// The text is not a cursor that Galley handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid cursor")]
pub struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.updated_at.timestamp_millis(), self.id)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, id) = text.split_once('-').ok_or(InvalidCursor)?;
        let at = at.parse().map_err(|_| InvalidCursor)?;
        let updated_at = DateTime::from_timestamp_millis(at).ok_or(InvalidCursor)?;
        Ok(Self { updated_at, id: id.parse().map_err(|_| InvalidCursor)? })
    }
}

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows at most; more than [`PAGE_ROWS_MAX`] is read as that.
    pub limit: u32,
    /// Where the page before ended.
    pub before: Option<Cursor>,
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
        page: &Page,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_the_trip_through_text() {
        let updated_at = DateTime::from_timestamp_millis(1_790_000_000_123).unwrap();
        let cursor = Cursor { updated_at, id: DocumentId::generate() };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }

    #[test]
    fn a_cursor_that_nobody_handed_out_is_refused() {
        for text in ["", "-", "12", "12-", "x-doc_0", "9223372036854775807-doc_0"] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
