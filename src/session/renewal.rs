//! The scheduler that keeps held seats held.
//!
//! One tick, every four seconds: silent clients are let go, idle ones warned, the living pinged,
//! and the leases of all of them renewed in one pipeline, nearest deadline first. Nothing is sent
//! when nothing is held. After a failed round the next one comes sooner, because a holder may
//! stand two failed renewals and no more.

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::domain::limits::KEEP_ALIVE_EVERY;
use crate::domain::seat::Role;
use crate::locks::{Held, LockName, Verdict};
use crate::session::Sessions;
use crate::session::close::LostReason;
use crate::session::holding::{Holding, Phase};
use crate::sync::frame;

/// How long before the release for idleness the person is warned.
const IDLE_WARNING: Duration = Duration::from_secs(60);

/// What kind of visit the sessions get.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// Whether quiet sockets are sent a frame that the stock client counts as life.
    keep_alive: bool,
    /// This process slept through a tick: the silence may be ours, and nobody is let go for it.
    overslept: bool,
}

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundOutcome {
    /// Every held lease has a verdict.
    Done,
    /// The lock service did not answer in time; the old deadlines stay in force.
    Failed,
}

/// Renews every held lease until `stop` fires.
///
/// `stop` is looked at between rounds only: a pipeline that is already on the wire is read to its
/// end, so no verdict is lost.
pub async fn run(sessions: Sessions, stop: CancellationToken) {
    let every = sessions.shared.terms.lease.renew_every;
    let mut ticker = interval(every);
    // After a stall: renew once, then wait a full period. Never a burst.
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept_alive_at = Instant::now();
    let mut visited_at = Instant::now();
    while wait_for_tick(&sessions, &mut ticker, &stop).await {
        let now = Instant::now();
        let keep_alive = KEEP_ALIVE_EVERY <= now.duration_since(kept_alive_at) + every;
        if keep_alive {
            kept_alive_at = now;
        }
        let since_last = now.duration_since(visited_at);
        visited_at = now;
        metrics::histogram!("galley_renewal_lag_seconds")
            .record(since_last.saturating_sub(every).as_secs_f64());
        let overslept = every * 2 < since_last;
        visit(&sessions, now, Visit { keep_alive, overslept }).await;
        sessions.shared.rooms.tidy(now);
        while round(&sessions).await == RoundOutcome::Failed {
            // Sooner than the next tick: two lost renewals must leave time for a third.
            let pause = tokio::time::sleep(every / 4);
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
            let now = Instant::now();
            let overslept = every < now.duration_since(visited_at);
            visited_at = now;
            visit(&sessions, now, Visit { keep_alive: false, overslept }).await;
        }
    }
}

async fn wait_for_tick(
    sessions: &Sessions,
    ticker: &mut tokio::time::Interval,
    stop: &CancellationToken,
) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        _ = ticker.tick() => true,
        // Redis may have come back empty: whoever renews first is whoever was there.
        () = sessions.shared.locks.reconnected() => true,
    }
}

/// Looks after each seated session: lets go of silent clients, warns idle ones, pings the rest.
async fn visit(sessions: &Sessions, now: Instant, visit: Visit) {
    let terms = &sessions.shared.terms;
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
        if !visit.overslept && terms.client_timeout <= holding.silent_for(now) {
            tracing::info!(seat = %holding.sitter.seat, "a silent client is let go");
            sessions.lose(&holding, LostReason::Expired).await;
        } else if !mind_idleness(sessions, &holding, now).await {
            holding.outbox().ping();
            if visit.keep_alive {
                holding.outbox().send(frame::keep_alive());
            }
        }
    }
    metrics::gauge!("galley_seats_held", "role" => "writer").set(writers);
    metrics::gauge!("galley_seats_held", "role" => "reviewer").set(reviewers);
}

/// Warns, then releases, whoever does nothing. True if the seat was released.
async fn mind_idleness(sessions: &Sessions, holding: &Arc<Holding>, now: Instant) -> bool {
    let limit = sessions.shared.terms.idle_release;
    if limit.is_zero() {
        return false;
    }
    let idle = holding.idle_for(now);
    if limit <= idle {
        sessions.lose(holding, LostReason::Idle).await;
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

/// One round: a snapshot, one pipeline, one verdict for each lease.
pub async fn round(sessions: &Sessions) -> RoundOutcome {
    let mut seated = sessions.shared.registry.seated();
    if seated.is_empty() {
        return RoundOutcome::Done;
    }
    // Nearest deadline first, so that a round cut short has renewed the urgent ones.
    seated.sort_by_key(|holding| holding.trust_stamp());
    let (seated, held): (Vec<_>, Vec<_>) = seated
        .into_iter()
        .filter_map(|holding| lease_of(sessions, &holding).map(|lease| (holding, lease)))
        .unzip();
    let terms = sessions.shared.terms.lease;
    let answer = timeout(terms.renew_every, sessions.shared.locks.renew(&held, terms.ttl)).await;
    match answer {
        Ok(Ok(round)) => {
            let until = terms.trusted_until(round.sent_at);
            for (holding, verdict) in seated.iter().zip(round.verdicts) {
                apply(sessions, holding, verdict, until).await;
            }
            RoundOutcome::Done
        }
        // Redis may or may not have renewed these. Their old deadlines stay in force.
        Ok(Err(error)) => {
            tracing::warn!(%error, leases = held.len(), "renewal failed");
            RoundOutcome::Failed
        }
        Err(_elapsed) => {
            tracing::warn!(leases = held.len(), "a renewal round ran out of time");
            RoundOutcome::Failed
        }
    }
}

async fn apply(sessions: &Sessions, holding: &Arc<Holding>, verdict: Verdict, until: Instant) {
    match verdict {
        Verdict::Renewed | Verdict::Reasserted => {}
        Verdict::Lost => {
            // Released while the pipeline was under way: nothing was lost.
            if holding.phase() != Phase::Ended {
                let reason = sessions.why_lost(holding).await;
                sessions.lose(holding, reason).await;
            }
            return;
        }
    }
    if holding.renewed(until)
        && let Some(room) = sessions.shared.rooms.find(holding.sitter.document)
    {
        room.ask_again(holding);
    }
}

fn lease_of(sessions: &Sessions, holding: &Holding) -> Option<Held> {
    let sitter = &holding.sitter;
    Some(Held {
        name: LockName::seat(sitter.seat),
        value: sitter.session.to_string(),
        owner: holding.owner(sessions.shared.relay.node()),
        fence: holding.fence(),
        since: holding.since()?,
    })
}
