//! The failures of storage, in an operator's terms.

mod postgres;
pub(crate) mod sqlite;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

/// A storage operation failed. It changed nothing, except when the connection broke during a
/// commit: then the commit may or may not have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Busy, closed, locked by another process, or unreachable. A retry may succeed.
    #[error("the database is out of reach: {0}")]
    Unavailable(String),
    /// The disk is full. No data is lost; writes succeed again once there is space.
    #[error("the database has no space left to write: {0}")]
    Full(String),
    /// A stored value is invalid. Restore a backup.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// A pooler assigns each transaction another connection, and loses prepared statements.
    #[error(
        "the database is behind a pooler in transaction mode: {0}; connect to PostgreSQL itself, or \
         set pool_mode = session"
    )]
    Pooled(String),
    /// This program cannot use the database.
    #[error("this database cannot be used: {0}")]
    Unsupported(String),
    /// A rule of the schema refused a statement: a fault of the caller.
    #[error("the database refused a statement: {0}")]
    Refused(String),
}

impl StorageError {
    pub(crate) fn newer_schema(version: i64) -> Self {
        Self::Unsupported(format!(
            "its schema {version} is newer than this galley; use the galley that wrote it"
        ))
    }
}

impl From<sqlx::Error> for StorageError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(fault) => match fault.try_downcast_ref::<PgDatabaseError>() {
                Some(fault) => postgres::classify(fault),
                None => sqlite::classify(fault.as_ref()),
            },
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::RowNotFound => Self::Corrupt(error.to_string()),
            // Time-outs, closed pools, dead workers, IO. The enum is `sqlx`'s and may grow.
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<MigrateError> for StorageError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) => Self::newer_schema(version),
            MigrateError::VersionMismatch(version) => Self::Unsupported(format!(
                "its schema {version} is not the one this galley knows; \
                 use the galley that wrote it"
            )),
            other => Self::Unsupported(other.to_string()),
        }
    }
}
