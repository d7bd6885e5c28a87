//! Looking after the clients of held seats, and what a seat is to the renewal actor.
//!
//! One tick, every four seconds: silent clients are let go, idle ones warned, the quiet pinged.
//! Then the leases of all of them are renewed, in the round that
//! [`Locks::renew_ahead`](crate::locks::Locks::renew_ahead) makes: by the one task that renews
//! whatever this process holds. It sends nothing when nothing is held, and repeats a round that
//! failed.
//!
//! *Alive means the client is alive*: a seat is renewed only if somebody has looked after its
//! client lately. If this scheduler stood still, no seat would be kept for long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::domain::lease::LeaseTerms;
use crate::domain::limits::KEEP_ALIVE_EVERY;
use crate::domain::seat::Role;
use crate::locks::{Held, Kept, Lives, LockName, Loss, Rhythm, Tenant, Verdict};
use crate::outbox::close::LostReason;
use crate::seats::Sessions;
use crate::sessions::options::SeatTerms;
use crate::sessions::session::{Holding, Phase};
use crate::yjs::protocol;

/// How long before the release for idleness the person is warned.
const IDLE_WARNING: Duration = Duration::from_secs(60);

/// Sockets that are called on at once, at least: a millisecond of work.
const CALLED_AT_ONCE: usize = 64;
/// How often some are, at most, and the pause between: together a fraction of a tick.
const CALLS_MAX: usize = 250;
const CALLS_APART: Duration = Duration::from_millis(1);

/// What kind of visit the sessions get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    InTime,
    /// This process slept through a tick: the silence may be ours, and nobody is let go for it.
    Overslept,
}

/// What the living are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Ping,
    /// With it a frame that the stock client counts as life.
    KeepAlive,
}

/// When the sessions were last looked after.
#[derive(Debug)]
pub(crate) struct LastVisit(Mutex<Instant>);

