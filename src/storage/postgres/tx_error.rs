//! Why a transaction failed, and how its caller can react.

use std::convert::Infallible;

use sqlx::error::DatabaseError;

use crate::storage::error::StorageError;
use crate::storage::seats::{GuardError, Guarded};

/// Why statements ended early.
#[derive(Debug)]
pub(super) enum TxError {
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
    /// For calls that take no guard.
    pub(super) fn into_error(self) -> StorageError {
        match self {
            Self::Again(error) | Self::Locked(error) | Self::Lost(error) | Self::Failed(error) => {
                error
            }
            Self::Refused(refused) => StorageError::Refused(format!("{refused:?}")),
        }
    }

    /// For guarded writes.
    pub(super) fn into_halt(self) -> GuardError {
        match self {
            Self::Again(error) | Self::Locked(error) | Self::Lost(error) | Self::Failed(error) => {
                GuardError::Failed(error)
            }
            Self::Refused(refused) => GuardError::Refused(refused),
        }
    }
}

/// Maps an error of PostgreSQL to the storage error, by its code (appendix A of its manual).
pub(in crate::storage) fn classify(fault: &dyn DatabaseError) -> StorageError {
    let code = fault.code().unwrap_or_default();
    meaning(&code, format!("{} ({code})", fault.message()))
}

fn meaning(code: &str, message: String) -> StorageError {
    match (code.get(..2).unwrap_or_default(), code) {
        // duplicate_prepared_statement, invalid_sql_statement_name: a pooler changes connections between
        // transactions; the statement is right.
        (_, "42P05" | "26000") => StorageError::Pooled(message),
        // disk_full.
        (_, "53100") => StorageError::Full(message),
        // data_corrupted, index_corrupted.
        (_, "XX001" | "XX002") => StorageError::Corrupt(message),
        // A wrong account or database; a table that another version of Galley created.
        ("28" | "3D", _) | (_, "42501" | "42P01" | "42703") => StorageError::Unsupported(message),
        // Data, constraints, statements: the statement is wrong.
        ("22" | "23" | "42" | "54", _) => StorageError::Refused(message),
        // Connections, resources, waits for locks, standbys, and codes of later releases.
        _ => StorageError::Unavailable(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_maps_to_the_error_that_a_caller_can_handle() {
        let text = || "why".to_owned();
        let cases = [
            // disk_full.
            (StorageError::Full(text()), &["53100"][..]),
            // lock_not_available, query_canceled, too_many_connections, read_only_sql_transaction,
            // admin_shutdown, io_error, and an unknown code.
            (
                StorageError::Unavailable(text()),
                &["55P03", "57014", "53300", "25006", "57P01", "58030", "ZZZZZ", ""],
            ),
            // data_corrupted, index_corrupted.
            (StorageError::Corrupt(text()), &["XX001", "XX002"]),
            // invalid_password, invalid_catalog_name, insufficient_privilege, undefined_table.
            (StorageError::Unsupported(text()), &["28P01", "3D000", "42501", "42P01"]),
            // duplicate_prepared_statement, invalid_sql_statement_name.
            (StorageError::Pooled(text()), &["42P05", "26000"]),
            // unique_violation, foreign_key_violation, character_not_in_repertoire, syntax_error.
            (StorageError::Refused(text()), &["23505", "23503", "22021", "42601"]),
        ];
        for (expected, codes) in cases {
            for code in codes {
                assert_eq!(meaning(code, text()), expected, "{code}");
            }
        }
    }
}
