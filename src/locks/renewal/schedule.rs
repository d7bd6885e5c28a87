//! The schedule of renewals: the registered locks and their due times. No IO, and no clock.
//!
//! A map holds the entries, and an ordered set their due times. Inserting, removing and finding the
//! due entries cost one look-up each, and never a scan of all.
//!
//! - **T1** A removed entry is in no later round, and no verdict of an earlier round finds it (G6).
//! - **T2** The ordered set holds each entry under the due time that the entry itself reports, or
//!   not at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::options::{LEASES, RenewalTiming};
use crate::renewal::lease::{LeaseEntry, LeaseHolder};
use crate::types::{HeldLock, Verdict};
use crate::{GRANT_EXTENSION_INTERVAL, REASSERT_GRACE};

#[derive(Debug)]
pub(crate) struct DueLock {
    pub(crate) id: u64,
    pub(crate) held: Arc<HeldLock>,
    pub(crate) timing: RenewalTiming,
    pub(crate) lease_holder: Arc<dyn LeaseHolder>,
    pub(crate) trusted_until: Instant,
    /// When the renewal was due, if this round renews the lock.
    pub(crate) renew_at: Option<Instant>,
    /// Whether the next renewal extends the expiry of the grant.
    pub(crate) extends_grant: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Register {
    entries: HashMap<u64, Entry>,
    order: BTreeSet<(Instant, u64)>,
    last_id: u64,
    is_closed: bool,
    /// The actor's next wake-up. Removing the entry does not cancel it: a spurious wake-up is
    /// harmless.
    armed: Option<Instant>,
    /// A caller requested a round now of all locks that are due before this.
    requested_until: Option<Instant>,
    /// When the backend came back from its last outage.
    back_at: Option<Instant>,
    /// Due entries read so far.
    #[cfg(test)]
    pub(crate) entries_read: usize,
}

#[derive(Debug)]
struct Entry {
    entry: LeaseEntry,
    /// When the lock was granted: the hours of its grant start here.
    began: Instant,
    /// When the last successful claim or renewal was sent.
    sent_at: Instant,
    renew_at: Option<Instant>,
    /// The interval to the next attempt if this renewal fails: the renewal interval, or the pause
    /// between retries.
    again_after: Option<Duration>,
    /// When the actor queries the lease holder, even without a due renewal.
    query_at: Option<Instant>,
}

impl Register {
    /// Inserts an entry; returns its id, and whether it is due before the actor's next wake-up.
    /// None once the schedule is closed.
    pub(crate) fn enter(&mut self, entry: LeaseEntry, sent_at: Instant) -> Option<(u64, bool)> {
        if self.is_closed {
            return None;
        }
        self.last_id += 1;
        let id = self.last_id;
        let mut entry = Entry::new(entry, sent_at);
        if self.back_at.is_some_and(|back_at| sent_at <= back_at) {
            // The backend may have come back without this lock, and the round after that did not
            // include it.
            entry.renew_at = entry.renew_at.map(|at| at.min(sent_at));
        }
        let due = entry.due();
        self.entries.insert(id, entry);
        self.order.extend(due.map(|due| (due, id)));
        let is_early = due.is_some_and(|due| self.armed.is_none_or(|armed| due < armed));
        Some((id, is_early))
    }

    /// Removes an entry. The caller drops it outside the mutex.
    pub(crate) fn leave(&mut self, id: u64) -> Option<LeaseEntry> {
        let entry = self.entries.remove(&id)?;
        if let Some(due) = entry.due() {
            self.order.remove(&(due, id));
        }
        Some(entry.entry)
    }

    pub(crate) fn close(&mut self) -> Vec<LeaseEntry> {
        self.is_closed = true;
        self.order.clear();
        self.entries.drain().map(|(_id, entry)| entry.entry).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// False if the schedule is empty.
    pub(crate) fn wake_before(&mut self, until: Instant) -> bool {
        self.requested_until = (!self.is_empty()).then_some(until).max(self.requested_until);
        !self.is_empty()
    }

    /// Sets and returns the actor's next wake-up: the first due time.
    pub(crate) fn next_wake(&mut self) -> Option<Instant> {
        self.armed = self.order.first().map(|(due, _id)| *due);
        self.armed
    }

    /// The due entries at `now`: lease holders to query and locks to renew; all locks if the backend
    /// `is_back`.
    pub(crate) fn due_locks(&mut self, now: Instant, is_back: bool) -> Vec<DueLock> {
        if is_back {
            self.back_at = Some(now);
        }
        let round_end = self.end_of_round(now, is_back);
        let last = round_end.map_or(now, |round_end| round_end.max(now));
        let due = self.order.range(..=(last, u64::MAX));
        // A growing buffer would leave freed memory of each smaller size behind.
        let mut items = Vec::with_capacity(due.clone().count());
        for (due, id) in due {
            #[cfg(test)]
            {
                self.entries_read += 1;
            }
            let Some(entry) = self.entries.get(id) else { continue };
            let joins = |at: &Instant| round_end.is_some_and(|round_end| *at <= round_end);
            let renew_at = entry.renew_at.filter(joins);
            if renew_at.is_some() || *due <= now {
                items.push(entry.due_lock(*id, renew_at, now));
            }
        }
        items
    }

    /// The end of the round, up to which entries join it; none if no lock is due.
    ///
    /// A due lock takes along all locks that will be due before it is due again. So the lock with
    /// the shortest lease sets the rounds, and the others cause none of their own.
    fn end_of_round(&mut self, now: Instant, is_back: bool) -> Option<Instant> {
        #[cfg(test)]
        {
            self.entries_read += self.order.range(..=(now, u64::MAX)).count();
        }
        let due = self.order.range(..=(now, u64::MAX));
        let due = due.filter_map(|(_due, id)| self.entries.get(id));
        let due = due.filter(|entry| entry.renew_at.is_some_and(|at| at <= now));
        let shortest = due.filter_map(|entry| entry.again_after).min();
        let all = is_back.then(|| now + LEASES.1);
        self.requested_until.take().max(shortest.map(|pause| now + pause)).max(all)
    }

    /// Records the verdicts, at `now`, of a round sent at `sent_at`. Returns the items that still
    /// have an entry, with removed entries: a lock released during the pipeline is not lost, and
    /// its verdict does not restore it (T1).
    pub(crate) fn record_verdicts<'a>(
        &mut self,
        items: &'a [DueLock],
        verdicts: &[Verdict],
        sent_at: Instant,
        now: Instant,
    ) -> Vec<(&'a DueLock, Verdict, Option<LeaseEntry>)> {
        let mut reported = Vec::with_capacity(items.len());
        for (item, verdict) in items.iter().zip(verdicts) {
            let (is_here, entry) = match verdict {
                Verdict::Renewed | Verdict::Reasserted => {
                    (self.renewed(item.id, sent_at, now), None)
                }
                Verdict::Unknown => (self.put_off(item.id, now), None),
                Verdict::Lost => {
                    let entry = self.leave(item.id);
                    (entry.is_some(), entry)
                }
            };
            reported.extend(is_here.then_some((item, *verdict, entry)));
        }
        reported
    }

