//! The renewal actor: one task for all locks that guards of this process hold.
//!
//! It sleeps until the first of them is due, takes along all that soon will be, and renews them in
//! one pipeline. So locks that were taken at different moments, and have
//! different leases, fall into step, and a hundred cost what one does. A round that fails is no
//! loss: it is repeated sooner, and each lock's own deadline ([`Hold`]) stays in force.
//!
//! Into the register before anybody has the guard, out of it before the release is sent: a renewal
//! that is under way then is refused by the keeper (K4), and its verdict finds nobody here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::locks::hold::Hold;
use crate::locks::keeper::Keeper;
use crate::locks::words::{Held, Loss, Verdict};

/// The least that a round is given, however short the leases in it.
const ROUND_MIN: Duration = Duration::from_millis(100);

/// The register of what guards hold.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    register: Mutex<Register>,
    /// Something is in the register that may be due before what was there.
    stirred: Notify,
}

#[derive(Debug, Default)]
struct Register {
    entries: HashMap<u64, Entry>,
    last_id: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    hold: Arc<Hold>,
    /// When there is something to do about it.
    due: Instant,
}

impl Keeping {
    /// Begins to keep a lock; a number to end that by. Nothing once all is closed.
    pub(super) fn enter(&self, hold: Arc<Hold>, sent_at: Instant) -> Option<u64> {
        let mut register = self.register();
        if register.is_closed {
            return None;
        }
        register.last_id += 1;
        let id = register.last_id;
        let due = next_due(&hold, sent_at);
        register.entries.insert(id, Entry { hold, due });
        drop(register);
        self.stirred.notify_one();
        Some(id)
    }

    /// Ends it. False if that had been done already.
    pub(super) fn leave(&self, id: u64) -> bool {
        self.register().entries.remove(&id).is_some()
    }

    /// Ends it for all, who are told, and takes nobody in any more.
    pub(super) fn close(&self) -> Vec<Arc<Hold>> {
        let mut register = self.register();
        register.is_closed = true;
        let holds: Vec<_> = register.entries.drain().map(|(_id, entry)| entry.hold).collect();
        holds.iter().for_each(|hold| hold.lose(Loss::Closed));
        holds
    }

    /// Renews until `stop`.
    pub(super) async fn run(self: Arc<Self>, keeper: Keeper, stop: CancellationToken) {
        stop.run_until_cancelled(self.renew_for_ever(&keeper)).await;
    }

    async fn renew_for_ever(&self, keeper: &Keeper) {
        loop {
            let next = self.register().entries.values().map(|entry| entry.due).min();
            let is_due = async {
                match next {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let all = tokio::select! {
                () = is_due => false,
                () = self.stirred.notified() => continue,
                // Redis may have come back empty: whoever renews first is whoever was there.
                () = keeper.is_back() => true,
            };
            for hold in self.drop_lost(Instant::now()) {
                keeper.release_soon(&hold.held.name, &hold.held.value, Duration::ZERO);
            }
            let due = self.due(Instant::now(), all);
            if !due.is_empty() {
                self.round(keeper, &due).await;
            }
        }
    }

    /// Takes out what was lost by the clock. It may be held still as Redis sees it.
    fn drop_lost(&self, now: Instant) -> Vec<Arc<Hold>> {
        let mut lost = Vec::new();
        self.register().entries.retain(|_id, entry| {
            let keeps = entry.hold.loss(now).is_none();
            if !keeps {
                lost.push(Arc::clone(&entry.hold));
            }
            keeps
        });
        lost
    }

    /// What is to be renewed: what is due, and what will be within half of its own rhythm. So two
    /// groups of one rhythm become one: whichever comes second takes the other along. Shortest
    /// leases first, alike ones together, nearest deadline first among them.
    fn due(&self, now: Instant, all: bool) -> Vec<(u64, Arc<Hold>)> {
        let register = self.register();
        let is_due = |entry: &Entry| {
            let every = entry.hold.rhythm.renew_every;
            every.is_some_and(|every| all || entry.due <= now + every / 2)
        };
        let entries = register.entries.iter().filter(|(_id, entry)| is_due(entry));
        let mut due: Vec<_> = entries.map(|(id, entry)| (*id, Arc::clone(&entry.hold))).collect();
        drop(register);
        // Neighbours of one TTL share a call.
        due.sort_by_cached_key(|(_id, hold)| (hold.rhythm.ttl, hold.deadline()));
        due
    }

    async fn round(&self, keeper: &Keeper, due: &[(u64, Arc<Hold>)]) {
        let held: Vec<(&Held, Duration)> =
            due.iter().map(|(_id, hold)| (&hold.held, hold.rhythm.ttl)).collect();
        let shortest = due.iter().filter_map(|(_id, hold)| hold.rhythm.renew_every).min();
        let budget = shortest.unwrap_or(ROUND_MIN).max(ROUND_MIN);
        match timeout(budget, keeper.renew(&held)).await {
            Ok(Ok(round)) => {
                for ((id, hold), verdict) in due.iter().zip(round.verdicts) {
                    self.apply(*id, hold, verdict, round.sent_at);
                }
            }
            // Redis may or may not have renewed these. Their old deadlines stay in force.
            Ok(Err(error)) => {
                tracing::warn!(%error, locks = due.len(), "renewal failed");
                self.try_again_soon(due);
            }
            Err(_elapsed) => {
                tracing::warn!(locks = due.len(), "a renewal round ran out of time");
                self.try_again_soon(due);
            }
        }
    }

    fn apply(&self, id: u64, hold: &Hold, verdict: Verdict, sent_at: Instant) {
        let mut register = self.register();
        // Released while the pipeline was under way: nothing was lost.
        let Some(entry) = register.entries.get_mut(&id) else { return };
        match verdict {
            Verdict::Renewed | Verdict::Reasserted => {
                hold.renewed(sent_at);
                entry.due = next_due(hold, sent_at);
            }
            Verdict::Lost => {
                tracing::warn!(lock = %hold.held.name, "a lock was lost to somebody else");
                hold.lose(Loss::Taken);
                register.entries.remove(&id);
            }
            Verdict::Unknown => entry.due = soon(hold),
        }
    }

    fn try_again_soon(&self, due: &[(u64, Arc<Hold>)]) {
        let mut register = self.register();
        for (id, hold) in due {
            if let Some(entry) = register.entries.get_mut(id) {
                entry.due = soon(hold);
            }
        }
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When there is something to do about a lock: its renewal, or its end.
fn next_due(hold: &Hold, sent_at: Instant) -> Instant {
    match hold.rhythm.renew_every {
        Some(every) => (sent_at + every).min(hold.deadline()),
        None => hold.deadline(),
    }
}

/// When a renewal that failed is tried again.
fn soon(hold: &Hold) -> Instant {
    let pause = hold.rhythm.renew_every.unwrap_or_default() / 4;
    (Instant::now() + pause).min(hold.deadline())
}
