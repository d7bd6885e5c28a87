//! What is done for a document now and then: looking at all of it, counting its characters,
//! merging its rows.
//!
//! Chores wait until nothing is owed, so that what is merged is what the database has. Typing never
//! waits for them: the log is copied under the room's lock, the rest happens elsewhere.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::domain::ids::UserId;
use crate::rooms::room::{Room, State};
use crate::rooms::text_builder::BuildPermit;
use crate::yjs::log::{Origin, SERVER_IDS};

/// Characters of a document that is worked on are counted this often; counting builds the text.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// Rows that are merged while somebody works: opening a document of so many takes a millisecond.
const ROWS_WORKING: usize = 1_000;
/// Rows that are merged when the last one leaves.
const ROWS_LEAVING: usize = 32;

/// A look at a document: all of it, and when.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The document as one update.
    pub merged: Bytes,
    /// Last database number in it.
    pub seq: i64,
    /// Whether there is nothing in it that the database has not.
    pub is_settled: bool,
    /// Rises with each update of an open room.
    pub version: u64,
    /// The place in which its text may be built, kept for as long as the snapshot is.
    pub place: Option<BuildPermit>,
}

/// When chores are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// While somebody works.
    Working,
    /// The last one has left.
    Leaving,
}

/// What is to be done for a document.
#[derive(Debug)]
pub struct Maintenance {
    /// The document, all of it stored.
    pub snapshot: Snapshot,
    /// Whether its rows are to be merged.
    pub merge: bool,
}

/// What has piled up since the last chores.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Rows in the database.
    pub(super) rows: usize,
    counted_version: u64,
    counted_at: Instant,
}

impl Backlog {
    /// A document in `rows` rows, whose count is right.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, counted_version: 0, counted_at: Instant::now() }
    }
}

impl Room {
    /// Whether an answer to sync step 1 brings an edit that `user` may have made.
    ///
    /// A known struct or deletion is none. New structs under the client ids of other users or of servers
    /// are edits that the database lost, and the writer's client brings them. A deletion names no author.
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

    /// About how many bytes the document has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().log.bytes()
    }

    /// The whole document, now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    /// What is to be done now, if anything. Asked again, it is not.
    #[must_use]
    pub fn chores(&self, occasion: Trigger, now: Instant) -> Option<Maintenance> {
        let mut state = self.lock();
        let (rows_max, count_every) = match occasion {
            Trigger::Working => (ROWS_WORKING, COUNT_EVERY),
            Trigger::Leaving => (ROWS_LEAVING, Duration::ZERO),
        };
        let merge = rows_max < state.backlog.rows;
        let changed = state.backlog.counted_version != state.version;
        let count = changed && count_every <= now.duration_since(state.backlog.counted_at);
        if state.takes_no_more()
            || state.is_damaged
            || state.unsaved_bytes != 0
            || !(merge || count)
        {
            return None;
        }
        if merge {
            state.backlog.rows = 1;
        }
        state.backlog.counted_version = state.version;
        state.backlog.counted_at = now;
        // Under the same lock: nothing that is owed may get into it.
        Some(Maintenance { snapshot: state.snapshot(), merge })
    }
}

impl State {
    pub(super) fn snapshot(&mut self) -> Snapshot {
        Snapshot {
            merged: self.log.merged(),
            seq: self.seq,
            is_settled: self.unsaved_bytes == 0,
            version: self.version,
            place: None,
        }
    }
}
