//! What a guard and the renewal actor both know of one held lock. No IO.
//!
//! - **H1** (G3) It is trusted until an eighth of the lease before its end, counted from when the
//!   last good claim or renewal was sent, and never beyond its longest hold.
//! - **H2** Lost is lost: whoever first finds that out, by the clock or by a verdict, says how, and
//!   no later renewal changes it. A holder that could not be sure does not become sure again.
//! - **H3** It is a tenant that lives until it is lost: what is lost is not renewed, but released.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::locks::client::options::Rhythm;
use crate::locks::renewal::lease::{Lives, Tenant};
use crate::locks::renewal::schedule::Tenancy;
use crate::locks::types::{Held, Loss, Verdict};

/// A lock that a guard holds.
#[derive(Debug)]
pub(in crate::locks) struct Hold {
    pub(in crate::locks) held: Arc<Held>,
    pub(in crate::locks) rhythm: Rhythm,
    pub(in crate::locks) began: Instant,
    /// Nobody else is to have it before.
    pub(in crate::locks) rests_until: Instant,
    /// It is taken away then.
    ends: Option<Instant>,
    trust: Mutex<Trust>,
    is_lost: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
struct Trust {
    until: Instant,
    loss: Option<Loss>,
}

impl Hold {
    /// A lock that was asked for at `sent_at`.
    pub(in crate::locks) fn new(
        held: Held,
        rhythm: Rhythm,
        sent_at: Instant,
        min_hold: Duration,
        max_hold: Option<Duration>,
    ) -> Self {
        let began = Instant::now();
        let trust = Trust { until: rhythm.trusted_until(sent_at), loss: None };
        Self {
            held: Arc::new(held),
            rhythm,
            began,
            rests_until: began + min_hold,
            ends: max_hold.map(|max_hold| sent_at + max_hold),
            trust: Mutex::new(trust),
            is_lost: CancellationToken::new(),
        }
    }

    /// It is not trusted for longer than this, until it is renewed.
    pub(in crate::locks) fn trust_until(&self, until: Instant) {
        let mut trust = self.trust();
        trust.until = trust.until.min(until);
    }

    /// What the renewal actor has to know.
    pub(in crate::locks) fn tenancy(self: &Arc<Self>) -> Tenancy {
        Tenancy {
            held: Arc::clone(&self.held),
            rhythm: self.rhythm,
            ends: self.ends,
            rests_until: Some(self.rests_until),
            tenant: Arc::<Self>::clone(self),
        }
    }

    /// How it was lost, if it is at `now`.
    pub(in crate::locks) fn loss(&self, now: Instant) -> Option<Loss> {
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

    /// Resolves when it is lost. By this clock too, and not only when the actor says so: one that
    /// is late or dead must not keep anybody believing.
    pub(in crate::locks) async fn lost(&self) -> Loss {
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

    /// When it is lost unless it is renewed.
    fn deadline(&self) -> Instant {
        let until = self.trust().until;
        self.ends.map_or(until, |ends| until.min(ends))
    }

    /// How long nobody else may have it if it is given back now.
    pub(in crate::locks) fn rest(&self) -> Duration {
        self.rests_until.saturating_duration_since(Instant::now())
    }

    fn trust(&self) -> MutexGuard<'_, Trust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tenant for Hold {
    fn lives(&self, now: Instant) -> Lives {
        if self.loss(now).is_none() { Lives::Yes } else { Lives::NoMore }
    }

    /// If it was not lost before (H2).
    fn renewed(&self, sent_at: Instant, _verdict: Verdict) {
        if self.loss(Instant::now()).is_none() {
            let mut trust = self.trust();
            trust.until = trust.until.max(self.rhythm.trusted_until(sent_at));
        }
    }

    fn lost(&self, loss: Loss) {
        self.trust().loss.get_or_insert(loss);
        self.is_lost.cancel();
    }
}
