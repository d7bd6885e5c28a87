//! Locks inside one process, by the same rules as in Redis.
//!
//! Time is tokio's monotonic clock, so that tests can pause it. No call waits: each holds the mutex
//! for one look-up.

pub(super) mod table;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::memory::table::{Left, Moment, Notified, Table};
use crate::name::LockName;
use crate::types::{
    Claim, Claimed, HeldLock, Holder, LocksError, QueuedClaim, Released, Round, spent, unexpected,
};
use crate::wait_queue::{QueueEntry, QueueStatus, WaiterRegistry};

#[derive(Debug, Default)]
pub(super) struct Memory {
    table: Mutex<Table>,
    pub(super) waiter_registry: Arc<WaiterRegistry>,
}

impl Memory {
    pub(super) fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        match self.claim_as(claim, None)? {
            QueueStatus::Granted(grant) => Ok(Claimed::Granted(grant)),
            QueueStatus::Refused(Some(holder)) => Ok(Claimed::Busy(holder)),
            QueueStatus::Refused(None) | QueueStatus::Queued { .. } => Err(unexpected()),
        }
    }

    pub(super) fn check_in(
        &self,
        claim: &Claim,
        waiter: &QueueEntry,
    ) -> Result<QueueStatus, LocksError> {
        self.claim_as(claim, Some(waiter))
    }

    fn claim_as(
        &self,
        claim: &Claim,
        waiter: Option<&QueueEntry>,
    ) -> Result<QueueStatus, LocksError> {
        // The table never loses the lock of a live holder, so it needs no reassert grace.
        let (left, moment) = (Left::default(), Moment::now());
        let (status, notified) = self.table().claim(claim, waiter, left, moment);
        self.notify(notified);
        status.ok_or_else(spent)
    }

    pub(super) fn release(&self, name: &LockName, value: &str, rest: Duration) -> Released {
        let (released, notified) =
            self.table().release(name, value, rest, Left::default(), Moment::now());
        self.notify(notified);
        released
    }

    pub(super) fn renew(&self, held: &[(&HeldLock, Duration)]) -> Round {
        let now = Instant::now();
        let mut table = self.table();
        let verdicts = held.iter().map(|(held, ttl)| table.renew(held, now, *ttl)).collect();
        Round { sent_at: now, verdicts }
    }

    pub(super) fn renew_one(&self, held: &HeldLock, ttl: Duration) -> Option<Instant> {
        let now = Instant::now();
        self.table().renew_one(held, now, ttl).then_some(now)
    }

    pub(super) fn holder(&self, name: &LockName) -> Option<Holder> {
        self.table().holder(name, Instant::now())
    }

    pub(super) fn held(&self) -> Vec<(LockName, Holder)> {
        self.table().held(Instant::now())
    }

    pub(super) fn waiters(&self, name: &LockName, most: usize) -> Vec<QueuedClaim> {
        self.table().waiters(name, most, Instant::now())
    }

    fn notify(&self, notified: Notified) {
        if let Some((value, handover)) = notified {
            self.waiter_registry.wake(&value, handover);
        }
    }

    /// The table, even after a panic under its mutex: no operation leaves an entry half written.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::GRANT_TTL;
    use crate::types::{Owner, Takeover};
    use crate::wait_queue::QUEUE_ENTRY_TTL;
    use galley_domain::fence::Fence;
    use galley_domain::ids::{NodeId, ShareLinkId};
    use galley_domain::seat::{Role, Seat};

    const LEASE: Duration = Duration::from_secs(12);

    fn claim(name: &LockName, value: &str) -> Claim {
        Claim {
            name: name.clone(),
            value: value.to_owned(),
            owner: Owner::unknown(),
            floor: Fence::ZERO,
            ttl: LEASE,
            over: Takeover::None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn g4_under_paused_time_a_lease_expires_to_the_millisecond() {
        let (memory, name) = (Memory::default(), LockName::named("job:1"));
        assert!(matches!(memory.claim(&claim(&name, "a")), Ok(Claimed::Granted(_))));
        advance(LEASE - Duration::from_millis(1)).await;
        assert!(matches!(memory.claim(&claim(&name, "b")), Ok(Claimed::Busy(_))));
        advance(Duration::from_millis(1)).await;
        assert_eq!(memory.holder(&name), None);
        assert!(matches!(memory.claim(&claim(&name, "b")), Ok(Claimed::Granted(_))));
    }

    /// Polls the queue; returns the position, and 0 for a grant.
    fn look(memory: &Memory, claim: &Claim) -> usize {
        let waiter =
            QueueEntry { server: NodeId::generate(), arrival: 0, remembers: Duration::ZERO };
        match memory.check_in(claim, &waiter).expect("a reply") {
            QueueStatus::Granted(_) => 0,
            QueueStatus::Queued { position, .. } => position,
            QueueStatus::Refused(holder) => panic!("{holder:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn g5_under_paused_time_a_hand_over_lasts_until_the_queue_deadline_and_passes_on() {
        let (memory, name) = (Memory::default(), LockName::named("job:1"));
        assert!(memory.claim(&claim(&name, "holder")).is_ok());
        let (dead, living) = (claim(&name, "dead"), claim(&name, "living"));
        assert_eq!(look(&memory, &dead), 1);
        advance(QUEUE_ENTRY_TTL / 2).await;
        assert_eq!((look(&memory, &living), look(&memory, &living)), (2, 2));
        memory.release(&name, "holder", Duration::ZERO);
        assert_eq!(memory.holder(&name).expect("held").ttl, QUEUE_ENTRY_TTL / 2);
        assert_eq!(look(&memory, &living), 1);
        advance(QUEUE_ENTRY_TTL / 2 - Duration::from_millis(1)).await;
        assert_eq!(look(&memory, &living), 1);
        advance(Duration::from_millis(1)).await;
        // The next claim finds the lock free, and hands it over to the waiter.
        assert!(matches!(memory.claim(&claim(&name, "new")), Ok(Claimed::Busy(_))));
        assert_eq!(memory.holder(&name).expect("held").value, "living");
        assert_eq!(look(&memory, &living), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn g13_locks_without_holder_or_grant_are_swept() {
        let memory = Memory::default();
        let claim_seats = |seats: usize| {
            let seat = |_| LockName::seat(Seat::new(ShareLinkId::generate(), Role::Writer));
            assert!((0..seats).map(seat).all(|seat| memory.claim(&claim(&seat, "a")).is_ok()));
        };
        claim_seats(5_000);
        assert_eq!(memory.table().len(), 5_000);
        advance(GRANT_TTL).await;
        claim_seats(5_000);
        assert!(memory.table().len() < 7_500, "{}", memory.table().len());
        assert!(memory.table().swept() < 5_000);
    }
}
