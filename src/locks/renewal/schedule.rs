//! The register of what is kept alive: who, and when there is something to do about them. No IO,
//! and no clock.
//!
//! Entries stand in a map, and beside it in the order in which they are due. To come, to go and to
//! find what is due costs as many steps as a look-up, and never a walk over all.
//!
//! - **T1** What was taken out is not in any later agenda, and no verdict of an earlier one finds
//!   it (G6).
//! - **T2** Each entry stands in the order under the time that it itself gives, or not at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::locks::GRANTS_KEPT_EVERY;
use crate::locks::client::options::{LEASES, Rhythm};
use crate::locks::redis::server_identity::RETURN_GRACE;
use crate::locks::renewal::lease::Tenant;
use crate::locks::types::{Held, Verdict};

/// A lock that is kept, and for whom.
#[derive(Clone, Debug)]
pub(in crate::locks) struct Tenancy {
    pub(in crate::locks) held: Arc<Held>,
    pub(in crate::locks) rhythm: Rhythm,
    /// Its tenant is asked then, however well it was renewed.
    pub(in crate::locks) ends: Option<Instant>,
    /// Nobody else is to have it before.
    pub(in crate::locks) rests_until: Option<Instant>,
    pub(in crate::locks) tenant: Arc<dyn Tenant>,
}

/// Something to do.
#[derive(Debug)]
pub(in crate::locks) struct Item {
    pub(in crate::locks) id: u64,
    pub(in crate::locks) held: Arc<Held>,
    pub(in crate::locks) rhythm: Rhythm,
    pub(in crate::locks) tenant: Arc<dyn Tenant>,
    pub(in crate::locks) trusted_until: Instant,
    /// When it was to be renewed, if it is in this round.
    pub(in crate::locks) renew_at: Option<Instant>,
    /// Whether its grant is to be kept from being forgotten by the next renewal.
    pub(in crate::locks) keeps_grant: bool,
}

/// What is kept.
#[derive(Debug, Default)]
pub(in crate::locks) struct Register {
    entries: HashMap<u64, Entry>,
    order: BTreeSet<(Instant, u64)>,
    last_id: u64,
    is_closed: bool,
    /// When the actor looks here by itself. It is not called off when what was due then is gone.
    armed: Option<Instant>,
    /// Somebody asked that all be renewed now that is due before this.
    rung: Option<Instant>,
    /// When the keeper was back the last time that it had been away.
    back_at: Option<Instant>,
    /// Entries that were looked at to see what there is to do.
    #[cfg(test)]
    pub(in crate::locks) looked_at: usize,
}

#[derive(Debug)]
struct Entry {
    tenancy: Tenancy,
    /// When it was given: the hours of its grant are counted from here.
    began: Instant,
    /// When the last good claim or renewal was sent.
    sent_at: Instant,
    /// When it is renewed next, if ever.
    renew_at: Option<Instant>,
    /// How long after that the next time is if nothing comes of it: its rhythm, or the pause
    /// between attempts.
    again_after: Option<Duration>,
    /// When its tenant is asked, even if nothing is to be renewed.
    look_at: Option<Instant>,
}

impl Register {
    /// Takes one in; a number to find it by, and whether it is due before the actor looks by itself.
    /// Nothing once all is closed.
    pub(in crate::locks) fn enter(
        &mut self,
        tenancy: Tenancy,
        sent_at: Instant,
    ) -> Option<(u64, bool)> {
        if self.is_closed {
            return None;
        }
        self.last_id += 1;
        let id = self.last_id;
        let mut entry = Entry::new(tenancy, sent_at);
        if self.back_at.is_some_and(|back_at| sent_at <= back_at) {
            // The keeper may have come back without it, and all were renewed that stood here.
            entry.renew_at = entry.renew_at.map(|at| at.min(sent_at));
        }
        let due = entry.due();
        self.entries.insert(id, entry);
        self.order.extend(due.map(|due| (due, id)));
        let is_early = due.is_some_and(|due| self.armed.is_none_or(|armed| due < armed));
        Some((id, is_early))
    }

