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
//! If a transaction conflicts with another in spite of this, this module retries it. Every call is
//! bounded: PostgreSQL bounds statements and waits for locks, and this module bounds the whole call.
//! A call that reaches its bound closes its connection, which rolls the transaction back.

pub(super) mod append;
pub(super) mod encoding;
pub(super) mod locks;
mod log;
pub(super) mod open;
pub(crate) mod parameters;
pub(super) mod pool;
pub(super) mod seats;

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::storage::error::StorageError;
use crate::storage::postgres::pool::Connections;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::Hooks;

/// The bound of a call after it has its connection. It exceeds the statement time-out, so that
/// PostgreSQL's own error arrives first if it can reply at all.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// The most runs of a call that conflicts with others.
pub(super) const TRIES: u32 = 6;
/// The base of the pause before a retry, which doubles each time.
const RETRY_FIRST: Duration = Duration::from_millis(4);

/// Begins a transaction whose statements see every commit before each.
pub(super) const WRITE: &str = "BEGIN READ WRITE";
/// Begins a transaction whose statements all see the same state.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The engine. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Postgres {
    /// For groups of edits only, so that no other call delays them.
    edits: Connections,
    /// For all other calls. Outside of a transaction that begins with [`WRITE`] they only read.
    pub(super) others: Connections,
    pub(crate) hooks: Hooks,
    /// The schema's version that this program needs.
    schema: i64,
}

/// Runs a block of statements as one transaction, and retries it after a conflict. Its value commits,
/// its failure rolls back.
macro_rules! transaction {
    ($connections:expr, $begin:expr, $tx:ident => $block:block) => {{
        let mut tries = 1;
        loop {
            let run = async {
                let mut conn = $connections.begin($begin).await?;
                let outcome = $crate::storage::tx_error::typed(async {
                    let $tx = conn.connection();
                    $block
                })
                .await;
                conn.end(outcome).await
            };
            match $crate::storage::postgres::bounded(run).await {
                Err($crate::storage::tx_error::TxError::Again(_))
                    if tries < $crate::storage::postgres::TRIES =>
                {
                    $crate::storage::postgres::pause(tries).await;
                    tries += 1;
                }
                outcome => break outcome,
            }
        }
    }};
}
use transaction;

/// Runs a block of one statement, which reads or may run again, and retries it on another connection if the
/// first is dead.
macro_rules! reading {
    ($connections:expr, $connection:ident => $block:block) => {{
        let mut tries = 1;
        loop {
            let run = async {
                let mut conn = $connections.take().await?;
                let outcome = $crate::storage::tx_error::typed(async {
                    let $connection = conn.connection();
                    $block
                })
                .await;
                conn.give_back(outcome)
            };
            match $crate::storage::postgres::bounded(run).await {
                Err(
                    $crate::storage::tx_error::TxError::Again(_)
                    | $crate::storage::tx_error::TxError::Lost(_),
                ) if tries < 2 => tries += 1,
                outcome => break outcome,
            }
        }
    }};
}
use reading;

/// Bounds a call. A time-out drops the future, and so closes its connection.
pub(super) async fn bounded<T>(
    run: impl Future<Output = Result<T, TxError>>,
) -> Result<T, TxError> {
    let late = |_| {
        let why = "the database did not answer in time";
        TxError::Failed(StorageError::Unavailable(why.to_owned()))
    };
    timeout(CALL_TIMEOUT, run).await.map_err(late)?
}

pub async fn pause(tries: u32) {
    sleep(RETRY_FIRST * 2_u32.saturating_pow(tries)).await;
}

impl Postgres {
    /// Balancers probe every second, so this compares the schema only after a reconnect: a restored
    /// database may have an older one.
    pub(super) async fn check(&self) -> Result<(), StorageError> {
        let checked = reading!(self.others, connection => {
            sqlx::query("SELECT 1").execute(connection).await?;
            Ok(())
        });
        checked.map_err(TxError::into_error)?;
        if self.others.reconnected().load(Ordering::Acquire) {
            let (found, needed) = (self.schema().await?, self.schema);
            if found < needed {
                let what =
                    format!("its schema has version {found}, and this galley needs {needed}");
                return Err(StorageError::Unsupported(what));
            }
            self.others.reconnected().store(false, Ordering::Release);
        }
        Ok(())
    }

    pub(super) async fn schema(&self) -> Result<i64, StorageError> {
        let read = reading!(self.others, connection => {
            let query = sqlx::query_scalar::<_, i64>("SELECT max(version) FROM _sqlx_migrations");
            Ok(query.fetch_one(connection).await?)
        });
        read.map_err(TxError::into_error)
    }

    pub(super) async fn close(&self) {
        self.edits.close().await;
        self.others.close().await;
    }
}
