//! A waiter in the wait queue of a lock.
//!
//! A waiter joins the queue and polls its position in one script, so no release can come in
//! between. It polls again on a hand-over message, at the end of the holder's lease, and before its
//! own queue deadline. Each poll is heartbeat, backstop and claim in one. No single trigger has to
//! be reliable, because each of the three leads to the same poll.
//!
//! The fast path ([`Waiter::granted_early`]) accepts the hand-over message without polling Redis. The
//! message carries fence and grant time, but not the remaining TTL. The waiter bounds that locally:
//! Redis granted the lock for the rest of the waiter's queue deadline. The last poll restarted that
//! deadline when it reached the backend, and not before it was sent:
//!
//! - **A1** (G3) A handed-over grant is valid until an eighth of [`QUEUE_ENTRY_TTL`] before the
//!   deadline's end. The deadline is counted from when the last answered poll was sent, however
//!   late the message arrives.
//! - **A2** The waiter accepts a message only if its fence is above that of the holder in that
//!   poll: the hand-over came later. A waiter whose poll found no holder polls again.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Locks;
use crate::REASSERT_GRACE;
use crate::redis_client::jittered;
use crate::types::{CallError, Claim, Grant, LockError, LocksError, QueuePosition, unexpected};
use crate::wait_queue::{
    Handover, POLL_INTERVAL, QUEUE_ENTRY_TTL, QueueEntry, QueueStatus, WakeHandle,
};
use galley_domain::fence::Fence;
use galley_domain::lease::trusted_until;

/// Delay of the first waiter's poll after the end of the holder's lease.
const AFTER_EXPIRY: Duration = Duration::from_millis(2);
/// Spread of the other waiters' polls after that, in case the first waiter is dead.
const SPREAD: Duration = Duration::from_millis(250);
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// A longer lease belongs to a key that an operator set by hand.
const LEASE_SEEN_MAX: Duration = Duration::from_secs(60 * 60);

/// An event of a waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// Its position or the holder changed.
    Position(QueuePosition),
    /// It acquired the lock. No event follows.
    Granted(Grant),
}

#[derive(Debug)]
pub(crate) struct EarlyGrant {
    pub(crate) grant: Grant,
    /// Set after a hand-over: the lease lasts only for the rest of the queue deadline. The guard
    /// must extend it before this instant.
    pub(crate) until: Option<Instant>,
}

/// A waiter in the queue of a lock, from [`Locks::wait`].
///
/// The caller must await [`next`](Self::next) continuously: its polls keep the waiter in the queue. A
/// waiter without a poll for six seconds counts as dead until it polls again.
///
/// # Cancel safety
///
/// A drop leaves the queue and passes a hand-over on to the next waiter. A background task does
/// both, and retries if Redis is unreachable. The claim's value is spent.
#[must_use = "a drop leaves the wait queue"]
pub struct Waiter {
    locks: Locks,
    claim: Arc<Claim>,
    wake: WakeHandle,
    began: Instant,
    until: Instant,
    poll_every: Duration,
    poll_at: Instant,
    arrival: u64,
    position: Option<QueuePosition>,
    /// The end of the holder's lease, by the last poll.
    holder_until: Instant,
    /// When the last poll that found a queue position was sent, and the fence of the holder in it.
    polled_at: Instant,
    seen: Option<Fence>,
    /// The hand-over message, until the waiter accepts it or polls.
    handover: Option<Handover>,
    failed: Option<LocksError>,
    /// The poll in flight, and when it began.
    in_flight: Option<(Poll, Instant)>,
    /// The waiter has left the queue, and no release is due.
    is_over: bool,
}

/// A poll in flight. The waiter retains it across a cancelled `next`.
type Poll = Pin<Box<dyn Future<Output = Result<QueueStatus, CallError>> + Send>>;

