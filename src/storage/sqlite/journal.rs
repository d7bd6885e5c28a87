//! The journal: where a group of edits goes first.
//!
//! Updates are looked for by document, so they stand by document; but then each keystroke changes a
//! page of its own, and a page is 4 KiB to be written, synced and written again to its place in the
//! file. Behind one another a group of them takes a page. So they are stored in the journal, and
//! moved together, when it has become long: then a page takes all that was written on a document
//! meanwhile.
//!
//! # What is always true
//!
//! - An update is either in the journal or among the `updates`, never in both: it is moved in one
//!   transaction.
//! - The numbers of a document that are in the journal follow those that are not, and
//!   `documents.last_seq` is the last of the latter.

use sqlx::{QueryBuilder, SqliteConnection};

use crate::domain::ids::DocumentId;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::plan::Plan;
use crate::storage::sqlite::memory::Known;

/// Rows after which it is moved. Whoever opens a document looks through all of them, which takes a
/// millisecond when they are so many.
pub(super) const ROWS_MAX: i64 = 8_192;
/// Updates of one statement: `SQLite` binds at most 32,766 values, and these have four.
pub(super) const UPDATES_MAX: usize = 8_000;

/// Moves the journal, or what it has of one document, to where it belongs.
pub(super) async fn clear(
    connection: &mut SqliteConnection,
    of: Option<DocumentId>,
) -> Result<(), StorageError> {
    /// The same for some rows of the journal.
    macro_rules! moving {
        ($of:literal) => {
            [
                concat!(
                    "INSERT INTO updates (document_id, seq, bytes) \
                     SELECT document_id, seq, bytes FROM journal ",
                    $of,
                    " ORDER BY document_id, seq"
                ),
                concat!(
                    "UPDATE documents SET last_seq = j.seq, updated_at = MAX(updated_at, j.at) \
                     FROM (SELECT document_id, MAX(seq) AS seq, MAX(at) AS at FROM journal ",
                    $of,
                    " GROUP BY document_id) j WHERE documents.id = j.document_id"
                ),
                // All of them, and SQLite drops the pages without looking at the rows.
                concat!("DELETE FROM journal ", $of),
            ]
        };
    }
    let statements = match of {
        Some(_) => moving!("WHERE document_id = $1"),
        None => moving!(""),
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

/// Puts a plan's updates behind the others. False: another process has changed the file since it
/// was known, and nothing was written.
///
/// Outside a transaction the statement is one, and durable when it is answered.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    batch: &[Append],
    plan: &Plan,
    known: &mut Known,
) -> Result<bool, StorageError> {
    for chunk in plan.rows.chunks(UPDATES_MAX) {
        let mut query = QueryBuilder::<sqlx::Sqlite>::new(
            "INSERT INTO journal (document_id, seq, bytes, at) SELECT * FROM (",
        );
        let rows = chunk.iter().filter_map(|&(at, seq)| Some((batch.get(at)?, seq)));
        query.push_values(rows, |mut row, (append, seq)| {
            row.push_bind(append.document.to_string()).push_bind(seq);
            row.push_bind(append.update.as_ref()).push_bind(append.now.timestamp_millis());
        });
        // Asked for under the lock that this statement has.
        query.push(") WHERE (SELECT data_version FROM pragma_data_version) = ");
        query.push_bind(known.version);
        // There are as many statements as sizes of groups: none is worth keeping prepared.
        let written = query.build().persistent(false).execute(&mut *connection).await?;
        if written.rows_affected() == 0 {
            return Ok(false);
        }
        known.journaled = written.last_insert_rowid();
    }
    Ok(true)
}
