//! The database: users, documents and their updates, share links, the seats' fences, reviews,
//! versions.
//!
//! # Shape
//!
//! One file per subject has its types, its statements and the methods of [`Storage`] that run them. `locks`
//! has the locks of a transaction, `tx` how it begins, ends and runs again, and `statement` how an engine
//! stores a type of the domain. The folder of an engine has what it does its own way: connections, and the
//! log, whose statements are measured. [`Storage`] is an enum of engines: the set is closed and ours.
//! Decisions that do not depend on the engine are plain code in `append_plan` and `version_plan`.
//!
//! # Invariants
//!
//! - **D1** Several processes may use one database. Each decision is made in the transaction that
//!   writes it, never from an earlier read.
//! - **D2** A guarded write names its seat's fence. Under another fence than the last ratified one,
//!   or on a revoked link, it changes no row (G2, G14).
//! - **D3** The numbers of a document's updates have no gap, and none is assigned twice, also
//!   across compactions.
//! - **D4** A write that storage has confirmed survives `kill -9` and a power cut (G7).
//! - **D5** A snapshot contains exactly the updates up to its own number: it replaces no update that
//!   it lacks. An older snapshot never replaces a newer one.
//! - **D6** A Yjs client id belongs, within a document, to the user who first wrote under it.
//! - **D7** An update that follows a refused one, and may depend on it, is not stored without it.
//! - **D8** The versions of a document are numbered from 1, in the order of their points in the
//!   log. An automatic version is of a later point than all versions before it, and its text
//!   differs from that of the last.
//!
//! **D9** to **D11** hold for the outbox of webhooks and stand at its head.
//!
//! The database stores times in whole milliseconds.

mod absent_waiters;
mod append_plan;
pub mod audit;
mod batcher;
pub mod bin;
pub mod capacity;
pub mod decisions;
pub mod decode;
pub(crate) mod document_webhooks;
pub mod documents;
pub mod error;
pub mod guard;
pub mod hooks;
pub mod invites;
pub mod links;
pub mod locks;
pub mod log;
pub mod packed;
pub mod pagination;
pub mod partners;
pub mod persons;
mod postgres;
pub mod progress;
pub mod replies;
pub mod review_changes;
pub mod review_rows;
pub(crate) mod review_webhooks;
pub mod reviews;
pub mod revocations;
pub mod root;
pub mod seats;
pub(crate) mod sections;
mod sqlite;
pub mod statement;
pub mod suggestions;
pub mod trace;
pub mod turns;
pub mod tx;
pub mod tx_error;
mod updates;
pub mod users;
pub mod version_plan;
pub mod versions;
pub mod webhook_claims;
pub mod webhook_seats;
pub mod webhooks;

