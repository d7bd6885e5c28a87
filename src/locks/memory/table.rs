//! The table of locks in one process: the operations of the scripts, without Redis.
//!
//! No IO, and no clock of its own: the caller passes the time. So the model (`locks::model`) runs
//! the same code through stepping clocks, restarts and fail-overs, which this process's own memory
//! never experiences. There the table stands in for the scripts.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::GRANT_TTL;
use crate::name::LockName;
use crate::types::{
    Claim, Grant, HeldLock, Holder, Owner, QueuedClaim, Released, Takeover, Verdict,
};
use crate::wait_queue::{Handover, QUEUE_ENTRY_TTL, QUEUE_LENGTH_MAX, QueueEntry, QueueStatus};
use galley_domain::fence::Fence;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The clock of the leases.
    pub(crate) at: Instant,
    /// The clock from which fences rise.
    pub(crate) wall: DateTime<Utc>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    entries: HashMap<LockName, Entry>,
    /// Entries after the last sweep; the next sweep runs when they have doubled.
    swept: usize,
}

/// The state of one lock. It outlives the holder, as the grant key does in Redis.
#[derive(Clone, Debug)]
struct Entry {
    /// The fence of the last grant, or a higher number after its release.
    last: Fence,
    /// The last grant, until its release. Expired grants stay: their holder may reassert them.
    last_grant: Option<LastGrant>,
    /// The value of the last release: it is spent.
    released: Option<String>,
    queue: Vec<Queued>,
    forget_at: Instant,
}

#[derive(Clone, Debug)]
struct LastGrant {
    value: String,
    owner: Owner,
    fence: Fence,
    since: DateTime<Utc>,
    ends: Instant,
}

#[derive(Clone, Debug)]
struct Queued {
    value: String,
    owner: Owner,
    floor: Fence,
    arrival: u64,
    /// The queue deadline: the waiter counts as live until then.
    due: Instant,
}

/// Which locks the reassert grace reserves for their previous holders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// All, held or free: the state may be older than the last grants.
    pub(crate) any: bool,
    /// Locks without a grant.
    pub(crate) unknown: bool,
}

/// The value of the waiter that received the lock, and its hand-over.
pub(crate) type Notified = Option<(String, Handover)>;

impl Table {
    /// As `claim.lua`: the status of the claimant, or none if its value is spent. `left` reserves
    /// locks for their previous holders.
    ///
    /// The check of `claim.lua` for a floor above the grant is absent: this table never shows a
    /// state older than the database's without a grace.
    pub(crate) fn claim(
        &mut self,
        claim: &Claim,
        waiter: Option<&QueueEntry>,
        left: Left,
        moment: Moment,
    ) -> (Option<QueueStatus>, Notified) {
        let now = moment.at;
        self.sweep(now);
        let entry =
            self.entries.entry(claim.name.clone()).or_insert_with(|| Entry::new(Fence::ZERO, now));
        if entry.released.as_ref() == Some(&claim.value) {
            return (None, None);
        }
        entry.queue.retain(|queued| now < queued.due);
        let mut replaced = None;
        if let Some(last_grant) =
            entry.last_grant.as_mut().filter(|last_grant| now < last_grant.ends)
        {
            let is_mine = last_grant.value == claim.value;
            // A fence that the database rejected is not granted again.
            if is_mine && claim.floor < last_grant.fence {
                last_grant.ends = now + claim.ttl;
                let (fence, since) = (last_grant.fence, last_grant.since);
                let grant = Grant { fence, since, sent_at: now, replaced };
                return (Some(QueueStatus::Granted(grant)), None);
            }
            let may_take = match &claim.over {
                Takeover::None => false,
                Takeover::Value(value) => *value == last_grant.value,
                Takeover::SameOwner => claim.owner.id == last_grant.owner.id,
                Takeover::ReclaimToken(pass) => {
                    claim.owner.id == last_grant.owner.id
                        && last_grant.owner.pass.as_ref() == Some(pass)
                }
            };
            if !is_mine && (!may_take || left.any) {
                return (Some(entry.refuse(claim, waiter, moment)), None);
            }
            replaced = if is_mine { None } else { entry.holder(now) };
        } else if left.any || (entry.knows_nothing() && left.unknown) {
            // The previous holder may reassert the lock first.
            return (Some(entry.refuse(claim, waiter, moment)), None);
        } else if entry.queue.first().is_some_and(|first| first.value != claim.value) {
            let notified = entry.hand_over(moment);
            return (Some(entry.refuse(claim, waiter, moment)), notified);
        }
        entry.queue.retain(|queued| queued.value != claim.value);
        let (value, owner) = (claim.value.clone(), claim.owner.clone());
        let (fence, since) = entry.give(value, owner, claim.floor, moment, claim.ttl);
        (Some(QueueStatus::Granted(Grant { fence, since, sent_at: now, replaced })), None)
    }

