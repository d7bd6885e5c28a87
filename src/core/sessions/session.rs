//! One session and its seat: the deadline that every write is checked against, and the heartbeats
//! that keep the client's seat renewed.
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
//! - **S1** (G3) The session accepts no write at or after `trusted_until`. That deadline counts
//!   from when the last successful renewal was sent. Every write checks it, so a late or dead
//!   scheduler fails closed.
//! - **S2** `Ended` is final. The first caller that ends a session sets the reason. The session
//!   accepts no write afterwards.
//! - **S3** (G6) An ended session is not registered with the renewal actor. It deregisters before
//!   its release is sent.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bounds::allowances::Bucket;
use crate::domain::deletion::Deletion;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, SessionId};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::locks::{Owner, ReclaimToken, Registration};
use crate::outbox::Outbox;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::Event;

use super::shuttle_shim::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    Claiming,
    /// The session holds the seat, and the lease is valid.
    Held,
    /// The deadline passed without a renewal; the server rejects edits.
    Uncertain,
    /// The socket broke without a close; the seat stays reserved for its user during the resume
    /// grace.
    Away,
    /// The seat was released or lost. Final.
    Ended,
}

#[derive(Clone, Debug)]
pub struct SessionIdentity {
    pub session: SessionId,
    pub seat: Seat,
    /// The document behind the seat's share link.
    pub document: DocumentId,
    pub user: User,
    /// The secret by which the user resumes the seat after the socket broke.
    pub resume: String,
    /// Whether the client understands events.
    pub wants_events: bool,
    /// The budget that each edit charges; none for a user with a token of the host.
    pub store_budget: Option<Bucket>,
}

/// Time to read the frames that a client sent before it left, up to its close frame.
const FINAL_FRAMES_TIMEOUT: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct Session {
    pub identity: SessionIdentity,
    /// The hash of the resume secret. Any server accepts it as the user's reclaim token.
    pass: Option<ReclaimToken>,
    outbox: Outbox,
    epoch: Instant,
    trusted_until: AtomicU64,
    fence: AtomicU64,
    heard_at: AtomicU64,
    active_at: AtomicU64,
    edited_at: AtomicU64,
    inner: Mutex<SessionInner>,
    /// Number of the last liveness probe, and of the last one that the client answered.
    probed: AtomicU64,
    answered: AtomicU64,
    sign_of_life: Notify,
}

#[derive(Debug)]
struct SessionInner {
    state: SessionState,
    since: Option<DateTime<Utc>>,
    /// The time of the grant by this server's monotonic clock.
    granted_at: Option<Instant>,
    has_waited: bool,
    lost: Option<LostReason>,
    idle_warned: bool,
    registration: Option<Registration>,
}

