//! A cache of the rows that a group of edits depends on.
//!
//! The number and the admission of an edit depend on a few rows. Besides edits themselves, hardly any
//! write changes these rows. Reading them for each keystroke would cost more than storing it.
//!
//! # Why it is never stale
//!
//! - A write of this process has the only writing connection, and first invalidates the rows that it
//!   may change ([`Invalidate`]). A group takes the cache, and puts it back after its commit. A group
//!   that fails or is cancelled leaves it empty. After a refusal, the group reads the rows of the
//!   refused updates again.
//! - A write of another process changes `data_version`: SQLite reports to a connection the commits
//!   of all others. The statement that stores a group compares it, under the same lock as the write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ids::DocumentId;
use crate::domain::seat::Seat;
use crate::storage::append_plan::State;

/// Cached documents, seats and client ids; each takes about 200 bytes.
const THINGS_MAX: usize = 100_000;

/// The rows of the file after the last group.
#[derive(Debug, Default)]
pub(super) struct CachedRows {
    /// The `data_version` of the file, as the writing connection sees it.
    pub(super) version: i64,
    pub(super) state: State,
    /// The last row id of the journal, and so about the number of its rows.
    pub(super) journaled: i64,
}

/// The cached rows that a transaction may change.
#[derive(Debug)]
pub(super) enum Invalidate {
    Nothing,
    Seats(Vec<Seat>),
    Document(DocumentId),
    Everything,
}

/// The cache of an engine. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<CachedRows>>);

impl Memory {
    /// Takes the cached rows; the cache is empty until [`put_back`](Self::put_back).
    pub(super) fn take(&self) -> CachedRows {
        std::mem::take(&mut self.lock())
    }

    /// Fills the cache after a group is stored. The caller still has the connection.
    pub(super) fn put_back(&self, cache: CachedRows) {
        if cache.state.things() <= THINGS_MAX {
            *self.lock() = cache;
        }
    }

    pub(super) fn forget(&self, forget: &Invalidate) {
        let mut cache = self.lock();
        match forget {
            Invalidate::Nothing => {}
            Invalidate::Seats(seats) => {
                for seat in seats {
                    cache.state.seats.remove(seat);
                }
            }
            Invalidate::Document(document) => {
                cache.state.last_seq.remove(document);
            }
            Invalidate::Everything => *cache = CachedRows::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
