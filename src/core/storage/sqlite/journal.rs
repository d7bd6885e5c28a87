//! The journal: the table to which a group of edits is written first.
//!
//! Loads read updates by document, so `updates` is ordered by document. Writing there, each
//! keystroke would change a page of its own: 4 KiB to write to the log, sync, and write again to the
//! file. In the journal, a group of edits takes about one page. When the journal is long, one
//! transaction moves it: a page then takes all updates of a document since the last move.
//!
//! # Invariants
//!
//! - An update is either in the journal or in `updates`, never in both: one transaction moves it.
//! - The numbers of a document's updates in the journal follow those in `updates`.
//!   `documents.last_seq` is the last number in `updates`.

use std::sync::{Arc, OnceLock};

use sqlx::SqliteConnection;

use crate::domain::ids::DocumentId;
use crate::storage::append_plan::AppendPlan;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::sqlite::write_cache::{CachedRows, UNCACHED};

/// The rows at which the journal is moved. Each load of a document scans all of them, which takes a
/// millisecond at this length.
pub(super) const ROWS_MAX: i64 = 8_192;
/// Updates of one statement: `SQLite` binds at most 32,766 values, and an update has four.
pub(super) const UPDATES_MAX: usize = 1 << SIZE_MAX;
/// The exponent of the largest statement: sizes are powers of two.
const SIZE_MAX: usize = 12;

/// Moves the rows of the journal, or those of one document, to `updates`.
///
/// SQLite refuses the statement when one row breaks a rule of the schema. [`clear_with_care`] then
/// moves all other rows, so that the row delays no other document (G16).
pub(crate) async fn clear(
    connection: &mut SqliteConnection,
    of: Option<DocumentId>,
) -> Result<(), StorageError> {
    match move_rows(connection, of).await {
        Err(StorageError::Refused(why)) => {
            tracing::error!(why, "SQLite refuses to move the journal; moving the valid rows");
            clear_with_care(connection).await
        }
        moved => moved,
    }
}

/// Moves every row of the journal that the schema admits. It drops rows of missing documents: the
/// deletion of a document deletes its other rows too. A row whose number another update has stays,
/// and its document opens as damaged.
async fn clear_with_care(connection: &mut SqliteConnection) -> Result<(), StorageError> {
    let dropped = "DELETE FROM journal WHERE document_id NOT IN (SELECT id FROM documents)";
    let dropped = sqlx::query(dropped).execute(&mut *connection).await?.rows_affected();
    for statement in [
        "INSERT OR IGNORE INTO updates (document_id, seq, bytes) \
         SELECT document_id, seq, bytes FROM journal ORDER BY document_id, seq",
        "UPDATE documents SET last_seq = MAX(last_seq, j.seq), updated_at = MAX(updated_at, j.at) \
         FROM (SELECT document_id, MAX(seq) AS seq, MAX(at) AS at FROM journal \
         GROUP BY document_id) j WHERE documents.id = j.document_id",
        "DELETE FROM journal WHERE EXISTS (SELECT 1 FROM updates u \
         WHERE u.document_id = journal.document_id AND u.seq = journal.seq \
         AND u.bytes = journal.bytes)",
    ] {
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM journal").fetch_one(&mut *connection).await?;
    tracing::error!(
        dropped,
        left,
        "the journal had rows of deleted documents, which are dropped, or rows under numbers that \
         other updates have, which are left"
    );
    Ok(())
}

async fn move_rows(
    connection: &mut SqliteConnection,
    of: Option<DocumentId>,
) -> Result<(), StorageError> {
    let statements = match of {
        None => [
            "INSERT INTO updates (document_id, seq, bytes) \
             SELECT document_id, seq, bytes FROM journal ORDER BY document_id, seq",
            "UPDATE documents SET last_seq = j.seq, updated_at = MAX(updated_at, j.at) \
             FROM (SELECT document_id, MAX(seq) AS seq, MAX(at) AS at FROM journal \
             GROUP BY document_id) j WHERE documents.id = j.document_id",
            // Without a condition, SQLite drops the pages and does not read the rows.
            "DELETE FROM journal",
        ],
        Some(_) => [
            "INSERT INTO updates (document_id, seq, bytes) \
             SELECT document_id, seq, bytes FROM journal WHERE document_id = $1 ORDER BY seq",
            "UPDATE documents SET last_seq = j.seq, updated_at = MAX(updated_at, j.at) \
             FROM (SELECT document_id, MAX(seq) AS seq, MAX(at) AS at FROM journal \
             WHERE document_id = $1 GROUP BY document_id) j WHERE documents.id = j.document_id",
            "DELETE FROM journal WHERE document_id = $1",
        ],
    };
    for statement in statements {
        let mut query = sqlx::query(statement);
        if let Some(document) = of {
            query = query.bind(document.to_string());
        }
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Appends the updates of a plan to the journal. False: a row of the cache has changed since it was
/// filled, here or in another process, and the statement wrote nothing.
///
/// Outside a transaction, the statement is its own transaction, and durable when it returns.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    batch: &[Append],
    plan: &AppendPlan,
    cache: &mut CachedRows,
) -> Result<bool, StorageError> {
    for chunk in plan.rows.chunks(UPDATES_MAX) {
        let mut query = sqlx::query(statement(chunk.len())).bind(cache.version);
        let mut document = (None, Arc::from(""));
        for (append, seq) in chunk.iter().filter_map(|&(at, seq)| Some((batch.get(at)?, seq))) {
            // A writer often has several updates in one group.
            if document.0 != Some(append.document) {
                document = (Some(append.document), Arc::<str>::from(append.document.to_string()));
            }
            query = query.bind(Arc::clone(&document.1)).bind(seq);
            query = query.bind(append.update.as_ref()).bind(append.now.timestamp_millis());
        }
        let written = query.execute(&mut *connection).await?;
        if written.rows_affected() == 0 {
            return Ok(false);
        }
        cache.journaled = written.last_insert_rowid();
    }
    Ok(true)
}

/// The statement that stores this number of updates. It has placeholders for up to twice as many, and
/// ignores those that stay null.
///
/// Parsing the statement takes longer than running it. So there are few sizes, all of them prepared.
#[expect(clippy::indexing_slicing, reason = "no chunk is longer than the largest size")]
fn statement(updates: usize) -> &'static str {
    static STATEMENTS: [OnceLock<String>; SIZE_MAX + 1] = [const { OnceLock::new() }; SIZE_MAX + 1];
    let size = updates.next_power_of_two();
    STATEMENTS[size.trailing_zeros() as usize].get_or_init(|| {
        let placeholders = vec!["(?, ?, ?, ?)"; size].join(", ");
        // The statement compares the version under its own lock.
        format!(
            "WITH cache (version) AS (VALUES (?)) \
             INSERT INTO journal (document_id, seq, bytes, at) SELECT * FROM (VALUES {placeholders}) \
             WHERE column1 IS NOT NULL \
               AND ((SELECT version FROM cache) = {UNCACHED} OR NOT EXISTS (SELECT 1 FROM stale) \
               AND (SELECT data_version FROM pragma_data_version) = (SELECT version FROM cache))"
        )
    })
}
