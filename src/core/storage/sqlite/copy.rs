//! Copies of a database file: a copy of a file in use, and the checks before a copy takes its place.
//!
//! A copy of [`write()`] has the format of a file without a write-ahead log, so [`refuse_torn`] recognizes it
//! beside the log of another file.

use std::fs;
use std::path::Path;

use sqlx::sqlite::SqliteJournalMode;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use crate::storage::error::StorageError;
use crate::storage::sqlite::integrity::{examine, refuse_torn};
use crate::storage::sqlite::open;

pub use crate::storage::sqlite::integrity::beside;
pub use crate::storage::sqlite::open::file_of;

/// Version and origin of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub schema: i64,
    /// The mark of the installation, in the header's `user_version`. 0: another program made the copy.
    pub installation: i32,
}

/// Copies the file while others write it into `target`, which is empty.
///
/// # Errors
///
/// The file cannot be read or `target` not be written whole; the caller deletes `target`.
pub async fn write(file: &Path, target: &Path, installation: i32) -> Result<(), StorageError> {
    refuse_torn(file)?;
    let in_file = |error| open::with_path(error, file);
    let mut live = open::options(file).connect().await.map_err(|error| in_file(error.into()))?;
    open::identify(&mut live).await.map_err(|error| in_file(error.into()))?;
    let filled = fill(&mut live, target, installation).await;
    filled.map_err(|error| open::with_path(error, target))
}

async fn fill(live: &mut SqliteConnection, target: &Path, mark: i32) -> Result<(), StorageError> {
    let name = target.to_str().ok_or_else(|| {
        StorageError::Unsupported("its name is no UTF-8; choose another".to_owned())
    })?;
    // One read transaction: writers go on, and the copy has none of their later commits.
    sqlx::query("VACUUM INTO $1").bind(name).execute(live).await?;
    let mut copy = open::options(target).connect().await?;
    let stamp = AssertSqlSafe(format!("PRAGMA user_version = {mark}"));
    sqlx::raw_sql(stamp).execute(&mut copy).await?;
    Ok(copy.close().await?)
}

/// Forgets the root secret of a checked copy: the next server that opens it has another one.
pub async fn forget_root(copy: &Path) -> Result<(), StorageError> {
    let mut copy = open::options(copy).journal_mode(SqliteJournalMode::Delete).connect().await?;
    let has_root = "SELECT count(*) FROM sqlite_schema WHERE name = 'installation_root'";
    // The copy of an older server has no such table.
    if sqlx::query_scalar::<_, i64>(has_root).fetch_one(&mut copy).await? != 0 {
        sqlx::query("DELETE FROM installation_root").execute(&mut copy).await?;
    }
    Ok(copy.close().await?)
}

/// Checks a copy that no other program uses, all of its pages. Its format becomes that of a file without
/// a write-ahead log.
///
/// # Errors
///
/// `Corrupt`: pages are damaged or missing. `Unsupported`: another program or a newer version made it.
pub async fn check(copy: &Path) -> Result<Stamp, StorageError> {
    if fs::metadata(copy).is_ok_and(|found| found.len() == 0) {
        return Err(StorageError::Corrupt("it is empty".to_owned()));
    }
    let mut copy = open::options(copy).journal_mode(SqliteJournalMode::Delete).connect().await?;
    open::identify(&mut copy).await?;
    examine(&mut copy, i64::MAX).await?;
    let schema = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations");
    let schema = schema.fetch_one(&mut copy).await?;
    if open::migrations().all(|migration| migration.version < schema) {
        return Err(StorageError::newer_schema(schema));
    }
    let mark = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut copy).await?;
    copy.close().await?;
    Ok(Stamp { schema, installation: mark })
}
