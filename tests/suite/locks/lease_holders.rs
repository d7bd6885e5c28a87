//! A lease holder that records its notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galley::locks::{
    LeaseHolder, LockName, Locks, Loss, Registration, Renewable, RenewalTiming, Verdict,
};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::support::fixtures::{claim, granted, held, kim};
use crate::support::redis_server::TEST_TIMEOUT;

/// A notification of a lease holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notification {
    Renewed(Instant, Verdict),
    Lost(Loss),
}

#[derive(Debug)]
pub(crate) struct RecordingHolder {
    lives: watch::Sender<Renewable>,
    notified: watch::Sender<Vec<Notification>>,
    queried: AtomicUsize,
}

impl RecordingHolder {
    pub(crate) fn new() -> Arc<Self> {
        let (lives, notified) = (watch::Sender::new(Renewable::Yes), watch::Sender::default());
        Arc::new(Self { lives, notified, queried: AtomicUsize::new(0) })
    }

    pub(crate) fn is(&self, lives: Renewable) {
        self.lives.send_replace(lives);
    }

    pub(crate) fn queried(&self) -> usize {
        self.queried.load(Ordering::SeqCst)
    }

    pub(crate) fn notified(&self) -> Vec<Notification> {
        self.notified.borrow().clone()
    }

    /// When each of its renewals was sent.
    pub(crate) fn renewals(&self) -> Vec<Instant> {
        let notified = self.notified();
        notified
            .iter()
            .filter_map(
                |notified| {
                    if let Notification::Renewed(at, _) = notified { Some(*at) } else { None }
                },
            )
            .collect()
    }

    /// Waits until it has received this many notifications.
    pub(crate) async fn until_notified(&self, times: usize) -> Vec<Notification> {
        let mut notified = self.notified.subscribe();
        let enough =
            timeout(TEST_TIMEOUT, notified.wait_for(|notified| times <= notified.len())).await;
        enough.expect("a notification in time").expect("it lives").clone()
    }
}

impl LeaseHolder for RecordingHolder {
    fn lives(&self, _now: Instant) -> Renewable {
        self.queried.fetch_add(1, Ordering::SeqCst);
        *self.lives.borrow()
    }

    fn renewed(&self, sent_at: Instant, verdict: Verdict) {
        self.notified
            .send_modify(|notified| notified.push(Notification::Renewed(sent_at, verdict)));
    }

    fn lost(&self, loss: Loss) {
        self.notified.send_modify(|notified| notified.push(Notification::Lost(loss)));
    }
}

/// Claims a lock for Kim, registers it for a lease holder, and returns its value too.
pub(crate) async fn registered(
    locks: &Locks,
    name: &LockName,
    timing: RenewalTiming,
    lease_holder: &Arc<RecordingHolder>,
) -> (Registration, String) {
    let claim = galley::locks::Claim { ttl: timing.ttl(), ..claim(name, &kim()) };
    let grant = granted(locks, &claim).await;
    let lease_holder = Arc::<RecordingHolder>::clone(lease_holder);
    let registration = locks.register(held(&claim, &grant), timing, grant.sent_at, lease_holder);
    (registration.expect("not closed"), claim.value)
}
