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
use crate::locks::words::{
    Claim, Claimed, Grant, Held, Holder, Over, Owner, Released, Round, Verdict,
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
    pub(super) fn claim(&self, claim: &Claim) -> Claimed {
        let now = Instant::now();
        let mut table = self.table();
        table.sweep(now);
        let entry = table.entries.entry(claim.name.clone()).or_insert_with(|| Entry {
            last: Fence::ZERO,
            grip: None,
            forget_at: now,
        });
        let mut replaced = None;
        if let Some(grip) = entry.grip.as_mut().filter(|grip| now < grip.ends) {
            if grip.value == claim.value {
                grip.ends = now + claim.ttl;
                let (fence, since) = (grip.fence, grip.since);
                return Claimed::Granted(Grant { fence, since, sent_at: now, replaced });
            }
            let may_take = match &claim.over {
                Over::Nobody => false,
                Over::Value(value) => *value == grip.value,
                Over::SameUser => claim.owner.user.id == grip.owner.user.id,
            };
            if !may_take {
                return Claimed::Busy(grip.holder(now));
            }
            replaced = Some(grip.holder(now));
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
        Claimed::Granted(Grant { fence, since, sent_at: now, replaced })
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
            self.entries.insert(held.name.clone(), Entry { last: held.fence, grip, forget_at });
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
