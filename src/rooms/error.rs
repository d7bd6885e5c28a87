//! Failures of documents and rooms.

use crate::storage::error::StorageError;

/// A room or a document cannot do what a caller asks for.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The database has no such document.
    #[error("there is no such document")]
    NoSuchDocument,
    /// More sessions than one room takes.
    #[error("too many sessions look at this document")]
    RoomFull,
    /// The stored updates do not fit together.
    #[error("the stored document cannot be read")]
    Unreadable,
    /// The text takes longer to build than a request may last.
    #[error("the document's text takes too long to build")]
    TooCostly,
    /// The queue for texts is full.
    #[error("too many requests wait for a text")]
    Busy,
    /// The database is above its bound and takes edits only.
    #[error("the server has no room for anything new")]
    StorageSpent,
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
