//! The update log of a document: its validated updates in order.
//!
//! Updates carry numbers from 1 without a gap. A compaction replaces all updates up to a number by
//! a snapshot. No update is ever renumbered, so a reader that has read up to a number reads on
//! from there.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::guard::FenceGuard;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The number of the last update; 0 when there was none.
    pub seq: i64,
    /// The snapshot, if there is one, then the updates after it in order.
    pub parts: Vec<Bytes>,
    /// The number of each part; that of the snapshot is the last in it.
    pub numbers: Vec<i64>,
    pub is_merged: bool,
    /// The first user of each Yjs client id (D6). The server's own ids are left out.
    pub owners: Vec<(u64, UserId)>,
    /// The number of the last change of its reviews.
    pub review_changes: i64,
    /// Why a row beside the updates does not parse, if one does not. The updates are complete.
    pub damage: Option<String>,
}

/// A row of a document, as every engine reads it: kind, number, bytes, and owner of a client id.
/// Kinds: 0 the document's last number, 1 the snapshot, 2 an update, 3 an owner, 4 the number of
/// the last change of its reviews.
pub(super) type DocumentRow = (i64, i64, Option<Vec<u8>>, Option<String>);

impl Log {
    /// Builds the log from its rows, in any order. `None`: there is no such document.
    ///
    /// This function sorts the rows: a database would sort all bytes of the document, on disk if they
    /// are many.
    pub(super) fn of_rows(mut rows: Vec<DocumentRow>) -> Result<Option<Self>, StorageError> {
        // The document's row comes first. A snapshot's number is below those of the updates after it.
        rows.sort_unstable_by_key(|(kind, number, _, _)| (*kind, *number));
        let mut rows = rows.into_iter();
        let Some((0, seq, _, _)) = rows.next() else {
            return Ok(None);
        };
        let mut log = Self { seq, ..Self::default() };
        for (kind, number, bytes, owner) in rows {
            if kind == 4 {
                log.review_changes = number;
                continue;
            }
            if let Some(owner) = owner {
                match owner_of(number, &owner) {
                    Ok(owner) => log.owners.push(owner),
                    Err(error) => log.damage = Some(error.to_string()),
                }
                continue;
            }
            log.is_merged |= kind == 1;
            // The document's row does not count updates that are still in SQLite's journal.
            log.seq = log.seq.max(number);
            log.numbers.push(number);
            log.parts.push(Bytes::from(bytes.unwrap_or_default()));
        }
        Ok(Some(log))
    }

    /// The first missing number, and how many parts precede it. `None`: the log has no gap (D3).
    #[must_use]
    pub fn hole(&self) -> Option<(usize, i64)> {
        let mut next = match self.numbers.first() {
            Some(upto) if self.is_merged => *upto,
            _ => 1,
        };
        for (at, number) in self.numbers.iter().enumerate() {
            if *number != next {
                return Some((at, next));
            }
            next += 1;
        }
        (next <= self.seq).then_some((self.numbers.len(), next))
    }
}

fn owner_of(number: i64, owner: &str) -> Result<(u64, UserId), StorageError> {
    Ok((u64::try_from(number).map_err(corrupt)?, parse(owner)?))
}

/// The last numbers of a document in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastNumbers {
    pub update: i64,
    pub review_change: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Updates with their numbers, in order and without a gap.
    pub updates: Vec<(i64, Bytes)>,
}

/// Whether a snapshot contains an update.
pub type Covers = dyn Fn(&[u8]) -> bool + Send + Sync;

#[derive(Clone, Debug)]
pub struct Append {
    pub document: DocumentId,
    /// The seat that authorizes the write. `None`: the server itself writes.
    pub guard: Option<FenceGuard>,
    pub update: Bytes,
    /// The Yjs client ids under which the update adds operations.
    pub clients: Vec<u64>,
    /// The user who owns these ids. `None`: the server.
    pub user: Option<UserId>,
    /// The document's last number must equal this.
    pub expected_seq: Option<i64>,
    /// The document's last number must be at least this. A database that was set back (an old backup,
    /// a failover) lacks updates that this one depends on; storing it would leave a gap in the log.
    pub after: i64,
    pub now: DateTime<Utc>,
}

/// The outcome of an update. Only `Stored` changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    Stored {
        /// One above the document's last.
        seq: i64,
    },
    /// The seat has another fence, is not a writer's, is on another document, or its link is
    /// revoked.
    Fenced,
    /// The document's last number is no longer `expected_seq`.
    Stale,
    /// Another user owns that Yjs client id.
    ForeignClient {
        client: u64,
    },
    Gone,
    /// The database was set back to an older state: the document's last number is below `after`.
    SetBack {
        last: i64,
    },
    /// A row that the update depends on does not parse. No other document is affected (G16).
    Damaged,
    /// Another transaction holds the lock of the document's row. The caller can retry when that
    /// transaction ends; no other document waits for it (G16).
    Busy,
    /// An earlier update of the group on the same document was refused, and this one may depend on
    /// it: stored alone, it would leave a gap in every replica (D7).
    Orphaned,
}
