//! The renewal actor: one task renews all locks that this process holds, seats and guards alike.
//!
//! It sleeps until the first lock is due. Its round also renews every lock that would be due before
//! that one is due again, in one pipeline. So locks with different start times and leases fall into
//! step, and a hundred cost as much as one. A caller with its own tick, such as the seats, wakes
//! the actor and gets its round then.
//!
//! A failed round loses no lock: the actor retries sooner, and each holder's own deadline stays in
//! force. After a stall the actor runs one round, and not one for each missed round: the next due
//! time is counted from when the last round was sent.
//!
//! A lock enters the schedule before its caller receives it, and leaves before its release is sent.
//! The backend rejects a renewal in flight (K4), and its verdict finds no entry (T1). The actor
//! calls lease holders without holding the mutex.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::Locks;
use crate::backend::Backend;
use crate::renewal::lease::{LeaseEntry, Renewable};
use crate::renewal::schedule::{DueLock, Register};
use crate::types::{HeldLock, LocksError, Loss, Round, Verdict};

/// The minimum time of a round, however short its leases.
const ROUND_MIN: Duration = Duration::from_millis(100);
/// Verdicts recorded under one lock of the mutex. Other callers wait for no more than these.
const VERDICTS_AT_ONCE: usize = 250;
/// Mass loss: at least this many locks, and half of the round, were lost. The cause is then Redis
/// and not the single lock.
const MASS_LOSS: usize = 10;
const OLDEST_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct RenewalActor {
    register: Mutex<Register>,
    /// A lock is due before the next wake-up, or a caller requested a round.
    wake: Notify,
    #[cfg(test)]
    wakes: std::sync::atomic::AtomicUsize,
}

impl RenewalActor {
    /// Registers a lock; returns the id of its entry. None once the schedule is closed.
    pub(crate) fn enter(&self, entry: LeaseEntry, sent_at: Instant) -> Option<u64> {
        let (id, is_early) = self.register().enter(entry, sent_at)?;
        if is_early {
            self.wake.notify_one();
        }
        Some(id)
    }

    /// Removes an entry. False if it was already removed.
    pub(crate) fn leave(&self, id: u64) -> bool {
        let mut register = self.register();
        let left = register.leave(id);
        if register.is_empty() {
            show_oldest(Duration::ZERO);
        }
        drop(register);
        // The entry drops here, outside the mutex: dropping its lease holder may run any code.
        left.is_some()
    }

    /// Removes all entries, notifies their lease holders, and rejects later ones.
    pub(crate) fn close(&self) -> Vec<LeaseEntry> {
        let all = self.register().close();
        all.iter().for_each(|entry| entry.lease_holder.lost(Loss::Closed));
        show_oldest(Duration::ZERO);
        all
    }

    /// Requests a round now of all locks that are due before `until`.
    pub(crate) fn wake_before(&self, until: Instant) {
        if self.register().wake_before(until) {
            self.wake.notify_one();
        }
    }

    pub(crate) async fn run(self: Arc<Self>, backend: Backend, stop: CancellationToken) {
        stop.run_until_cancelled(self.renew_for_ever(&backend)).await;
    }

