//! Standing in the line.
//!
//! A waiter is in the line and asks whether it is its turn in one script, so no release can slip
//! between. It asks again when it is told, when the holder's lease ends, and before its own
//! deadline in the line: that call is sign of life, backstop and attempt in one. Which of the
//! three brought it there makes no difference, so none of them has to be relied on.
//!
//! Who is in a hurry need not look when it is told ([`Waiting::had`]): the message says all that the
//! look would, but for how long the lock is its own. That it knows without asking. The lock was
//! handed over for what was left of the waiter's deadline in the line, and that began anew when its
//! last look got to the keeper, which is not before it was sent:
//!
//! - **W1** (G3) A turn is trusted until an eighth of [`LINE_DEADLINE`] before its end, counted from
//!   when the last look was sent that was answered, however late the message comes.
//! - **W2** A message is believed only if its fence is above that of the holder whom that look
//!   showed: it is of a hand-over that came later. Who saw no holder, looks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::domain::fence::Fence;
use crate::locks::Locks;
use crate::locks::redis::connection::jittered;
use crate::locks::redis::error::Fault;
use crate::locks::redis::reply::unexpected;
use crate::locks::redis::server_identity::RETURN_GRACE;
use crate::locks::redis::wait_queue::{Bell, LINE_DEADLINE, LOOK_EVERY, Standing, Turn, Waiter};
use crate::locks::types::{Claim, Grant, LockError, LocksError, Place};

/// How long after the end of the holder's lease the first in the line looks.
const AFTER_EXPIRY: Duration = Duration::from_millis(2);
/// Within how long after that the others do, should the first be dead.
const SPREAD: Duration = Duration::from_millis(250);
/// Pause after a look that failed.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// A lease that is said to be longer is a key that somebody set by hand.
const LEASE_SEEN_MAX: Duration = Duration::from_secs(60 * 60);

/// What happens to somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Their place, or who is in front, is another than last time.
    Place(Place),
    /// The lock is theirs. Nothing follows.
    Granted(Grant),
}

/// A lock that was waited for.
#[derive(Debug)]
pub(in crate::locks) struct Had {
    pub(in crate::locks) grant: Grant,
    /// It was handed over for as long as the waiter was believed to live: it is to be made whole
    /// before that.
    pub(in crate::locks) until: Option<Instant>,
}

/// A place in the line, from [`Locks::wait`].
///
/// It has to be asked for what is [`next`](Self::next) all the time, as that is what keeps it in
/// the line: who does not ask for longer than six seconds counts as dead until it does again.
///
/// # Cancel safety
///
/// Dropping it leaves the line. If the lock had been handed over meanwhile, that is passed on to
/// the next. Either is done in the background, and made up for if Redis is out of reach. The claim's
/// value is spent.
#[must_use = "who drops it leaves the line"]
pub struct Waiting {
    locks: Locks,
    claim: Arc<Claim>,
    bell: Bell,
    began: Instant,
    until: Instant,
    /// The longest time between two looks.
    look_every: Duration,
    look_at: Instant,
    arrival: u64,
    place: Option<Place>,
    /// The end of the holder's lease, as it was seen last.
    holder_until: Instant,
    /// When the last look was sent that found a place in the line, and who had the lock then.
    looked_at: Instant,
    seen: Option<Fence>,
    /// What the bell said, until that is looked into.
    turn: Option<Turn>,
    /// Why the last look failed.
    failed: Option<LocksError>,
    /// The look that is under way, and when it began.
    looking: Option<(Look, Instant)>,
    /// There is nothing in the line, nor to be given back.
    is_over: bool,
}

/// A look that is under way. It is kept, and not dropped, when nobody waits for it any more.
type Look = Pin<Box<dyn Future<Output = Result<Standing, Fault>> + Send>>;

impl Waiting {
    pub(in crate::locks) fn new(locks: Locks, claim: Claim, patience: Duration) -> Self {
        let (bell, now) = (locks.0.keeper.lobby().enter(&claim.value), Instant::now());
        Self {
            bell,
            locks,
            claim: Arc::new(claim),
            began: now,
            until: now + patience,
            look_every: LOOK_EVERY,
            look_at: now,
            arrival: 0,
            place: None,
            holder_until: now,
            looked_at: now,
            seen: None,
            turn: None,
            failed: None,
            looking: None,
            is_over: false,
        }
    }

    /// Looks at least this often, told or not: between 10 ms and three seconds, which is the default.
    pub fn look_every(mut self, slice: Duration) -> Self {
        self.look_every = slice.clamp(Duration::from_millis(10), LOOK_EVERY);
        self
    }

    /// The next change: another place, or the lock. Looks once at least, however short the
    /// patience.
    ///
    /// # Errors
    ///
    /// [`LockError::WaitTimeout`] when the patience ends, [`LockError::Busy`] when the line is full,
    /// [`LockError::Unavailable`] when the keeper cannot be asked. The line is left then, and
    /// nothing follows.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost, and the place is kept.
    pub async fn next(&mut self) -> Result<Waited, LockError> {
        if self.is_over {
            return Err(self.timed_out());
        }
        loop {
            let Some(seen) = self.look().await else {
                let error = self.timed_out();
                return Err(self.give_up(error));
            };
            let told = match seen {
                Ok(standing) => self.take(standing)?,
                // It stands in the line, if there still is one.
                Err(Fault::Unsent(error) | Fault::Unknown(error)) if self.arrival != 0 => {
                    self.failed = Some(error);
                    self.look_at = Instant::now() + jittered(RETRY_AFTER);
                    None
                }
                Err(fault) => return Err(self.give_up(LocksError::from(fault).into())),
            };
            if let Some(waited) = told {
                return Ok(waited);
            }
        }
    }