    /// As `release.lua`.
    pub(crate) fn release(
        &mut self,
        name: &LockName,
        value: &str,
        rest: Duration,
        left: Left,
        moment: Moment,
    ) -> (Released, Notified) {
        let now = moment.at;
        let entry =
            self.entries.entry(name.clone()).or_insert_with(|| Entry::new(Fence::ZERO, now));
        entry.queue.retain(|queued| queued.value != value && now < queued.due);
        let is_its = entry.last_grant.as_ref().is_some_and(|last_grant| last_grant.value == value);
        let is_held = entry.last_grant.as_ref().is_some_and(|last_grant| now < last_grant.ends);
        if is_held && !is_its {
            return (Released::NotHeld, None);
        }
        entry.forget_at = now + GRANT_TTL;
        // The value is spent even without a known grant: no claim or renewal in flight may restore
        // the lock.
        entry.released = Some(value.to_owned());
        if is_held && !rest.is_zero() {
            if let Some(last_grant) = &mut entry.last_grant {
                // Under another value, which no renewal can extend.
                last_grant.value.push_str(".done");
                last_grant.owner.pass = None;
                last_grant.ends = now + rest;
            }
            return (Released::Freed, None);
        }
        // Without a known grant, the waiters let a previous holder reassert first.
        let is_left = left.any || entry.knows_nothing();
        let notified = if is_left { None } else { entry.hand_over(moment) };
        if notified.is_none() && is_its {
            // Also for an expired grant: a late renewal must not restore it.
            entry.last_grant = None;
            entry.last = Fence(entry.last.0 + 1);
        }
        (if is_held { Released::Freed } else { Released::NotHeld }, notified)
    }

    pub(crate) fn renew(&mut self, held: &HeldLock, now: Instant, ttl: Duration) -> Verdict {
        let ends = now + ttl;
        let entry =
            self.entries.entry(held.name.clone()).or_insert_with(|| Entry::new(Fence::ZERO, now));
        entry.forget_at = now + GRANT_TTL;
        let mine = entry.last_grant.as_mut().filter(|last_grant| last_grant.value == held.value);
        let is_mine = mine.as_ref().is_some_and(|last_grant| last_grant.fence == held.fence);
        if let Some(last_grant) = mine.filter(|last_grant| now < last_grant.ends) {
            last_grant.ends = ends;
            return Verdict::Renewed;
        }
        // As `reassert.lua`: each grant with a lower fence is older than this one.
        let is_older = entry.last < held.fence;
        if entry.released.as_ref() == Some(&held.value) || !(is_older || is_mine) {
            return Verdict::Lost;
        }
        entry.last = held.fence;
        entry.last_grant = Some(LastGrant::of(held, ends));
        entry.queue.retain(|queued| queued.value != held.value);
        Verdict::Reasserted
    }

    pub(crate) fn renew_one(&mut self, held: &HeldLock, now: Instant, ttl: Duration) -> bool {
        let last_grant =
            self.entries.get_mut(&held.name).and_then(|entry| entry.last_grant.as_mut());
        let last_grant =
            last_grant.filter(|last_grant| last_grant.value == held.value && now < last_grant.ends);
        last_grant.map(|last_grant| last_grant.ends = now + ttl).is_some()
    }

    pub(crate) fn holder(&self, name: &LockName, now: Instant) -> Option<Holder> {
        self.entries.get(name)?.holder(now)
    }

    pub(crate) fn held(&self, now: Instant) -> Vec<(LockName, Holder)> {
        let entries = self.entries.iter();
        entries.filter_map(|(name, entry)| Some((name.clone(), entry.holder(now)?))).collect()
    }

    /// As `waiters.lua`.
    pub(crate) fn waiters(&self, name: &LockName, most: usize, now: Instant) -> Vec<QueuedClaim> {
        let queue = self.entries.get(name).map_or(&[][..], |entry| &entry.queue);
        let live = queue.iter().take(most).filter(|queued| now < queued.due);
        live.map(|queued| {
            let arrival = i64::try_from(queued.arrival).unwrap_or(i64::MAX);
            let since = DateTime::from_timestamp_micros(arrival).unwrap_or_default();
            let owner = Owner { pass: None, ..queued.owner.clone() };
            QueuedClaim { owner, since }
        })
        .collect()
    }

