//! Stored bytes: of one user, and of the whole database.
//!
//! The database grows with what users send, and a full disk stops every document at once. So the
//! server measures the database periodically and stores the result. Above the bound, it rejects new
//! documents, reviews and named versions. Edits have a reserve of an eighth above the bound. Beyond
//! the reserve, the server rejects edits too, until there is room again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

/// The period of the measurement. Guests from one address add some megabytes within it.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// The reserve of the edits is the bound divided by this, as for a document.
const RESERVE_PART: u64 = 8;

/// The stored documents of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Documents that the user owns.
    pub documents: i64,
    /// Bytes of their logs. Very recent edits may be missing.
    pub bytes: i64,
}

impl Storage {
    /// Measures the documents of `owner` outside the bin, which has its own bound.
    pub fn usage_of<'a>(&'a self, owner: &'a UserId) -> StorageFuture<'a, Usage> {
        boxed_on_engine!(self, usage_of(owner, None))
    }

    /// Measures the documents of `owner` with one document of the bin.
    pub fn usage_with<'a>(
        &'a self,
        owner: &'a UserId,
        binned: DocumentId,
    ) -> StorageFuture<'a, Usage> {
        boxed_on_engine!(self, usage_of(owner, Some(binned)))
    }

    /// Bytes that the database takes, without its free pages if the engine reports them.
    pub fn stored_bytes(&self) -> StorageFuture<'_, u64> {
        boxed_on_engine!(self, stored_bytes())
    }

    /// Whether the last measurement was below the bound.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed)
    }

    /// Whether the last measurement was below the bound plus the reserve of the edits.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        !self.is_reserve_spent.load(Ordering::Relaxed)
    }

    /// Measures the database periodically, until the caller drops the future.
    pub async fn keep_measuring(self, bytes_max: u64) {
        let mut ticker = interval(MEASURE_EVERY);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticker.tick().await;
            let bytes = match self.stored_bytes().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::debug!(%error, "the database was not measured");
                    continue;
                }
            };
            let is_reserve_spent = bytes_max.saturating_add(bytes_max / RESERVE_PART) < bytes;
            if self.is_reserve_spent.swap(is_reserve_spent, Ordering::Relaxed) != is_reserve_spent {
                tracing::warn!(bytes, bytes_max, is_reserve_spent, "the reserve of the edits");
            }
            let is_spent = bytes_max < bytes;
            if self.is_spent.swap(is_spent, Ordering::Relaxed) == is_spent {
                continue;
            }
            if is_spent {
                tracing::warn!(
                    bytes,
                    bytes_max,
                    "the database is above limits.stored_bytes; the server takes edits only"
                );
            } else {
                tracing::info!(bytes, bytes_max, "the database has room again");
            }
        }
    }
}
