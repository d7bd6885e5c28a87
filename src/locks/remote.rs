//! Locks in Redis.
//!
//! Two connections, however many locks: one for claims, releases and questions, one for renewals
//! alone, so that nothing a user does can make those late.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::domain::seat::Seat;
use crate::locks::GRANT_KEPT_FOR;
use crate::locks::calls::Calls;
use crate::locks::fault::{Fault, explain};
use crate::locks::health;
use crate::locks::link::{Link, PATIENCE};
use crate::locks::name::LockName;
use crate::locks::open;
use crate::locks::owed::Owed;
use crate::locks::reply;
use crate::locks::scripts::{LOCKS_PER_CALL, Scripts, millis, pipeline};
use crate::locks::words::{Claim, Claimed, Held, Holder, LocksError, Released, Round, Verdict};

/// How often the grants of what is held are kept from being forgotten. A renewal does not touch
/// them; that would double its work.
const GRANTS_KEPT_EVERY: Duration = Duration::from_secs(60 * 60);
/// Keys asked for in one step of a scan.
const SCAN_STEP: usize = 1_000;

const _: () = assert!(GRANTS_KEPT_EVERY.as_secs() * 4 < GRANT_KEPT_FOR.as_secs());

/// Locks in Redis.
#[derive(Debug)]
pub(super) struct Remote {
    calls: Calls,
    renewals: Link,
    reconnected: Arc<Notify>,
    owed: Arc<Owed>,
    grants_kept_at: Mutex<Instant>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Remote {
    /// Begins to connect.
    pub(super) fn connect(url: &str) -> Result<Self, LocksError> {
        let client = open::client(url)?;
        let scripts = Arc::new(Scripts::new());
        let reconnected = Arc::new(Notify::new());
        let (link, calls_upkeep) = Link::new(client.clone(), scripts.greeting(), None);
        // Renewals bring their script along; a new connection only has to show that it answers.
        let mut ping = pipeline();
        ping.cmd("PING");
        let (renewals, renewals_upkeep) = Link::new(client, ping, Some(Arc::clone(&reconnected)));
        let calls = Calls { link, scripts };
        let owed = Arc::new(Owed::default());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let span = |name| tracing::info_span!("locks", task = name);
        tasks.spawn(calls_upkeep.run(stop.clone()).instrument(span("calls")));
        tasks.spawn(renewals_upkeep.run(stop.clone()).instrument(span("renewals")));
        let work = Arc::clone(&owed).work(calls.clone(), stop.clone());
        tasks.spawn(work.instrument(span("owed")));
        let watch = health::watch(calls.clone());
        let watch = stop.clone().run_until_cancelled_owned(watch);
        tasks.spawn(watch.instrument(span("health")));
        tasks.close();
        let grants_kept_at = Mutex::new(Instant::now());
        Ok(Self { calls, renewals, reconnected, owed, grants_kept_at, tasks, stop })
    }

    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        if self.owed.is_owed(&claim.value) {
            // Its release could come after this grant and free it.
            let why = "an earlier claim with this value is still being taken back";
            return Err(LocksError::Unavailable(why.to_owned()));
        }
        let promise = self.owed.promise(&claim.name, &claim.value);
        let call = self.calls.scripts.claim(claim);
        let answer = self.calls.call(&self.calls.scripts.claim, call).await;
        let claimed = answer.and_then(|(sent_at, reply)| reply::claimed(&reply, sent_at));
        match &claimed {
            Ok(_) | Err(Fault::Unsent(_) | Fault::Refused(_)) => promise.keep(),
            Err(Fault::Unknown(_)) => drop(promise),
        }
        Ok(claimed?)
    }

    pub(super) async fn release(
        &self,
        name: &LockName,
        value: &str,
    ) -> Result<Released, LocksError> {
        let promise = self.owed.promise(name, value);
        let released = self.calls.release(name, value).await?;
        promise.keep();
        Ok(released)
    }

    pub(super) async fn renew(&self, held: &[Held], ttl: Duration) -> Result<Round, LocksError> {
        let deadline = Instant::now() + PATIENCE;
        let scripts = &self.calls.scripts;
        let mut request = pipeline();
        scripts.renew.load(&mut request);
        for chunk in held.chunks(LOCKS_PER_CALL) {
            request.add_command(scripts.renew(chunk, ttl));
        }
        let keeps_grants = self.grants_are_due();
        if keeps_grants {
            for held in held {
                let kept = millis(GRANT_KEPT_FOR);
                request.cmd("PEXPIRE").arg(held.name.grant_key()).arg(kept).ignore();
            }
        }
        let answer = self.renewals.ask(&request, deadline).await?;
        let sizes = held.chunks(LOCKS_PER_CALL).map(<[Held]>::len);
        let letters = letters(answer.replies, sizes)?;
        if keeps_grants {
            *self.grants_kept_at() = Instant::now();
        }
        let mut verdicts = Vec::with_capacity(held.len());
        let mut gone = Vec::new();
        for (at, (letter, held)) in letters.iter().zip(held).enumerate() {
            if *letter == b'-' {
                gone.push((at, held));
            }
            verdicts.push(verdict(*letter));
        }
        if !gone.is_empty() {
            self.reassert(&gone, ttl, deadline, &mut verdicts).await?;
        }
        Ok(Round { sent_at: answer.sent_at, verdicts })
    }

