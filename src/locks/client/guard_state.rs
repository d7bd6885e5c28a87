//! The state of one held lock that its guard and the renewal actor share. No IO.
//!
//! - **H1** (G3) The deadline is an eighth of the lease before its end, counted from when the last
//!   successful claim or renewal was sent. It never exceeds the maximum hold.
//! - **H2** A loss is final. The first detection, by the clock or by a verdict, sets the reason; no
//!   later renewal revokes it. A holder whose deadline passed does not become valid again.
//! - **H3** The state is a lease holder that is renewable until the loss. The actor releases a lost lock
//!   and does not renew it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::client::options::RenewalTiming;
use crate::renewal::lease::{LeaseEntry, LeaseHolder, Renewable};
use crate::types::{HeldLock, Loss, Verdict};

#[derive(Debug)]
pub(crate) struct GuardState {
    pub(crate) held: Arc<HeldLock>,
    pub(crate) timing: RenewalTiming,
    pub(crate) began: Instant,
    /// End of the minimum hold: the backend grants the lock to no other claimant before.
    pub(crate) rests_until: Instant,
    ends: Option<Instant>,
    trust: Mutex<Trust>,
    is_lost: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
struct Trust {
    until: Instant,
    loss: Option<Loss>,
}

impl GuardState {
    pub(crate) fn new(
        held: HeldLock,
        timing: RenewalTiming,
        sent_at: Instant,
        min_hold: Duration,
        max_hold: Option<Duration>,
    ) -> Self {
        let began = Instant::now();
        let trust = Trust { until: timing.trusted_until(sent_at), loss: None };
        Self {
            held: Arc::new(held),
            timing,
            began,
            rests_until: began + min_hold,
            ends: max_hold.map(|max_hold| sent_at + max_hold),
            trust: Mutex::new(trust),
            is_lost: CancellationToken::new(),
        }
    }

    /// Moves the deadline forward to at most `until`. The next renewal may extend it.
    pub(crate) fn trust_until(&self, until: Instant) {
        let mut trust = self.trust();
        trust.until = trust.until.min(until);
    }

    pub(crate) fn entry(self: &Arc<Self>) -> LeaseEntry {
        LeaseEntry {
            held: Arc::clone(&self.held),
            timing: self.timing,
            ends: self.ends,
            rests_until: Some(self.rests_until),
            lease_holder: Arc::<Self>::clone(self),
        }
    }

    pub(crate) fn loss(&self, now: Instant) -> Option<Loss> {
        let mut trust = self.trust();
        let by_clock = match self.ends {
            Some(ends) if ends <= now => Some(Loss::HeldTooLong),
            _ => (trust.until <= now).then_some(Loss::Expired),
        };
        if trust.loss.is_none() && by_clock.is_some() {
            trust.loss = by_clock;
            self.is_lost.cancel();
        }
        trust.loss
    }

    /// Resolves when the lock is lost. It also waits for the deadline by its own clock: a late or
    /// dead actor must not extend the hold.
    pub(crate) async fn lost(&self) -> Loss {
        loop {
            if let Some(loss) = self.loss(Instant::now()) {
                return loss;
            }
            tokio::select! {
                () = self.is_lost.cancelled() => {}
                () = sleep_until(self.deadline()) => {}
            }
        }
    }

    /// When the lock is lost without another renewal.
    fn deadline(&self) -> Instant {
        let until = self.trust().until;
        self.ends.map_or(until, |ends| until.min(ends))
    }

    pub(crate) fn rest(&self) -> Duration {
        self.rests_until.saturating_duration_since(Instant::now())
    }

    fn trust(&self) -> MutexGuard<'_, Trust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseHolder for GuardState {
    fn lives(&self, now: Instant) -> Renewable {
        if self.loss(now).is_none() { Renewable::Yes } else { Renewable::Release }
    }

    /// Extends the deadline, unless the lock is already lost (H2).
    fn renewed(&self, sent_at: Instant, _verdict: Verdict) {
        if self.loss(Instant::now()).is_none() {
            let mut trust = self.trust();
            trust.until = trust.until.max(self.timing.trusted_until(sent_at));
        }
    }

    fn lost(&self, loss: Loss) {
        self.trust().loss.get_or_insert(loss);
        self.is_lost.cancel();
    }
}
