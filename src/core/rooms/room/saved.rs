//! The saved state of a room, and the schedule of `document.saved`.
//!
//! The room broadcasts the first `document.saved` after a pause as soon as the commit ends. Further
//! ones are at least 500 ms apart: a broadcast for each edit would cost more than the edit. The
//! room's task sends a postponed one later, so the last commit is always reported.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::outbox::event::Event;
use crate::rooms::room::{Room, RoomState};
use crate::yjs::log::UpdateLog;

const SAVED_APART: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Saved {
    /// The database has all of this (M3).
    state_vector: Bytes,
    /// The count of accepted local updates, and how many of them are durable. Commits keep their order.
    taken: u64,
    stored: u64,
    /// The state vector after the update of that number; durable when that update is.
    milestone: Option<(u64, Bytes)>,
    broadcast_at: Option<Instant>,
    is_postponed: bool,
}

impl Saved {
    /// The database has all of `state_vector` when the room opens.
    pub(super) fn up_to(state_vector: Bytes) -> Self {
        Self {
            state_vector,
            taken: 0,
            stored: 0,
            milestone: None,
            broadcast_at: None,
            is_postponed: false,
        }
    }

    pub(super) fn state_vector(&self) -> &Bytes {
        &self.state_vector
    }

    /// Counts the log's last update as accepted. At most one milestone is pending, so the saved state
    /// advances while further updates arrive.
    pub(super) fn book(&mut self, log: &UpdateLog) {
        self.taken += 1;
        if self.milestone.is_none() {
            self.milestone = Some((self.taken, log.state_vector()));
        }
    }

    /// Counts local updates as durable. True if the saved state vector advances.
    fn store(&mut self, updates: u64, log: &UpdateLog) -> bool {
        self.stored += updates;
        if self.stored == self.taken {
            self.milestone = None;
            self.state_vector = log.state_vector();
            return true;
        }
        match self.milestone.take_if(|(number, _)| *number <= self.stored) {
            Some((_, state_vector)) => {
                self.state_vector = state_vector;
                true
            }
            None => false,
        }
    }
}

impl Room {
    /// `stored` more local updates are durable (0: a remote one arrived). Broadcasts `document.saved`
    /// at most every 500 ms (M3).
    pub(super) fn look_at_saved(&self, state: &mut RoomState, stored: u64) {
        // After a rejection the counts no longer match the log.
        if state.integrity.takes_no_more()
            || !state.saved.store(stored, &state.log)
            || state.saved.is_postponed
        {
            return;
        }
        // A session that joins later receives the saved state from `join`.
        if !state.members.want_events() {
            return;
        }
        let now = Instant::now();
        if state.saved.broadcast_at.is_none_or(|at| at + SAVED_APART <= now) {
            state.broadcast_saved(now);
        } else {
            state.saved.is_postponed = true;
            self.saved_later.notify_one();
        }
    }

    pub(super) fn saved_due_at(&self) -> Instant {
        self.lock().saved.broadcast_at.map_or_else(Instant::now, |at| at + SAVED_APART)
    }

    pub(super) fn broadcast_saved(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.saved.is_postponed) && !state.integrity.takes_no_more() {
            state.broadcast_saved(Instant::now());
        }
    }
}

impl RoomState {
    fn broadcast_saved(&mut self, now: Instant) {
        self.saved.broadcast_at = Some(now);
        self.members
            .broadcast_event(&Event::DocumentSaved { state_vector: &self.saved.state_vector });
    }
}
