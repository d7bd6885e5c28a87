//! The checks of a file before its use.
//!
//! SQLite applies a write-ahead log to any file beside it. A copy that a user puts back beside the log of
//! the former file becomes that file's newest state, or is damaged.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sqlx::SqliteConnection;

use crate::storage::error::StorageError;

/// The bytes of the header in which SQLite notes the use of a write-ahead log, and their value.
const FORMAT: std::ops::Range<usize> = 18..20;
const HAS_LOG: [u8; 2] = [2, 2];

/// Checks the pages of a file, of one with more than `pages_max` those of the documents' rows.
pub(super) async fn examine(
    connection: &mut SqliteConnection,
    pages_max: i64,
) -> Result<(), StorageError> {
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await?;
    let check = match pages <= pages_max {
        true => "PRAGMA quick_check(1)",
        false => "PRAGMA quick_check(documents)",
    };
    let found: String = sqlx::query_scalar(check).fetch_one(connection).await?;
    if found == "ok" { Ok(()) } else { Err(StorageError::Corrupt(found.replace('\n', " "))) }
}

/// # Errors
///
/// `Unsupported`: the write-ahead log beside the file belongs to another one, or the file is missing.
pub(super) fn refuse_torn(file: &Path) -> Result<(), StorageError> {
    let log = beside(file, "-wal");
    // In this order: a process that creates the file notes the format before it writes the log.
    let has_log = fs::metadata(&log).is_ok_and(|found| found.len() != 0);
    let mut header = [0; FORMAT.end];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut header));
    if !has_log || (read.is_ok() && header.get(FORMAT) == Some(&HAS_LOG[..])) {
        return Ok(());
    }
    Err(StorageError::Unsupported(format!(
        "{} is not the write-ahead log of {}, and SQLite would write its pages into that file: a copy was \
         put there by hand; move it away and put it back with `galley restore COPY`",
        log.display(),
        file.display()
    )))
}

/// The name of a file that belongs to `file`.
#[must_use]
pub fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