    fn renewed(&mut self, id: u64, sent_at: Instant, now: Instant) -> bool {
        self.amend(id, |entry| {
            let was_late = entry.trusted_until() <= now;
            entry.sent_at = entry.sent_at.max(sent_at);
            entry.again_after = entry.entry.timing.renew_every;
            entry.renew_at = entry.again_after.map(|every| sent_at + every);
            // The lease holder may have ended the hold while the reply was in flight.
            entry.query_at = if was_late { Some(now) } else { Some(entry.ends()) };
        })
    }

    /// Schedules a retry after a fifth of the renewal interval, and within half the reassert grace.
    /// False if the entry was removed.
    pub(crate) fn put_off(&mut self, id: u64, now: Instant) -> bool {
        self.amend(id, |entry| {
            entry.again_after =
                entry.entry.timing.renew_every.map(|every| (every / 5).min(REASSERT_GRACE / 2));
            entry.renew_at = entry.again_after.map(|pause| now + pause);
        })
    }

    /// Records a query of the lease holder at `now`; the actor queries once for each passed deadline.
    pub(crate) fn queried(&mut self, id: u64, now: Instant) {
        self.amend(id, |entry| {
            if entry.query_at.is_some_and(|at| at <= now) {
                let next = [Some(entry.trusted_until()), entry.entry.ends].into_iter().flatten();
                entry.query_at = next.filter(|at| now < *at).min();
            }
        });
    }

    /// The send time of the oldest last renewal among renewed entries.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let renewed = self.entries.values().filter(|entry| entry.renew_at.is_some());
        renewed.map(|entry| entry.sent_at).min()
    }

    /// Changes an entry, and its due time in the ordered set (T2).
    fn amend(&mut self, id: u64, amend: impl FnOnce(&mut Entry)) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let before = entry.due();
        amend(entry);
        let after = entry.due();
        if before != after {
            if let Some(before) = before {
                self.order.remove(&(before, id));
            }
            self.order.extend(after.map(|after| (after, id)));
        }
        true
    }
}

impl Entry {
    fn new(entry: LeaseEntry, sent_at: Instant) -> Self {
        let again_after = entry.timing.renew_every;
        let renew_at = again_after.map(|every| sent_at + every);
        let began = sent_at;
        let mut entry = Self { entry, began, sent_at, renew_at, again_after, query_at: None };
        entry.query_at = Some(entry.ends());
        entry
    }

    fn due(&self) -> Option<Instant> {
        [self.renew_at, self.query_at].into_iter().flatten().min()
    }

    fn trusted_until(&self) -> Instant {
        self.entry.timing.trusted_until(self.sent_at)
    }

    /// When the actor queries the lease holder without another renewal.
    fn ends(&self) -> Instant {
        let until = self.trusted_until();
        self.entry.ends.map_or(until, |ends| until.min(ends))
    }

    /// Whether an hour of the grant has ended since the last successful renewal.
    fn extends_grant(&self, now: Instant) -> bool {
        let hours = |at: Instant| {
            at.saturating_duration_since(self.began).as_secs() / GRANT_EXTENSION_INTERVAL.as_secs()
        };
        hours(self.sent_at) < hours(now)
    }

    fn due_lock(&self, id: u64, renew_at: Option<Instant>, now: Instant) -> DueLock {
        let LeaseEntry { held, timing, lease_holder, .. } = &self.entry;
        let (held, lease_holder) = (Arc::clone(held), Arc::clone(lease_holder));
        let trusted_until = self.trusted_until();
        let extends_grant = self.extends_grant(now);
        DueLock { id, held, timing: *timing, lease_holder, trusted_until, renew_at, extends_grant }
    }
}
