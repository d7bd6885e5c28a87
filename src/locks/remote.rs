//! Locks in Redis.
//!
//! Three connections, however many locks: one for claims, releases and questions, one for renewals
//! alone, so that nothing a user does can make those late, and one that listens for hand-overs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::domain::ids::NodeId;
use crate::domain::seat::Seat;
use crate::locks::GRANT_KEPT_FOR;
use crate::locks::acquaintance::{Acquaintance, RETURN_GRACE};
use crate::locks::calls::Calls;
use crate::locks::fault::{Fault, explain};
use crate::locks::health;
use crate::locks::line::{Lobby, Standing, Waiter};
use crate::locks::link::{Ear, Link, PATIENCE};
use crate::locks::name::{LockName, release_channel};
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
/// How often a claim is repeated for a lock that is left to a holder who may come back.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

const _: () = assert!(GRANTS_KEPT_EVERY.as_secs() * 4 < GRANT_KEPT_FOR.as_secs());

/// Locks in Redis.
#[derive(Debug)]
pub(super) struct Remote {
    /// The name of this server.
    server: NodeId,
    calls: Calls,
    acquaintance: Arc<Acquaintance>,
    renewals: Link,
    reconnected: Arc<Notify>,
    /// The same, for the guards of this process.
    is_back: Arc<Notify>,
    owed: Arc<Owed>,
    pub(super) lobby: Arc<Lobby>,
    grants_kept_at: Mutex<Instant>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Remote {
    /// Begins to connect; hand-overs to this server's waiters are told to `server`.
    pub(super) fn connect(url: &str, server: NodeId) -> Result<Self, LocksError> {
        let client = open::client(url)?;
        let scripts = Arc::new(Scripts::new());
        let reconnected = Arc::new(Notify::new());
        let (link, mut calls_upkeep) = Link::new(client.clone(), scripts.greeting(), vec![]);
        let acquaintance = Arc::new(Acquaintance::default());
        calls_upkeep.acquaintance = Some(Arc::clone(&acquaintance));
        // Renewals bring their script along; a new connection only has to show that it answers.
        let mut ping = pipeline();
        ping.cmd("PING");
        let is_back = Arc::new(Notify::new());
        let back = vec![Arc::clone(&reconnected), Arc::clone(&is_back)];
        let (renewals, renewals_upkeep) = Link::new(client.clone(), ping.clone(), back);
        let lobby = Arc::new(Lobby::default());
        let ear = Ear { channel: release_channel(server), lobby: Arc::clone(&lobby) };
        let (_listens, mut ear_upkeep) = Link::new(client, ping, vec![]);
        ear_upkeep.ear = Some(ear);
        let calls = Calls { link, scripts };
        let owed = Arc::new(Owed::default());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let span = |name| tracing::info_span!("locks", task = name);
        tasks.spawn(calls_upkeep.run(stop.clone()).instrument(span("calls")));
        tasks.spawn(renewals_upkeep.run(stop.clone()).instrument(span("renewals")));
        tasks.spawn(ear_upkeep.run(stop.clone()).instrument(span("hand-overs")));
        let work = Arc::clone(&owed).work(calls.clone(), stop.clone());
        tasks.spawn(work.instrument(span("owed")));
        let watch = health::watch(calls.clone(), server);
        let watch = stop.clone().run_until_cancelled_owned(watch);
        tasks.spawn(watch.instrument(span("health")));
        tasks.close();
        let grants_kept_at = Mutex::new(Instant::now());
        Ok(Self {
            server,
            calls,
            acquaintance,
            renewals,
            reconnected,
            is_back,
            owed,
            lobby,
            grants_kept_at,
            tasks,
            stop,
        })
    }

    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        if self.owed.is_owed(&claim.value) {
            // Its release could come after this grant and free it.
            let why = "an earlier claim with this value is still being taken back";
            return Err(LocksError::Unavailable(why.to_owned()));
        }
        let gives_up = Instant::now() + RETURN_GRACE + PATIENCE;
        loop {
            if let Some(claimed) = self.claim_once(claim).await? {
                return Ok(claimed);
            }
            if gives_up <= Instant::now() {
                let why = "Redis came back empty, and who held this lock may come back too";
                return Err(LocksError::Unavailable(why.to_owned()));
            }
            sleep(self.acquaintance.grace(claim.floor).min(LOOK_AGAIN)).await;
        }
    }

    /// None while the lock is left to a holder who may come back to it.
    async fn claim_once(&self, claim: &Claim) -> Result<Option<Claimed>, LocksError> {
        let promise = self.owed.promise(&claim.name, &claim.value, Duration::ZERO);
        let grace = || self.acquaintance.grace(claim.floor);
        let call = || self.calls.scripts.claim(claim, None, grace());
        let answer = self.calls.call(&self.calls.scripts.claim, call).await;
        let claimed = answer.and_then(|(sent_at, reply)| reply::claimed(&reply, sent_at));
        match &claimed {
            Ok(_) | Err(Fault::Unsent(_) | Fault::Refused(_)) => promise.keep(),
            Err(Fault::Unknown(_)) => drop(promise),
        }
        Ok(claimed?)
    }

    /// A sign of life from the line, and a look whether it is one's turn. Who gives the wait up
    /// has to release: whether it stands in the line or holds the lock by now, it may not know.
    pub(super) async fn check_in(&self, claim: &Claim, waiter: &Waiter) -> Result<Standing, Fault> {
        let grace = || waiter.remembers.max(self.acquaintance.grace(claim.floor));
        let call = || self.calls.scripts.claim(claim, Some(waiter), grace());
        let (sent_at, reply) = self.calls.call(&self.calls.scripts.claim, call).await?;
        reply::standing(&reply, sent_at)
    }

