//! Errors of PostgreSQL.

use sqlx::error::DatabaseError;

use crate::storage::error::StorageError;

/// Maps an error of PostgreSQL to the storage error, by its code (appendix A of its manual).
pub(crate) fn classify(fault: &dyn DatabaseError) -> StorageError {
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
