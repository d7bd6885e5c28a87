//! One connection to Redis that is always being kept up.
//!
//! A task opens it, hears of its end (RESP3 tells), and opens the next. The `redis` crate's own
//! manager is not enough: it learns of a lost connection from the next command that
//! fails, tells nobody that it has reconnected, and a Redis that does not answer never makes it
//! reconnect at all. Commands are not repeated here; who sent one decides.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, SendError};
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisResult, Value,
};
use tokio::sync::{Notify, watch};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "broken")]
use crate::locks::broken;
use crate::locks::redis::error::{Fault, explain};
use crate::locks::redis::reply;
use crate::locks::redis::server_identity::Acquaintance;
use crate::locks::redis::wait_queue::Lobby;
use crate::locks::types::LocksError;
use crate::redis_client::Addresses;

/// How long one exchange may take, with the wait for a connection. Well below the part of a lease
/// that is left after two failed renewals, and far above what a healthy Redis needs.
pub(in crate::locks) const PATIENCE: Duration = Duration::from_millis(1_500);
/// After this long without any answer the connection is given up: a path that swallows packets
/// looks just like a Redis that thinks, until the kernel gives up minutes later.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long opening a connection may take, with the handshake.
const OPENING_MAX: Duration = Duration::from_secs(1);
/// How long what follows it may take: three exchanges.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// Pauses between attempts double from the first to the second, with jitter.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));
/// Requests that may wait in front of the socket; more of them wait in turn.
const QUEUE: usize = 1_024;

/// A connection that comes back.
#[derive(Clone, Debug)]
pub(in crate::locks) struct Link {
    state: watch::Receiver<State>,
}

/// The connection as it is now.
#[derive(Clone, Debug)]
enum State {
    Up(Line),
    /// Why there is none, and whether there was one, or one was tried for.
    Down {
        why: LocksError,
        is_lost: bool,
    },
}

/// One open connection.
#[derive(Clone, Debug)]
struct Line {
    connection: MultiplexedConnection,
    /// Cancelled when the connection is of no more use.
    dead: CancellationToken,
    /// Since when nothing was answered.
    silent_since: Arc<Mutex<Option<Instant>>>,
}

/// What Redis answered, in order, and when it was asked.
pub(in crate::locks) struct Answer {
    pub(in crate::locks) sent_at: Instant,
    pub(in crate::locks) replies: Vec<RedisResult<Value>>,
}

/// The task's side of a link.
pub(in crate::locks) struct Upkeep {
    addresses: Arc<Addresses>,
    /// Sent on each new connection before anything else.
    greeting: Pipeline,
    /// Told of each connection that was not there before.
    pub(in crate::locks) reconnected: Vec<Arc<Notify>>,
    /// Whether the first one is such.
    pub(in crate::locks) is_successor: bool,
    /// Told of each connection.
    pub(in crate::locks) opened: Option<Arc<Notify>>,
    /// Who listens on the connection.
    pub(in crate::locks) ear: Option<Ear>,
    /// Told what is answered to the greeting.
    pub(in crate::locks) acquaintance: Option<Arc<Acquaintance>>,
    state: watch::Sender<State>,
}

/// A channel that a connection listens on from its beginning to its end, and who is told.
#[derive(Clone, Debug)]
pub(in crate::locks) struct Ear {
    pub(in crate::locks) channel: String,
    pub(in crate::locks) lobby: Arc<Lobby>,
}

impl Link {
    /// A link that is down until its upkeep runs.
    pub(in crate::locks) fn new(addresses: Arc<Addresses>, greeting: Pipeline) -> (Self, Upkeep) {
        let why = LocksError::Unavailable("not connected to Redis yet".to_owned());
        let (sender, state) = watch::channel(State::Down { why, is_lost: false });
        let upkeep = Upkeep {
            addresses,
            greeting,
            reconnected: Vec::new(),
            is_successor: false,
            opened: None,
            ear: None,
            acquaintance: None,
            state: sender,
        };
        (Self { state }, upkeep)
    }

    /// Sends `pipeline` once and waits for all answers, until `deadline`.
    pub(in crate::locks) async fn ask(
        &self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let line = self.line(deadline).await.map_err(Fault::Unsent)?;
        line.ask(pipeline, deadline).await
    }

    /// As [`Self::ask`], for what depends on who is at the other end: it is made when there is a
    /// connection, and sent on none that is newer.
    pub(in crate::locks) async fn ask_whoever_is_there(
        &self,
        pipeline: impl FnOnce() -> Pipeline,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let line = self.line(deadline).await.map_err(Fault::Unsent)?;
        line.ask(&pipeline(), deadline).await
    }

