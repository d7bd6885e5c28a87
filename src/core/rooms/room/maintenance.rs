//! Maintenance of a room: snapshots, counting of characters, merging of database rows.
//!
//! Maintenance waits until no update is pending, so the merged row holds durable updates only. Edits
//! never wait for it: the room copies its log under its lock, and another task does the rest.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::UserId;
use crate::rooms::room::{Room, RoomState};
use crate::rooms::snapshot::Snapshot;
use crate::yjs::log::{Origin, SERVER_IDS};

/// Pause between two counts of characters while sessions edit: each count builds the whole text.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// Rows above which they are merged while sessions are in the room. Opening so many takes 1 ms.
const ROWS_WORKING: usize = 1_000;
/// Rows above which they are merged when the last session leaves.
const ROWS_LEAVING: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The periodic tick, while sessions are in the room.
    Working,
    Leaving,
}

#[derive(Debug)]
pub struct Maintenance {
    pub snapshot: Snapshot,
    pub merge: bool,
}

/// Maintenance that is due, before the room copies its document.
struct DueWork {
    merge: bool,
}

#[derive(Debug)]
pub(super) struct Backlog {
    pub(super) rows: usize,
    counted_version: u64,
    counted_at: Instant,
}

impl Backlog {
    /// A document in `rows` rows with a current count of characters.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, counted_version: 0, counted_at: Instant::now() }
    }
}

impl Room {
    /// Whether an answer to sync step 1 brings an edit that `user` may have made.
    ///
    /// A known struct or deletion is no such edit. New structs under client ids of other users or of
    /// servers are edits that the database lost; the writer's client restores them. A deletion names no
    /// author.
    #[must_use]
    pub fn may_bring_edit_of(&self, user: &UserId, update: &[u8]) -> bool {
        let state = self.lock();
        let Ok(checked) = state.log.check(update, Origin::Answer) else { return false };
        let is_own = |client: &u64| {
            !SERVER_IDS.contains(client)
                && state.owners.get(client).is_none_or(|owner| owner == user)
        };
        checked.is_new && (checked.clients.is_empty() || checked.clients.iter().any(is_own))
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().log.bytes()
    }

    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    #[must_use]
    pub fn seq(&self) -> i64 {
        self.lock().seq
    }

    #[must_use]
    pub fn is_maintenance_due(&self, occasion: Trigger, now: Instant) -> bool {
        self.lock().due_work(occasion, now).is_some()
    }

    /// The maintenance that is due now. The call marks it as done, so a second call returns `None`.
    #[must_use]
    pub fn due_maintenance(&self, occasion: Trigger, now: Instant) -> Option<Maintenance> {
        let mut state = self.lock();
        let DueWork { merge } = state.due_work(occasion, now)?;
        if merge {
            state.backlog.rows = 1;
        }
        state.backlog.counted_version = state.version;
        state.backlog.counted_at = now;
        // Under the same lock as the check above: a pending update must not enter the snapshot.
        Some(Maintenance { snapshot: state.snapshot(), merge })
    }
}

impl RoomState {
    fn due_work(&self, occasion: Trigger, now: Instant) -> Option<DueWork> {
        let (rows_max, count_every) = match occasion {
            Trigger::Working => (ROWS_WORKING, COUNT_EVERY),
            Trigger::Leaving => (ROWS_LEAVING, Duration::ZERO),
        };
        let merge = rows_max < self.backlog.rows;
        let changed = self.backlog.counted_version != self.version;
        let count = changed && count_every <= now.duration_since(self.backlog.counted_at);
        let waits = self.integrity.takes_no_more()
            || self.integrity.is_damaged()
            || !self.durability.is_saved();
        (!waits && (merge || count)).then_some(DueWork { merge })
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        Snapshot {
            merged: self.log.merged(),
            seq: self.seq,
            is_durable: self.durability.is_saved(),
            version: self.version,
            permit: None,
        }
    }
}
