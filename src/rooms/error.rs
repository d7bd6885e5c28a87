//! Failures of documents and rooms.

use crate::storage::error::StorageError;

/// Failures of an operation on a room or a document.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The database has no such document.
    #[error("there is no such document")]
    NoSuchDocument,
    /// The room holds its maximum of sessions.
    #[error("too many sessions have this document open")]
    RoomFull,
    /// The stored document is damaged, or its text cannot be built.
    #[error("the stored document cannot be read")]
    Unreadable,
    /// The build of the text exceeds the cost limit or its time-out.
    #[error("the document's text takes too long to build")]
    TooCostly,
    /// The queue for build permits is full.
    #[error("too many requests wait for a text")]
    Busy,
    /// All open rooms together have their bytes.
    #[error("the server has too many documents open")]
    MemorySpent,
    /// The database exceeds its size bound and accepts edits only.
    #[error("the server has no room for anything new")]
    StorageSpent,
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
