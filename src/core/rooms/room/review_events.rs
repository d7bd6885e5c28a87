//! Events of reviews, in the order of their numbers (G15).
//!
//! The database numbers the changes of a document's reviews. A room delivers each number once: it
//! ignores a repeated number, such as a replayed message. Upon a gap it requests a read of the
//! changes from the database.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::outbox::close::Close;
use crate::rooms::room::Room;

/// Rooms with a gap that may wait. If the queue is full, the next tick finds the room again.
const ROOMS_MAX: usize = 1_024;

pub(crate) type Missed = mpsc::Sender<Arc<Room>>;

pub type MissedQueue = mpsc::Receiver<Arc<Room>>;

#[must_use]
pub(crate) fn missed() -> (Missed, MissedQueue) {
    mpsc::channel(ROOMS_MAX)
}

#[derive(Debug)]
pub(super) struct Delivered {
    upto: i64,
    /// The highest number that the room has heard of.
    named: i64,
    /// The database named this lower number at the last comparison.
    lower: Option<i64>,
}

impl Delivered {
    /// Clients that join read the reviews up to `upto` by REST.
    pub(super) fn up_to(upto: i64) -> Self {
        Self { upto, named: upto, lower: None }
    }

    pub(super) fn last_number(&self) -> i64 {
        self.upto.max(self.named)
    }
}

impl Room {
    /// Delivers the event of change number `change`, if it is the next one. Returns whether the caller is
    /// to publish it: later servers read it from the database (M5).
    pub fn take_review_event(self: &Arc<Self>, change: i64, json: &str) -> bool {
        let mut state = self.lock();
        state.reviews.named = state.reviews.named.max(change);
        if change == state.reviews.upto + 1 {
            state.reviews.upto = change;
            state.members.broadcast_json(None, json);
        } else if state.reviews.upto < change {
            self.read_missed_reviews();
        }
        !state.subscribers.is_empty()
    }

    /// The room of another server has heard of change number `change`.
    pub(super) fn review_change_named(self: &Arc<Self>, change: i64) {
        if self.lock().reviews.upto < change {
            self.read_missed_reviews();
        }
    }

    #[must_use]
    pub fn review_changes(&self) -> i64 {
        self.lock().reviews.upto
    }

    /// The database has numbered the changes up to `last`. A database that was set back names the same
    /// lower number at two comparisons. The room then adopts it, or it would ignore later changes.
    pub fn reviews_are_changed_up_to(self: &Arc<Self>, last: i64) {
        let mut state = self.lock();
        let delivered = &mut state.reviews;
        if delivered.upto <= last {
            delivered.lower = None;
            if delivered.upto < last {
                self.read_missed_reviews();
            }
        } else if delivered.lower.replace(last) == Some(last) {
            *delivered = Delivered::up_to(last);
        }
    }

    /// Delivers events that the server read from the database, in order of their numbers up to `upto`.
    pub fn take_missed_reviews(&self, upto: i64, events: &[(i64, String)]) {
        let mut state = self.lock();
        for (change, json) in events {
            if state.reviews.upto < *change {
                state.members.broadcast_json(None, json);
            }
        }
        state.reviews.upto = state.reviews.upto.max(upto);
    }

    /// The gap is too large to deliver: the room closes all sockets. Clients then reconnect and read
    /// the reviews by REST.
    pub fn reviews_are_lost(&self, upto: i64) {
        let mut state = self.lock();
        state.reviews = Delivered::up_to(upto);
        for member in state.members.iter() {
            member.outbox().close(Close::Restart("reviews-missed"));
        }
    }

    /// Requests a read of the missing changes. A full queue loses nothing: the next comparison finds
    /// the room again.
    fn read_missed_reviews(self: &Arc<Self>) {
        let _full = self.missed_reviews.try_send(Arc::clone(self));
    }
}
