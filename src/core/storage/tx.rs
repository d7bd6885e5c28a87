//! Transactions of either engine.
//!
//! [`run!`] and [`guarded!`] begin a transaction, run a block of statements, and commit; after a conflict
//! they run it again. In PostgreSQL a transaction locks the document first, then users, then other rows.

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Sqlite, SqliteConnection, Transaction};
use tokio::sync::MutexGuard;

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::storage::error::StorageError;
use crate::storage::guard::FenceGuard;
use crate::storage::locked::Locked;
use crate::storage::log::{Append, Appended};
use crate::storage::postgres::pool::PooledConn;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::Hooks;
use crate::storage::{Engine, Storage, postgres, sqlite};

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
    /// One statement that writes, and tolerates a second run: a lost connection hides its commit.
    One,
}

/// The connection of a transaction.
pub(crate) enum Conn<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Tx {
    /// A write transaction of SQLite that the engine began itself.
    pub(crate) fn of_sqlite(tx: Transaction<'static, Sqlite>, hooks: Hooks) -> Self {
        Self { open: Open::Sqlite(tx), hooks, has_webhook: false }
    }

    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match &mut self.open {
            Open::Sqlite(tx) => Conn::Sqlite(tx),
            Open::SqliteReader(reader) => Conn::Sqlite(reader),
            Open::Postgres(conn, _) => Conn::Postgres(conn.connection()),
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
            (Engine::Postgres(it), Begin::Write | Begin::One) => {
                Open::Postgres(it.others.begin(postgres::WRITE).await?, begin)
            }
            (Engine::Postgres(it), Begin::Snapshot) => {
                Open::Postgres(it.others.begin(postgres::SNAPSHOT).await?, begin)
            }
            (Engine::Postgres(it), Begin::Read) => Open::Postgres(it.others.take().await?, begin),
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
            Engine::Postgres(_) => postgres::bounded(run).await,
        }
    }
}

pub use crate::storage::postgres::pause;

/// Whether a call that failed so runs again, after `tries` runs.
pub fn runs_again(error: &TxError, begin: Begin, tries: u32) -> bool {
    match (error, begin) {
        (TxError::Again(_), Begin::Write | Begin::Snapshot) => tries < postgres::TRIES,
        (TxError::Again(_) | TxError::Lost(_), Begin::Read | Begin::One) => tries < 2,
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
/// [`Guarded`](crate::storage::seats::Guarded).
#[doc(hidden)]
#[macro_export]
macro_rules! __guarded {
    ($storage:expr, $tx:ident => $block:block) => {{
        let attempt = $crate::storage::tx::attempt!($storage, Write, $tx => $block);
        Box::pin(async move { $crate::storage::tx_error::finish(attempt.await) })
    }};
}
pub use __guarded as guarded;

// ---- Locks. A write transaction of SQLite has the lock of the whole file. ----------------------

/// Locks a document for a change of its dependent rows. Later statements see every commit under the
/// lock. `None`: there is no such document. (SQLite: a proof; the statements find a missing document.)
pub async fn lock(tx: &mut Tx, id: DocumentId) -> Result<Option<Locked>, TxError> {
    let is_there = match tx.conn() {
        Conn::Sqlite(_) => true,
        Conn::Postgres(conn) => postgres::locks::lock(conn, id).await?,
    };
    Ok(is_there.then(Locked::in_this_transaction))
}

/// Locks the document of a link, if there is one.
pub async fn lock_of(tx: &mut Tx, link: ShareLinkId) -> Result<Locked, TxError> {
    if let Conn::Postgres(conn) = tx.conn() {
        postgres::locks::lock_of(conn, link).await?;
    }
    Ok(Locked::in_this_transaction())
}

pub(crate) async fn lock_histories(tx: &mut Tx, documents: &[String]) -> Result<(), TxError> {
    match tx.conn() {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(conn) => postgres::locks::lock_histories(conn, documents).await,
    }
}

/// The transaction sees every row of the audit, and no other appends one until it ends.
pub async fn lock_audit(tx: &mut Tx) -> Result<(), TxError> {
    match tx.conn() {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(conn) => postgres::locks::lock_audit(conn).await,
    }
}

pub async fn lock_users(tx: &mut Tx, one: &UserId, other: &UserId) -> Result<(), TxError> {
    match tx.conn() {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(conn) => postgres::locks::lock_users(conn, one, other).await,
    }
}

/// Marks a change of the guards of a locked document, so that a group of edits detects it. Triggers mark it
/// in SQLite.
pub(crate) async fn change_guards(tx: &mut Tx, id: DocumentId) -> Result<(), TxError> {
    match tx.conn() {
        Conn::Sqlite(_) => Ok(()),
        Conn::Postgres(conn) => postgres::locks::change_guards(conn, id).await,
    }
}

/// Refuses unless the seat has that fence and its link is active (D2); the result stays valid until the
/// commit.
pub(crate) async fn require_seat(tx: &mut Tx, guard: FenceGuard) -> Result<Locked, TxError> {
    match tx.conn() {
        Conn::Sqlite(conn) => sqlite::seats::require_seat(conn, guard).await?,
        Conn::Postgres(conn) => postgres::seats::require_seat(conn, guard).await?,
    }
    Ok(Locked::in_this_transaction())
}

/// Raises the fence of the reviewer's seat, under the lock of the link's document: no write under an
/// earlier grant counts any more.
pub(crate) async fn vacate_reviewer(
    tx: &mut Tx,
    _: Locked,
    link: ShareLinkId,
) -> Result<(), TxError> {
    match tx.conn() {
        Conn::Sqlite(conn) => sqlite::seats::vacate_reviewer(conn, link).await,
        Conn::Postgres(conn) => postgres::seats::vacate_reviewer(conn, link).await,
    }
}

/// Stores a group of updates, under the locks of their documents.
pub(crate) async fn append_in(tx: &mut Tx, batch: &[Append]) -> Result<Vec<Appended>, TxError> {
    match tx.conn() {
        Conn::Sqlite(conn) => Ok(sqlite::log::append_in(conn, batch).await?),
        Conn::Postgres(conn) => postgres::append::append_in(conn, batch).await,
    }
}
