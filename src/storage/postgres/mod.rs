//! PostgreSQL: a server of its own, which any number of ours may share.
//!
//! Its transactions run side by side, so what SQLite's one writer gives for nothing is made here:
//!
//! - The row of a document is its one lock. Whoever changes its log, its seats, its link or its
//!   reviews locks that row first, several in the order of their ids, and reads in a later
//!   statement, which sees what was committed before the lock was had. So what is decided stays
//!   true until the commit (D1), and no two wait for each other in a circle.
//! - A group of edits takes no lock while it is being decided. It reads, decides, and then writes
//!   with one statement that is also the transaction: it locks the rows of its documents, looks
//!   whether `last_seq` and `grants` are what was read, and writes all or nothing (`append`).
//! - Merging takes no lock that an edit waits for: an edit only adds rows above those merged.
//!
//! A transaction that meets another in spite of this is run again, here and unseen. Every call has
//! an end: the server bounds statements and waits for locks, and we bound the whole, after which
//! the connection is closed and the transaction with it.

mod append;
mod capacity;
mod documents;
mod encoding;
mod links;
mod log;
mod open;
mod parameters;
mod pool;
mod review_changes;
mod review_rows;
mod reviews;
mod seats;
mod tx_error;
mod users;
mod versions;

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::storage::error::StorageError;
use crate::storage::postgres::pool::Connections;
use crate::storage::postgres::tx_error::Stop;
pub(super) use crate::storage::postgres::tx_error::classify;

/// How long a call may take once it has its connection: longer than the server lets a statement
/// run, so that its own answer comes first if it can answer at all.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a call that met another is run again.
const TRIES: u32 = 6;
/// The pause before it is, which doubles.
const RETRY_FIRST: Duration = Duration::from_millis(4);

/// Begins a transaction whose statements see what was committed before each.
const WRITE: &str = "BEGIN";
/// Begins one whose statements all see the same state.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The engine. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Postgres {
    /// For groups of edits, which nothing else keeps waiting.
    edits: Connections,
    /// For everything else.
    others: Connections,
}

/// Runs a block of statements as one transaction, again if it met another one. Its value commits,
/// its failure rolls back.
macro_rules! transaction {
    ($connections:expr, $begin:expr, $tx:ident => $block:block) => {{
        let mut tries = 1;
        loop {
            let run = async {
                let mut lent = $connections.begin($begin).await?;
                let outcome = $crate::storage::postgres::typed(async {
                    let $tx = lent.connection();
                    $block
                })
                .await;
                lent.end(outcome).await
            };
            match $crate::storage::postgres::bounded(run).await {
                Err($crate::storage::postgres::tx_error::Stop::Again(_))
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

/// Runs a block that reads with one statement. On another connection if the first one is dead.
macro_rules! read {
    ($connections:expr, $connection:ident => $block:block) => {{
        let mut tries = 1;
        loop {
            let run = async {
                let mut lent = $connections.take().await?;
                let outcome = $crate::storage::postgres::typed(async {
                    let $connection = lent.connection();
                    $block
                })
                .await;
                lent.give_back(outcome)
            };
            match $crate::storage::postgres::bounded(run).await {
                Err(
                    $crate::storage::postgres::tx_error::Stop::Again(_)
                    | $crate::storage::postgres::tx_error::Stop::Lost(_),
                ) if tries < 2 => tries += 1,
                outcome => break outcome,
            }
        }
    }};
}
use read;

/// Says what kind of future it is.
fn typed<T, F: Future<Output = Result<T, Stop>>>(future: F) -> F {
    future
}

/// Gives up in the end. What the future holds is dropped, so its connection is closed.
async fn bounded<T>(run: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
    let late = |_| {
        let why = "the database did not answer in time";
        Stop::Failed(StorageError::Unavailable(why.to_owned()))
    };
    timeout(CALL_TIMEOUT, run).await.map_err(late)?
}

async fn pause(tries: u32) {
    sleep(RETRY_FIRST * 2_u32.saturating_pow(tries)).await;
}

impl Postgres {
    pub(super) async fn check(&self) -> Result<(), StorageError> {
        let checking = read!(self.others, connection => {
            let query = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM _sqlx_migrations");
            query.fetch_one(connection).await?;
            Ok(())
        });
        checking.map_err(Stop::into_error)
    }

    pub(super) async fn close(&self) {
        self.edits.close().await;
        self.others.close().await;
    }
}
