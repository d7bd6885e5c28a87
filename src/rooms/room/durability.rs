//! Durability of a room: its pending updates, and the backpressure while the backlog is full.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::outbox::event::{Event, Problem, STORE_BUDGET_SPENT, UNSAVED_FULL};
use crate::rooms::room::{Room, State};

/// The share of one pending update in the room's backlog.
#[derive(Debug)]
pub struct Debt {
    pub(super) bytes: usize,
}

impl Room {
    /// The persister committed the update under `seq` (P1).
    pub fn stored(&self, seq: i64, debt: &Debt) {
        let mut state = self.lock();
        state.stored_upto = state.stored_upto.max(seq);
        if seq == state.seq + 1 {
            state.seq = seq;
        } else if state.seq < seq {
            // Another server committed an update in between.
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

    /// Requests the edits that backpressure rejected, if the backlog has room again. The seat tick calls
    /// this: the full backlog may be that of all rooms, and then no commit of this room triggers the
    /// check.
    pub fn ask_for_refused(&self) {
        self.look_at_refused(&mut self.lock());
    }

    /// Requests the rejected edits when half of the backlog is free again. Their client still has them.
    /// Without the request they arrive only if its user types again.
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

    /// Waits until no update is pending, or the room is retired.
    pub async fn settled(&self) {
        loop {
            // The task registers before the check, or it would miss a notification between the two.
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

    /// Whether no update is pending, or the room is retired.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.lock().unsaved_bytes == 0 || self.retired.is_cancelled()
    }

    /// Waits as [`settled`](Self::settled) does, for at most `patience`. False after a time-out.
    pub async fn settled_within(&self, patience: Duration) -> bool {
        timeout(patience, self.settled()).await.is_ok()
    }

    /// The persister cannot commit: the room broadcasts `problem` once.
    pub fn not_saved(&self, problem: Problem) {
        self.lock().is_not_saved(problem);
    }

    /// The highest database number that this room has seen, in its log or for its own commits.
    #[must_use]
    pub fn known_number(&self) -> i64 {
        self.lock().known_number()
    }
}

impl State {
    pub(super) fn known_number(&self) -> i64 {
        self.seq.max(self.stored_upto)
    }

    /// The limit because of which the room rejects edits.
    pub(super) fn why_full(&self) -> Problem {
        if self.spent_until.is_some() { STORE_BUDGET_SPENT } else { UNSAVED_FULL }
    }

    /// Broadcasts the cause of failing commits, and the same cause again only after a commit.
    pub(super) fn is_not_saved(&mut self, problem: Problem) {
        if self.not_saved.replace(problem) != Some(problem) {
            self.tell_all(&Event::Problem(problem));
        }
    }
}
