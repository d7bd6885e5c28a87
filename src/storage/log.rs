//! The update log of a document: what was written, in the order in which it counts.
//!
//! Updates carry numbers from 1 without a hole. When they are many, a snapshot takes the place
//! of all up to its number. Nothing is ever renumbered, so whoever has read up to a number can
//! ask for what came after it.

use std::collections::HashMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::seats::Guard;
use crate::storage::{Storage, on_engine};

/// A whole document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The number of the last update; 0 when there was none.
    pub seq: i64,
    /// The snapshot, if there is one, then the updates after it in order.
    pub parts: Vec<Bytes>,
    /// The number of each part; that of the snapshot is the last in it.
    pub numbers: Vec<i64>,
    /// Whether there is a snapshot.
    pub is_merged: bool,
    /// Which user wrote first under which Yjs client id. The server's own ids are left out.
    pub owners: Vec<(u64, UserId)>,
    /// The number of the last change of its reviews.
    pub review_changes: i64,
    /// Why a row beside the updates does not parse, if one does not. The updates are all there.
    pub damage: Option<String>,
}

/// A row of a document, as every engine reads it: what kind it is, its number, its bytes, and whose
/// client id it is. Of kind 0 is the document's last number, 1 the snapshot, 2 an update, 3 an owner, 4 the
/// last change of its reviews.
pub(super) type Row = (i64, i64, Option<Vec<u8>>, Option<String>);

impl Log {
    /// A log of its rows, in any order. `None`: there is no such document.
    ///
    /// They are sorted here: a database would sort all bytes of the document, on disk if they are many.
    pub(super) fn of_rows(mut rows: Vec<Row>) -> Result<Option<Self>, StorageError> {
        // The number comes first; a snapshot is always below the updates that it leaves standing.
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
            // Of what is in SQLite's journal the document's row knows nothing.
            log.seq = log.seq.max(number);
            log.numbers.push(number);
            log.parts.push(Bytes::from(bytes.unwrap_or_default()));
        }
        Ok(Some(log))
    }

    /// How many parts follow each other before the first number that is missing, and that number.
    /// `None`: none is (D3).
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

/// What came after a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Updates with their numbers, in order and without a hole.
    pub updates: Vec<(i64, Bytes)>,
}

/// An update to be stored.
#[derive(Clone, Debug)]
pub struct Append {
    /// The document.
    pub document: DocumentId,
    /// The seat in whose right it is written. `None`: by the server itself.
    pub guard: Option<Guard>,
    /// The update.
    pub update: Bytes,
    /// The Yjs client ids under which it brings something new.
    pub clients: Vec<u64>,
    /// Whose ids they are. `None`: the server's.
    pub user: Option<UserId>,
    /// Store it only if this is still the document's last number.
    pub expected_seq: Option<i64>,
    /// Store it only if the document's last number is at least this. A database that was set back
    /// lacks what the update stands on, and the update would leave a gap in its log.
    pub after: i64,
    /// When.
    pub now: DateTime<Utc>,
}

/// What became of an update. Whatever is not `Stored` changed no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Committed under this number.
    Stored {
        /// One above the document's last.
        seq: i64,
    },
    /// The seat has another fence, is not a writer's, is on another document, or its link was
    /// revoked.
    Fenced,
    /// `expected_seq` is not the last number any more.
    Stale,
    /// That Yjs client id belongs to somebody else.
    ForeignClient {
        /// The id.
        client: u64,
    },
    /// There is no such document.
    Gone,
    /// The database was set back: its last number of the document is below `after`.
    SetBack {
        /// The number it has.
        last: i64,
    },
    /// A row that the update rests on does not parse. No other document is affected (G16).
    Damaged,
    /// Another transaction holds the lock of the document's row. The same update can be stored when
    /// that transaction ends; no other document waits for it (G16).
    Busy,
    /// An earlier update of the group on the same document was refused, and this one may stand on
    /// it: stored alone, it would leave a gap that nobody can read past.
    Orphaned,
}

impl Storage {
    /// The whole document: snapshot first. `None`: there is no such document.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn log(&self, id: DocumentId) -> Result<Option<Log>, StorageError> {
        on_engine!(self, log(id))
    }

    /// What was stored after number `seq`. `None`: it was merged away, or the document is gone;
    /// load the whole.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn log_after(&self, id: DocumentId, seq: i64) -> Result<Option<Tail>, StorageError> {
        on_engine!(self, log_after(id, seq))
    }

    /// The last number of each of these documents that is there.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn last_numbers(
        &self,
        ids: &[DocumentId],
    ) -> Result<HashMap<DocumentId, i64>, StorageError> {
        on_engine!(self, last_numbers(ids))
    }

    /// Stores a group of updates in one transaction, with one outcome each, by position. An item
    /// that is refused takes with it what comes after it on the same document, and nothing else;
    /// an error means that none is stored, or, if the answer to the commit was lost, all of them.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the commit, nothing is stored; dropped during it, the outcome is unknown.
    /// Updates are idempotent: store them again.
    pub async fn append(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        on_engine!(self, append(batch))
    }

    /// Stores a group as [`append`](Self::append) does, without waiting for the locks of other
    /// transactions: a locked document is `Busy` at once.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    ///
    /// # Cancel safety
    ///
    /// As `append`.
    pub async fn append_unlocked(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        on_engine!(self, append_unlocked(batch))
    }

    /// Puts a snapshot in the place of all updates up to number `upto`. What was stored after it
    /// stays; a snapshot that reaches as far or further stays too.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn compact(
        &self,
        id: DocumentId,
        upto: i64,
        merged: &Bytes,
    ) -> Result<(), StorageError> {
        on_engine!(self, compact(id, upto, merged))
    }
}
