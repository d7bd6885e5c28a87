//! Locks inside one process, by the same rules as in Redis.
//!
//! Time is tokio's monotonic clock, so that tests can pause it. Nothing here waits: each call
//! holds the mutex for a look-up.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::seat::Seat;
use crate::locks::GRANT_KEPT_FOR;
use crate::locks::name::LockName;
use crate::locks::reply;
use crate::locks::words::{
    Claim, Claimed, Grant, Held, Holder, LocksError, Over, Owner, Released, Round, Verdict,
};

/// Locks of one process.
#[derive(Debug, Default)]
pub(super) struct Memory {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<LockName, Entry>,
    /// Entries after the last sweep; the next one comes when they have doubled.
    swept: usize,
}

/// What is remembered of one lock. It outlives the holder, as the grant key does in Redis.
#[derive(Debug)]
struct Entry {
    /// The fence of the last grant, or above it once that was released.
    last: Fence,
    /// The last grant, until it is released. Expired ones stay: their holder may come back.
    grip: Option<Grip>,
    /// The value that was released last: it is spent.
    released: Option<String>,
    forget_at: Instant,
}

#[derive(Debug)]
struct Grip {
    value: String,
    owner: Owner,
    fence: Fence,
    since: DateTime<Utc>,
    ends: Instant,
}

impl Memory {
    pub(super) fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        let now = Instant::now();
        let mut table = self.table();
        table.sweep(now);
        let entry = table.entries.entry(claim.name.clone()).or_insert_with(|| Entry {
            last: Fence::ZERO,
            grip: None,
            released: None,
            forget_at: now,
        });
        if entry.released.as_ref() == Some(&claim.value) {
            return Err(reply::spent());
        }
        let mut replaced = None;
        if let Some(grip) = entry.grip.as_mut().filter(|grip| now < grip.ends) {
            let is_mine = grip.value == claim.value;
            // A fence that the database refused is not given again.
            if is_mine && claim.floor < grip.fence {
                grip.ends = now + claim.ttl;
                let (fence, since) = (grip.fence, grip.since);
                return Ok(Claimed::Granted(Grant { fence, since, sent_at: now, replaced }));
            }
            let may_take = match &claim.over {
                Over::Nobody => false,
                Over::Value(value) => *value == grip.value,
                Over::SameUser => claim.owner.user.id == grip.owner.user.id,
            };
            if !may_take && !is_mine {
                return Ok(Claimed::Busy(grip.holder(now)));
            }
            replaced = (!is_mine).then(|| grip.holder(now));
        }
        let since = Utc::now();
        let fence = entry.last.next(micros(since), claim.floor);
        entry.last = fence;
        entry.grip = Some(Grip {
            value: claim.value.clone(),
            owner: claim.owner.clone(),
            fence,
            since,
            ends: now + claim.ttl,
        });
        entry.forget_at = now + GRANT_KEPT_FOR;
        Ok(Claimed::Granted(Grant { fence, since, sent_at: now, replaced }))
    }

    pub(super) fn release(&self, name: &LockName, value: &str) -> Released {
        let now = Instant::now();
        let mut table = self.table();
        let Some(entry) = table.entries.get_mut(name) else { return Released::NotHeld };
        let Some(grip) = entry.grip.take_if(|grip| grip.value == value) else {
            return Released::NotHeld;
        };
        // Also for a grip that had expired: its late renewal must not raise the dead.
        entry.last = Fence(entry.last.0 + 1);
        entry.released = Some(grip.value);
        entry.forget_at = now + GRANT_KEPT_FOR;
        if now < grip.ends { Released::Freed } else { Released::NotHeld }
    }

    pub(super) fn renew(&self, held: &[Held], ttl: Duration) -> Round {
        let now = Instant::now();
        let mut table = self.table();
        let verdicts = held.iter().map(|held| table.renew(held, now, ttl)).collect();
        Round { sent_at: now, verdicts }
    }

    pub(super) fn holder(&self, name: &LockName) -> Option<Holder> {
        self.table().holder(name, Instant::now())
    }

    pub(super) fn seats(&self) -> Vec<(Seat, Holder)> {
        let now = Instant::now();
        let table = self.table();
        let seats = table.entries.keys().filter_map(|name| Some((name.as_seat()?, name)));
        seats.filter_map(|(seat, name)| Some((seat, table.holder(name, now)?))).collect()
    }

    /// The table. What a panicking thread left behind is still a table: no entry is ever half
    /// written.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn renew(&mut self, held: &Held, now: Instant, ttl: Duration) -> Verdict {
        let ends = now + ttl;
        let forget_at = now + GRANT_KEPT_FOR;
        let Some(entry) = self.entries.get_mut(&held.name) else {
            let grip = Some(Grip::of(held, ends));
            let entry = Entry { last: held.fence, grip, released: None, forget_at };
            self.entries.insert(held.name.clone(), entry);
            return Verdict::Reasserted;
        };
        let Some(grip) = entry.grip.as_mut().filter(|grip| grip.value == held.value) else {
            return Verdict::Lost;
        };
        let verdict = if now < grip.ends { Verdict::Renewed } else { Verdict::Reasserted };
        grip.ends = ends;
        entry.forget_at = forget_at;
        verdict
    }

    fn holder(&self, name: &LockName, now: Instant) -> Option<Holder> {
        let grip = self.entries.get(name)?.grip.as_ref()?;
        (now < grip.ends).then(|| grip.holder(now))
    }

    /// Forgets locks that nobody holds and nobody remembers. Amortised over the claims that made
    /// them.
    fn sweep(&mut self, now: Instant) {
        const FEW: usize = 1_024;
        if self.entries.len() < FEW.max(self.swept * 2) {
            return;
        }
        self.entries.retain(|_, entry| now < entry.forget_at);
        self.swept = self.entries.len();
    }
}