impl Session {
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
            inner: Mutex::new(SessionInner {
                state: SessionState::Claiming,
                since: None,
                granted_at: None,
                has_waited: false,
                lost: None,
                idle_warned: false,
                registration: None,
            }),
            probed: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            sign_of_life: Notify::new(),
        }
    }

    #[must_use]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence(self.fence.load(Ordering::Acquire))
    }

    #[must_use]
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.inner().since
    }

    #[must_use]
    pub fn state(&self) -> SessionState {
        self.inner().state
    }

    /// Whether the session has its seat, if only until a renewal or a return decides.
    #[must_use]
    pub fn is_seated(&self) -> bool {
        !matches!(self.state(), SessionState::Claiming | SessionState::Ended)
    }

    /// Redis granted the key under `fence`; the database has not ratified it yet.
    pub fn set_pending_fence(&self, fence: Fence) {
        self.fence.fetch_max(fence.0, Ordering::AcqRel);
    }

    /// The session acquired the seat under `fence`. The lease is valid until `until`.
    pub fn granted(&self, fence: Fence, since: DateTime<Utc>, until: Instant) {
        let mut inner = self.inner();
        if inner.state == SessionState::Claiming {
            inner.state = SessionState::Held;
            inner.since = Some(since);
            inner.granted_at = Some(Instant::now());
            self.fence.store(fence.0, Ordering::Release);
            self.trusted_until.store(self.stamp(until), Ordering::Release);
        }
    }

    pub fn record_wait(&self) {
        self.inner().has_waited = true;
    }

    /// Whether the grant came from the wait queue and the client has sent nothing since.
    #[must_use]
    pub fn is_absent_waiter(&self) -> bool {
        let inner = self.inner();
        let granted_at = inner.granted_at.filter(|_| inner.has_waited);
        let heard_at = self.heard_at.load(Ordering::Acquire);
        granted_at.is_some_and(|granted_at| heard_at <= self.stamp(granted_at))
    }

    /// Stores the registration with the renewal actor until the session ends (S3).
    pub fn set_registration(&self, registration: Registration) {
        let mut inner = self.inner();
        if inner.state != SessionState::Ended {
            inner.registration = Some(registration);
        }
    }

    /// Sort key for sessions: deadline, then fence.
    #[must_use]
    pub fn trust_stamp(&self) -> (Instant, u64) {
        let left = Duration::from_micros(self.trusted_until.load(Ordering::Acquire));
        (self.epoch + left, self.fence.load(Ordering::Acquire))
    }

    #[must_use]
    pub fn owner(&self, node: NodeId) -> Owner {
        let User { id, name } = self.identity.user.clone();
        Owner { id: id.into(), name, node, pass: self.pass.clone() }
    }

    /// Whether the session accepts a write at `now` (S1).
    #[must_use]
    pub fn may_write(&self, now: Instant) -> bool {
        self.stamp(now) < self.trusted_until.load(Ordering::Acquire)
    }

    /// The lease was renewed: moves the deadline to `until`. True if the session was uncertain.
    pub fn renewed(&self, until: Instant) -> bool {
        let mut inner = self.inner();
        if matches!(inner.state, SessionState::Claiming | SessionState::Ended) {
            return false;
        }
        self.trusted_until.fetch_max(self.stamp(until), Ordering::AcqRel);
        let was_uncertain = inner.state == SessionState::Uncertain;
        if was_uncertain {
            inner.state = SessionState::Held;
            self.notify(&Event::SeatRestored);
        }
        was_uncertain
    }

    /// Makes a held session uncertain if its deadline has passed, and notifies the client once.
    pub fn check_deadline(&self, now: Instant) {
        if self.may_write(now) {
            return;
        }
        let mut inner = self.inner();
        // Checks again under the lock: a renewal may have arrived in between.
        if inner.state == SessionState::Held && !self.may_write(now) {
            inner.state = SessionState::Uncertain;
            self.notify(&Event::SeatUncertain);
        }
    }

    /// The socket broke without a close. False if the session has ended before.
    pub fn went_away(&self) -> bool {
        let mut inner = self.inner();
        let was_seated = matches!(inner.state, SessionState::Held | SessionState::Uncertain);
        if was_seated {
            inner.state = SessionState::Away;
        }
        was_seated
    }

    /// Ends the session. True for the first caller only (S2).
    pub fn end(&self) -> bool {
        self.end_for(None)
    }

    fn end_for(&self, reason: Option<LostReason>) -> bool {
        let mut inner = self.inner();
        // Under the lock, so that no renewal in flight extends the deadline again.
        self.trusted_until.store(0, Ordering::Release);
        inner.registration = None;
        let is_first =
            std::mem::replace(&mut inner.state, SessionState::Ended) != SessionState::Ended;
        if is_first {
            // Set together with the state, so that every reader of the end also sees its reason.
            inner.lost = reason;
            if let Some(granted_at) = inner.granted_at {
                let held = granted_at.elapsed();
                metrics::histogram!("galley_lock_hold_seconds", "class" => "seat").record(held);
            }
        }
        is_first
    }

    /// Ends the session and notifies the socket of the reason. True for the first caller only.
    pub fn lose(&self, reason: LostReason) -> bool {
        self.lose_with(reason, &Event::SeatLost(reason))
    }

    /// Ends the session because the owner deleted the document. The deletion is unknown if the
    /// document was purged meanwhile.
    pub fn lose_to(&self, deletion: Option<&Deletion>) -> bool {
        let reason = LostReason::Deleted;
        let event = deletion.map_or(Event::SeatLost(reason), Event::DocumentDeleted);
        self.lose_with(reason, &event)
    }

    fn lose_with(&self, reason: LostReason, event: &Event<'_>) -> bool {
        let ended = self.end_for(Some(reason));
        if ended {
            metrics::counter!("galley_seats_lost_total", "reason" => reason.as_str()).increment(1);
            self.notify(event);
            self.outbox.close(Close::Lost(reason));
        }
        ended
    }

    #[must_use]
    pub fn lost_reason(&self) -> Option<LostReason> {
        self.inner().lost
    }

    pub fn heard(&self, now: Instant) {
        self.heard_at.store(self.stamp(now), Ordering::Release);
        if self.answered.load(Ordering::Acquire) < self.probed.load(Ordering::Acquire) {
            self.sign_of_life.notify_waiters();
        }
    }

    pub fn answered_by(&self, pong: &[u8]) {
        if let Ok(number) = pong.try_into().map(u64::from_be_bytes) {
            self.answered(number);
        }
    }

    pub fn answered(&self, number: u64) {
        self.answered.fetch_max(number, Ordering::AcqRel);
        self.sign_of_life.notify_waiters();
    }

    #[must_use]
    pub fn silent_for(&self, now: Instant) -> Duration {
        since_stamp(self.stamp(now), self.heard_at.load(Ordering::Acquire))
    }

    /// The user typed, moved the cursor or reviewed.
    pub fn record_activity(&self, now: Instant) {
        self.active_at.store(self.stamp(now), Ordering::Release);
    }

    /// The user changed the text or reviewed.
    pub fn edited(&self, now: Instant) {
        self.record_activity(now);
        self.edited_at.store(self.stamp(now), Ordering::Release);
    }

    #[must_use]
    pub fn unedited_for(&self, now: Instant) -> Option<Duration> {
        let edited_at = self.edited_at.load(Ordering::Acquire);
        (edited_at != 0).then(|| since_stamp(self.stamp(now), edited_at))
    }

    #[must_use]
    pub fn idle_for(&self, now: Instant) -> Duration {
        since_stamp(self.stamp(now), self.active_at.load(Ordering::Acquire))
    }

    /// Notifies the client of the idle timeout, once until the user is active again.
    pub fn warn_of_idleness(&self, due: bool, release_at: DateTime<Utc>) {
        let mut inner = self.inner();
        if due && !inner.idle_warned {
            self.notify(&Event::SeatIdle { release_at });
        }
        inner.idle_warned = due;
    }

    /// Sends a liveness probe and waits for the client at most `limit`. The pong of the probe
    /// proves that the client is alive. Any other frame may have waited in the socket since before
    /// the client left. It counts only if the socket is still open `FINAL_FRAMES_TIMEOUT` later.
    pub async fn answers_within(&self, limit: Duration) -> bool {
        let number = self.probed.fetch_add(1, Ordering::AcqRel) + 1;
        let sign = self.sign_of_life.notified();
        self.outbox.probe(number);
        if tokio::time::timeout(limit, sign).await.is_err() {
            return false;
        }
        let answered = async {
            let mut sign = self.sign_of_life.notified();
            while self.answered.load(Ordering::Acquire) < number {
                sign.await;
                sign = self.sign_of_life.notified();
            }
        };
        let answered = tokio::time::timeout(FINAL_FRAMES_TIMEOUT, answered).await.is_ok();
        answered
            || matches!(
                self.state(),
                SessionState::Claiming | SessionState::Held | SessionState::Uncertain
            )
    }

    pub fn notify(&self, event: &Event<'_>) {
        if self.identity.wants_events {
            self.outbox.send(event.frame());
        }
    }

    fn inner(&self) -> MutexGuard<'_, SessionInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// µs since the session was created, plus one: 0 means "never".
    fn stamp(&self, at: Instant) -> u64 {
        let micros = at.saturating_duration_since(self.epoch).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX - 1) + 1
    }
}

/// The reclaim token of a resume secret. An empty secret has none: any client could guess it.
pub(crate) fn pass_of(secret: &str) -> Option<ReclaimToken> {
    (!secret.is_empty()).then(|| ReclaimToken::of(secret))
}

fn since_stamp(now: u64, then: u64) -> Duration {
    Duration::from_micros(now.saturating_sub(then.max(1)))
}
