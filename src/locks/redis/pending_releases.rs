//! Pending releases (K5).
//!
//! Redis may have executed a claim whose reply was lost, or may still execute it. It may not have
//! executed a release whose reply was lost. Both leave a lock that no holder renews and no claim
//! gets until it expires. So a task sends a compare-and-delete for each, and retries it until Redis
//! replies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::name::LockName;
use crate::redis::call::Calls;
use crate::types::{CallError, LocksError, Released};

const RETRY_EVERY: Duration = Duration::from_millis(250);
/// The most pending releases. Beyond that, locks expire by their lease.
const PENDING_MAX: usize = 16_384;
/// Replies "not held" after which the task drops a pending release. After the first such reply
/// Redis may still execute the claim, which a closed connection may buffer.
const DENIALS: u8 = 2;

#[derive(Debug, Default)]
pub(crate) struct PendingReleases {
    by_value: Mutex<HashMap<String, PendingRelease>>,
    stirred: Notify,
}

#[derive(Debug)]
struct PendingRelease {
    name: LockName,
    denials: u8,
    tries: u32,
    /// No claim gets the lock before this time.
    rests_until: Option<Instant>,
}

/// A release that becomes pending when this is dropped.
#[must_use]
pub(crate) struct Promise<'a> {
    pending: &'a PendingReleases,
    /// `None` once no release is necessary.
    lock: Option<(&'a LockName, &'a str)>,
    rest: Duration,
}

impl Promise<'_> {
    /// Redis replied: no release is pending.
    pub(crate) fn disarm(mut self) {
        self.lock = None;
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if let Some((name, value)) = self.lock.take() {
            self.pending.add(name, value, self.rest);
        }
    }
}

impl PendingRelease {
    fn rest(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.rests_until.map_or(Duration::ZERO, left)
    }
}

impl PendingReleases {
    /// Prepares a release after which no claim gets the lock for `rest`. It becomes pending unless
    /// [`Promise::disarm`] is called.
    pub(crate) fn promise<'a>(
        &'a self,
        name: &'a LockName,
        value: &'a str,
        rest: Duration,
    ) -> Promise<'a> {
        Promise { pending: self, lock: Some((name, value)), rest }
    }

    pub(crate) fn is_pending(&self, value: &str) -> bool {
        self.by_value().contains_key(value)
    }

    pub(crate) async fn work(self: Arc<Self>, calls: Calls, stop: CancellationToken) {
        stop.run_until_cancelled(self.retry_for_ever(&calls)).await;
    }

    async fn retry_for_ever(&self, calls: &Calls) {
        loop {
            self.stirred.notified().await;
            while !self.by_value().is_empty() {
                self.retry_pending(calls).await;
                sleep(RETRY_EVERY).await;
            }
        }
    }

    /// Retries all pending releases once: those of one Redis node in order, until the node is
    /// unreachable.
    pub(crate) async fn retry_pending(&self, calls: &Calls) {
        let mut due: HashMap<_, Vec<_>> = HashMap::new();
        for (value, release) in &*self.by_value() {
            let (name, rest) = (release.name.clone(), release.rest());
            let of_node = due.entry(calls.address_of(&name)).or_default();
            of_node.push((release.tries, name, value.clone(), rest));
        }
        let retries = due.into_values().map(|mut due| {
            // The least-tried release is first, so that one that always fails does not block the
            // others.
            due.sort_unstable_by_key(|(tries, ..)| *tries);
            self.retry_in_order(calls, due)
        });
        join_all(retries).await;
    }

    async fn retry_in_order(&self, calls: &Calls, due: Vec<(u32, LockName, String, Duration)>) {
        for (_tries, name, value, rest) in due {
            match calls.release(&name, &value, rest).await {
                Ok(Released::Freed) => {
                    tracing::debug!(lock = %name, "a pending release is done");
                    self.by_value().remove(&value);
                }
                Ok(Released::NotHeld) => self.record_not_held(&value),
                Err(CallError::Refused(error @ LocksError::Misconfigured(_))) => {
                    tracing::warn!(lock = %name, %error, "Redis refuses a pending release; left to the lease");
                    self.by_value().remove(&value);
                }
                Err(CallError::Unsent(_) | CallError::Unknown(_) | CallError::Refused(_)) => {
                    self.by_value().entry(value).and_modify(|release| release.tries += 1);
                    return;
                }
            }
        }
    }

    fn add(&self, name: &LockName, value: &str, rest: Duration) {
        let mut by_value = self.by_value();
        if by_value.len() >= PENDING_MAX {
            tracing::warn!(lock = %name, "too many pending releases; left to the lease");
            return;
        }
        let rests_until = (!rest.is_zero()).then(|| Instant::now() + rest);
        by_value.insert(
            value.to_owned(),
            PendingRelease { name: name.clone(), denials: 0, tries: 0, rests_until },
        );
        drop(by_value);
        self.stirred.notify_one();
    }

    fn record_not_held(&self, value: &str) {
        let mut by_value = self.by_value();
        let Some(release) = by_value.get_mut(value) else { return };
        release.denials += 1;
        if release.denials >= DENIALS {
            by_value.remove(value);
        }
    }

    fn by_value(&self) -> MutexGuard<'_, HashMap<String, PendingRelease>> {
        self.by_value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis may execute a claim that a closed connection buffers after its first reply to the
    /// release.
    #[test]
    fn g6_a_pending_release_is_not_given_up_after_one_denial() {
        let (pending, name) = (PendingReleases::default(), LockName::named("job:1"));
        drop(pending.promise(&name, "value", Duration::ZERO));
        pending.promise(&name, "other", Duration::ZERO).disarm();
        assert!(pending.is_pending("value") && !pending.is_pending("other"));
        pending.record_not_held("value");
        assert!(pending.is_pending("value"), "one reply is no proof");
        pending.record_not_held("value");
        assert!(!pending.is_pending("value"));
    }
}