    /// Waits until the lock is given, whatever the place.
    ///
    /// # Errors
    ///
    /// As [`Waiting::next`].
    ///
    /// # Cancel safety
    ///
    /// Leaves the line when dropped.
    pub async fn granted(mut self) -> Result<Grant, LockError> {
        loop {
            if let Waited::Granted(grant) = self.next().await? {
                return Ok(grant);
            }
        }
    }

    /// Waits until the lock is given; takes the keeper's word for it where that can be trusted.
    ///
    /// # Cancel safety
    ///
    /// Leaves the line when dropped.
    pub(in crate::locks) async fn had(mut self) -> Result<Had, LockError> {
        loop {
            if let Some(had) = self.told().await {
                return Ok(had);
            }
            if let Waited::Granted(grant) = self.next().await? {
                return Ok(Had { grant, until: None });
            }
        }
    }

    /// Waits in the line for the moment to look, or for a message that makes that needless.
    async fn told(&mut self) -> Option<Had> {
        let waits = self.arrival != 0 && self.looking.is_none();
        if !waits || !self.is_time_to_look().await {
            return None;
        }
        // Without waiting once more, if there is nothing to believe.
        self.look_at = Instant::now();
        let had = self.turn.take().and_then(|turn| self.believe(turn))?;
        self.is_over = true;
        self.count("granted");
        Some(had)
    }

    /// What comes of a message without a look (W1, W2).
    fn believe(&self, turn: Turn) -> Option<Had> {
        let now = Instant::now();
        let until = self.looked_at + LINE_DEADLINE - LINE_DEADLINE / 8;
        let is_news = self.seen.is_some_and(|seen| Fence::ZERO < seen && seen < turn.fence);
        let Turn { fence, since } = turn;
        let grant = Grant { fence, since, sent_at: now, replaced: None };
        (is_news && now < until).then_some(Had { grant, until: Some(until) })
    }

    /// The last place that was told.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Looks when it is time to; nothing when the time is over.
    async fn look(&mut self) -> Option<Result<Standing, Fault>> {
        let is_first = self.arrival == 0 && self.look_at == self.began;
        if self.looking.is_none() {
            if !is_first && !self.is_time_to_look().await {
                return None;
            }
            let waiter = Waiter {
                server: self.locks.0.server,
                arrival: self.arrival,
                remembers: self.remembers(),
            };
            let (keeper, claim) = (self.locks.0.keeper.clone(), Arc::clone(&self.claim));
            let look = async move { keeper.check_in(&claim, &waiter).await };
            self.looking = Some((Box::pin(look), Instant::now()));
        }
        let (looking, began) = self.looking.as_mut()?;
        let seen =
            if is_first { looking.await } else { timeout_at(self.until, looking).await.ok()? };
        if let Ok(Standing::InLine { holder, .. }) = &seen {
            self.looked_at = *began;
            self.seen = holder.as_ref().map(|holder| holder.fence);
        }
        self.looking = None;
        Some(seen)
    }

    /// Waits for the moment, or for the bell. False when the time is over.
    async fn is_time_to_look(&mut self) -> bool {
        tokio::select! {
            biased;
            () = sleep_until(self.look_at.min(self.until)) => {}
            turn = self.bell.rings() => self.turn = turn,
        }
        Instant::now() < self.until
    }

    /// What a look found, if that is anything to tell.
    fn take(&mut self, standing: Standing) -> Result<Option<Waited>, LockError> {
        let now = Instant::now();
        self.failed = None;
        match standing {
            Standing::Granted(grant) => {
                self.is_over = true;
                self.count("granted");
                Ok(Some(Waited::Granted(grant)))
            }
            Standing::InLine { position, arrival, holder } => {
                self.arrival = arrival;
                let lease = holder.as_ref().map_or(RETURN_GRACE, |holder| holder.ttl);
                let spread = if position == 1 { Duration::ZERO } else { jittered(SPREAD) };
                // An eighth earlier or less, so that those who came together do not look together.
                let most = self.look_every - jittered(self.look_every / 8);
                self.look_at = now + most.min(lease.saturating_add(AFTER_EXPIRY + spread));
                let retry_at = self.look_at;
                let Some(holder) = holder else { return Ok(None) };
                self.holder_until = now + holder.ttl.min(LEASE_SEEN_MAX);
                let is_new = self.place.as_ref().is_none_or(|place| {
                    place.position != position || place.holder.value != holder.value
                });
                let place = Place { position, holder, retry_at };
                self.place = Some(place.clone());
                Ok(is_new.then_some(Waited::Place(place)))
            }
            Standing::Refused(Some(holder)) => {
                let (position, retry_at) = (holder.waiting + 1, now + holder.ttl.min(LOOK_EVERY));
                let place = Box::new(Place { position, holder, retry_at });
                Err(self.give_up(LockError::Busy(place)))
            }
            Standing::Refused(None) => Err(self.give_up(unexpected().into())),
        }
    }

    /// For how long the holder that was seen last may come back to a Redis that has forgotten it.
    fn remembers(&self) -> Duration {
        let grace = if self.failed.is_some() { RETURN_GRACE } else { Duration::ZERO };
        self.holder_until.saturating_duration_since(Instant::now()).max(grace)
    }

    fn timed_out(&mut self) -> LockError {
        match self.failed.take() {
            Some(error) => error.into(),
            None => LockError::WaitTimeout(self.place.clone().map(Box::new)),
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
            // A look that is under way would only make a place that is left at once.
            self.looking = None;
            let claim = &self.claim;
            self.locks.0.keeper.release_soon(&claim.name, &claim.value, Duration::ZERO);
        }
    }

    fn count(&self, outcome: &'static str) {
        self.locks.0.count(&self.claim.name, self.began, outcome);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("name", &self.claim.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
