//! What one user may store, and how documents take their turn.
//!
//! The server checks a quota when a document is created. It creates one document at a time: in SQLite every
//! write waits for those before it, so an edit waits for one creation at most, however many are asked
//! for. Several servers check side by side, so together they may exceed a quota by one document each.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::sharing::SharingError;
use crate::storage::capacity::Usage;

/// How long a creation waits for its turn: below the time after which a request is given up.
const TURN_MAX: Duration = Duration::from_secs(5);

/// What one user may store.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Documents.
    pub documents: u32,
    /// Bytes of their logs.
    pub bytes: u64,
}

impl Quota {
    /// Whether a document with so many bytes may be added to what a user has.
    pub(super) fn admit(self, usage: Usage, bytes: usize) -> Result<(), SharingError> {
        if i64::from(self.documents) <= usage.documents {
            return Err(SharingError::QuotaSpent("documents"));
        }
        let stored = u64::try_from(usage.bytes).unwrap_or_default();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if self.bytes < stored.saturating_add(bytes) {
            return Err(SharingError::QuotaSpent("bytes of documents"));
        }
        Ok(())
    }
}

/// The turn in which documents are created. A cheap handle.
#[derive(Clone)]
pub(super) struct Turns(Arc<Semaphore>);

impl Turns {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits for the turn.
    pub(super) async fn next(&self) -> Result<SemaphorePermit<'_>, SharingError> {
        let turn = timeout(TURN_MAX, self.0.acquire()).await;
        // The semaphore is never closed.
        turn.ok().and_then(Result::ok).ok_or(SharingError::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_a_quota_counts_documents_and_bytes() {
        let quota = Quota { documents: 2, bytes: 100 };
        let usage = |documents, bytes| Usage { documents, bytes };
        assert!(quota.admit(usage(1, 60), 40).is_ok());
        assert!(matches!(quota.admit(usage(2, 0), 0), Err(SharingError::QuotaSpent("documents"))));
        assert!(matches!(quota.admit(usage(1, 60), 41), Err(SharingError::QuotaSpent(_))));
        assert!(matches!(quota.admit(usage(0, i64::MAX), 1), Err(SharingError::QuotaSpent(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn g16_a_creation_waits_for_its_turn_and_not_for_ever() {
        let turns = Turns::new();
        let first = turns.next().await.expect("the first turn");
        assert!(matches!(turns.next().await, Err(SharingError::Busy)));
        drop(first);
        assert!(turns.next().await.is_ok());
    }
}
