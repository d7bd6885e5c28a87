//! One session's hold on its seat: the deadline that every write is checked against, and the
//! signs of life that keep it.
//!
//! ```text
//!             granted            deadline passed
//!  Claiming ───────────► Held ◄──────────────────► Uncertain
//!                         │        renewed             │
//!            socket died  ▼                            │
//!                       Away ──── grace over ──► Ended ◄┘
//! ```
//!
//! # Invariants
//!
//! - **S1** (G3) No write is accepted at or after `trusted_until`, which is counted from when the
//!   last good renewal was sent. It is looked at on each write, so a scheduler that is late or
//!   dead fails closed.
//! - **S2** `Ended` is final: whoever ends a holding first says why, and it never writes again.
//! - **S3** (G6) It is out of the renewal actor's register when it has ended, and so before its
//!   release is sent.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, SessionId};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::locks::{Owner, ReclaimToken, Registration};
use crate::outbox::Outbox;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::Event;
use crate::sessions::store_budget::StoreBudget;

use super::shuttle_shim::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// Where a holding is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// The key has been asked for.
    Claiming,
    /// The seat is held and trusted.
    Held,
    /// The lease was not renewed in time; edits are refused.
    Uncertain,
    /// The socket died without a close; the seat is kept for its holder for a while.
    Away,
    /// Given back or lost.
    Ended,
}

/// Who wants to sit where.
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// The session.
    pub session: SessionId,
    /// The seat it asks for.
    pub seat: Seat,
    /// The document behind the seat's share link.
    pub document: DocumentId,
    /// The person.
    pub user: User,
    /// Re-enters the seat after the socket died.
    pub resume: String,
    /// Whether the client understands events.
    pub wants_events: bool,
    /// The budget that pays for the bytes of each edit; none for a user with a token of the host.
    pub store_budget: Option<StoreBudget>,
}

/// How long what a client said before it went may take to be read, up to its close.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A session and its seat.
#[derive(Debug)]
pub struct Session {
    /// Who sits, or asks to.
    pub identity: SessionIdentity,
    /// By what its person may come back to the seat from anywhere.
    pass: Option<ReclaimToken>,
    outbox: Outbox,
    epoch: Instant,
    trusted_until: AtomicU64,
    fence: AtomicU64,
    heard_at: AtomicU64,
    active_at: AtomicU64,
    edited_at: AtomicU64,
    life: Mutex<SessionInner>,
    /// Questions whether the client lives, and the last that it answered.
    asked: AtomicU64,
    answered: AtomicU64,
    sign_of_life: Notify,
}

#[derive(Debug)]
struct SessionInner {
    phase: SessionState,
    since: Option<DateTime<Utc>>,
    /// The same by this server's own clock.
    granted_at: Option<Instant>,
    lost: Option<LostReason>,
    idle_warned: bool,
    /// Its place in the renewal actor's register.
    kept: Option<Registration>,
}

impl Session {
    /// A session that is about to ask for its seat.
    #[must_use]
    pub fn claiming(identity: SessionIdentity, outbox: Outbox) -> Self {
        Self {
            pass: pass_of(&identity.resume),
            identity,
            outbox,
            epoch: Instant::now(),
            trusted_until: AtomicU64::new(0),
            fence: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            active_at: AtomicU64::new(0),
            edited_at: AtomicU64::new(0),
            life: Mutex::new(SessionInner {
                phase: SessionState::Claiming,
                since: None,
                granted_at: None,
                lost: None,
                idle_warned: false,
                kept: None,
            }),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            sign_of_life: Notify::new(),
        }
    }

