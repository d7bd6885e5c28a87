//! Up to where a document is safe, and who is told when.
//!
//! The first edit after a rest is called saved as soon as it is. While typing goes on people are told
//! twice a second: a frame to everybody for each key would cost more than the key. What was not told
//! at once is told later by the room's own task, so the last word is always said.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::outbox::event::Event;
use crate::rooms::room::{Room, State};
use crate::yjs::log::UpdateLog;

/// From one `document.saved` of a room to the next, at least.
const TOLD_APART: Duration = Duration::from_millis(500);

/// What the database has of a room's updates.
#[derive(Debug)]
pub(super) struct Saved {
    /// All of this is in the database (M3).
    state_vector: Bytes,
    /// Updates taken here, and how many of those the database has: it takes them in order.
    taken: u64,
    stored: u64,
    /// The state vector after the update of that number; saved when that one is.
    milestone: Option<(u64, Bytes)>,
    told_at: Option<Instant>,
    is_untold: bool,
}

impl Saved {
    /// A room that was opened with all of this.
    pub(super) fn up_to(state_vector: Bytes) -> Self {
        Self { state_vector, taken: 0, stored: 0, milestone: None, told_at: None, is_untold: false }
    }

    /// All of this survives any crash.
    pub(super) fn state_vector(&self) -> &Bytes {
        &self.state_vector
    }

    /// Books the log's last update as taken. One milestone is under way at a time, so that there is
    /// progress to tell while more keeps coming.
    pub(super) fn book(&mut self, log: &UpdateLog) {
        self.taken += 1;
        if self.milestone.is_none() {
            self.milestone = Some((self.taken, log.state_vector()));
        }
    }

    /// Books updates as stored. True if more is saved now.
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
    /// So many more of the updates taken here are stored, or others are by another server: tells
    /// everybody up to where the document is safe, now or soon (M3).
    pub(super) fn look_at_saved(&self, state: &mut State, stored: u64) {
        // What was counted before a refusal says nothing of what came after it.
        if state.takes_no_more() || !state.saved.store(stored, &state.log) || state.saved.is_untold
        {
            return;
        }
        // Whoever comes is told at the door.
        if !state.members.iter().any(|member| member.identity.wants_events) {
            return;
        }
        let now = Instant::now();
        if state.saved.told_at.is_none_or(|at| at + TOLD_APART <= now) {
            state.tell_saved(now);
        } else {
            state.saved.is_untold = true;
            self.untold.notify_one();
        }
    }

    /// When what has not been told is due.
    pub(super) fn tell_saved_at(&self) -> Instant {
        self.lock().saved.told_at.map_or_else(Instant::now, |at| at + TOLD_APART)
    }

    /// Tells what has not been told.
    pub(super) fn tell_saved(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.saved.is_untold) && !state.takes_no_more() {
            state.tell_saved(Instant::now());
        }
    }
}

impl State {
    fn tell_saved(&mut self, now: Instant) {
        self.saved.told_at = Some(now);
        self.tell_all(&Event::DocumentSaved { state_vector: &self.saved.state_vector });
    }
}