impl LastVisit {
    /// A server that has just begun has nobody to look after.
    pub(crate) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn ago(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// Looks after the sessions, and has their leases renewed, until `stop` fires.
pub async fn run(sessions: Sessions, stop: CancellationToken) {
    let locks = sessions.shared.locks.clone();
    tokio::select! {
        _stopped = stop.run_until_cancelled(tick_for_ever(&sessions)) => {}
        // Ended before its time, this ends the server: nobody renews any more.
        () = locks.stopped_renewing() => {}
    }
}

async fn tick_for_ever(sessions: &Sessions) {
    let every = sessions.shared.terms.lease.renew_every;
    let mut ticker = interval(every);
    // After a stall: one visit and one round, then a full period. Never a burst.
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept_alive_at = Instant::now();
    loop {
        ticker.tick().await;
        let now = Instant::now();
        let mut call = Call::Ping;
        if KEEP_ALIVE_EVERY <= now.duration_since(kept_alive_at) + every {
            kept_alive_at = now;
            call = Call::KeepAlive;
        }
        let kind = if is_overslept(sessions, now) { Visit::Overslept } else { Visit::InTime };
        let living = visit(sessions, now, kind);
        sessions.shared.last_visit.is(now);
        sessions.shared.locks.renew_ahead(backstop(every));
        sessions.shared.rooms.tidy(now);
        sessions.reconcile_soon();
        call_on(&living, call, &sessions.shared.terms).await;
    }
}

/// Asks for a sign of life, some at a time: who types meanwhile would wait for thousands of pings.
async fn call_on(living: &[Arc<Holding>], call: Call, terms: &SeatTerms) {
    let two_ticks = terms.lease.renew_every * 2;
    let at_once = CALLED_AT_ONCE.max(living.len() / CALLS_MAX);
    for some in living.chunks(at_once) {
        let now = Instant::now();
        for holding in some {
            // Who has just spoken need not: there are two more ticks before that is too long ago.
            if terms.client_timeout < holding.silent_for(now) + two_ticks {
                holding.outbox().ping();
            }
            if call == Call::KeepAlive {
                holding.outbox().send(protocol::keep_alive());
            }
        }
        sleep(CALLS_APART).await;
    }
}

/// How often a seat is renewed if this scheduler does not ask for it: late enough for its tick to
/// come first, and early enough for two renewals to fail.
fn backstop(every: Duration) -> Duration {
    every * 5 / 4
}

/// Whether nobody has looked after the sessions for longer than a tick and some.
fn is_overslept(sessions: &Sessions, now: Instant) -> bool {
    sessions.shared.terms.lease.renew_every * 2 < sessions.shared.last_visit.ago(now)
}

/// Looks after each seated session: lets go of silent clients, warns idle ones, returns the rest.
fn visit(sessions: &Sessions, now: Instant, kind: Visit) -> Vec<Arc<Holding>> {
    let terms = &sessions.shared.terms;
    let mut living = Vec::new();
    let (mut writers, mut reviewers) = (0_u32, 0_u32);
    for holding in sessions.shared.registry.seated() {
        match holding.sitter.seat.role {
            Role::Writer => writers += 1,
            Role::Reviewer => reviewers += 1,
        }
        holding.look_at_deadline(now);
        if holding.phase() == Phase::Away {
            continue;
        }
        if kind == Visit::InTime && terms.client_timeout <= holding.silent_for(now) {
            tracing::info!(seat = %holding.sitter.seat, "a silent client is let go");
            sessions.lose(&holding, LostReason::Expired);
        } else if !mind_idleness(sessions, &holding, now) {
            living.push(holding);
        }
    }
    metrics::gauge!("galley_seats_held", "role" => "writer").set(writers);
    metrics::gauge!("galley_seats_held", "role" => "reviewer").set(reviewers);
    living
}

/// Warns, then releases, whoever does nothing. True if the seat was released.
fn mind_idleness(sessions: &Sessions, holding: &Arc<Holding>, now: Instant) -> bool {
    let limit = sessions.shared.terms.idle_release;
    if limit.is_zero() {
        return false;
    }
    let idle = holding.idle_for(now);
    if limit <= idle {
        sessions.lose(holding, LostReason::Idle);
        return true;
    }
    let left = limit.saturating_sub(idle);
    let release_at = Utc::now() + TimeDelta::from_std(left).unwrap_or_default();
    // A limit below the warning's own length warns half-way.
    // Where a minute is all there is, half of it goes by without a word.
    let warning = if IDLE_WARNING < limit { IDLE_WARNING } else { limit / 2 };
    holding.warn_of_idleness(left <= warning, release_at);
    false
}

impl Sessions {
    /// Has the seat of a session kept alive that was granted by a claim sent at `sent_at`. Nothing
    /// once the locks are closed.
    pub(crate) fn keep(&self, holding: &Arc<Holding>, sent_at: Instant) -> Option<Kept> {
        let sitter = &holding.sitter;
        let held = Held {
            name: LockName::seat(sitter.seat),
            value: sitter.session.to_string(),
            owner: holding.owner(self.shared.relay.node()),
            fence: holding.fence(),
            since: holding.since()?,
        };
        let LeaseTerms { ttl, renew_every } = self.shared.terms.lease;
        let rhythm = Rhythm::new(ttl, backstop(renew_every));
        let tenant = Occupant { sessions: self.clone(), holding: Arc::clone(holding) };
        self.shared.locks.keep(held, rhythm, sent_at, Arc::new(tenant))
    }
}

/// A session in its seat, as the renewal actor meets it.
#[derive(Debug)]
struct Occupant {
    sessions: Sessions,
    holding: Arc<Holding>,
}

impl Tenant for Occupant {
    /// An uncertain seat lives: it is its renewal that makes it certain again.
    fn lives(&self, now: Instant) -> Lives {
        self.holding.look_at_deadline(now);
        let is_seated = !matches!(self.holding.phase(), Phase::Claiming | Phase::Ended);
        // After a stall the visit comes first, and asks for a round when it is done.
        if is_seated && !is_overslept(&self.sessions, now) { Lives::Yes } else { Lives::NotNow }
    }

    fn renewed(&self, sent_at: Instant, _verdict: Verdict) {
        let Self { sessions, holding } = self;
        let until = sessions.shared.terms.lease.trusted_until(sent_at);
        if holding.renewed(until)
            && let Some(room) = sessions.shared.rooms.find(holding.sitter.document)
        {
            room.ask_again(holding);
        }
    }

    fn lost(&self, _loss: Loss) {
        let (sessions, holding) = (self.sessions.clone(), Arc::clone(&self.holding));
        self.sessions.shared.tasks.spawn(async move {
            // Released while the pipeline was under way: nothing was lost.
            if holding.phase() != Phase::Ended {
                let reason = sessions.why_lost(&holding).await;
                sessions.lose(&holding, reason);
            }
        });
    }
}
