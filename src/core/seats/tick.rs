//! The seat tick: heartbeats, silent clients, idle sessions, and the lease of a seat for the
//! renewal actor.
//!
//! Every four seconds the tick ends silent sessions and warns idle ones. Then it wakes the renewal
//! actor ([`Locks::renew_ahead`](crate::locks::Locks::renew_ahead)), which renews all locks of this
//! process in one round. Last it pings quiet clients, in batches, so that no renewal waits for
//! thousands of pings. The actor sends nothing when no lock is held, and repeats a failed round.
//!
//! The actor renews a seat only if the tick has checked its client recently. If this task stops,
//! the seats expire.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::domain::lease::LeaseTerms;
use crate::domain::limits::KEEP_ALIVE_EVERY;
use crate::domain::seat::Role;
use crate::locks::{
    HeldLock, LeaseHolder, LockName, Loss, Registration, Renewable, RenewalTiming, Verdict,
};
use crate::outbox::close::LostReason;
use crate::seats::Seats;
use crate::sessions::options::SeatTerms;
use crate::sessions::session::{Session, SessionState};
use crate::yjs::protocol;

/// Time between the warning and the release of an idle seat.
const IDLE_WARNING: Duration = Duration::from_secs(60);

/// Smallest number of sockets in one batch of pings: a millisecond of work.
const CALLED_AT_ONCE: usize = 64;
/// Largest number of batches, and the pause between two: together a fraction of a tick.
const CALLS_MAX: usize = 250;
const CALLS_APART: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TickMode {
    InTime,
    /// This process missed a tick. The silence may be its own, so the tick ends no session.
    Overslept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeKind {
    Ping,
    /// A ping and a frame. The stock client counts only frames as a sign of life.
    KeepAlive,
}

#[derive(Debug)]
pub(crate) struct TickClock(Mutex<Instant>);

impl TickClock {
    /// A new server has no clients to check.
    pub(crate) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn ago(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

pub(super) async fn run(seats: Seats) {
    let (locks, stop) = (&seats.shared.locks, &seats.shared.tasks.finished);
    tokio::select! {
        _stopped = stop.run_until_cancelled(tick_for_ever(&seats)) => {}
        // The renewal actor ended early, so this critical task ends too and stops the server.
        () = locks.stopped_renewing() => {}
    }
}

async fn tick_for_ever(seats: &Seats) {
    let every = seats.shared.terms.lease.renew_every;
    let mut ticker = interval(every);
    // After a stall the task ticks once and waits a full period. It never sends a burst.
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keep_alive_at = Instant::now();
    loop {
        ticker.tick().await;
        let now = Instant::now();
        let mut call = ProbeKind::Ping;
        if now.duration_since(keep_alive_at) + every >= KEEP_ALIVE_EVERY {
            keep_alive_at = now;
            call = ProbeKind::KeepAlive;
        }
        let kind = if is_overslept(seats, now) { TickMode::Overslept } else { TickMode::InTime };
        let living = visit(seats, now, kind);
        seats.shared.last_tick.set(now);
        seats.shared.locks.renew_ahead(backstop(every));
        seats.shared.rooms.tidy(now);
        seats.reconcile_soon();
        call_on(&living, call, &seats.shared.terms).await;
    }
}

/// Sends heartbeats in batches: edits would otherwise wait for thousands of pings.
async fn call_on(living: &[Arc<Session>], call: ProbeKind, terms: &SeatTerms) {
    let two_ticks = terms.lease.renew_every * 2;
    let at_once = CALLED_AT_ONCE.max(living.len() / CALLS_MAX);
    for some in living.chunks(at_once) {
        let now = Instant::now();
        for session in some {
            // A client with a recent sign of life needs no ping: two more ticks precede its
            // timeout.
            if terms.client_timeout < session.silent_for(now) + two_ticks {
                session.outbox().ping();
            }
            if call == ProbeKind::KeepAlive {
                session.outbox().send(protocol::keep_alive());
            }
        }
        sleep(CALLS_APART).await;
    }
}

/// Renewal period without a tick: late enough for the tick to come first, early enough for two
/// renewals to fail.
fn backstop(every: Duration) -> Duration {
    every * 5 / 4
}

fn is_overslept(seats: &Seats, now: Instant) -> bool {
    seats.shared.terms.lease.renew_every * 2 < seats.shared.last_tick.ago(now)
}

/// Checks each seated session: ends silent ones, warns idle ones, returns the rest.
fn visit(seats: &Seats, now: Instant, kind: TickMode) -> Vec<Arc<Session>> {
    let terms = &seats.shared.terms;
    let seated = seats.shared.registry.seated();
    let mut living = Vec::with_capacity(seated.len());
    let (mut writers, mut reviewers) = (0_u32, 0_u32);
    for session in seated {
        match session.identity.seat.role {
            Role::Writer => writers += 1,
            Role::Reviewer => reviewers += 1,
        }
        session.check_deadline(now);
        if session.state() == SessionState::Away {
            continue;
        }
        if kind == TickMode::InTime && terms.client_timeout <= session.silent_for(now) {
            seats.lose(&session, LostReason::Silent);
        } else if !enforce_idle_timeout(seats, &session, now) {
            living.push(session);
        }
    }
    metrics::gauge!("galley_seats_held", "role" => "writer").set(writers);
    metrics::gauge!("galley_seats_held", "role" => "reviewer").set(reviewers);
    living
}

/// Warns an idle session, then releases its seat. True if the seat was released.
fn enforce_idle_timeout(seats: &Seats, session: &Arc<Session>, now: Instant) -> bool {
    let limit = seats.shared.terms.idle_release;
    if limit.is_zero() {
        return false;
    }
    let idle = session.idle_for(now);
    if limit <= idle {
        seats.lose(session, LostReason::Idle);
        return true;
    }
    let left = limit.saturating_sub(idle);
    let release_at = Utc::now() + TimeDelta::from_std(left).unwrap_or_default();
    // If `idle_release` ≤ 60 s, the warning is sent after half of it.
    let warning = if limit > IDLE_WARNING { IDLE_WARNING } else { limit / 2 };
    session.warn_of_idleness(left <= warning, release_at);
    false
}

impl Seats {
    /// Registers the seat of a session with the renewal actor. `sent_at` is the time of its claim.
    /// None once the locks are closed.
    pub(crate) fn register(
        &self,
        session: &Arc<Session>,
        sent_at: Instant,
    ) -> Option<Registration> {
        let identity = &session.identity;
        let held = HeldLock {
            name: LockName::seat(identity.seat),
            value: identity.session.to_string(),
            owner: session.owner(self.shared.pubsub.node()),
            fence: session.fence(),
            since: session.since()?,
        };
        let LeaseTerms { ttl, renew_every } = self.shared.terms.lease;
        let timing = RenewalTiming::new(ttl, backstop(renew_every));
        let lease = SeatLease { seats: self.clone(), session: Arc::clone(session) };
        self.shared.locks.register(held, timing, sent_at, Arc::new(lease))
    }
}

#[derive(Debug)]
struct SeatLease {
    seats: Seats,
    session: Arc<Session>,
}

impl LeaseHolder for SeatLease {
    /// An uncertain seat counts as live: only a renewal makes it certain again.
    fn lives(&self, now: Instant) -> Renewable {
        self.session.check_deadline(now);
        // After a stall the tick checks the clients first, and then requests a round.
        if self.session.is_seated() && !is_overslept(&self.seats, now) {
            Renewable::Yes
        } else {
            Renewable::Later
        }
    }

    fn renewed(&self, sent_at: Instant, _verdict: Verdict) {
        let Self { seats, session } = self;
        let until = seats.shared.terms.lease.trusted_until(sent_at);
        if session.renewed(until)
            && let Some(room) = seats.shared.rooms.find(session.identity.document)
        {
            room.request_missing(session);
        }
    }

    fn lost(&self, _loss: Loss) {
        let (seats, session) = (self.seats.clone(), Arc::clone(&self.session));
        #[expect(clippy::disallowed_methods, reason = "one for each lost session")]
        self.seats.shared.tasks.tracker.spawn(async move {
            // A session released during the pipeline has lost nothing.
            if session.state() != SessionState::Ended {
                seats.end_without_key(&session).await;
            }
        });
    }
}