impl Waiter {
    pub(crate) fn new(locks: Locks, claim: Claim, time_limit: Duration) -> Self {
        let (wake, now) = (locks.0.backend.waiter_registry().enter(&claim.value), Instant::now());
        Self {
            wake,
            locks,
            claim: Arc::new(claim),
            began: now,
            until: now + time_limit,
            poll_every: POLL_INTERVAL,
            poll_at: now,
            arrival: 0,
            position: None,
            holder_until: now,
            polled_at: now,
            seen: None,
            handover: None,
            failed: None,
            in_flight: None,
            is_over: false,
        }
    }

    /// Sets the longest interval between two polls: 10 ms to three seconds (the default).
    pub fn poll_every(mut self, slice: Duration) -> Self {
        self.poll_every = slice.clamp(Duration::from_millis(10), POLL_INTERVAL);
        self
    }

    /// Waits for the next change: another position, or the lock. Polls at least once, however short
    /// the time limit.
    ///
    /// # Errors
    ///
    /// [`LockError::WaitTimeout`] when the time limit ends, [`LockError::Busy`] when the queue is
    /// full, [`LockError::Unavailable`] when the backend does not reply to the first poll. The
    /// waiter leaves the queue, and no event follows.
    ///
    /// # Cancel safety
    ///
    /// No event is lost, and the waiter retains its position.
    pub async fn next(&mut self) -> Result<WaitOutcome, LockError> {
        if self.is_over {
            return Err(self.timed_out());
        }
        loop {
            let Some(seen) = self.poll().await else {
                let error = self.timed_out();
                return Err(self.give_up(error));
            };
            let outcome = match seen {
                Ok(status) => self.take(status)?,
                // The waiter is in the queue, if Redis still has that queue.
                Err(CallError::Unsent(error) | CallError::Unknown(error)) if self.arrival != 0 => {
                    self.failed = Some(error);
                    self.poll_at = Instant::now() + jittered(RETRY_AFTER);
                    None
                }
                Err(fault) => return Err(self.give_up(LocksError::from(fault).into())),
            };
            if let Some(waited) = outcome {
                return Ok(waited);
            }
        }
    }

    /// Waits for the grant, and accepts a hand-over message without a poll where A1 and A2 allow it. A
    /// drop leaves the queue.
    pub(crate) async fn granted_early(mut self) -> Result<EarlyGrant, LockError> {
        loop {
            if let Some(early) = self.await_handover().await {
                return Ok(early);
            }
            if let WaitOutcome::Granted(grant) = self.next().await? {
                return Ok(EarlyGrant { grant, until: None });
            }
        }
    }

    /// Waits in the queue until a poll is due, or until a message makes the poll unnecessary.
    async fn await_handover(&mut self) -> Option<EarlyGrant> {
        let waits = self.arrival != 0 && self.in_flight.is_none();
        if !waits || !self.wait_for_poll().await {
            return None;
        }
        // A message that A1 or A2 rejects triggers the poll at once.
        self.poll_at = Instant::now();
        let early = self.handover.take().and_then(|handover| self.accept_handover(handover))?;
        self.is_over = true;
        self.count("granted");
        Some(early)
    }

    /// The grant of a message without a poll (A1, A2).
    fn accept_handover(&self, handover: Handover) -> Option<EarlyGrant> {
        let now = Instant::now();
        let until = trusted_until(self.polled_at, QUEUE_ENTRY_TTL);
        let is_news = self.seen.is_some_and(|seen| seen > Fence::ZERO && seen < handover.fence);
        let Handover { fence, since } = handover;
        let grant = Grant { fence, since, sent_at: now, replaced: None };
        (is_news && now < until).then_some(EarlyGrant { grant, until: Some(until) })
    }

