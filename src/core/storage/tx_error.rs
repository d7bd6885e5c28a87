//! Why a transaction failed, and how its caller can react.

use std::convert::Infallible;

use sqlx::error::DatabaseError;

use crate::storage::error::StorageError;
use crate::storage::guard::Guarded;

/// Why statements ended early.
#[derive(Debug)]
pub enum TxError {
    /// The transaction conflicted with another, and PostgreSQL aborted it. A retry helps.
    Again(StorageError),
    /// Another transaction held a lock for longer than a statement waits for it.
    Locked(StorageError),
    /// The connection is lost. Uncommitted changes did not happen.
    Lost(StorageError),
    /// The statement failed; the connection is intact.
    Failed(StorageError),
    /// A typed refusal of a guarded write; nothing is committed.
    Refused(Guarded<Infallible>),
}

impl From<sqlx::Error> for TxError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(DatabaseError::code);
        match code.as_deref() {
            // serialization_failure, deadlock_detected.
            Some("40001" | "40P01") => Self::Again(error.into()),
            // lock_not_available.
            Some("55P03") => Self::Locked(error.into()),
            // Connection exceptions, admin_shutdown, crash_shutdown, cannot_connect_now.
            Some("57P01" | "57P02" | "57P03") => Self::Lost(error.into()),
            Some(code) if code.starts_with("08") => Self::Lost(error.into()),
            Some(_) => Self::Failed(error.into()),
            None if is_about_the_connection(&error) => Self::Lost(error.into()),
            None => Self::Failed(error.into()),
        }
    }
}

fn is_about_the_connection(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_))
}

impl From<StorageError> for TxError {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

impl TxError {
    /// For a row that the transaction has just written.
    pub fn missing_row() -> Self {
        sqlx::Error::RowNotFound.into()
    }

    /// For calls that take no guard.
    pub fn into_error(self) -> StorageError {
        match self {
            Self::Again(error) | Self::Locked(error) | Self::Lost(error) | Self::Failed(error) => {
                error
            }
            Self::Refused(refused) => StorageError::Refused(format!("{refused:?}")),
        }
    }
}

pub fn finish<T>(result: Result<T, TxError>) -> Result<Guarded<T>, StorageError> {
    let refused = match result {
        Ok(done) => return Ok(Guarded::Done(done)),
        Err(TxError::Refused(refused)) => refused,
        Err(error) => return Err(error.into_error()),
    };
    Ok(match refused {
        Guarded::Done(never) => match never {},
        Guarded::Fenced => Guarded::Fenced,
        Guarded::NotFound => Guarded::NotFound,
        Guarded::VersionMismatch { current } => Guarded::VersionMismatch { current },
        Guarded::Stale => Guarded::Stale,
        Guarded::Full => Guarded::Full,
    })
}

/// Fixes the type of a future.
pub fn typed<T, F: Future<Output = Result<T, TxError>>>(future: F) -> F {
    future
}