    async fn renew_for_ever(&self, backend: &Backend) {
        let mut measured_at = Instant::now();
        loop {
            let next = self.register().next_wake();
            let is_due = async {
                match next {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let is_back = tokio::select! {
                () = is_due => false,
                () = self.wake.notified() => false,
                // Redis may have come back empty: previous holders reassert their locks first.
                () = backend.reconnected() => true,
            };
            #[cfg(test)]
            self.wakes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let now = Instant::now();
            let items = self.register().due_locks(now, is_back);
            let round = self.query_holders(backend, items, now);
            if round.is_empty() {
                continue;
            }
            let is_good = self.round(backend, round, now).await;
            if !is_good || measured_at.elapsed() >= OLDEST_EVERY {
                measured_at = Instant::now();
                let oldest = self.register().oldest();
                show_oldest(oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed()));
            }
        }
    }

    fn query_holders(
        &self,
        backend: &Backend,
        mut items: Vec<DueLock>,
        now: Instant,
    ) -> Vec<DueLock> {
        items.retain(|item| {
            let lives = item.lease_holder.lives(now);
            self.register().queried(item.id, now);
            match lives {
                Renewable::Yes => {}
                Renewable::Later => {
                    self.register().put_off(item.id, now);
                }
                Renewable::Release if self.leave(item.id) => {
                    // Redis may still store the key.
                    backend.release_soon(&item.held.name, &item.held.value, Duration::ZERO);
                }
                Renewable::Release => {}
            }
            lives == Renewable::Yes && item.renew_at.is_some()
        });
        items
    }

    /// Sorts by lease, then by deadline: equal leases share one call. False if the round failed for
    /// any lock.
    async fn round(&self, backend: &Backend, mut round: Vec<DueLock>, now: Instant) -> bool {
        round.sort_unstable_by_key(|item| (item.timing.ttl, item.trusted_until));
        let due = round.iter().filter_map(|item| item.renew_at).min();
        let lag = due.map_or(Duration::ZERO, |due| now.saturating_duration_since(due));
        metrics::histogram!("galley_renewal_lag_seconds").record(lag);
        let held: Vec<_> = round.iter().map(|item| (&*item.held, item.timing.ttl)).collect();
        let extends: Vec<_> = round.iter().map(|item| item.extends_grant).collect();
        // The time budget follows the longest lease: a reply too late for a short lease may be in
        // time for the others.
        let longest = round.iter().filter_map(|item| item.timing.renew_every).max();
        let budget = longest.unwrap_or(ROUND_MIN).max(ROUND_MIN);
        // The round gives up one of several Redis nodes without a reply before its own budget ends.
        match timeout(budget, renew(backend, &held, &extends, budget * 3 / 4)).await {
            Ok(Ok(answer)) => {
                return self.apply(&round, &answer.verdicts, answer.sent_at);
            }
            // Redis may or may not have renewed these locks. Their old deadlines stay in force.
            Ok(Err(error)) => tracing::warn!(%error, locks = round.len(), "renewal failed"),
            Err(_elapsed) => {
                tracing::warn!(locks = round.len(), "a renewal round timed out");
            }
        }
        let now = Instant::now();
        for items in round.chunks(VERDICTS_AT_ONCE) {
            let mut register = self.register();
            for item in items {
                register.put_off(item.id, now);
            }
        }
        false
    }

    /// Records the verdicts, then notifies the lease holders. False if some verdicts are unknown.
    fn apply(&self, round: &[DueLock], verdicts: &[Verdict], sent_at: Instant) -> bool {
        let (now, mut lost, mut is_whole) = (Instant::now(), Vec::new(), true);
        let parts = round.chunks(VERDICTS_AT_ONCE).zip(verdicts.chunks(VERDICTS_AT_ONCE));
        for (items, verdicts) in parts {
            let reported = self.register().record_verdicts(items, verdicts, sent_at, now);
            for (item, verdict, entry) in reported {
                let holder = &item.lease_holder;
                match verdict {
                    Verdict::Renewed | Verdict::Reasserted => holder.renewed(sent_at, verdict),
                    Verdict::Lost => lost.push((item, entry)),
                    Verdict::Unknown => is_whole = false,
                }
            }
        }
        let is_mass = lost.len() >= MASS_LOSS && round.len() <= lost.len() * 2;
        if is_mass {
            metrics::counter!("galley_renewal_mass_losses_total").increment(1);
            let (lost, of) = (lost.len(), round.len());
            tracing::error!(lost, of, "a renewal round lost most of its locks: check Redis");
        }
        for (item, _entry) in lost {
            if !is_mass {
                tracing::warn!(lock = %item.held.name, "a lock was lost to another holder");
            }
            item.lease_holder.lost(Loss::Taken);
        }
        is_whole
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Locks {
    /// Renews all of `held` in one pipeline, as a round of the actor does. For tests and benchmarks.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    #[doc(hidden)]
    pub async fn renew(&self, held: &[HeldLock], ttl: Duration) -> Result<Round, LocksError> {
        let held: Vec<_> = held.iter().map(|held| (held, ttl)).collect();
        renew(&self.0.backend, &held, &vec![false; held.len()], Duration::MAX).await
    }
}

/// Renews all of `held` in one pipeline, and records its duration. It waits at most `node_timeout` for
/// each of several Redis nodes.
async fn renew(
    backend: &Backend,
    held: &[(&HeldLock, Duration)],
    extends: &[bool],
    node_timeout: Duration,
) -> Result<Round, LocksError> {
    let began = Instant::now();
    let round = backend.renew(held, extends, node_timeout).await?;
    metrics::histogram!("galley_renewal_round_seconds").record(began.elapsed());
    metrics::gauge!("galley_renewal_locks").set(held.len() as f64);
    let reasserted = round.verdicts.iter().filter(|it| **it == Verdict::Reasserted).count();
    if reasserted > 0 {
        metrics::counter!("galley_renewal_reasserted_total").increment(reasserted as u64);
    }
    Ok(round)
}

fn show_oldest(age: Duration) {
    metrics::gauge!("galley_renewal_oldest_seconds").set(age);
}

#[cfg(test)]
#[path = "actor_tests.rs"]
mod tests;
