//! Quotas of users, and the order in which the server creates documents.
//!
//! The server checks a quota when it creates a document, and creates one document of a user at a
//! time. Several servers check side by side, so together they may exceed a quota by one document
//! each.
//!
//! SQLite has one writer: each write waits for the writes before it. There the server creates one
//! document at a time in all, so an edit waits for one creation at most. Addresses alternate in this
//! queue, and each user has one creation in it. PostgreSQL has no such queue: a locked row delays the
//! creations of its user only.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::bounds::permits::{Permit, Permits, Requester};
use crate::domain::ids::UserId;
use crate::sharing::SharingError;
use crate::storage::capacity::Usage;

/// Longest wait of a creation for its permits, below the timeout of a request.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct DocumentQuota {
    pub documents: u32,
    /// Bytes of the documents' update logs.
    pub bytes: u64,
    /// How long a deleted document stays in the bin. Zero: there is no bin.
    pub bin_retention: Duration,
}

impl DocumentQuota {
    /// Rejects a document with `bytes` bytes that would exceed the quota.
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

    pub(super) fn fits(self, usage: Usage) -> Result<(), SharingError> {
        if i64::from(self.documents) < usage.documents {
            return Err(SharingError::QuotaSpent("documents"));
        }
        if self.bytes < u64::try_from(usage.bytes).unwrap_or_default() {
            return Err(SharingError::QuotaSpent("bytes of documents"));
        }
        Ok(())
    }
}

#[derive(Clone)]
pub(super) struct CreationPermits {
    /// The permits of users that hold or await one.
    users: Arc<Mutex<HashMap<UserId, Weak<Semaphore>>>>,
    /// The permit of the one writer, if the database has one.
    writer: Option<Permits>,
}

pub(super) struct CreationPermit {
    _own: Option<OwnedSemaphorePermit>,
    _writer: Option<Permit>,
}

impl CreationPermits {
    pub(super) fn new(has_one_writer: bool) -> Self {
        Self { users: Arc::default(), writer: has_one_writer.then(|| Permits::new(1, 1)) }
    }

    /// Waits behind the user's own creations, then for the writer.
    pub(super) async fn acquire(
        &self,
        user: &UserId,
        address: IpAddr,
    ) -> Result<CreationPermit, SharingError> {
        let permits = async {
            // The semaphore is never closed.
            let own = self.permit_of(user).acquire_owned().await.ok();
            let Some(writer) = &self.writer else {
                return Some(CreationPermit { _own: own, _writer: None });
            };
            let permit = writer.take(Requester::User(user.clone(), address)).await?;
            Some(CreationPermit { _own: own, _writer: Some(permit) })
        };
        timeout(PERMIT_WAIT_MAX, permits).await.ok().flatten().ok_or(SharingError::Busy)
    }

    fn permit_of(&self, user: &UserId) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, permit| permit.strong_count() > 0);
        if let Some(permit) = users.get(user).and_then(Weak::upgrade) {
            return permit;
        }
        let permit = Arc::new(Semaphore::new(1));
        users.insert(user.clone(), Arc::downgrade(&permit));
        permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_a_quota_counts_documents_and_bytes() {
        let quota = DocumentQuota { documents: 2, bytes: 100, bin_retention: Duration::ZERO };
        let usage = |documents, bytes| Usage { documents, bytes };
        assert!(quota.admit(usage(1, 60), 40).is_ok());
        assert!(matches!(quota.admit(usage(2, 0), 0), Err(SharingError::QuotaSpent("documents"))));
        assert!(matches!(quota.admit(usage(1, 60), 41), Err(SharingError::QuotaSpent(_))));
        assert!(matches!(quota.admit(usage(0, i64::MAX), 1), Err(SharingError::QuotaSpent(_))));
        assert!(quota.fits(usage(2, 100)).is_ok());
        assert!(matches!(quota.fits(usage(3, 1)), Err(SharingError::QuotaSpent("documents"))));
        assert!(matches!(quota.fits(usage(1, 101)), Err(SharingError::QuotaSpent(_))));
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn user(id: &str) -> UserId {
        id.parse().expect("an id")
    }

    #[tokio::test(start_paused = true)]
    async fn g16_a_creation_waits_for_its_permits_with_a_timeout() {
        let permits = CreationPermits::new(true);
        let first = permits.acquire(&user("kim"), address(1)).await.expect("the first permit");
        let late = permits.acquire(&user("lee"), address(2)).await;
        assert!(matches!(late, Err(SharingError::Busy)));
        drop(first);
        assert!(permits.acquire(&user("lee"), address(2)).await.is_ok());
        let used = permits.users.lock().expect("a map").len();
        assert_eq!(used, 1, "the map contains no unused permits");
    }

    /// The creations of 60 guests wait first. Each takes 200 ms, all of them 12 s.
    #[tokio::test(start_paused = true)]
    async fn g17_the_creations_of_one_address_do_not_delay_another() {
        let permits = CreationPermits::new(true);
        let create = async |guest: u32| {
            let permit = permits.acquire(&user(&format!("guest-{guest}")), address(1)).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            drop(permit);
        };
        let crowd = futures_util::future::join_all((0..60).map(create));
        let honest = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let start = tokio::time::Instant::now();
            permits.acquire(&user("kim"), address(2)).await.map(|_permit| start.elapsed())
        };
        let (_, waited) = tokio::join!(crowd, honest);
        assert!(waited.expect("a permit") < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn g16_without_one_writer_a_user_delays_only_their_own_creations() {
        let permits = CreationPermits::new(false);
        let _stuck = permits.acquire(&user("kim"), address(1)).await.expect("a permit");
        let own = permits.acquire(&user("kim"), address(1)).await;
        assert!(matches!(own, Err(SharingError::Busy)));
        let other =
            timeout(Duration::from_millis(1), permits.acquire(&user("lee"), address(1))).await;
        assert!(other.expect("at once").is_ok());
    }
}