    /// Where messages for the socket go.
    #[must_use]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The number of the grant.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence(self.fence.load(Ordering::Acquire))
    }

    /// When the seat was granted.
    #[must_use]
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.life().since
    }

    /// Where it is in its life.
    #[must_use]
    pub fn phase(&self) -> SessionState {
        self.life().phase
    }

    /// The key was granted under `fence`, which the database is yet to ratify.
    pub fn set_pending_fence(&self, fence: Fence) {
        self.fence.fetch_max(fence.0, Ordering::AcqRel);
    }

    /// The seat was granted under `fence` and may be trusted until `until`.
    pub fn granted(&self, fence: Fence, since: DateTime<Utc>, until: Instant) {
        let mut life = self.life();
        if life.phase == SessionState::Claiming {
            life.phase = SessionState::Held;
            life.since = Some(since);
            life.granted_at = Some(Instant::now());
            self.fence.store(fence.0, Ordering::Release);
            self.trusted_until.store(self.stamp(until), Ordering::Release);
        }
    }

    /// The seat is kept alive for as long as it is held (S3).
    pub fn kept(&self, kept: Registration) {
        let mut life = self.life();
        if life.phase != SessionState::Ended {
            life.kept = Some(kept);
        }
    }

    /// Orders holdings by deadline, the nearest first.
    #[must_use]
    pub fn trust_stamp(&self) -> (Instant, u64) {
        let left = Duration::from_micros(self.trusted_until.load(Ordering::Acquire));
        (self.epoch + left, self.fence.load(Ordering::Acquire))
    }

    /// In whose name the seat is held, by this server.
    #[must_use]
    pub fn owner(&self, node: NodeId) -> Owner {
        Owner { user: self.identity.user.clone(), node, pass: self.pass.clone() }
    }

    /// Whether a write may go through at `now` (S1).
    #[must_use]
    pub fn may_write(&self, now: Instant) -> bool {
        self.stamp(now) < self.trusted_until.load(Ordering::Acquire)
    }

    /// The lease was renewed: trusted until `until`. True if it had become uncertain.
    pub fn renewed(&self, until: Instant) -> bool {
        let mut life = self.life();
        if matches!(life.phase, SessionState::Claiming | SessionState::Ended) {
            return false;
        }
        self.trusted_until.fetch_max(self.stamp(until), Ordering::AcqRel);
        let was_uncertain = life.phase == SessionState::Uncertain;
        if was_uncertain {
            life.phase = SessionState::Held;
            self.tell(&Event::SeatRestored);
        }
        was_uncertain
    }

    /// Says so, once, if the deadline has passed.
    pub fn look_at_deadline(&self, now: Instant) {
        if self.may_write(now) {
            return;
        }
        let mut life = self.life();
        // Asked again: it may have been renewed meanwhile.
        if life.phase == SessionState::Held && !self.may_write(now) {
            life.phase = SessionState::Uncertain;
            self.tell(&Event::SeatUncertain);
        }
    }

    /// The socket died without a close. False if the holding had ended already.
    pub fn went_away(&self) -> bool {
        let mut life = self.life();
        let sat = matches!(life.phase, SessionState::Held | SessionState::Uncertain);
        if sat {
            life.phase = SessionState::Away;
        }
        sat
    }

    /// Ends it. True for the one caller who did (S2).
    pub fn end(&self) -> bool {
        self.end_for(None)
    }

    fn end_for(&self, reason: Option<LostReason>) -> bool {
        let mut life = self.life();
        // Under the lock, so that no renewal in flight can raise it again.
        self.trusted_until.store(0, Ordering::Release);
        life.kept = None;
        let is_first =
            std::mem::replace(&mut life.phase, SessionState::Ended) != SessionState::Ended;
        if is_first {
            // With the end itself, so that nobody sees one without the other.
            life.lost = reason;
            if let Some(granted_at) = life.granted_at {
                let held = granted_at.elapsed();
                metrics::histogram!("galley_lock_hold_seconds", "class" => "seat").record(held);
            }
        }
        is_first
    }

    /// Ends it, and tells the socket why. True for the one caller who did.
    pub fn lose(&self, reason: LostReason) -> bool {
        let ended = self.end_for(Some(reason));
        if ended {
            metrics::counter!("galley_seats_lost_total", "reason" => reason.as_str()).increment(1);
            self.tell(&Event::SeatLost(reason));
            self.outbox.close(Close::Lost(reason));
        }
        ended
    }

    /// Why the seat was lost, if it was.
    #[must_use]
    pub fn lost(&self) -> Option<LostReason> {
        self.life().lost
    }

    /// Something arrived from the client.
    pub fn heard(&self, now: Instant) {
        self.heard_at.store(self.stamp(now), Ordering::Release);
        if self.answered.load(Ordering::Acquire) < self.asked.load(Ordering::Acquire) {
            self.sign_of_life.notify_waiters();
        }
    }

    /// A pong came, with what was in its ping.
    pub fn answered_by(&self, pong: &[u8]) {
        if let Ok(number) = pong.try_into().map(u64::from_be_bytes) {
            self.answered(number);
        }
    }

    /// The client has answered the question of that number.
    pub fn answered(&self, number: u64) {
        self.answered.fetch_max(number, Ordering::AcqRel);
        self.sign_of_life.notify_waiters();
    }

    /// How long the client has been silent.
    #[must_use]
    pub fn silent_for(&self, now: Instant) -> Duration {
        since_stamp(self.stamp(now), self.heard_at.load(Ordering::Acquire))
    }

    /// The person typed, moved or reviewed.
    pub fn was_active(&self, now: Instant) {
        self.active_at.store(self.stamp(now), Ordering::Release);
    }

    /// The person changed the text, or reviewed.
    pub fn edited(&self, now: Instant) {
        self.was_active(now);
        self.edited_at.store(self.stamp(now), Ordering::Release);
    }

    /// How long ago that was; none if it never was.
    #[must_use]
    pub fn unedited_for(&self, now: Instant) -> Option<Duration> {
        let edited_at = self.edited_at.load(Ordering::Acquire);
        (edited_at != 0).then(|| since_stamp(self.stamp(now), edited_at))
    }

    /// How long the person has done nothing.
    #[must_use]
    pub fn idle_for(&self, now: Instant) -> Duration {
        since_stamp(self.stamp(now), self.active_at.load(Ordering::Acquire))
    }

    /// Warns of the release for idleness, once until there is work again.
    pub fn warn_of_idleness(&self, due: bool, release_at: DateTime<Utc>) {
        let mut life = self.life();
        if due && !life.idle_warned {
            self.tell(&Event::SeatIdle { release_at });
        }
        life.idle_warned = due;
    }

    /// Asks the client for a sign of life, and waits for it at most that long. A pong to the question
    /// is one. Anything else may have lain in the socket since before the client went: that counts
    /// if the client is still there a moment later.
    pub async fn answers_within(&self, patience: Duration) -> bool {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let sign = self.sign_of_life.notified();
        self.outbox.ask(number);
        if tokio::time::timeout(patience, sign).await.is_err() {
            return false;
        }
        let answered = async {
            let mut sign = self.sign_of_life.notified();
            while self.answered.load(Ordering::Acquire) < number {
                sign.await;
                sign = self.sign_of_life.notified();
            }
        };
        let answered = tokio::time::timeout(LAST_WORDS, answered).await.is_ok();
        answered
            || matches!(
                self.phase(),
                SessionState::Claiming | SessionState::Held | SessionState::Uncertain
            )
    }

    /// Sends an event, if the client understands them.
    pub fn tell(&self, event: &Event<'_>) {
        if self.identity.wants_events {
            self.outbox.send(event.frame());
        }
    }

    fn life(&self) -> MutexGuard<'_, SessionInner> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// µs since this holding was made, plus one: 0 means "never".
    fn stamp(&self, at: Instant) -> u64 {
        let micros = at.saturating_duration_since(self.epoch).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX - 1) + 1
    }
}

/// What the locks know of a secret to resume by; none of an empty one, which anybody would know.
pub(crate) fn pass_of(secret: &str) -> Option<ReclaimToken> {
    (!secret.is_empty()).then(|| ReclaimToken::of(secret))
}

fn since_stamp(now: u64, then: u64) -> Duration {
    Duration::from_micros(now.saturating_sub(then.max(1)))
}
