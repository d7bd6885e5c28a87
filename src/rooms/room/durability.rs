//! What a room owes the database, and what becomes of it.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::outbox::event::{Event, Problem, STORE_BUDGET_SPENT, UNSAVED_FULL};
use crate::rooms::room::{Room, State};

/// What a room owes the database for one update.
#[derive(Debug)]
pub struct Debt {
    pub(super) bytes: usize,
}

impl Room {
    /// The database has the update, under `seq` (P1).
    pub fn stored(&self, seq: i64, debt: &Debt) {
        let mut state = self.lock();
        state.stored_upto = state.stored_upto.max(seq);
        if seq == state.seq + 1 {
            state.seq = seq;
        } else if state.seq < seq {
            // Another server stored something in between.
            self.behind.notify_one();
        }
        state.unsaved_bytes = state.unsaved_bytes.saturating_sub(debt.bytes);
        state.not_saved = None;
        self.look_at_saved(&mut state, 1);
        self.look_at_refused(&mut state);
        if state.unsaved_bytes == 0 {
            self.settled.notify_waiters();
        }
    }

    /// Asks for the edits that were refused for want of room, if there is some again. To be called now
    /// and then: the room that was wanting may have been that of all rooms together, and then nothing
    /// of this one is stored that would bring it about.
    pub fn ask_for_refused(&self) {
        self.look_at_refused(&mut self.lock());
    }

    /// Asks for the edits that were refused for want of room, once half of it is free again. Whoever
    /// made them has them still, and may not type any more by which they would come.
    fn look_at_refused(&self, state: &mut State) {
        let is_free =
            state.unsaved_bytes <= self.limits.unsaved_bytes / 2 && self.persister.has_room();
        if state.takes_no_more() || !state.is_full || !is_free {
            return;
        }
        if state.spent_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        state.is_full = false;
        state.spent_until = None;
        for member in &state.members {
            state.ask_for_missing(member);
        }
    }

    /// Waits until the database is owed nothing, or the room is given up.
    pub async fn settled(&self) {
        loop {
            // Asked for before the look, so that what comes between the two is not slept through.
            let settled = self.settled.notified();
            if self.is_settled() {
                return;
            }
            tokio::select! {
                () = settled => {}
                () = self.retired.cancelled() => {}
            }
        }
    }

    /// Whether the database is owed nothing, or the room is given up.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.lock().unsaved_bytes == 0 || self.retired.is_cancelled()
    }

    /// Waits as [`settled`](Self::settled) does, at most `patience`. False if it was too short.
    pub async fn settled_within(&self, patience: Duration) -> bool {
        timeout(patience, self.settled()).await.is_ok()
    }

    /// Storage does not answer: says so, once.
    pub fn not_saved(&self, problem: Problem) {
        self.lock().is_not_saved(problem);
    }

    /// The number up to which this room knows the database to have the document.
    #[must_use]
    pub fn known_number(&self) -> i64 {
        self.lock().known_number()
    }
}

impl State {
    pub(super) fn known_number(&self) -> i64 {
        self.seq.max(self.stored_upto)
    }

    /// The cause for which edits were refused for want of room.
    pub(super) fn why_full(&self) -> Problem {
        if self.spent_until.is_some() { STORE_BUDGET_SPENT } else { UNSAVED_FULL }
    }

    /// Says what keeps the document from being stored, once until it is.
    pub(super) fn is_not_saved(&mut self, problem: Problem) {
        if self.not_saved.replace(problem) != Some(problem) {
            self.tell_all(&Event::Problem(problem));
        }
    }
}
