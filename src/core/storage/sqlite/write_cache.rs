//! A cache of the rows that a group of edits depends on.
//!
//! The number and the admission of an edit depend on a few rows. Besides edits themselves, hardly any
//! write changes these rows. Reading them for each keystroke would cost more than storing it.
//!
//! # Why it is never stale
//!
//! - A write of this process has the only writing connection. Triggers of that connection note each
//!   cached row that a statement changes in the table `stale`; a rollback takes the note back. The
//!   statement that stores a group writes nothing while `stale` has a row, and [`forget_stale`] then
//!   drops what it names. A group takes the cache, and puts it back after its commit. A group that
//!   fails or is cancelled leaves it empty. After a refusal, the group reads the rows of the refused
//!   updates again.
//! - A write of another process changes `data_version`: SQLite reports to a connection the commits
//!   of all others. The statement that stores a group compares it, under the same lock as the write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::SqliteConnection;

use crate::domain::seat::{Role, Seat};
use crate::storage::append_plan::AppendState;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;

/// Cached documents, seats and client ids; each takes about 200 bytes.
const ENTRIES_MAX: usize = 100_000;

/// The `data_version` of rows that a transaction has read itself: they cannot be stale.
pub(super) const UNCACHED: i64 = -1;

/// The rows of the file after the last group.
#[derive(Debug, Default)]
pub(super) struct CachedRows {
    /// The `data_version` of the file, as the writing connection sees it.
    pub(super) version: i64,
    pub(super) state: AppendState,
    /// The last row id of the journal, and so about the number of its rows.
    pub(super) journaled: i64,
}

/// Notes the cached rows that a statement changes. The cache has no missing row, so an `INSERT` changes
/// none. Temporary: the triggers and their table are of the writing connection alone, and in memory.
const TRIGGERS: &str = "
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE stale (document_id TEXT, client INTEGER, link_id TEXT);
CREATE TEMP TRIGGER seat_updated AFTER UPDATE ON seats BEGIN
    INSERT INTO stale (link_id) VALUES (OLD.link_id);
END;
CREATE TEMP TRIGGER seat_deleted AFTER DELETE ON seats BEGIN
    INSERT INTO stale (link_id) VALUES (OLD.link_id);
END;
CREATE TEMP TRIGGER link_updated AFTER UPDATE OF document_id, revoked_at ON share_links BEGIN
    INSERT INTO stale (link_id) VALUES (OLD.id);
END;
CREATE TEMP TRIGGER client_updated AFTER UPDATE ON clients BEGIN
    INSERT INTO stale (document_id, client) VALUES (OLD.document_id, OLD.client);
END;
CREATE TEMP TRIGGER client_deleted AFTER DELETE ON clients BEGIN
    INSERT INTO stale (document_id, client) VALUES (OLD.document_id, OLD.client);
END;
CREATE TEMP TRIGGER document_deleted AFTER DELETE ON documents BEGIN
    INSERT INTO stale (document_id) VALUES (OLD.id);
END;
";

#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<CachedRows>>);

impl Memory {
    /// Takes the cached rows; the cache is empty until [`put_back`](Self::put_back).
    pub(super) fn take(&self) -> CachedRows {
        std::mem::take(&mut self.lock())
    }

    /// Fills the cache after a group is stored. The caller still has the connection.
    pub(super) fn put_back(&self, cache: CachedRows) {
        if cache.state.entries() <= ENTRIES_MAX {
            *self.lock() = cache;
        }
    }

    /// Empties the cache, and creates the triggers that keep it valid on a new writing connection:
    /// `data_version` is valid within one connection only.
    pub(super) async fn connect(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        drop(self.take());
        sqlx::raw_sql(TRIGGERS).execute(connection).await?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, CachedRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops from a cache the rows that have changed since it was filled.
pub(super) async fn forget_stale(
    connection: &mut SqliteConnection,
    state: &mut AppendState,
) -> Result<(), StorageError> {
    type Changed = (Option<String>, Option<i64>, Option<String>);
    let changed = sqlx::query_as("DELETE FROM stale RETURNING document_id, client, link_id");
    let changed: Vec<Changed> = changed.fetch_all(connection).await?;
    for (document, client, link) in changed {
        if let Some(link) = link {
            let link = parse(&link)?;
            for role in Role::ALL {
                state.seats.remove(&Seat::new(link, role));
            }
        }
        let Some(document) = document.as_deref().map(parse).transpose()? else { continue };
        match client {
            Some(client) => {
                let client = u64::try_from(client).map_err(corrupt)?;
                state.clients.remove(&(document, client));
            }
            None => drop(state.last_seq.remove(&document)),
        }
    }
    Ok(())
}