    /// Takes one out, for the caller to drop when nothing is locked any more.
    pub(in crate::locks) fn leave(&mut self, id: u64) -> Option<Tenancy> {
        let entry = self.entries.remove(&id)?;
        if let Some(due) = entry.due() {
            self.order.remove(&(due, id));
        }
        Some(entry.tenancy)
    }

    /// Takes all out, and nobody in any more.
    pub(in crate::locks) fn close(&mut self) -> Vec<Tenancy> {
        self.is_closed = true;
        self.order.clear();
        self.entries.drain().map(|(_id, entry)| entry.tenancy).collect()
    }

    pub(in crate::locks) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All that is due before `until` is to be renewed now. False if there is nothing at all.
    pub(in crate::locks) fn ring(&mut self, until: Instant) -> bool {
        self.rung = (!self.is_empty()).then_some(until).max(self.rung);
        !self.is_empty()
    }

    /// When there is something to do, which is when the actor is going to look.
    pub(in crate::locks) fn arm(&mut self) -> Option<Instant> {
        self.armed = self.order.first().map(|(due, _id)| *due);
        self.armed
    }

    /// What there is to do at `now`: whose tenants to ask, and what to renew, all of which it is
    /// when the keeper `is_back`.
    pub(in crate::locks) fn agenda(&mut self, now: Instant, is_back: bool) -> Vec<Item> {
        if is_back {
            self.back_at = Some(now);
        }
        let horizon = self.horizon(now, is_back);
        let last = horizon.map_or(now, |horizon| horizon.max(now));
        let mut agenda = Vec::new();
        for (due, id) in self.order.range(..=(last, u64::MAX)) {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            let Some(entry) = self.entries.get(id) else { continue };
            let joins = |at: &Instant| horizon.is_some_and(|horizon| *at <= horizon);
            let renew_at = entry.renew_at.filter(joins);
            if renew_at.is_some() || *due <= now {
                agenda.push(entry.item(*id, renew_at, now));
            }
        }
        agenda
    }

    /// Up to where entries join the round that is to be made now, if one is.
    ///
    /// One that is due takes along all that will be due before it is due again. So the one with the
    /// shortest lease makes the rounds, and whatever else is kept makes none of its own.
    fn horizon(&mut self, now: Instant, is_back: bool) -> Option<Instant> {
        #[cfg(test)]
        {
            self.looked_at += self.order.range(..=(now, u64::MAX)).count();
        }
        let due = self.order.range(..=(now, u64::MAX));
        let due = due.filter_map(|(_due, id)| self.entries.get(id));
        let due = due.filter(|entry| entry.renew_at.is_some_and(|at| at <= now));
        let shortest = due.filter_map(|entry| entry.again_after).min();
        let all = is_back.then(|| now + LEASES.1);
        self.rung.take().max(shortest.map(|pause| now + pause)).max(all)
    }

