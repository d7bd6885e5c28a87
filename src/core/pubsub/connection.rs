//! The pub/sub connections to a Redis node.
//!
//! RESP3 lets one connection subscribe and publish. A task reopens it. The reader hands inbound
//! messages to the subscribers directly, without a queue; outbound messages pass a bounded queue,
//! so that no publisher waits for Redis.
//!
//! Sharded pub/sub takes two connections: Redis ends a subscription unasked when its slot moves, and the
//! crate takes that message for the reply to the oldest call of the connection. Calls that publish are
//! therefore elsewhere, and a subscription is in force when its own message says so.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, ErrorKind, PushInfo, PushKind, RedisError, RedisResult, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::locks::redis_client::slots::{Range, is_well, ranges};
use crate::locks::redis_client::{Addresses, jittered};
use crate::pubsub::lane_state::{LaneState, Method, PublishedFrame, is_misrouted};
use crate::pubsub::message::{Payload, Topic};

/// Outbound messages in the queue. A healthy Redis leaves far fewer.
pub(crate) const OUTBOX_MAX: usize = 4_096;
const BATCH_MAX: usize = 128;
const CHANNELS_PER_CALL: usize = 500;
/// The task closes the connection after this long without a reply.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Interval of the check that a node still belongs to its Cluster.
const CLUSTER_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The shortest pause between two queries of the slot map. It doubles while the map stays the same.
const SLOTS_PAUSE: Duration = Duration::from_millis(50);
const OPENING_MAX: Duration = Duration::from_secs(1);
/// Back-off between attempts: doubles from the first to the second, with jitter.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

/// A task for one connection, or one of the two of sharded pub/sub.
pub(crate) struct ConnectionTask {
    pub(crate) addresses: Addresses,
    pub(crate) state: Arc<LaneState>,
    /// Whether the connection carries the subscriptions.
    pub(crate) is_subscribed: bool,
    /// `None` if the other connection publishes.
    pub(crate) outbox: Option<mpsc::Receiver<PublishedFrame>>,
    /// Takes each slot map that the connection reads; on a Cluster, of its plain connection.
    pub(crate) adopt: Option<Adopt>,
}

impl ConnectionTask {
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        // The stop drops it at any await: pub/sub has no pending work.
        stop.run_until_cancelled(self.supervise()).await;
        // A node that owns no slot is left: the subscribers get a gap elsewhere.
        if let Some(outbox) = &mut self.outbox
            && self.state.method == Method::Sharded
        {
            let queued = std::iter::from_fn(|| outbox.try_recv().ok()).map(|frame| frame.topic);
            self.state.misrouted.add(queued.chain(self.state.take_lost()));
        }
    }

    async fn supervise(&mut self) {
        let (mut pause, mut failures) = (PAUSES.0, 0_u64);
        loop {
            let lasted = match self.open().await {
                Ok((connection, dead)) => {
                    let redis = self.addresses.last().map(|address| address.to_string());
                    tracing::info!(failures, redis, "pub/sub is connected to Redis");
                    failures = 0;
                    let connected = Instant::now();
                    self.serve(connection, dead).await;
                    connected.elapsed()
                }
                Err(error) => {
                    complain(&error, failures);
                    failures += 1;
                    Duration::ZERO
                }
            };
            // Redis may accept each connection and end it at once: its ACL permits no channel, or it has
            // too many clients. Such a connection is an attempt that failed.
            if PAUSES.1 <= lasted {
                pause = PAUSES.0;
            }
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn open(&self) -> RedisResult<(MultiplexedConnection, CancellationToken)> {
        let dead = CancellationToken::new();
        let (state, ended) = (Arc::clone(&self.state), dead.clone());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(OPENING_MAX))
            .set_response_timeout(Some(SILENCE_MAX))
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    ended.cancel();
                } else if !ended.is_cancelled() {
                    state.hear(push);
                }
                Ok::<(), SendError>(())
            });
        let client = self.addresses.next().await?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        self.addresses.approve(&mut connection).await?;
        if self.state.method == Method::Sharded {
            self.exercise_rights(&mut connection).await?;
        }
        if let Some(adopt) = &self.adopt {
            // Rooms and their losses leave for their lanes before this connection publishes anything.
            read_map(&self.addresses, adopt, &mut connection).await?;
        }
        Ok((connection, dead))
    }

    /// Servers with the same rights find together that one is missing, whatever each of them needs first.
    async fn exercise_rights(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let method = self.state.method;
        let mut request = redis::pipe();
        if self.is_subscribed {
            for command in [true, false].map(|is_wanted| method.subscription(is_wanted)) {
                request.cmd(command).arg(Topic::Cluster.channel());
            }
        } else {
            request.cmd(method.publish()).arg(Topic::Cluster.channel()).arg("");
        }
        let replies: Vec<RedisResult<Value>> =
            request.ignore_errors().query_async(connection).await?;
        // Redis checks the right before the slot, which mostly belongs to another node.
        let mut refused =
            replies.into_iter().filter_map(Result::err).filter(|it| !is_misrouted(it));
        refused.try_for_each(|error| self.state.judge(error))
    }

    async fn serve(&mut self, connection: MultiplexedConnection, dead: CancellationToken) {
        let Self { addresses, state, is_subscribed, outbox, adopt } = self;
        let publishes = outbox.is_some();
        if *is_subscribed {
            state.table.connect();
        }
        if publishes {
            state.set_up(true);
        }
        let error = tokio::select! {
            () = dead.cancelled() => None,
            error = listen(state, connection.clone()), if *is_subscribed => error.err(),
            () = addresses.moves() => None,
            error = watch_cluster(state, addresses, adopt.as_ref(), connection.clone()) => Some(error),
            error = speak(state, outbox.as_mut(), connection) => error.err(),
        };
        let error = error.map(|error| error.to_string());
        tracing::warn!(error, "the pub/sub connection to Redis is lost");
        if publishes {
            state.set_up(false);
        }
        if *is_subscribed {
            // A confirmation that is under way confirms nothing any more.
            dead.cancel();
            state.table.disconnect();
        }
    }
}

