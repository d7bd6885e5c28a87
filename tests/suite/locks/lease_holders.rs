//! A tenant that records its notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galley::locks::{
    LeaseHolder, LockName, Locks, Loss, Registration, Renewable, RenewalTiming, Verdict,
};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::support::fixtures::{claim, granted, held, kim};
use crate::support::redis_server::PATIENCE;

/// A notification of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Renewed(Instant, Verdict),
    Lost(Loss),
}

#[derive(Debug)]
pub(crate) struct Lodger {
    lives: watch::Sender<Renewable>,
    told: watch::Sender<Vec<Told>>,
    asked: AtomicUsize,
}

impl Lodger {
    pub(crate) fn new() -> Arc<Self> {
        let (lives, told) = (watch::Sender::new(Renewable::Yes), watch::Sender::default());
        Arc::new(Self { lives, told, asked: AtomicUsize::new(0) })
    }

    pub(crate) fn is(&self, lives: Renewable) {
        self.lives.send_replace(lives);
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.borrow().clone()
    }

    /// When each of its renewals was sent.
    pub(crate) fn renewals(&self) -> Vec<Instant> {
        let told = self.told();
        told.iter()
            .filter_map(|told| if let Told::Renewed(at, _) = told { Some(*at) } else { None })
            .collect()
    }

    /// Waits until it has received this many notifications.
    pub(crate) async fn until_told(&self, times: usize) -> Vec<Told> {
        let mut told = self.told.subscribe();
        let enough = timeout(PATIENCE, told.wait_for(|told| times <= told.len())).await;
        enough.expect("a notification in time").expect("it lives").clone()
    }
}

impl LeaseHolder for Lodger {
    fn lives(&self, _now: Instant) -> Renewable {
        self.asked.fetch_add(1, Ordering::SeqCst);
        *self.lives.borrow()
    }

    fn renewed(&self, sent_at: Instant, verdict: Verdict) {
        self.told.send_modify(|told| told.push(Told::Renewed(sent_at, verdict)));
    }

    fn lost(&self, loss: Loss) {
        self.told.send_modify(|told| told.push(Told::Lost(loss)));
    }
}

/// Claims a lock for Kim, registers it for a tenant, and returns its value too.
pub(crate) async fn kept_as(
    locks: &Locks,
    name: &LockName,
    timing: RenewalTiming,
    lodger: &Arc<Lodger>,
) -> (Registration, String) {
    let claim = galley::locks::Claim { ttl: timing.ttl(), ..claim(name, &kim()) };
    let grant = granted(locks, &claim).await;
    let lodger = Arc::<Lodger>::clone(lodger);
    let kept = locks.register(held(&claim, &grant), timing, grant.sent_at, lodger);
    (kept.expect("not closed"), claim.value)
}
