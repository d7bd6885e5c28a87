//! Stored bytes: of one user, and of the whole database.
//!
//! The database grows with what users send, and a full disk stops every document at once. So the
//! server measures the database periodically and stores the result. Above the bound, it rejects new
//! documents, reviews and named versions. Edits have a reserve of an eighth above the bound. Beyond
//! the reserve, the server rejects edits too, until there is room again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::statement::sql;
use crate::storage::tx::run;
use crate::storage::{Storage, StorageFuture};

/// The period of the measurement. Guests from one address add some megabytes within it.
pub const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// The reserve of the edits is the bound divided by this, as for a document.
const RESERVE_PART: u64 = 8;

/// The bytes of the logs of the documents that [`OF_OWNER`] selects.
const LOGS: &str = "COALESCE(SUM( \
    COALESCE((SELECT octet_length(bytes) FROM snapshots WHERE document_id = d.id), 0) \
    + COALESCE((SELECT SUM(octet_length(bytes)) FROM updates WHERE document_id = d.id), 0)), 0)";

const OF_OWNER: &str = "FROM documents d WHERE owner_id = {owner} \
    AND (deleted_at IS NULL OR id = {binned})";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub documents: i64,
    /// Bytes of their logs. Very recent edits may be missing.
    pub bytes: i64,
}

impl Storage {
    /// Measures the documents of `owner` outside the bin, which has its own bound.
    pub fn usage_of<'a>(&'a self, owner: &'a UserId) -> StorageFuture<'a, Usage> {
        self.usage(owner, None)
    }

    /// Measures the documents of `owner` with one document of the bin.
    pub fn usage_with<'a>(
        &'a self,
        owner: &'a UserId,
        binned: DocumentId,
    ) -> StorageFuture<'a, Usage> {
        self.usage(owner, Some(binned))
    }

    /// Neither engine reads a long value for its length: it is stored beside the value. The journal of
    /// SQLite has some thousand rows at most.
    fn usage<'a>(
        &'a self,
        owner: &'a UserId,
        binned: Option<DocumentId>,
    ) -> StorageFuture<'a, Usage> {
        run!(self, Read, tx => {
            let usage = sql!(
                sqlite: [
                    "SELECT count(*) AS documents, ", LOGS, " + COALESCE(( \
                     SELECT SUM(octet_length(j.bytes)) FROM journal j \
                     CROSS JOIN documents o ON o.id = j.document_id \
                     WHERE o.owner_id = {owner} AND (o.deleted_at IS NULL \
                     OR o.id = {binned})), 0) AS bytes ",
                    OF_OWNER,
                ],
                postgres: ["SELECT count(*) AS documents, CAST(", LOGS, " AS bigint) AS bytes ", OF_OWNER]
            );
            let usage = usage.one(tx).await?;
            Ok(Usage { documents: usage.get("documents")?, bytes: usage.get("bytes")? })
        })
    }

    /// Bytes that the database takes, without its free pages if the engine reports them.
    pub fn stored_bytes(&self) -> StorageFuture<'_, u64> {
        run!(self, Read, tx => {
            let bytes = sql!(
                sqlite: ["SELECT (p.page_count - f.freelist_count) * s.page_size \
                          FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s"],
                postgres: ["SELECT pg_database_size(current_database())"]
            );
            Ok(bytes.value(tx).await?.unwrap_or_default())
        })
    }

    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed)
    }

    /// Whether the last measurement was below the bound plus the reserve of the edits.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        !self.is_reserve_spent.load(Ordering::Relaxed)
    }

    /// Measures the database, which holds `bytes_max` and a reserve.
    pub async fn measure(&self, bytes_max: u64) {
        let bytes = match self.stored_bytes().await {
            Ok(bytes) => bytes,
            Err(error) => return tracing::debug!(%error, "the database was not measured"),
        };
        let is_reserve_spent = bytes_max.saturating_add(bytes_max / RESERVE_PART) < bytes;
        if self.is_reserve_spent.swap(is_reserve_spent, Ordering::Relaxed) != is_reserve_spent {
            tracing::warn!(bytes, bytes_max, is_reserve_spent, "the reserve of the edits");
        }
        let is_spent = bytes_max < bytes;
        if self.is_spent.swap(is_spent, Ordering::Relaxed) == is_spent {
            return;
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
