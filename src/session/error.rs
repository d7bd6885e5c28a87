//! What can go wrong with a document or a session.

use crate::locks::LocksError;
use crate::storage::error::StorageError;

/// Something could not be done for a session or a document.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It is not there.
    #[error("there is no such document")]
    NoSuchDocument,
    /// More sessions than one room takes.
    #[error("too many sessions look at this document")]
    RoomFull,
    /// What is stored does not fit together.
    #[error("the stored document cannot be read")]
    Unreadable,
    /// Its text takes longer to build than anybody waits.
    #[error("the document's text takes too long to build")]
    TooCostly,
    /// As many requests wait for a text as may.
    #[error("too many requests wait for a text")]
    Busy,
    /// The database is above its bound and takes edits only.
    #[error("the server has no room for anything new")]
    StorageSpent,
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The lock service failed.
    #[error(transparent)]
    Locks(#[from] LocksError),
}
