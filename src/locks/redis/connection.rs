//! One connection to Redis with a supervisor that reopens it.
//!
//! The supervisor opens the connection, receives RESP3's disconnect push, and opens the next one.
//! Three features are missing in the `redis` crate's own manager: a callback on reconnect, giving
//! up a peer that does not reply, and a greeting on each connection. The supervisor retries no
//! command; the caller decides about that.

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

use crate::redis::error::explain;
use crate::redis::reply;
use crate::redis::server_identity::ServerIdentity;
use crate::redis_client::{Addresses, jittered};
use crate::types::{CallError, LocksError};
use crate::wait_queue::WaiterRegistry;

/// Time-out of one exchange, with the wait for a connection. Well below the part of a lease that is
/// left after two failed renewals, and far above the time that a healthy Redis needs.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The supervisor closes the connection after this time without a reply. A path that drops packets
/// looks like a slow Redis until the kernel closes the socket, minutes later.
const SILENCE_MAX: Duration = Duration::from_secs(3);
const OPENING_MAX: Duration = Duration::from_secs(1);
/// Time-out of the greeting that follows: three exchanges.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// Back-off between attempts: doubles from the first to the second, with jitter.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));
/// Requests queued before the socket; a further caller waits for room.
const QUEUE: usize = 1_024;

#[derive(Clone, Debug)]
pub(crate) struct Link {
    state: watch::Receiver<State>,
}

#[derive(Clone, Debug)]
enum State {
    Up(OpenConnection),
    /// Why it is down. `is_lost` is set once a connection broke or an attempt failed.
    Down {
        why: LocksError,
        is_lost: bool,
    },
}

#[derive(Clone, Debug)]
struct OpenConnection {
    connection: MultiplexedConnection,
    /// Cancelled when the connection is unusable.
    dead: CancellationToken,
    /// When the first exchange was sent that timed out since the last reply.
    silent_since: Arc<Mutex<Option<Instant>>>,
}

/// The replies in order, and when the pipeline was sent.
pub(crate) struct Reply {
    pub(crate) sent_at: Instant,
    pub(crate) replies: Vec<RedisResult<Value>>,
}

pub(crate) struct Supervisor {
    addresses: Arc<Addresses>,
    /// Sent first on each new connection.
    greeting: Pipeline,
    /// Notified of each reconnect.
    pub(crate) reconnected: Option<Arc<Notify>>,
    /// Whether the first connection counts as a reconnect.
    pub(crate) is_successor: bool,
    /// Notified of each connection.
    pub(crate) opened: Option<Arc<Notify>>,
    pub(crate) subscription: Option<Subscription>,
    /// Receives the replies to the greeting.
    pub(crate) identity: Option<Arc<ServerIdentity>>,
    state: watch::Sender<State>,
}

/// A channel that the connection subscribes to at each opening, and the waiters that its messages
/// wake.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) channel: String,
    pub(crate) waiter_registry: Arc<WaiterRegistry>,
}

impl Link {
    pub(crate) fn new(addresses: Arc<Addresses>, greeting: Pipeline) -> (Self, Supervisor) {
        let why = LocksError::Unavailable("not connected to Redis yet".to_owned());
        let (sender, state) = watch::channel(State::Down { why, is_lost: false });
        let supervisor = Supervisor {
            addresses,
            greeting,
            reconnected: None,
            is_successor: false,
            opened: None,
            subscription: None,
            identity: None,
            state: sender,
        };
        (Self { state }, supervisor)
    }

    pub(crate) async fn query(
        &self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let line = self.line(deadline).await.map_err(CallError::Unsent)?;
        line.query(pipeline, deadline).await
    }

    /// Like [`Self::query`], for a pipeline that depends on the server identity. The closure builds
    /// it once a connection is open, and the call uses no newer connection.
    pub(crate) async fn query_when_connected(
        &self,
        pipeline: impl FnOnce() -> Pipeline,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let line = self.line(deadline).await.map_err(CallError::Unsent)?;
        line.query(&pipeline(), deadline).await
    }

