//! What groups of edits rest on, remembered from one to the next.
//!
//! Whether an edit may be stored, and under which number, depends on a few rows that hardly ever
//! change but by edits themselves. To look them up again for each keystroke would cost more than to
//! store it.
//!
//! # Why it is never wrong
//!
//! - Whoever writes holds the only connection that can, and says before what it may change
//!   ([`Forget`]). A group takes the memory with it and puts it back when it is stored: one that
//!   fails, is refused in part or is given up half-way leaves none.
//! - Other processes move the file's version, by which SQLite tells one of its connections that
//!   another one has committed. The statement that stores a group asks for it, so it is looked at
//!   under the same lock under which is written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ids::DocumentId;
use crate::domain::seat::Seat;
use crate::storage::append_plan::State;

/// Documents, seats and client ids that are remembered; some 200 bytes each.
const THINGS_MAX: usize = 100_000;

/// The file as the last group left it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The file's version, for the connection that writes.
    pub(super) version: i64,
    pub(super) state: State,
    /// The last row of the journal, and so about how many it has.
    pub(super) journaled: i64,
}

/// What a transaction may change of what is remembered.
#[derive(Debug)]
pub(super) enum Forget {
    Nothing,
    Seats(Vec<Seat>),
    Document(DocumentId),
    Everything,
}

/// The memory of an engine. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Known>>);

impl Memory {
    /// Takes what is known; until it is put back there is nothing.
    pub(super) fn take(&self) -> Known {
        std::mem::take(&mut self.lock())
    }

    /// What is known after a group was stored, by who still has the connection.
    pub(super) fn put_back(&self, known: Known) {
        if known.state.things() <= THINGS_MAX {
            *self.lock() = known;
        }
    }

    pub(super) fn forget(&self, forget: &Forget) {
        let mut known = self.lock();
        match forget {
            Forget::Nothing => {}
            Forget::Seats(seats) => {
                for seat in seats {
                    known.state.seats.remove(seat);
                }
            }
            Forget::Document(document) => {
                known.state.last_seq.remove(document);
            }
            Forget::Everything => *known = Known::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
