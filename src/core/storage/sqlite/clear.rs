//! Clears the file of the bytes of deleted rows.
//!
//! `secure_delete` overwrites a deleted row and a free page. It does not overwrite the copies of a row that
//! SQLite leaves in the free space of pages when it divides or joins them, nor frames of the write-ahead log
//! that are moved to the file. `VACUUM` writes all pages anew, and a checkpoint then truncates the log.

use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use crate::storage::error::StorageError;
use crate::storage::sqlite::{Sqlite, in_turn, open};

/// Largest file that is written anew, in bytes: writes wait for some seconds meanwhile.
const REWRITTEN_BYTES_MAX: i64 = 256 * 1024 * 1024;

impl Sqlite {
    /// True: the file has no byte of a deleted row. False: it is too large, and free space may have some. `None`: a
    /// reader needs the former state, or another process writes; the caller repeats it.
    pub(crate) async fn clear_file(&self) -> Result<Option<bool>, StorageError> {
        // Other writes queue for the connection, and not for the lock of the file, which has a shorter time-out.
        let _turn = in_turn(&self.turn).await?;
        let mut writer = self.writer.acquire().await?;
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size: i64 = sqlx::query_scalar(size).fetch_one(&mut *writer).await?;
        let is_rewritten = size <= REWRITTEN_BYTES_MAX;
        if is_rewritten {
            let options = self.writer.connect_options();
            // The temporary copy is a file: the writer's own would be in memory.
            let mut own = open::options(options.get_filename()).connect().await?;
            let written = sqlx::raw_sql("VACUUM").execute(&mut own).await;
            own.close().await?;
            match written {
                Err(error) if super::is_busy(&error) => return Ok(None),
                written => written?,
            };
        }
        let truncated =
            sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *writer).await?;
        let is_busy = truncated.try_get::<i64, _>(0)? != 0;
        Ok((!is_busy).then_some(is_rewritten))
    }
}