use futures_util::future::{BoxFuture, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::storage::error::StorageError;
use crate::storage::postgres::Postgres;
use crate::storage::seats::SeatBatches;
use crate::storage::sqlite::Sqlite;
use crate::storage::statement::sql;
use crate::storage::tx::run;

pub use crate::storage::sqlite::copy;

const SCHEMES: &str = "sqlite://FILE or postgres://HOST/DATABASE";

/// The text of a statement for one engine, for the test that prepares all of them.
#[doc(hidden)]
#[must_use]
pub fn statement_text(text: &str, names: &[&str], is_postgres: bool) -> String {
    statement::render(text, names, is_postgres)
}

/// A boxed future of a method. It resolves to [`StorageError`] when the database cannot be read or written.
pub type StorageFuture<'a, T> = BoxFuture<'a, Result<T, StorageError>>;

#[derive(Clone, Debug)]
pub struct Storage {
    engine: Engine,
    /// The last measurement was above the bound.
    is_spent: Arc<AtomicBool>,
    is_reserve_spent: Arc<AtomicBool>,
    seats: Arc<SeatBatches>,
}

#[derive(Clone, Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Storage {
    /// Opens the database at `url` and migrates it to the current schema. `sqlite://FILE` is relative
    /// to the working directory, `sqlite:///FILE` absolute; a missing file is created. The database of
    /// `postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE` must exist. `Unsupported`: the URL is
    /// invalid, or another program owns the database.
    pub async fn open(url: &str) -> Result<Self, StorageError> {
        let (scheme, _) = url.split_once(':').ok_or_else(|| {
            StorageError::Unsupported(format!("database.url has no scheme; write {SCHEMES}"))
        })?;
        let engine = match scheme {
            "sqlite" => Engine::Sqlite(Sqlite::open(url).await?),
            "postgres" | "postgresql" => Engine::Postgres(Postgres::open(url).await?),
            // The rest of the URL may hold a password.
            other => {
                return Err(StorageError::Unsupported(format!(
                    "database.url begins with {other:?}; write {SCHEMES}"
                )));
            }
        };
        Ok(Self::of(engine))
    }

    /// The checks of [`open`](Self::open), without a change. Resolves to a sentence about the schema.
    pub fn examine(url: &str) -> StorageFuture<'_, String> {
        match url.starts_with("sqlite:") {
            true => Box::pin(sqlite::open::examine(url)),
            false => Box::pin(postgres::open::examine(url)),
        }
    }

    /// The schema of an existing database before a start.
    fn about_schema(found: Option<i64>, newest: i64) -> Result<String, StorageError> {
        match found {
            None => Ok("is empty or missing; a start makes it".to_owned()),
            Some(found) if found > newest => Err(StorageError::newer_schema(found)),
            Some(found) if found == newest => Ok(format!("has schema {found}")),
            Some(found) => Ok(format!("has schema {found}; a start migrates it to {newest}")),
        }
    }

    /// Why [`open`](Self::open) would refuse the address without a connection.
    #[must_use]
    pub fn url_fault(url: &str) -> Option<String> {
        let fault = match url.split_once(':') {
            Some(("sqlite", _)) => sqlite::open::file_of(url).map(drop),
            _ => postgres::parameters::Parameters::of(url).map(drop),
        };
        match fault.err()? {
            StorageError::Unsupported(why) => {
                Some(why.trim_start_matches("database.url ").to_owned())
            }
            other => Some(other.to_string()),
        }
    }

    fn of(engine: Engine) -> Self {
        let (is_spent, is_reserve_spent, seats) = Default::default();
        Self { engine, is_spent, is_reserve_spent, seats }
    }

    /// Whether writes run one after another: the engine has a single writer.
    #[must_use]
    pub fn has_one_writer(&self) -> bool {
        matches!(self.engine, Engine::Sqlite(_))
    }

    /// Runs one query, to check the connection. `Unsupported`: its schema is too old. PostgreSQL compares the
    /// schema only after a reconnect, because balancers probe every second: a restored database may have an
    /// older one. On SQLite `SELECT 1` would not read the file.
    pub fn check(&self) -> StorageFuture<'_, ()> {
        Box::pin(async move {
            let Engine::Postgres(engine) = &self.engine else {
                return self.schema().await.map(drop);
            };
            run!(self, Read, tx => { sql!("SELECT 1").run(tx).await.map(drop) }).await?;
            if !engine.reconnected().load(Ordering::Acquire) {
                return Ok(());
            }
            let (found, needed) = (self.schema().await?, engine.schema);
            if found < needed {
                let what =
                    format!("its schema has version {found}, and this galley needs {needed}");
                return Err(StorageError::Unsupported(what));
            }
            engine.reconnected().store(false, Ordering::Release);
            Ok(())
        })
    }

    /// Clears the file of the bytes of deleted rows: whether it has none. `None`: the caller repeats it. PostgreSQL
    /// removes them by its own `VACUUM`.
    pub fn clear_file(&self) -> StorageFuture<'_, Option<bool>> {
        match &self.engine {
            Engine::Sqlite(engine) => Box::pin(engine.clear_file()),
            Engine::Postgres(_) => Box::pin(ready(Ok(Some(false)))),
        }
    }

    pub fn schema(&self) -> StorageFuture<'_, i64> {
        run!(self, Read, tx => {
            sql!("SELECT max(version) FROM _sqlx_migrations").one(tx).await?.get(0)
        })
    }

    /// Waits for running calls, and closes. Later calls are `Unavailable`.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(engine) => engine.close().await,
            // Boxed: otherwise the future of every caller contains the space of this one.
            Engine::Postgres(engine) => Box::pin(engine.close()).await,
        }
    }
}
