//! Transactions of either engine.
//!
//! [`run!`] and [`guarded!`] begin a transaction, run a block of statements, and commit; after a conflict
//! they run it again.

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Sqlite, SqliteConnection, Transaction};
use tokio::sync::MutexGuard;

use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::hooks::Hooks;
use crate::storage::postgres::pool::{Connections, PooledConn, SNAPSHOT, TRIES, WRITE};
use crate::storage::tx_error::TxError;
use crate::storage::{Engine, Storage};

/// A transaction, or a connection outside of one.
pub struct Tx {
    open: Open,
    /// The endpoints that the transaction's events are for.
    pub hooks: Hooks,
    pub(crate) has_webhook: bool,
}

enum Open {
    Sqlite(Transaction<'static, Sqlite>),
    SqliteReader(PoolConnection<Sqlite>),
    Postgres(PooledConn, Begin),
}

/// Items of a long write: SQLite stores them in some milliseconds.
const LONG_ITEMS: usize = 16;

/// How a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Several statements, of which each sees every earlier commit.
    Write,
    /// Several statements that read one state.
    Snapshot,
    /// One statement that reads.
    Read,
    /// As `Write`, and tolerates a second run: a lost connection hides its commit.
    One,
}

/// The connection of a transaction.
pub(crate) enum Conn<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Tx {
    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match &mut self.open {
            Open::Sqlite(tx) => Conn::Sqlite(tx),
            Open::SqliteReader(reader) => Conn::Sqlite(reader),
            Open::Postgres(conn, _) => Conn::Postgres(conn.connection()),
        }
    }

    /// Whether it has the lock of the whole file, and locks no rows.
    pub(crate) fn has_file_lock(&self) -> bool {
        !matches!(self.open, Open::Postgres(..))
    }

    pub(crate) fn postgres(&mut self) -> Result<&mut PgConnection, TxError> {
        match self.conn() {
            Conn::Postgres(conn) => Ok(conn),
            Conn::Sqlite(_) => Err(corrupt("a transaction of another engine").into()),
        }
    }

    pub async fn end<T>(self, outcome: Result<T, TxError>) -> Result<T, TxError> {
        let Self { open, hooks, has_webhook } = self;
        let ended = match open {
            Open::Sqlite(tx) => {
                let done = outcome?;
                tx.commit().await?;
                Ok(done)
            }
            Open::SqliteReader(_) => outcome,
            Open::Postgres(conn, Begin::Read) => conn.give_back(outcome),
            Open::Postgres(conn, _) => conn.end(outcome).await,
        };
        if has_webhook && ended.is_ok() {
            hooks.wake();
        }
        ended
    }
}

impl Storage {
    pub async fn begin(&self, begin: Begin) -> Result<Tx, TxError> {
        let open = match (&self.engine, begin) {
            (Engine::Sqlite(it), Begin::Write | Begin::One) => Open::Sqlite(it.write().await?),
            (Engine::Sqlite(it), Begin::Snapshot) => Open::Sqlite(it.read().await?),
            (Engine::Sqlite(it), Begin::Read) => Open::SqliteReader(it.readers.acquire().await?),
            (Engine::Postgres(it), begin) => {
                return Ok(Tx { hooks: self.hooks().clone(), ..it.others.begin(begin).await? });
            }
        };
        Ok(Tx { open, hooks: self.hooks().clone(), has_webhook: false })
    }

    /// To be held during a write that stores `items` with their rows: SQLite has one writer, and many users wait
    /// for it.
    pub(crate) async fn turn_of(
        &self,
        items: usize,
    ) -> Result<Option<MutexGuard<'_, ()>>, StorageError> {
        match &self.engine {
            Engine::Sqlite(it) if LONG_ITEMS <= items => it.long_turn().await.map(Some),
            _ => Ok(None),
        }
    }

    /// Bounds a call on PostgreSQL: a time-out drops the future, and so closes its connection. SQLite's
    /// waits have bounds of their own.
    pub async fn bounded<T>(
        &self,
        run: impl Future<Output = Result<T, TxError>>,
    ) -> Result<T, TxError> {
        match &self.engine {
            Engine::Sqlite(_) => run.await,
            Engine::Postgres(it) => it.others.bounded(run).await,
        }
    }
}

impl Connections {
    pub(crate) async fn begin(&self, begin: Begin) -> Result<Tx, TxError> {
        let conn = match begin {
            Begin::Write | Begin::One => self.open(WRITE).await?,
            Begin::Snapshot => self.open(SNAPSHOT).await?,
            Begin::Read => self.take().await?,
        };
        Ok(Tx { open: Open::Postgres(conn, begin), hooks: Hooks::default(), has_webhook: false })
    }
}

pub use crate::storage::postgres::pool::pause;

/// Whether a call that failed so runs again, after `tries` runs.
pub fn runs_again(error: &TxError, begin: Begin, tries: u32) -> bool {
    match (error, begin) {
        (TxError::Again(_), Begin::Write | Begin::One | Begin::Snapshot) => tries < TRIES,
        (TxError::Again(_), Begin::Read) | (TxError::Lost(_), Begin::Read | Begin::One) => {
            tries < 2
        }
        _ => false,
    }
}

/// Runs a block of statements, and again after a conflict or on a dead connection; a future of its value
/// or its [`TxError`]. A macro, because the future of an async closure is not `Send` for each lifetime.
#[doc(hidden)]
#[macro_export]
macro_rules! __attempt {
    ($storage:expr, $begin:ident, $tx:ident => $block:block) => {
        async move {
            let begin = $crate::storage::tx::Begin::$begin;
            let mut tries = 1;
            loop {
                let run = async {
                    let mut held = $storage.begin(begin).await?;
                    let $tx = &mut held;
                    let outcome = $crate::storage::tx_error::typed(async { $block }).await;
                    held.end(outcome).await
                };
                match $storage.bounded(run).await {
                    Err(error) if $crate::storage::tx::runs_again(&error, begin, tries) => {
                        $crate::storage::tx::pause(tries).await;
                        tries += 1;
                    }
                    outcome => break outcome,
                }
            }
        }
    };
}
pub use __attempt as attempt;

/// Runs a block as `attempt!` does. A boxed future of its value or a `StorageError`: rustc compiles the
/// body of a plain one again in each crate that awaits it.
#[doc(hidden)]
#[macro_export]
macro_rules! __run {
    ($storage:expr, $begin:ident, $tx:ident => $block:block) => {{
        let attempt = $crate::storage::tx::attempt!($storage, $begin, $tx => $block);
        Box::pin(async move { attempt.await.map_err($crate::storage::tx_error::TxError::into_error) })
    }};
}
pub use __run as run;

/// Runs a block as a write transaction that a guard may refuse: a boxed future of a
/// [`Guarded`](crate::storage::guard::Guarded).
#[doc(hidden)]
#[macro_export]
macro_rules! __guarded {
    ($storage:expr, $tx:ident => $block:block) => {{
        let attempt = $crate::storage::tx::attempt!($storage, Write, $tx => $block);
        Box::pin(async move { $crate::storage::tx_error::finish(attempt.await) })
    }};
}
pub use __guarded as guarded;