impl Grip {
    fn of(held: &Held, ends: Instant) -> Self {
        Self {
            value: held.value.clone(),
            owner: held.owner.clone(),
            fence: held.fence,
            since: held.since,
            ends,
        }
    }

    fn holder(&self, now: Instant) -> Holder {
        Holder {
            value: self.value.clone(),
            owner: self.owner.clone(),
            fence: self.fence,
            since: self.since,
            ttl: self.ends.saturating_duration_since(now),
        }
    }
}

/// µs since the epoch; 0 for a clock that stands before it, which the fence survives.
fn micros(time: DateTime<Utc>) -> u64 {
    u64::try_from(time.timestamp_micros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::domain::ids::{NodeId, ShareLinkId, UserId};
    use crate::domain::seat::Role;
    use crate::domain::user::User;

    const LEASE: Duration = Duration::from_secs(12);

    fn claim(name: &LockName, value: &str) -> Claim {
        let user = User { id: UserId::generate(), name: "Kim".to_owned() };
        Claim {
            name: name.clone(),
            value: value.to_owned(),
            owner: Owner { user, node: NodeId::generate() },
            floor: Fence::ZERO,
            ttl: LEASE,
            over: Over::Nobody,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn g4_under_paused_time_a_lease_ends_to_the_millisecond() {
        let (memory, name) = (Memory::default(), LockName::named("job:1"));
        assert!(matches!(memory.claim(&claim(&name, "a")), Ok(Claimed::Granted(_))));
        advance(LEASE - Duration::from_millis(1)).await;
        assert!(matches!(memory.claim(&claim(&name, "b")), Ok(Claimed::Busy(_))));
        advance(Duration::from_millis(1)).await;
        assert_eq!(memory.holder(&name), None);
        assert!(matches!(memory.claim(&claim(&name, "b")), Ok(Claimed::Granted(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn g13_what_nobody_holds_or_remembers_is_forgotten() {
        let memory = Memory::default();
        let claim_seats = |seats: usize| {
            let seat = |_| LockName::seat(Seat::new(ShareLinkId::generate(), Role::Writer));
            assert!((0..seats).map(seat).all(|seat| memory.claim(&claim(&seat, "a")).is_ok()));
        };
        claim_seats(5_000);
        assert_eq!(memory.table().entries.len(), 5_000);
        advance(GRANT_KEPT_FOR).await;
        claim_seats(5_000);
        assert!(memory.table().entries.len() < 7_500, "{}", memory.table().entries.len());
        assert!(memory.table().swept < 5_000);
    }
}