/// Adjusts the connection's subscriptions to the table. Returns only on an error.
async fn listen(state: &LaneState, mut connection: MultiplexedConnection) -> RedisResult<()> {
    loop {
        let changes: Vec<_> = state.table.changes().into_iter().collect();
        for changes in changes.chunks(CHANNELS_PER_CALL) {
            let mut request = redis::pipe();
            for (topic, is_wanted) in changes {
                // A command each: the channels of one command must have one slot.
                request.cmd(state.method.subscription(*is_wanted)).arg(topic.channel());
            }
            let replies: Vec<RedisResult<Value>> =
                request.ignore_errors().query_async(&mut connection).await?;
            for error in replies.into_iter().filter_map(Result::err) {
                state.judge(error)?;
            }
        }
        state.table.stirred.notified().await;
    }
}

/// Takes a slot map, and returns whether it is a new one.
pub(crate) type Adopt = Box<dyn Fn(Vec<Range>) -> bool + Send + Sync>;

/// Reads the slot map for `adopt`. Returns whether it is new; `None` if the node is not well, since one that is
/// partitioned or has just started has an old map.
async fn read_map(
    addresses: &Addresses,
    adopt: &Adopt,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Option<bool>> {
    let mut request = redis::pipe();
    request.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
    let (slots, info): (Value, Value) = request.query_async(connection).await?;
    let ranges = addresses.last().and_then(|source| ranges(&slots, &source));
    Ok(is_well(&info).then(|| ranges.is_some_and(adopt)))
}

/// Reads the slot map for `adopt`; without one it never returns. Returns when the node is partitioned from
/// its Cluster, because no other node then gets its messages, or when it does not reply.
async fn watch_cluster(
    state: &LaneState,
    addresses: &Addresses,
    adopt: Option<&Adopt>,
    mut connection: MultiplexedConnection,
) -> RedisError {
    let Some(adopt) = adopt else { return std::future::pending().await };
    let opened = Instant::now();
    let mut pause = SLOTS_PAUSE;
    loop {
        tokio::select! {
            () = sleep(CLUSTER_POLL_INTERVAL) => pause = SLOTS_PAUSE,
            () = state.misrouted.found.notified() => {
                sleep(jittered(pause)).await;
                pause = (pause * 2).min(CLUSTER_POLL_INTERVAL);
            }
        }
        match read_map(addresses, adopt, &mut connection).await {
            Err(error) => return error,
            Ok(Some(true)) => pause = SLOTS_PAUSE,
            // A Cluster with missing slots still forwards messages: the task tries each node for an interval.
            // A lane to a partitioned primary takes messages that reach no other server.
            Ok(None) if CLUSTER_POLL_INTERVAL <= opened.elapsed() => {
                adopt(Vec::new());
                return (ErrorKind::Io, "the node left its Cluster").into();
            }
            Ok(_) => {}
        }
    }
}

/// Publishes queued messages and losses. Returns only on an error.
async fn speak(
    state: &LaneState,
    outbox: Option<&mut mpsc::Receiver<PublishedFrame>>,
    mut connection: MultiplexedConnection,
) -> RedisResult<()> {
    let Some(outbox) = outbox else { return std::future::pending().await };
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        let mut request = redis::pipe();
        let mut topics = Vec::new();
        let mut publish = |topic: Topic, frame: &[u8]| {
            request.cmd(state.method.publish()).arg(topic.channel()).arg(frame);
            topics.push(topic);
        };
        for topic in state.take_lost() {
            publish(topic, &state.envelope(topic, Payload::Lost));
        }
        for PublishedFrame { topic, frame } in batch.drain(..) {
            state.release(&frame);
            publish(topic, &frame);
        }
        if !request.is_empty() {
            let in_flight = InFlight { state, topics: topics.iter().copied().collect() };
            let replies: Vec<RedisResult<Value>> =
                request.ignore_errors().query_async(&mut connection).await?;
            for (topic, reply) in topics.into_iter().zip(replies) {
                state.published(topic, reply)?;
            }
            in_flight.confirm();
        }
        tokio::select! {
            received = outbox.recv_many(&mut batch, BATCH_MAX) => if received == 0 {
                // The lane is closed: its stop follows.
                return std::future::pending().await;
            },
            () = state.loss_pending.notified() => {}
        }
    }
}

/// Topics with messages in flight. When it is dropped, as at the end of a connection, they count as
/// lost.
struct InFlight<'a> {
    state: &'a LaneState,
    topics: HashSet<Topic>,
}

impl InFlight<'_> {
    fn confirm(mut self) {
        self.topics.clear();
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.state.lose(self.topics.drain());
    }
}

/// One log line for each outage, not one for each attempt.
fn complain(error: &RedisError, earlier_failures: u64) {
    if earlier_failures == 0 {
        tracing::warn!(%error, "pub/sub cannot connect to Redis; retrying");
    }
}
