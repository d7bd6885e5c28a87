//! Durability of a room: its pending updates, and the backpressure while the backlog is full.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::outbox::event::{Event, MEMORY_FULL, Problem, STORE_BUDGET_SPENT, UNSAVED_FULL};
use crate::rooms::room::{Room, RoomState};

/// The updates that the database has not committed, and the edits that the room rejected meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Durability {
    unsaved_bytes: usize,
    unsaved_updates: usize,
    /// The highest number under which the database committed an update of this room.
    stored_upto: i64,
    /// The cause of failing commits that the room broadcast last.
    failure: Option<Problem>,
    /// Backpressure rejected edits; the room requests them when the backlog has room.
    has_rejected: bool,
    /// The writer's store budget is spent. The room requests no edit before this time.
    spent_until: Option<Instant>,
}

impl Durability {
    pub(super) fn is_saved(&self) -> bool {
        self.unsaved_bytes == 0
    }

    pub(super) fn failure(&self) -> Option<Problem> {
        self.failure
    }

    pub(super) fn has_rejected(&self) -> bool {
        self.has_rejected
    }

    /// An empty backlog has room for an update of any size: no commit could make room for a larger one.
    pub(super) fn has_room(&self, bytes: usize, most: usize) -> bool {
        self.is_saved() || self.unsaved_bytes + bytes <= most
    }

    /// The room rejects an edit, and requests it again when the backlog has room. A spent store budget delays
    /// the request until `spent_until`.
    pub(super) fn reject(&mut self, spent_until: Option<Instant>) {
        self.has_rejected = true;
        self.spent_until = spent_until.or(self.spent_until);
    }

    pub(super) fn queue(&mut self, bytes: usize) {
        self.unsaved_bytes += bytes;
        self.unsaved_updates += 1;
    }

    /// The database committed an update of this room under `seq`.
    pub(super) fn raise(&mut self, seq: i64) {
        self.stored_upto = self.stored_upto.max(seq);
    }

    fn store(&mut self, bytes: usize) {
        self.unsaved_bytes = self.unsaved_bytes.saturating_sub(bytes);
        self.unsaved_updates = self.unsaved_updates.saturating_sub(1);
        self.failure = None;
    }
}

impl Room {
    /// The persister committed an update of `bytes` under `seq` (P1). Returns whether it is to be published:
    /// later servers read it from the log (M5).
    #[must_use]
    pub fn stored(&self, seq: i64, bytes: usize) -> bool {
        let mut state = self.lock();
        state.durability.raise(seq);
        if seq == state.seq + 1 {
            state.seq = seq;
        } else if state.seq < seq {
            // Another server committed an update in between.
            self.behind.notify_one();
        }
        state.durability.store(bytes);
        self.look_at_saved(&mut state, 1);
        self.look_at_refused(&mut state);
        self.stored.notify_waiters();
        !state.subscribers.is_empty()
    }

    /// Whether the writer sends faster than the database stores. Its socket then pauses, and the client
    /// retains its further edits (G16). A room that cannot store at all rejects them instead.
    #[must_use]
    pub fn applies_backpressure(&self) -> bool {
        let state = self.lock();
        let Durability { unsaved_bytes, unsaved_updates, failure, .. } = &state.durability;
        let is_large = self.limits.unsaved_bytes / 2 < *unsaved_bytes;
        let is_long = self.persister.share() < *unsaved_updates;
        (is_large || is_long) && failure.is_none() && !state.integrity.takes_no_more()
    }

    /// Waits until the database has caught up with the writer, or the room is retired.
    pub async fn backpressure_ends(&self) {
        let ends = || !self.applies_backpressure() || self.retired.is_cancelled();
        self.wait_for_stored(ends).await;
    }

    /// Requests the edits that backpressure rejected, if the backlog has room again. The seat tick calls
    /// this: the full backlog may be that of all rooms, and then no commit of this room triggers the
    /// check.
    pub fn request_refused(&self) {
        self.look_at_refused(&mut self.lock());
    }

    /// Requests the rejected edits when half of the backlog is free again. Their client still has them.
    /// Without the request they arrive only if its user types again.
    fn look_at_refused(&self, state: &mut RoomState) {
        let Durability { unsaved_bytes, has_rejected, spent_until, .. } = &state.durability;
        let is_free = *unsaved_bytes <= self.limits.unsaved_bytes / 2
            && self.persister.has_room()
            && !state.memory.is_full();
        if state.integrity.takes_no_more() || !has_rejected || !is_free {
            return;
        }
        if spent_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        state.durability.has_rejected = false;
        state.durability.spent_until = None;
        state.request_from_writers();
    }

    pub async fn flushed(&self) {
        self.wait_for_stored(|| self.is_durable()).await;
    }

    async fn wait_for_stored(&self, is_enough: impl Fn() -> bool) {
        loop {
            // The task registers before the check, or it would miss a notification between the two.
            let stored = self.stored.notified();
            if is_enough() {
                return;
            }
            tokio::select! {
                () = stored => {}
                () = self.retired.cancelled() => {}
            }
        }
    }

    /// Whether no update is pending, or the room is retired.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.lock().durability.is_saved() || self.retired.is_cancelled()
    }

    /// Of updates that the database has not committed.
    pub(crate) fn unsaved_bytes(&self) -> usize {
        self.lock().durability.unsaved_bytes
    }

    /// False after a time-out.
    pub async fn flushed_within(&self, limit: Duration) -> bool {
        timeout(limit, self.flushed()).await.is_ok()
    }

    pub fn not_saved(&self, problem: Problem) {
        self.lock().broadcast_not_saved(problem);
    }

    /// The highest database number that this room has seen, in its log or for its own commits.
    #[must_use]
    pub fn last_number(&self) -> i64 {
        self.lock().last_number()
    }
}

impl RoomState {
    pub(super) fn last_number(&self) -> i64 {
        self.seq.max(self.durability.stored_upto)
    }

    pub(super) fn why_full(&self) -> Problem {
        if self.durability.spent_until.is_some() {
            STORE_BUDGET_SPENT
        } else if self.memory.is_full() {
            MEMORY_FULL
        } else {
            UNSAVED_FULL
        }
    }

    /// Broadcasts the cause of failing commits, and the same cause again only after a commit.
    pub(super) fn broadcast_not_saved(&mut self, problem: Problem) {
        if self.durability.failure.replace(problem) != Some(problem) {
            self.members.broadcast_event(&Event::Problem(problem));
        }
    }
}
