//! Failures of jobs and of the settings of reminders.

use crate::http::error::ApiError;
use crate::jobs::JobsError;
use crate::rooms::RoomError;
use crate::seats::SeatError;

impl From<JobsError> for ApiError {
    fn from(error: JobsError) -> Self {
        match error {
            JobsError::StorageSpent => Self::Session(SeatError::Room(RoomError::StorageSpent)),
            JobsError::Storage(error) => Self::Session(error.into()),
            JobsError::Locks(error) => Self::Session(SeatError::Locks(error)),
            JobsError::Lost => Self::Unavailable(error.to_string()),
        }
    }
}
