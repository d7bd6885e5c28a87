//! PostgreSQL: a database server, which any number of Galley servers share.
//!
//! Its transactions run concurrently. SQLite's single writer makes decisions safe; here these rules do:
//!
//! - The row of a document is its lock. A transaction that changes its log, seats, link or reviews
//!   locks that row first, several rows in the order of their ids. A later statement reads, and sees
//!   every commit before the lock. So each decision stays valid until the commit (D1), and no
//!   deadlock occurs. Only versions have another lock (`locks`).
//! - A group of edits is decided without locks. It reads, decides, and writes with one statement,
//!   which is also the transaction. That statement locks the rows of its documents, compares
//!   `last_seq` and `grants` with the values read, and writes all or nothing (`append`).
//! - A compaction takes no lock that an edit waits for: an edit only adds rows above those merged.
//!
//! If a transaction conflicts with another in spite of this, `tx` retries it. Every call is bounded:
//! PostgreSQL bounds statements and waits for locks, and `pool` bounds the whole call.
//! A call that reaches its bound closes its connection, which rolls the transaction back.

pub(super) mod append;
pub(super) mod encoding;
pub(super) mod log;
pub(super) mod open;
pub(crate) mod parameters;
pub(super) mod pool;

use std::sync::atomic::AtomicBool;

use crate::storage::hooks::Hooks;
use crate::storage::postgres::pool::Connections;

/// The engine. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Postgres {
    /// For groups of edits only, so that no other call delays them.
    edits: Connections,
    /// For all other calls. Outside of a transaction that begins with [`WRITE`](pool::WRITE) they only read.
    pub(super) others: Connections,
    pub(crate) hooks: Hooks,
    /// The schema's version that this program needs.
    pub(super) schema: i64,
}

impl Postgres {
    /// Whether a connection was opened after the last comparison of the schema, which resets it.
    pub(super) fn reconnected(&self) -> &AtomicBool {
        self.others.reconnected()
    }

    pub(super) async fn close(&self) {
        self.edits.close().await;
        self.others.close().await;
    }
}