    /// Gives back; nobody gets it for `rest`.
    pub(super) async fn release(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, LocksError> {
        let promise = self.owed.promise(name, value, rest);
        let released = self.calls.release(name, value, rest).await?;
        promise.keep();
        Ok(released)
    }

    /// Gives back in the background.
    pub(super) fn release_soon(&self, name: &LockName, value: &str, rest: Duration) {
        drop(self.owed.promise(name, value, rest));
    }

    /// Renews all in one pipeline, neighbours of one TTL in one call.
    pub(super) async fn renew(&self, held: &[(&Held, Duration)]) -> Result<Round, LocksError> {
        let deadline = Instant::now() + PATIENCE;
        let scripts = &self.calls.scripts;
        let mut request = pipeline();
        scripts.renew.load(&mut request);
        for chunk in calls(held) {
            request.add_command(scripts.renew(chunk));
        }
        let keeps_grants = self.grants_are_due();
        if keeps_grants {
            for (held, _ttl) in held {
                let kept = millis(GRANT_KEPT_FOR);
                request.cmd("PEXPIRE").arg(held.name.grant_key()).arg(kept).ignore();
            }
        }
        let answer = self.renewals.ask(&request, deadline).await?;
        let letters = letters(answer.replies, calls(held).map(<[_]>::len))?;
        if keeps_grants {
            *self.grants_kept_at() = Instant::now();
        }
        let mut verdicts = Vec::with_capacity(held.len());
        let mut gone = Vec::new();
        for (at, (letter, held)) in letters.iter().zip(held).enumerate() {
            if *letter == b'-' {
                gone.push((at, *held));
            }
            verdicts.push(verdict(*letter));
        }
        if !gone.is_empty() {
            self.reassert(&gone, deadline, &mut verdicts).await?;
        }
        Ok(Round { sent_at: answer.sent_at, verdicts })
    }

    /// Puts back what is gone, and writes what came of it over its verdicts.
    async fn reassert(
        &self,
        gone: &[(usize, (&Held, Duration))],
        deadline: Instant,
        verdicts: &mut [Verdict],
    ) -> Result<(), LocksError> {
        let scripts = &self.calls.scripts;
        let mut request = pipeline();
        scripts.reassert.load(&mut request);
        let held: Vec<_> = gone.iter().map(|(_at, held)| *held).collect();
        for chunk in calls(&held) {
            request.add_command(scripts.reassert(chunk));
        }
        let answer = self.renewals.ask(&request, deadline).await?;
        let letters = letters(answer.replies, calls(&held).map(<[_]>::len))?;
        for (letter, (at, _held)) in letters.iter().zip(gone) {
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

    /// Every seat that is taken.
    pub(super) async fn seats(&self) -> Result<Vec<(Seat, Holder)>, LocksError> {
        let names = self.scan(&LockName::seat_pattern()).await?;
        let holders = self.holders(&names).await?;
        let seats = names.iter().map(LockName::as_seat);
        Ok(seats.zip(holders).filter_map(|(seat, holder)| Some((seat?, holder?))).collect())
    }

    /// Everything that is held.
    pub(super) async fn held(&self) -> Result<Vec<(LockName, Holder)>, LocksError> {
        let mut names = self.scan(&LockName::seat_pattern()).await?;
        names.append(&mut self.scan(&LockName::named_pattern()).await?);
        let holders = self.holders(&names).await?;
        Ok(names.into_iter().zip(holders).filter_map(|(name, by)| Some((name, by?))).collect())
    }

    /// The names of all locks whose keys are like `pattern`, in order.
    async fn scan(&self, pattern: &str) -> Result<Vec<LockName>, LocksError> {
        let mut names = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut request = pipeline();
            request.cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern);
            // What stands beside a lock is of other types.
            request.arg("COUNT").arg(SCAN_STEP).arg("TYPE").arg("string");
            let reply = self.calls.ask(&request).await?.into_iter().next();
            let (next, keys): (u64, Vec<String>) =
                redis::from_redis_value(reply.ok_or_else(reply::unexpected)?)
                    .map_err(|_malformed| reply::unexpected())?;
            names.extend(keys.iter().filter_map(|key| LockName::from_key(key)));
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        // A scan may show a key twice.
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    pub(super) async fn check(&self) -> Result<(), LocksError> {
        health::check(&self.calls, self.server).await.map(drop)
    }

    pub(super) async fn reconnected(&self) {
        self.reconnected.notified().await;
    }

    /// As [`Self::reconnected`], for the renewal actor.
    pub(super) async fn is_back(&self) {
        self.is_back.notified().await;
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

/// What goes into one call each: neighbours of one TTL, not too many.
fn calls<'a, 'b>(
    held: &'a [(&'b Held, Duration)],
) -> impl Iterator<Item = &'a [(&'b Held, Duration)]> {
    held.chunk_by(|one, next| one.1 == next.1).flat_map(|alike| alike.chunks(LOCKS_PER_CALL))
}

/// The answers of several calls in one string of letters. One call that failed spoils the round:
/// nothing is lost by that, and there is one way less to be wrong.
fn letters(
    replies: Vec<redis::RedisResult<Value>>,
    sizes: impl Iterator<Item = usize>,
) -> Result<Vec<u8>, LocksError> {
    let mut letters = Vec::new();
    let mut replies = replies.into_iter();
    for asked in sizes {
        let reply = replies.next().ok_or_else(reply::unexpected)?;
        let reply = reply.map_err(|error| explain(&error))?;
        letters.extend_from_slice(reply::verdicts(&reply, asked)?);
    }
    if replies.next().is_some() {
        return Err(reply::unexpected());
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
