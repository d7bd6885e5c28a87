//! Failures of seats.

use crate::locks::LocksError;
use crate::rooms::RoomError;
use crate::storage::error::StorageError;

/// The seat service cannot do what a caller asks for.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// The document or its room is the reason.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The lock service failed.
    #[error(transparent)]
    Locks(#[from] LocksError),
}

impl From<StorageError> for SeatError {
    fn from(error: StorageError) -> Self {
        Self::Room(error.into())
    }
}