    /// The same with one command, and its answer.
    pub(in crate::locks) async fn ask_one(
        &self,
        command: impl FnOnce() -> Cmd,
        deadline: Instant,
    ) -> Result<(Instant, RedisResult<Value>), Fault> {
        let mut line = self.line(deadline).await.map_err(Fault::Unsent)?;
        let (command, sent_at) = (command(), in_time(deadline)?);
        let asked = timeout_at(deadline, line.connection.send_packed_command(&command)).await;
        let answered = asked.map(|answer| match answer {
            // An answer too, if not the one that was hoped for.
            Err(error) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
                Ok(Err(error))
            }
            Ok(Value::ServerError(error)) => Ok(Err(error.into())),
            Ok(value) => Ok(Ok(value)),
            Err(error) => Err(error),
        });
        line.answered(answered, sent_at)
    }

    /// Gives the present connection up: what is at its other end is no longer what we want.
    pub(in crate::locks) fn reopen(&self) {
        if let State::Up(line) = &*self.state.borrow() {
            line.dead.cancel();
        }
    }

    /// Whether there is a connection.
    pub(in crate::locks) fn is_up(&self) -> bool {
        self.state.borrow().is_up()
    }

    /// Why there is none, once one was there or was tried for.
    pub(in crate::locks) fn lost(&self) -> Option<LocksError> {
        match &*self.state.borrow() {
            State::Down { why, is_lost: true } => Some(why.clone()),
            State::Down { is_lost: false, .. } | State::Up(_) => None,
        }
    }

    /// Whether what was asked last on the connection was not answered in time.
    pub(in crate::locks) fn is_silent(&self) -> bool {
        match &*self.state.borrow() {
            State::Up(line) => line.is_waited_for(),
            State::Down { .. } => false,
        }
    }

    /// Resolves when there is a connection. False when there will be none.
    pub(in crate::locks) async fn opens(&self) -> bool {
        self.state.clone().wait_for(State::is_up).await.is_ok()
    }

    async fn line(&self, deadline: Instant) -> Result<Line, LocksError> {
        if let State::Up(line) = &*self.state.borrow()
            && !line.dead.is_cancelled()
        {
            return Ok(line.clone());
        }
        let mut state = self.state.clone();
        // Both a time-out and the end of the upkeep leave the reason in the state.
        let _waited = timeout_at(deadline, state.wait_for(State::is_up)).await.is_ok();
        match &*self.state.borrow() {
            State::Up(line) => Ok(line.clone()),
            State::Down { why, .. } => Err(why.clone()),
        }
    }
}

/// Now, if that is before the deadline: nothing is sent after it, as no caller waits for the answer. A
/// time-out alone would let the request out once.
fn in_time(deadline: Instant) -> Result<Instant, Fault> {
    let now = Instant::now();
    let late = || LocksError::Unavailable("Redis does not answer".to_owned());
    if now < deadline { Ok(now) } else { Err(Fault::Unsent(late())) }
}

impl State {
    fn is_up(&self) -> bool {
        matches!(self, Self::Up(line) if !line.dead.is_cancelled())
    }
}

impl Line {
    async fn ask(mut self, pipeline: &Pipeline, deadline: Instant) -> Result<Answer, Fault> {
        let sent_at = in_time(deadline)?;
        let asked = timeout_at(deadline, pipeline.query_async(&mut self.connection)).await;
        let (sent_at, replies) = self.answered(asked, sent_at)?;
        Ok(Answer { sent_at, replies })
    }

    /// What came of an exchange, and what that says of the connection.
    fn answered<T>(
        &self,
        asked: Result<RedisResult<T>, Elapsed>,
        sent_at: Instant,
    ) -> Result<(Instant, T), Fault> {
        match asked {
            Ok(Ok(answer)) => {
                self.is_answering();
                #[cfg(feature = "broken")]
                let sent_at = broken::sent_at(sent_at);
                Ok((sent_at, answer))
            }
            Ok(Err(error)) => {
                self.dead.cancel();
                Err(Fault::Unknown(explain(&error)))
            }
            Err(_elapsed) => {
                self.is_silent(sent_at);
                Err(Fault::Unknown(LocksError::Unavailable("Redis does not answer".to_owned())))
            }
        }
    }