    pub(crate) async fn query_one(
        &self,
        command: impl FnOnce() -> Cmd,
        deadline: Instant,
    ) -> Result<(Instant, RedisResult<Value>), CallError> {
        let mut line = self.line(deadline).await.map_err(CallError::Unsent)?;
        let (command, sent_at) = (command(), in_time(deadline)?);
        let exchange = timeout_at(deadline, line.connection.send_packed_command(&command)).await;
        let answered = exchange.map(|answer| match answer {
            // An error reply is a reply: the connection works.
            Err(error) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
                Ok(Err(error))
            }
            Ok(Value::ServerError(error)) => Ok(Err(error.into())),
            Ok(value) => Ok(Ok(value)),
            Err(error) => Err(error),
        });
        line.answered(answered, sent_at)
    }

    /// Closes the current connection: its peer is no longer the wanted node.
    pub(crate) fn reopen(&self) {
        if let State::Up(line) = &*self.state.borrow() {
            line.dead.cancel();
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state.borrow().is_up()
    }

    /// Why the connection is down, once it broke or an attempt failed.
    pub(crate) fn lost(&self) -> Option<LocksError> {
        match &*self.state.borrow() {
            State::Down { why, is_lost: true } => Some(why.clone()),
            State::Down { is_lost: false, .. } | State::Up(_) => None,
        }
    }

    pub(crate) fn is_silent(&self) -> bool {
        match &*self.state.borrow() {
            State::Up(line) => line.is_waited_for(),
            State::Down { .. } => false,
        }
    }

    /// Resolves when the connection is open. False if the supervisor has ended.
    pub(crate) async fn opens(&self) -> bool {
        self.state.clone().wait_for(State::is_up).await.is_ok()
    }

    async fn line(&self, deadline: Instant) -> Result<OpenConnection, LocksError> {
        if let State::Up(line) = &*self.state.borrow()
            && !line.dead.is_cancelled()
        {
            return Ok(line.clone());
        }
        let mut state = self.state.clone();
        // After a time-out or the end of the supervisor, the state has the reason.
        let _waited = timeout_at(deadline, state.wait_for(State::is_up)).await.is_ok();
        match &*self.state.borrow() {
            State::Up(line) => Ok(line.clone()),
            State::Down { why, .. } => Err(why.clone()),
        }
    }
}

/// The current time, if it is before the deadline. Past it the link sends nothing, because no
/// caller waits for the reply: `timeout_at` alone polls the request once and sends it.
fn in_time(deadline: Instant) -> Result<Instant, CallError> {
    let now = Instant::now();
    let late = || LocksError::Unavailable("Redis does not answer".to_owned());
    if now < deadline { Ok(now) } else { Err(CallError::Unsent(late())) }
}

impl State {
    fn is_up(&self) -> bool {
        matches!(self, Self::Up(line) if !line.dead.is_cancelled())
    }
}

impl OpenConnection {
    async fn query(mut self, pipeline: &Pipeline, deadline: Instant) -> Result<Reply, CallError> {
        let sent_at = in_time(deadline)?;
        let exchange = timeout_at(deadline, pipeline.query_async(&mut self.connection)).await;
        let (sent_at, replies) = self.answered(exchange, sent_at)?;
        Ok(Reply { sent_at, replies })
    }

    fn answered<T>(
        &self,
        exchange: Result<RedisResult<T>, Elapsed>,
        sent_at: Instant,
    ) -> Result<(Instant, T), CallError> {
        match exchange {
            Ok(Ok(answer)) => {
                self.record_reply();
                Ok((sent_at, answer))
            }
            Ok(Err(error)) => {
                self.dead.cancel();
                Err(CallError::Unknown(explain(&error)))
            }
            Err(_elapsed) => {
                self.record_timeout(sent_at);
                Err(CallError::Unknown(LocksError::Unavailable("Redis does not answer".to_owned())))
            }
        }
    }