    /// Polls when a poll is due; none when the time limit ends.
    async fn poll(&mut self) -> Option<Result<QueueStatus, CallError>> {
        let is_first = self.arrival == 0 && self.poll_at == self.began;
        if self.in_flight.is_none() {
            if !is_first && !self.wait_for_poll().await {
                return None;
            }
            let waiter = QueueEntry {
                server: self.locks.0.server,
                arrival: self.arrival,
                remembers: self.remembers(),
            };
            let (backend, claim) = (self.locks.0.backend.clone(), Arc::clone(&self.claim));
            let look = async move { backend.check_in(&claim, &waiter).await };
            self.in_flight = Some((Box::pin(look), Instant::now()));
        }
        let (in_flight, began) = self.in_flight.as_mut()?;
        let seen = if is_first {
            in_flight.await
        } else {
            timeout_at(self.until, in_flight).await.ok()?
        };
        if let Ok(QueueStatus::Queued { holder, .. }) = &seen {
            self.polled_at = *began;
            self.seen = holder.as_ref().map(|holder| holder.fence);
        }
        self.in_flight = None;
        Some(seen)
    }

    /// Waits until a poll is due or a hand-over message arrives. False when the time limit has ended.
    async fn wait_for_poll(&mut self) -> bool {
        tokio::select! {
            biased;
            () = sleep_until(self.poll_at.min(self.until)) => {}
            handover = self.wake.rings() => self.handover = handover,
        }
        Instant::now() < self.until
    }

    /// Applies the result of a poll; returns an event if the caller needs it.
    fn take(&mut self, status: QueueStatus) -> Result<Option<WaitOutcome>, LockError> {
        let now = Instant::now();
        self.failed = None;
        match status {
            QueueStatus::Granted(grant) => {
                self.is_over = true;
                self.count("granted");
                Ok(Some(WaitOutcome::Granted(grant)))
            }
            QueueStatus::Queued { position, arrival, holder } => {
                self.arrival = arrival;
                let lease = holder.as_ref().map_or(REASSERT_GRACE, |holder| holder.ttl);
                let spread = if position == 1 { Duration::ZERO } else { jittered(SPREAD) };
                // Up to an eighth earlier, so that simultaneous waiters do not poll together.
                let most = self.poll_every - jittered(self.poll_every / 8);
                self.poll_at = now + most.min(lease.saturating_add(AFTER_EXPIRY + spread));
                let retry_at = self.poll_at;
                let Some(holder) = holder else { return Ok(None) };
                self.holder_until = now + holder.ttl.min(LEASE_SEEN_MAX);
                let is_new = self.position.as_ref().is_none_or(|last| {
                    last.position != position || last.holder.value != holder.value
                });
                let queued = QueuePosition { position, holder, retry_at };
                self.position = Some(queued.clone());
                Ok(is_new.then_some(WaitOutcome::Position(queued)))
            }
            QueueStatus::Refused(Some(holder)) => {
                let (position, retry_at) =
                    (holder.waiting + 1, now + holder.ttl.min(POLL_INTERVAL));
                let queued = Box::new(QueuePosition { position, holder, retry_at });
                Err(self.give_up(LockError::Busy(queued)))
            }
            QueueStatus::Refused(None) => Err(self.give_up(unexpected().into())),
        }
    }

    /// How long the last known holder may reassert the lock in a Redis that lost it.
    fn remembers(&self) -> Duration {
        let grace = if self.failed.is_some() { REASSERT_GRACE } else { Duration::ZERO };
        self.holder_until.saturating_duration_since(Instant::now()).max(grace)
    }

    fn timed_out(&mut self) -> LockError {
        match self.failed.take() {
            Some(error) => error.into(),
            None => LockError::WaitTimeout(self.position.clone().map(Box::new)),
        }
    }

    fn give_up(&mut self, error: LockError) -> LockError {
        self.count(match &error {
            LockError::Busy(_) => "busy",
            LockError::WaitTimeout(_) => "timeout",
            LockError::Lost(_) | LockError::Unavailable(_) => "failed",
        });
        self.leave();
        error
    }

    fn leave(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            // A poll in flight would only create a queue entry that the waiter leaves at once.
            self.in_flight = None;
            let claim = &self.claim;
            self.locks.0.backend.release_soon(&claim.name, &claim.value, Duration::ZERO);
        }
    }

    fn count(&self, outcome: &'static str) {
        self.locks.0.count(&self.claim.name, self.began, outcome);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("name", &self.claim.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
