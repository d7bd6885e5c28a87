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

use std::sync::{Arc, OnceLock};

use sqlx::SqliteConnection;

use crate::domain::ids::DocumentId;
use crate::storage::append_plan::Plan;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::sqlite::write_cache::Known;

/// Rows after which it is moved. Whoever opens a document looks through all of them, which takes a
/// millisecond when they are so many.
pub(super) const ROWS_MAX: i64 = 8_192;
/// Updates of one statement: `SQLite` binds at most 32,766 values, and these have four.
pub(super) const UPDATES_MAX: usize = 1 << SIZE_MAX;
/// The statements' sizes are powers of two, and this is the highest.
const SIZE_MAX: usize = 12;

/// Moves the journal, or what it has of one document, to where it belongs.
///
/// SQLite refuses the statement when one row breaks a rule of the schema. [`clear_with_care`] then
/// moves all other rows, so that the row delays no other document (G16).
pub(super) async fn clear(
    connection: &mut SqliteConnection,
    of: Option<DocumentId>,
) -> Result<(), StorageError> {
    match move_rows(connection, of).await {
        Err(StorageError::Refused(why)) => {
            tracing::error!(why, "SQLite refuses to move the journal; moving what it can");
            clear_with_care(connection).await
        }
        moved => moved,
    }
}

/// Moves every row of the journal that the schema admits. Rows of a document that is gone are
/// dropped: the deletion of the document removed its other rows too. A row whose number another
/// update has stays, and its document opens as damaged.
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
        let mut query = sqlx::query(statement(chunk.len())).bind(known.version);
        let mut document = (None, Arc::from(""));
        for (append, seq) in chunk.iter().filter_map(|&(at, seq)| Some((batch.get(at)?, seq))) {
            // Who types has several in a group.
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
        known.journaled = written.last_insert_rowid();
    }
    Ok(true)
}

/// The statement that stores so many updates. It has places for up to twice as many: what is not given
/// is null, and left out.
///
/// To read a statement takes longer than to carry it out. So there are few, and they stay prepared.
#[expect(clippy::indexing_slicing, reason = "no chunk is longer than the largest size")]
fn statement(updates: usize) -> &'static str {
    static STATEMENTS: [OnceLock<String>; SIZE_MAX + 1] = [const { OnceLock::new() }; SIZE_MAX + 1];
    let size = updates.next_power_of_two();
    STATEMENTS[size.trailing_zeros() as usize].get_or_init(|| {
        let places = vec!["(?, ?, ?, ?)"; size].join(", ");
        // The version is asked for under the lock that this statement has.
        format!(
            "WITH known (version) AS (VALUES (?)) \
             INSERT INTO journal (document_id, seq, bytes, at) SELECT * FROM (VALUES {places}) \
             WHERE column1 IS NOT NULL \
               AND (SELECT data_version FROM pragma_data_version) = (SELECT version FROM known)"
        )
    })
}