    fn is_waited_for(&self) -> bool {
        self.silent_since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn record_reply(&self) {
        *self.silent_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn record_timeout(&self, sent_at: Instant) {
        let mut since = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.get_or_insert(sent_at).elapsed() >= SILENCE_MAX {
            self.dead.cancel();
        }
    }
}

impl Supervisor {
    pub(crate) async fn run(self, stop: CancellationToken) {
        // The stop drops it at any await: a connection has no pending work.
        stop.run_until_cancelled(self.supervise()).await;
        let why = LocksError::Unavailable("the locks are closed".to_owned());
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    async fn supervise(&self) {
        let (mut pause, mut failures, mut openings) = (PAUSES.0, 0_u64, 0_u64);
        loop {
            match self.open().await {
                Ok(line) => {
                    tracing::info!(openings, failures, "connected to Redis");
                    self.serve(line, openings + failures > 0).await;
                    openings += 1;
                    (pause, failures) = (PAUSES.0, 0);
                    // The pause limits reconnects to a Redis that accepts and then closes each
                    // connection.
                    sleep(jittered(pause)).await;
                }
                Err(why) => {
                    self.set_down(why, failures);
                    failures += 1;
                    sleep(jittered(pause)).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    async fn serve(&self, line: OpenConnection, was_down: bool) {
        let dead = line.dead.clone();
        self.state.send_replace(State::Up(line));
        if let Some(opened) = &self.opened {
            opened.notify_one();
        }
        if was_down || self.is_successor {
            self.reconnected.iter().for_each(|it| it.notify_one());
        }
        self.wake_waiters();
        dead.cancelled().await;
        self.wake_waiters();
        tracing::warn!("the connection to Redis is lost");
        let why = LocksError::Unavailable("the connection to Redis is lost".to_owned());
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    /// Wakes all waiters: a message may have been lost before the connection opened, or by its end.
    fn wake_waiters(&self) {
        if let Some(subscription) = &self.subscription {
            subscription.waiter_registry.wake_all();
        }
    }

    fn set_down(&self, why: LocksError, earlier_failures: u64) {
        // One log line for each outage, not one for each attempt.
        if earlier_failures == 0 {
            tracing::warn!(%why, "cannot connect to Redis; retrying");
        }
        self.state.send_replace(State::Down { why, is_lost: true });
    }

    async fn open(&self) -> Result<OpenConnection, LocksError> {
        let dead = CancellationToken::new();
        let (ended, subscription) = (dead.clone(), self.subscription.clone());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(OPENING_MAX))
            // Each caller sets its own deadline.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(move |push: PushInfo| {
                match (&push.kind, &subscription) {
                    (PushKind::Disconnection, _) => ended.cancel(),
                    (PushKind::Message, Some(subscription)) => {
                        subscription.handle_message(&push.data);
                    }
                    _ => {}
                }
                Ok::<(), SendError>(())
            });
        let client = self.addresses.next().await.map_err(|error| explain(&error))?;
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = opening.await.map_err(|error| explain(&error))?;
        let greeted = async {
            let answers: Vec<_> = self.greeting.query_async(&mut connection).await?;
            // The role check comes first: the server identity of a replica before its promotion is
            // not recorded.
            self.addresses.approve(&mut connection).await?;
            if let Some(identity) = &self.identity {
                identity.observe_run(&answers, &mut connection).await?;
            }
            match &self.subscription {
                Some(subscription) => connection.subscribe(&subscription.channel).await,
                None => Ok(()),
            }
        };
        let silence = || LocksError::Unavailable("Redis does not answer".to_owned());
        timeout_at(Instant::now() + GREETING_MAX, greeted)
            .await
            .map_err(|_elapsed| silence())?
            .map_err(|error| explain(&error))?;
        Ok(OpenConnection { connection, dead, silent_since: Arc::default() })
    }
}

impl Subscription {
    /// Handles one message: a hand-over with the waiter's value, or an empty message, the round
    /// trip of the health check.
    fn handle_message(&self, data: &[Value]) {
        let [_channel, Value::BulkString(message)] = data else { return };
        match reply::handover(message) {
            Some((value, handover)) => self.waiter_registry.wake(value, handover),
            None if message.is_empty() => self.waiter_registry.echo(),
            None => {}
        }
    }
}