    fn is_waited_for(&self) -> bool {
        self.silent_since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn is_answering(&self) {
        *self.silent_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_silent(&self, asked_at: Instant) {
        let mut since = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        if SILENCE_MAX <= since.get_or_insert(asked_at).elapsed() {
            self.dead.cancel();
        }
    }
}

impl Upkeep {
    /// Keeps the connection up until `stop`.
    pub(in crate::locks) async fn run(self, stop: CancellationToken) {
        // Ends at whatever await it is in: nothing is owed to a connection.
        stop.run_until_cancelled(self.keep_up()).await;
        let why = LocksError::Unavailable("the locks are closed".to_owned());
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    async fn keep_up(&self) {
        let (mut pause, mut failures, mut openings) = (PAUSES.0, 0_u64, 0_u64);
        loop {
            match self.open().await {
                Ok(line) => {
                    tracing::info!(openings, failures, "connected to Redis");
                    self.is_up(line, 0 < openings + failures).await;
                    openings += 1;
                    (pause, failures) = (PAUSES.0, 0);
                    // One that is taken and then dropped is not asked for in a rush.
                    sleep(jittered(pause)).await;
                }
                Err(why) => {
                    self.is_down(why, failures);
                    failures += 1;
                    sleep(jittered(pause)).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Lends the line out until it is dead.
    async fn is_up(&self, line: Line, was_down: bool) {
        let dead = line.dead.clone();
        self.state.send_replace(State::Up(line));
        if let Some(opened) = &self.opened {
            opened.notify_one();
        }
        if was_down || self.is_successor {
            self.reconnected.iter().for_each(|reconnected| reconnected.notify_one());
        }
        self.miss();
        dead.cancelled().await;
        self.miss();
        tracing::warn!("the connection to Redis is lost");
        let why = LocksError::Unavailable("the connection to Redis is lost".to_owned());
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    /// Whoever waits for a message may have missed it: before the connection was there, or by its
    /// end.
    fn miss(&self) {
        if let Some(ear) = &self.ear {
            ear.lobby.wake_all();
        }
    }

    fn is_down(&self, why: LocksError, earlier_failures: u64) {
        // Said once for each time that Redis is away, not once for each attempt.
        if earlier_failures == 0 {
            tracing::warn!(%why, "cannot connect to Redis; trying on");
        }
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    async fn open(&self) -> Result<Line, LocksError> {
        let dead = CancellationToken::new();
        let (ended, ear) = (dead.clone(), self.ear.clone());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(OPENING_MAX))
            // Who asks brings a deadline of their own.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(move |push: PushInfo| {
                match (&push.kind, &ear) {
                    (PushKind::Disconnection, _) => ended.cancel(),
                    (PushKind::Message, Some(ear)) => ear.hear(&push.data),
                    _ => {}
                }
                Ok::<(), SendError>(())
            });
        let client = self.addresses.next().await.map_err(|error| explain(&error))?;
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = opening.await.map_err(|error| explain(&error))?;
        let greeted = async {
            let answers: Vec<_> = self.greeting.query_async(&mut connection).await?;
            // A replica that is about to be the primary is not met before it is.
            self.addresses.approve(&mut connection).await?;
            if let Some(acquaintance) = &self.acquaintance {
                acquaintance.meet(&answers, &mut connection).await?;
            }
            match &self.ear {
                Some(ear) => connection.subscribe(&ear.channel).await,
                None => Ok(()),
            }
        };
        let silence = || LocksError::Unavailable("Redis does not answer".to_owned());
        timeout_at(Instant::now() + GREETING_MAX, greeted)
            .await
            .map_err(|_elapsed| silence())?
            .map_err(|error| explain(&error))?;
        Ok(Line { connection, dead, silent_since: Arc::default() })
    }
}

impl Ear {
    /// A message: the value that a lock was handed to and what it has to know, or nothing, to show
    /// that messages arrive.
    fn hear(&self, data: &[Value]) {
        let [_channel, Value::BulkString(message)] = data else { return };
        match reply::turn(message) {
            Some((value, turn)) => self.lobby.wake(value, turn),
            None if message.is_empty() => self.lobby.echo(),
            None => {}
        }
    }
}

/// Between half of `pause` and all of it, so that servers do not come back in step.
pub(in crate::locks) fn jittered(pause: Duration) -> Duration {
    // Without randomness they do come back in step, which Redis survives.
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_between_half_and_all_of_what_it_may_be_and_not_always_the_same() {
        let pause = Duration::from_secs(1);
        let mut drawn: Vec<_> = (0..100).map(|_| jittered(pause)).collect();
        drawn.sort_unstable();
        assert!(pause / 2 <= drawn[0] && drawn[99] <= pause, "{drawn:?}");
        assert_ne!(drawn[0], drawn[99]);
    }
}
