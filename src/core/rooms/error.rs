//! Failures of documents and rooms.

use crate::storage::error::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    #[error("there is no such document")]
    NoSuchDocument,
    #[error("too many sessions have this document open")]
    RoomFull,
    #[error("the stored document cannot be read")]
    Unreadable,
    #[error("the document's text takes too long to build")]
    TooCostly,
    #[error("too many requests wait for a text")]
    Busy,
    #[error("the server has too many documents open")]
    MemorySpent,
    #[error("the server has no room for anything new")]
    StorageSpent,
    #[error(transparent)]
    Storage(#[from] StorageError),
}
