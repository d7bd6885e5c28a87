//! What must survive: users, documents and their updates, share links, the seats' fences,
//! reviews, versions.
//!
//! # Shape
//!
//! One file per subject says what there is to ask; one folder per engine answers, with a file for
//! each subject again. [`Storage`] is the door: an enum of engines, because the set is closed
//! and ours. What does not depend on the engine, such as which update of a group gets which
//! number, is decided in `plan` by plain code.
//!
//! # Invariants
//!
//! - **D1** Several processes may use one database. Whatever must be decided once, is decided
//!   in the transaction that writes it: never by a look before.
//! - **D2** A write in the right of a seat names its fence; under another fence than the one
//!   ratified last, or on a revoked link, it changes no row (G2, G14).
//! - **D3** The numbers of a document's updates have no hole, and none is given twice, also
//!   across compactions.
//! - **D4** What was answered as stored survives `kill -9` and a power cut (G7).
//! - **D5** A snapshot stands for exactly the numbers up to its own; an older one never takes
//!   the place of a newer one.
//! - **D6** A Yjs client id belongs, within a document, to the user who first wrote under it.
//! - **D7** What was taken after a refused update, and may stand on it, is not stored without it.
//! - **D8** The versions of a document are numbered from 1, in the order of the points of the log
//!   that they are of; an automatic one is of a later point than any before it, and of another
//!   text than the last.
//!
//! Times are kept in whole milliseconds.

mod append_plan;
pub mod capacity;
mod decode;
pub mod documents;
pub mod error;
pub mod links;
pub mod log;
pub mod pagination;
mod postgres;
pub mod review_changes;
pub mod reviews;
pub mod seats;
mod sqlite;
pub mod users;
mod version_plan;
pub mod versions;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::storage::error::StorageError;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;

/// What a URL may be.
const SCHEMES: &str = "sqlite://FILE or postgres://HOST/DATABASE";

/// Passes a call on to the engine in use.
macro_rules! on_engine {
    ($storage:expr, $method:ident($($argument:expr),*)) => {
        match &$storage.engine {
            $crate::storage::Engine::Sqlite(engine) => engine.$method($($argument),*).await,
            // Boxed, or every task that may ask anything would carry the room for it.
            $crate::storage::Engine::Postgres(engine) => {
                Box::pin(engine.$method($($argument),*)).await
            }
        }
    };
}
use on_engine;

/// The database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Storage {
    engine: Engine,
    /// The database was above its bound when it was last measured.
    is_spent: Arc<AtomicBool>,
    is_reserve_spent: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Storage {
    /// Opens the database at `url` and brings it to the current schema. `sqlite://FILE` is
    /// relative to the working directory, `sqlite:///FILE` absolute, and is made if it is not
    /// there; `postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE` must be there.
    ///
    /// # Errors
    ///
    /// `Unsupported` when the URL is not one, or what is there is not for this program; otherwise
    /// as [`StorageError`] says.
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
        Ok(Self { engine, is_spent: Arc::default(), is_reserve_spent: Arc::default() })
    }

    /// Whether each write waits for those before it.
    #[must_use]
    pub fn has_one_writer(&self) -> bool {
        matches!(self.engine, Engine::Sqlite(_))
    }

    /// Whether the database answers.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when it does not.
    pub async fn check(&self) -> Result<(), StorageError> {
        on_engine!(self, check())
    }

    /// Waits for what is under way, and closes. Later calls are `Unavailable`.
    pub async fn close(&self) {
        on_engine!(self, close());
    }
}