    /// Puts back what is gone, and writes what came of it over its verdicts.
    async fn reassert(
        &self,
        gone: &[(usize, &Held)],
        ttl: Duration,
        deadline: Instant,
        verdicts: &mut [Verdict],
    ) -> Result<(), LocksError> {
        let scripts = &self.calls.scripts;
        let mut request = pipeline();
        scripts.reassert.load(&mut request);
        for chunk in gone.chunks(LOCKS_PER_CALL) {
            let held: Vec<&Held> = chunk.iter().map(|(_at, held)| *held).collect();
            request.add_command(scripts.reassert(&held, ttl));
        }
        let answer = self.renewals.ask(&request, deadline).await?;
        let sizes = gone.chunks(LOCKS_PER_CALL).map(<[_]>::len);
        for (letter, (at, _held)) in letters(answer.replies, sizes)?.iter().zip(gone) {
            if let Some(slot) = verdicts.get_mut(*at) {
                *slot = verdict(*letter);
            }
        }
        Ok(())
    }

    pub(super) async fn holders(
        &self,
        names: &[LockName],
    ) -> Result<Vec<Option<Holder>>, LocksError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let scripts = &self.calls.scripts;
        let mut request = pipeline();
        scripts.holders.load(&mut request);
        for chunk in names.chunks(LOCKS_PER_CALL) {
            request.add_command(scripts.holders(chunk));
        }
        let replies = self.calls.ask(&request).await?;
        let mut holders = Vec::with_capacity(names.len());
        for (chunk, reply) in names.chunks(LOCKS_PER_CALL).zip(&replies) {
            holders.append(&mut reply::holders(reply, chunk.len())?);
        }
        Ok(holders)
    }

    pub(super) async fn seats(&self) -> Result<Vec<(Seat, Holder)>, LocksError> {
        let mut names = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut request = pipeline();
            request.cmd("SCAN").arg(cursor).arg("MATCH").arg(LockName::seat_pattern());
            request.arg("COUNT").arg(SCAN_STEP);
            let reply = self.calls.ask(&request).await?.into_iter().next();
            let (next, keys): (u64, Vec<String>) =
                redis::from_redis_value(reply.ok_or_else(reply::unexpected)?)
                    .map_err(|_malformed| reply::unexpected())?;
            names.extend(keys.iter().filter_map(|key| LockName::from_seat_key(key)));
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        // A scan may show a key twice.
        names.sort_unstable();
        names.dedup();
        let holders = self.holders(&names).await?;
        let seats = names.iter().map(LockName::as_seat);
        Ok(seats.zip(holders).filter_map(|(seat, holder)| Some((seat?, holder?))).collect())
    }

    pub(super) async fn check(&self) -> Result<(), LocksError> {
        health::check(&self.calls).await
    }

    pub(super) async fn reconnected(&self) {
        self.reconnected.notified().await;
    }

    /// Pays what is owed, once, and ends the tasks.
    pub(super) async fn close(&self) {
        self.owed.pay(&self.calls).await;
        self.stop.cancel();
        self.tasks.wait().await;
    }

    fn grants_are_due(&self) -> bool {
        GRANTS_KEPT_EVERY <= self.grants_kept_at().elapsed()
    }

    fn grants_kept_at(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.grants_kept_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The answers of several calls in one string of letters. One call that failed spoils the round:
/// nothing is lost by that, and there is one way less to be wrong.
fn letters(
    replies: Vec<redis::RedisResult<Value>>,
    sizes: impl ExactSizeIterator<Item = usize>,
) -> Result<Vec<u8>, LocksError> {
    if replies.len() != sizes.len() {
        return Err(reply::unexpected());
    }
    let mut letters = Vec::new();
    for (reply, asked) in replies.into_iter().zip(sizes) {
        let reply = reply.map_err(|error| explain(&error))?;
        letters.extend_from_slice(reply::verdicts(&reply, asked)?);
    }
    Ok(letters)
}

fn verdict(letter: u8) -> Verdict {
    match letter {
        b'1' => Verdict::Renewed,
        b'2' => Verdict::Reasserted,
        _ => Verdict::Lost,
    }
}
