//! The database: users, documents and their updates, share links, the seats' fences, reviews,
//! versions.
//!
//! # Shape
//!
//! One file per subject has its types, and a file of that name in `sql` its statements. `statement` says
//! how an engine stores a type of the domain, and `tx` how a transaction begins, ends and runs again. The
//! folder of an engine has the log and the seats, whose statements are measured. [`Storage`] is an enum
//! of engines: the set is closed and ours. Decisions that do not depend on the engine are plain code in
//! `append_plan` and `version_plan`.
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

mod append_plan;
pub mod audit;
pub mod bin;
pub mod capacity;
pub mod decisions;
pub mod decode;
pub mod documents;
pub mod error;
pub mod guard;
pub mod invites;
pub mod links;
pub(crate) mod locked;
pub mod log;
pub mod pagination;
pub mod partners;
mod postgres;
pub mod progress;
pub mod replies;
pub mod review_changes;
pub mod reviews;
pub mod revocations;
pub mod root;
pub mod seats;
pub mod sql;
mod sqlite;
pub mod statement;
pub mod suggestions;
pub mod trace;
pub mod tx;
pub mod tx_error;
pub mod users;
mod version_plan;
pub mod versions;
pub mod webhooks;

use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::storage::error::StorageError;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;

pub use crate::storage::sqlite::copy;

const SCHEMES: &str = "sqlite://FILE or postgres://HOST/DATABASE";

/// Dispatches a call to the engine in use.
macro_rules! on_engine {
    ($storage:expr, $method:ident($($argument:expr),*)) => {
        match &$storage.engine {
            $crate::storage::Engine::Sqlite(engine) => engine.$method($($argument),*).await,
            // Boxed: otherwise the future of every caller contains the space of this one.
            $crate::storage::Engine::Postgres(engine) => {
                Box::pin(engine.$method($($argument),*)).await
            }
        }
    };
}
use on_engine;

/// As `on_engine`, for a method that returns a boxed future: rustc compiles the body of an `async fn`
/// again in each codegen unit and crate that awaits it.
macro_rules! boxed_on_engine {
    ($storage:expr, $method:ident($($argument:expr),*)) => {
        match &$storage.engine {
            $crate::storage::Engine::Sqlite(engine) => Box::pin(engine.$method($($argument),*)),
            $crate::storage::Engine::Postgres(engine) => Box::pin(engine.$method($($argument),*)),
        }
    };
}
use boxed_on_engine;

/// The text of a statement for one engine, for the test that prepares all of them.
#[doc(hidden)]
#[must_use]
pub fn statement_text(text: &str, is_postgres: bool) -> String {
    statement::render(text, is_postgres)
}

/// A boxed future of a method. It resolves to [`StorageError`] when the database cannot be read or written.
pub type StorageFuture<'a, T> = BoxFuture<'a, Result<T, StorageError>>;

#[derive(Clone, Debug)]
pub struct Storage {
    engine: Engine,
    /// The last measurement was above the bound.
    is_spent: Arc<AtomicBool>,
    is_reserve_spent: Arc<AtomicBool>,
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
        Self { engine, is_spent: Arc::default(), is_reserve_spent: Arc::default() }
    }

    /// Whether writes run one after another: the engine has a single writer.
    #[must_use]
    pub fn has_one_writer(&self) -> bool {
        matches!(self.engine, Engine::Sqlite(_))
    }

    /// Runs one query, to check the connection. `Unsupported`: its schema is too old.
    pub fn check(&self) -> StorageFuture<'_, ()> {
        boxed_on_engine!(self, check())
    }

    pub fn schema(&self) -> StorageFuture<'_, i64> {
        boxed_on_engine!(self, schema())
    }

    /// Waits for running calls, and closes. Later calls are `Unavailable`.
    pub async fn close(&self) {
        on_engine!(self, close());
    }
}
