//! Every way storage can fail, in words an operator can act on.

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

use crate::storage::{postgres, sqlite};

/// Storage could not do what it was asked. Nothing was changed, except where a commit was under
/// way when the connection was lost: then it may or may not have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Busy, closed, locked by somebody else or out of reach. Trying again later may help.
    #[error("the database is out of reach: {0}")]
    Unavailable(String),
    /// There is no space left. Nothing was lost; writing works again once there is space.
    #[error("the database has no space left to write: {0}")]
    Full(String),
    /// What stands in the database cannot be right. Restore a backup.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// A pooler gives each transaction another connection, and prepared statements stay behind.
    #[error(
        "the database is behind a pooler in transaction mode: {0}; connect to PostgreSQL itself, or \
         set pool_mode = session"
    )]
    Pooled(String),
    /// This program cannot use that database.
    #[error("this database cannot be used: {0}")]
    Unsupported(String),
    /// A statement was refused by a rule of the schema: a fault of the caller's.
    #[error("the database refused a statement: {0}")]
    Refused(String),
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
            // Time-outs, closed pools, dead workers, IO: the enum is not ours and may grow.
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<MigrateError> for StorageError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) => Self::Unsupported(format!(
                "its schema {version} is newer than this galley; use the galley that wrote it"
            )),
            MigrateError::VersionMismatch(version) => Self::Unsupported(format!(
                "its schema {version} is not the one this galley knows; \
                 use the galley that wrote it"
            )),
            other => Self::Unsupported(other.to_string()),
        }
    }
}