    /// What became by `now` of each item in a round that was sent at `sent_at`. Gives those that are
    /// still here, with what was taken out: what was released while the pipeline was under way was
    /// not lost, and is not raised (T1).
    pub(in crate::locks) fn enter_verdicts<'a>(
        &mut self,
        items: &'a [Item],
        verdicts: &[Verdict],
        sent_at: Instant,
        now: Instant,
    ) -> Vec<(&'a Item, Verdict, Option<Tenancy>)> {
        let mut told = Vec::with_capacity(items.len());
        for (item, verdict) in items.iter().zip(verdicts) {
            let (is_here, tenancy) = match verdict {
                Verdict::Renewed | Verdict::Reasserted => {
                    (self.renewed(item.id, sent_at, now), None)
                }
                Verdict::Unknown => (self.put_off(item.id, now), None),
                Verdict::Lost => {
                    let tenancy = self.leave(item.id);
                    (tenancy.is_some(), tenancy)
                }
            };
            told.extend(is_here.then_some((item, *verdict, tenancy)));
        }
        told
    }

    fn renewed(&mut self, id: u64, sent_at: Instant, now: Instant) -> bool {
        self.amend(id, |entry| {
            let was_late = entry.trusted_until() <= now;
            entry.sent_at = entry.sent_at.max(sent_at);
            entry.again_after = entry.tenancy.rhythm.renew_every;
            entry.renew_at = entry.again_after.map(|every| sent_at + every);
            // Its tenant may have given it up while the answer was on its way.
            entry.look_at = if was_late { Some(now) } else { Some(entry.ends()) };
        })
    }

    /// It was not renewed: that is tried again after a fifth of its rhythm, and in time to come
    /// back to a keeper that has forgotten it. False if it is not here any more.
    pub(in crate::locks) fn put_off(&mut self, id: u64, now: Instant) -> bool {
        self.amend(id, |entry| {
            entry.again_after =
                entry.tenancy.rhythm.renew_every.map(|every| (every / 5).min(RETURN_GRACE / 2));
            entry.renew_at = entry.again_after.map(|pause| now + pause);
        })
    }

    /// Its tenant was asked at `now`, and is asked once for each time that the trust ends.
    pub(in crate::locks) fn asked(&mut self, id: u64, now: Instant) {
        self.amend(id, |entry| {
            if entry.look_at.is_some_and(|at| at <= now) {
                let next = [Some(entry.trusted_until()), entry.tenancy.ends].into_iter().flatten();
                entry.look_at = next.filter(|at| now < *at).min();
            }
        });
    }

    /// When that was sent which was sent first among all that last renewed one of these.
    pub(in crate::locks) fn oldest(&self) -> Option<Instant> {
        let renewed = self.entries.values().filter(|entry| entry.renew_at.is_some());
        renewed.map(|entry| entry.sent_at).min()
    }

    /// Changes an entry, and its place in the order with it (T2).
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
    fn new(tenancy: Tenancy, sent_at: Instant) -> Self {
        let again_after = tenancy.rhythm.renew_every;
        let renew_at = again_after.map(|every| sent_at + every);
        let began = sent_at;
        let mut entry = Self { tenancy, began, sent_at, renew_at, again_after, look_at: None };
        entry.look_at = Some(entry.ends());
        entry
    }

    fn due(&self) -> Option<Instant> {
        [self.renew_at, self.look_at].into_iter().flatten().min()
    }

    fn trusted_until(&self) -> Instant {
        self.tenancy.rhythm.trusted_until(self.sent_at)
    }

    /// When its tenant has to be asked if it is not renewed.
    fn ends(&self) -> Instant {
        let until = self.trusted_until();
        self.tenancy.ends.map_or(until, |ends| until.min(ends))
    }

    /// Whether an hour of its grant has ended since the last good renewal.
    fn keeps_grant(&self, now: Instant) -> bool {
        let hours = |at: Instant| {
            at.saturating_duration_since(self.began).as_secs() / GRANTS_KEPT_EVERY.as_secs()
        };
        hours(self.sent_at) < hours(now)
    }

    fn item(&self, id: u64, renew_at: Option<Instant>, now: Instant) -> Item {
        let Tenancy { held, rhythm, tenant, .. } = &self.tenancy;
        let (held, tenant) = (Arc::clone(held), Arc::clone(tenant));
        let trusted_until = self.trusted_until();
        let keeps_grant = self.keeps_grant(now);
        Item { id, held, rhythm: *rhythm, tenant, trusted_until, renew_at, keeps_grant }
    }
}

impl Tenancy {
    /// How long nobody else may have it if it is given back at `now`.
    pub(in crate::locks) fn rest(&self, now: Instant) -> Duration {
        self.rests_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}