    /// Removes expired entries: no holder, and no grant to remember. The claims that created the
    /// entries amortise the scan.
    fn sweep(&mut self, now: Instant) {
        const FEW: usize = 1_024;
        if self.entries.len() < FEW.max(self.swept * 2) {
            return;
        }
        self.entries.retain(|_, entry| now < entry.forget_at);
        self.swept = self.entries.len();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(crate) fn swept(&self) -> usize {
        self.swept
    }
}

impl Moment {
    /// By this process's own clocks.
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), wall: Utc::now() }
    }
}

impl Entry {
    fn new(last: Fence, now: Instant) -> Self {
        let forget_at = now + GRANT_TTL;
        Self { last, last_grant: None, released: None, queue: Vec::new(), forget_at }
    }

    fn knows_nothing(&self) -> bool {
        self.last == Fence::ZERO
    }

    fn give(
        &mut self,
        value: String,
        owner: Owner,
        floor: Fence,
        moment: Moment,
        ttl: Duration,
    ) -> (Fence, DateTime<Utc>) {
        let Moment { at: now, wall: since } = moment;
        let fence = self.last.next(micros(since), floor);
        self.last = fence;
        self.last_grant = Some(LastGrant { value, owner, fence, since, ends: now + ttl });
        self.forget_at = now + GRANT_TTL;
        (fence, since)
    }

    /// Hands the lock over to the first waiter, for the rest of its queue deadline.
    fn hand_over(&mut self, moment: Moment) -> Notified {
        if self.queue.is_empty() {
            return None;
        }
        let first = self.queue.remove(0);
        let left = first.due.saturating_duration_since(moment.at);
        let value = first.value.clone();
        let (fence, since) = self.give(first.value, first.owner, first.floor, moment, left);
        Some((value, Handover { fence, since }))
    }

    /// The reply to a refused claimant, with its queue position if it waits.
    fn refuse(
        &mut self,
        claim: &Claim,
        waiter: Option<&QueueEntry>,
        moment: Moment,
    ) -> QueueStatus {
        let queued = waiter.and_then(|waiter| self.join(claim, waiter, moment));
        let holder = self.holder(moment.at);
        match queued {
            Some((position, arrival)) => QueueStatus::Queued { position, arrival, holder },
            None => QueueStatus::Refused(holder),
        }
    }

    /// The queue position, old or new; none if the queue is full.
    fn join(&mut self, claim: &Claim, waiter: &QueueEntry, moment: Moment) -> Option<(usize, u64)> {
        let due = moment.at + QUEUE_ENTRY_TTL;
        let index = self.queue.iter().position(|queued| queued.value == claim.value);
        let index = match index {
            Some(index) => index,
            None if self.queue.len() >= QUEUE_LENGTH_MAX => return None,
            None => {
                let tail = self.queue.last().map_or(0, |queued| queued.arrival);
                let arrival = match waiter.arrival {
                    0 => micros(moment.wall).max(tail + 1),
                    before => before,
                };
                let (value, owner) = (claim.value.clone(), claim.owner.clone());
                let index = self.queue.partition_point(|queued| queued.arrival <= arrival);
                let queued = Queued { value, owner, floor: claim.floor, arrival, due };
                self.queue.insert(index, queued);
                index
            }
        };
        let queued = self.queue.get_mut(index)?;
        queued.due = due;
        Some((index + 1, queued.arrival))
    }

    fn holder(&self, now: Instant) -> Option<Holder> {
        let last_grant = self.last_grant.as_ref().filter(|last_grant| now < last_grant.ends)?;
        Some(Holder {
            value: last_grant.value.clone(),
            owner: Owner { pass: None, ..last_grant.owner.clone() },
            fence: last_grant.fence,
            since: last_grant.since,
            ttl: last_grant.ends.saturating_duration_since(now),
            waiting: self.queue.iter().filter(|queued| now < queued.due).count(),
        })
    }
}

impl LastGrant {
    fn of(held: &HeldLock, ends: Instant) -> Self {
        Self {
            value: held.value.clone(),
            owner: held.owner.clone(),
            fence: held.fence,
            since: held.since,
            ends,
        }
    }
}

/// µs since the epoch; 0 for a clock before it. Fences rise all the same.
fn micros(time: DateTime<Utc>) -> u64 {
    u64::try_from(time.timestamp_micros()).unwrap_or(0)
}
