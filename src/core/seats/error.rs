//! Failures of seats.

use crate::locks::LocksError;
use crate::rooms::RoomError;
use crate::storage::error::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Locks(#[from] LocksError),
}

impl From<StorageError> for SeatError {
    fn from(error: StorageError) -> Self {
        Self::Room(error.into())
    }
}
