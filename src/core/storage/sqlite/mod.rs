//! `SQLite`: one file, one connection that writes, several that read.
//!
//! A write transaction begins with `BEGIN IMMEDIATE`. From its first statement on, no other
//! connection of any process changes the rows that it reads: its decisions stay valid until it
//! commits (D1). A read transaction sees one state of the file from its first statement on.

mod clear;
pub mod copy;
pub(super) mod encoding;
mod integrity;
pub(super) mod journal;
#[cfg(test)]
mod journal_tests;
pub(super) mod log;
pub(crate) mod open;
#[cfg(test)]
mod tests;
mod write_cache;

use std::borrow::Cow;
use std::sync::Arc;

use sqlx::SqlitePool;
use sqlx::Transaction;
use sqlx::error::DatabaseError;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::domain::ids::DocumentId;
use crate::storage::batcher::Batcher;
use crate::storage::error::StorageError;
use crate::storage::hooks::Hooks;
use crate::storage::log::{Log, Tail};
use crate::storage::sqlite::write_cache::Memory;

type Tx = Transaction<'static, sqlx::Sqlite>;

#[derive(Clone, Debug)]
pub(super) struct Sqlite {
    /// One connection, whose waiters stand in a queue.
    writer: SqlitePool,
    /// A write that is no append waits here, and one of them in that queue: an append waits for two at
    /// most, however many others there are.
    turn: Arc<Mutex<()>>,
    /// A write of many rows waits here until the one before it has ended: a short write waits for one of them.
    long_turn: Arc<Mutex<()>>,
    pub(super) readers: SqlitePool,
    memory: Memory,
    logs: Arc<Batcher<DocumentId, Option<Log>>>,
    tails: Arc<Batcher<(DocumentId, i64), Option<Tail>>>,
    pub(crate) hooks: Hooks,
}

impl Sqlite {
    /// Begins a write transaction. It waits for other writers, in this process and in others, within
    /// the bounds that `open` sets.
    pub(super) async fn write(&self) -> Result<Tx, StorageError> {
        let _turn = in_turn(&self.turn).await?;
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// To be held during a write of many rows, and taken before it begins.
    pub(super) async fn long_turn(&self) -> Result<MutexGuard<'_, ()>, StorageError> {
        in_turn(&self.long_turn).await
    }

    /// Begins a transaction that sees one state of the database.
    pub(super) async fn read(&self) -> Result<Tx, StorageError> {
        Ok(self.readers.begin().await?)
    }

    pub(super) async fn close(&self) {
        self.readers.close().await;
        // The writer closes last: the last connection merges the write-ahead log into the file.
        self.writer.close().await;
    }
}

async fn in_turn(turns: &Mutex<()>) -> Result<MutexGuard<'_, ()>, StorageError> {
    let turn = timeout(open::ACQUIRE_TIMEOUT, turns.lock()).await;
    Ok(turn.map_err(|_elapsed| sqlx::Error::PoolTimedOut)?)
}

/// `BUSY`: another connection has the requested lock.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.as_deref().map(Cow::Borrowed).and_then(|code| code.parse().ok()).unwrap_or(0) & 0xff == 5
}
