//! The meaning of SQLite's error codes.

use sqlx::error::DatabaseError;

use crate::storage::error::StorageError;

pub(crate) fn classify(fault: &dyn DatabaseError) -> StorageError {
    /// `SQLITE_IOERR_SHMSIZE`: the shared index could not grow. A full disk shows here before it
    /// shows in the log itself.
    const SHARED_INDEX_CANNOT_GROW: i32 = 4874;
    let extended = fault.code().as_deref().and_then(|code| code.parse().ok()).unwrap_or(0);
    let message = fault.to_string();
    // The low byte is the kind, the rest a subtype: https://sqlite.org/rescode.html.
    match extended & 0xff {
        _ if extended == SHARED_INDEX_CANNOT_GROW => StorageError::Full(message),
        // FULL.
        13 => StorageError::Full(message),
        // CORRUPT, NOTADB.
        11 | 26 => StorageError::Corrupt(message),
        // ERROR, TOOBIG, CONSTRAINT, MISMATCH, MISUSE, RANGE: the statement is wrong.
        1 | 18 | 19 | 20 | 21 | 25 => StorageError::Refused(message),
        // BUSY, LOCKED, READONLY, IOERR, CANTOPEN and codes of later releases.
        _ => StorageError::Unavailable(message),
    }
}
