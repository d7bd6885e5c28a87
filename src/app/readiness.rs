//! The probes of `/readyz`: the database, the locks, and the keys of the providers.

use futures_util::future::ready;

use crate::http::auth::host_keys::HostKeys;
use crate::http::readiness::{Down, Probe, Readiness};
use crate::locks::{Locks, LocksError};
use crate::runtime::Runtime;
use crate::storage::Storage;
use crate::storage::error::StorageError;

const STORAGE_AWAY: &str = "the database cannot be read: see whether it runs, can be reached and has this \
                            server's schema, and whether its disk has room; the server's log has its \
                            own words";
/// `/readyz`: a pooler in transaction mode stands before the database.
const STORAGE_POOLED: &str = "the database is behind a pooler in transaction mode, where prepared \
                              statements do not work: let `database.url` lead to PostgreSQL \
                              itself (a server holds ten connections at most), or to a pool with \
                              pool_mode = session";
const STORAGE_STUCK: &str = "the database can be read, but edits cannot be stored: see what else \
                             writes to it, and whether it may be written; they are kept in memory \
                             within a limit and stored by themselves, so do not stop this server \
                             before; its log has the database's own words";
/// `/readyz`: the database rejects edits because its disk is full.
const STORAGE_FULL: &str = "the database has no space left, so edits cannot be stored: free space on \
                            its disk; they are kept in memory within a limit and stored by \
                            themselves, so do not stop this server before";
const LOCKS_AWAY: &str = "Redis does not answer as it should, so no seat can be acquired: see whether \
                          it runs, has room, and is where `locks.url` leads; the server's log has \
                          its own words";

pub(super) async fn start(
    storage: &Storage,
    locks: &Locks,
    runtime: &Runtime,
    key_sets: impl Iterator<Item = (&'static str, HostKeys)>,
) -> Readiness {
    let (storage, locks, tasks) = (storage.clone(), locks.clone(), runtime.tasks.tracker.clone());
    let runtime = runtime.clone();
    let mut probes = vec![
        Probe::new("storage", move || {
            let (storage, runtime) = (storage.clone(), runtime.clone());
            async move {
                let down = |error: &StorageError, remedy: &str| Down {
                    cause: error.to_string(),
                    remedy: remedy.to_owned(),
                };
                storage.check().await.map_err(|error| down(&error, remedy_of(&error)))?;
                match runtime.storage_trouble() {
                    None => Ok(Vec::new()),
                    Some(error @ StorageError::Full(_)) => Err(down(&error, STORAGE_FULL)),
                    Some(error) => Err(down(&error, STORAGE_STUCK)),
                }
            }
        }),
        Probe::new("locks", move || {
            let locks = locks.clone();
            async move {
                locks.check().await.map_err(|error| locks_down(&error))?;
                Ok(locks.warnings().into_iter().map(str::to_owned).collect())
            }
        })
        .degrading(),
    ];
    probes.extend(key_sets.map(|(name, keys)| {
        // The last set stays in force, so its failure is a warning.
        Probe::new(name, move || ready(Ok(keys.warning().into_iter().collect())))
    }));
    Readiness::start(probes, tasks).await
}

pub(super) fn remedy_of(error: &StorageError) -> &'static str {
    if matches!(error, StorageError::Pooled(_)) { STORAGE_POOLED } else { STORAGE_AWAY }
}

/// Errors of Redis and the network may contain an address, so only the log shows them.
pub(super) fn locks_down(error: &LocksError) -> Down {
    let remedy = error.remedy().unwrap_or(LOCKS_AWAY).to_owned();
    Down { cause: error.to_string(), remedy }
}
