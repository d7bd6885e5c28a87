//! The pub/sub connection to Redis.
//!
//! RESP3 lets one connection subscribe and publish. A task reopens it. The reader hands inbound
//! messages to the subscribers directly, without a queue; outbound messages pass a bounded queue,
//! so that no publisher waits for Redis.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, RedisResult, Value};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::domain::ids::NodeId;
use crate::locks::redis_client::{Kind, RedisTarget, jittered};
use crate::pubsub::message::{Envelope, Payload, Topic, VERSION};
use crate::pubsub::seal::{Opened, Seal};
use crate::pubsub::subscriptions::{Signal, Table};

/// Outbound messages in the queue. A healthy Redis leaves far fewer.
pub(crate) const OUTBOX_MAX: usize = 4_096;
/// The bound of the same queue, in bytes.
const OUTBOX_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Topics with an unreported loss. Beyond that Redis itself is unreachable for long, and each
/// reconnect is a gap for all subscribers.
const LOST_MAX: usize = 16_384;
const BATCH_MAX: usize = 128;
const CHANNELS_PER_CALL: usize = 500;
/// The task closes the connection after this long without a reply.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Interval of the check that a node still belongs to its Cluster.
const CLUSTER_POLL_INTERVAL: Duration = Duration::from_secs(2);
const OPENING_MAX: Duration = Duration::from_secs(1);
/// The latest start of a clock: a hundred years.
const CLOCK_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
/// Back-off between attempts: doubles from the first to the second, with jitter.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

#[derive(Debug)]
pub(crate) struct PublishedFrame {
    pub(crate) topic: Topic,
    pub(crate) frame: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    node: NodeId,
    seal: Seal,
    table: Arc<Table>,
    /// The clock of [`Envelope::sent_us`] had this value then. It is random: two servers with one id have two
    /// clocks.
    began: (u64, Instant),
    is_up: AtomicBool,
    outbox_bytes: AtomicUsize,
    has_twin: AtomicBool,
    /// Topics whose subscribers may have missed a message. The task publishes the loss once it can.
    lost: Mutex<HashSet<Topic>>,
    /// Wakes the task when `lost` is not empty: the connection may be idle then.
    loss_pending: Notify,
}

impl Shared {
    pub(crate) fn new(node: NodeId, seal: Seal, table: Arc<Table>) -> Self {
        Self {
            node,
            seal,
            table,
            began: (jittered(CLOCK_MAX).as_micros().try_into().unwrap_or(0), Instant::now()),
            is_up: AtomicBool::new(false),
            outbox_bytes: AtomicUsize::new(0),
            has_twin: AtomicBool::new(false),
            lost: Mutex::default(),
            loss_pending: Notify::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    pub(crate) fn envelope(&self, topic: Topic, payload: Payload) -> Vec<u8> {
        let envelope = Envelope { from: self.node, sent_us: self.now_us(), payload };
        let mut frame = envelope.encode();
        self.seal.close(&topic.channel(), &mut frame);
        frame
    }

    /// Reserves room for a frame in the outbound queue. False if the queue is full.
    pub(crate) fn reserve(&self, frame: &[u8]) -> bool {
        let taken = self.outbox_bytes.fetch_add(frame.len(), Ordering::Relaxed);
        let fits = taken + frame.len() <= OUTBOX_BYTES_MAX;
        if !fits {
            self.release(frame);
        }
        fits
    }

    pub(crate) fn release(&self, frame: &[u8]) {
        self.outbox_bytes.fetch_sub(frame.len(), Ordering::Relaxed);
    }

    pub(crate) fn lose(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut lost = self.lost();
        for topic in topics.into_iter().take(LOST_MAX.saturating_sub(lost.len())) {
            lost.insert(topic);
        }
        drop(lost);
        self.loss_pending.notify_one();
    }

    fn lost(&self) -> std::sync::MutexGuard<'_, HashSet<Topic>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        let (zero, began) = self.began;
        zero + u64::try_from(began.elapsed().as_micros()).unwrap_or_default()
    }

    fn receive(&self, push: PushInfo) {
        let Ok([Value::BulkString(channel), Value::BulkString(frame)]) =
            <[Value; 2]>::try_from(push.data)
        else {
            return;
        };
        let Some(topic) = Topic::of_channel(&channel) else { return };
        let sealed = Bytes::from(frame);
        let opened = match self.seal.open(&channel, &sealed) {
            Opened::Frame(frame) => Envelope::decode(&frame),
            Opened::Foreign if sealed.first() == Some(&VERSION) => {
                // A frame of another installation on the same Redis: no message of this one was
                // lost.
                metrics::counter!("galley_relay_foreign_total").increment(1);
                return;
            }
            Opened::Foreign | Opened::Broken => None,
        };
        match opened {
            Some(envelope) if envelope.from == self.node => {
                if !(self.began.0..=self.now_us()).contains(&envelope.sent_us) {
                    return self.report_twin(topic);
                }
                // This server's own message: measures the round trip with one clock.
                let way = self.now_us().saturating_sub(envelope.sent_us);
                metrics::histogram!("galley_relay_seconds", "path" => "redis")
                    .record(Duration::from_micros(way));
            }
            Some(Envelope { from, payload: Payload::Message(message), .. }) => {
                self.table.deliver(topic, &Signal::Message { from, message });
            }
            Some(Envelope { payload: Payload::Lost, .. }) | None => {
                self.table.deliver(topic, &Signal::Gap);
            }
        }
    }
}

impl Shared {
    /// A message under this server's id, and of another clock: another server has the same id, such as the
    /// copy of a virtual machine. Such servers take each other's messages for losses.
    fn report_twin(&self, topic: Topic) {
        if !self.has_twin.swap(true, Ordering::Relaxed) {
            tracing::error!(node = %self.node, "another server has the id of this one: restart one of them");
        }
        self.table.deliver(topic, &Signal::Gap);
    }
}

pub(crate) struct ConnectionTask {
    pub(crate) target: RedisTarget,
    pub(crate) shared: Arc<Shared>,
    pub(crate) outbox: mpsc::Receiver<PublishedFrame>,
}

impl ConnectionTask {
    pub(crate) async fn run(self, stop: CancellationToken) {
        // The stop drops it at any await: pub/sub has no pending work.
        stop.run_until_cancelled(self.supervise()).await;
    }

    async fn supervise(mut self) {
        let (mut pause, mut failures) = (PAUSES.0, 0_u64);
        loop {
            let lasted = match self.open().await {
                Ok((connection, dead)) => {
                    tracing::info!(failures, "pub/sub is connected to Redis");
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
        let (shared, ended) = (Arc::clone(&self.shared), dead.clone());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(OPENING_MAX))
            .set_response_timeout(Some(SILENCE_MAX))
            .set_push_sender(move |push: PushInfo| {
                match push.kind {
                    PushKind::Message => shared.receive(push),
                    PushKind::Disconnection => ended.cancel(),
                    // Confirmations also arrive as replies.
                    _ => {}
                }
                Ok::<(), SendError>(())
            });
        let client = self.target.addresses.next().await?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        self.target.addresses.approve(&mut connection).await?;
        Ok((connection, dead))
    }

    async fn serve(&mut self, connection: MultiplexedConnection, dead: CancellationToken) {
        let is_cluster = matches!(self.target.kind, Kind::Cluster(_));
        self.shared.table.connect();
        self.shared.is_up.store(true, Ordering::Relaxed);
        let error = tokio::select! {
            () = dead.cancelled() => None,
            error = listen(&self.shared.table, connection.clone()) => error.err(),
            () = self.target.addresses.moves() => None,
            error = stay_while_well(connection.clone()), if is_cluster => Some(error),
            error = speak(&self.shared, &mut self.outbox, connection) => error.err(),
        };
        let error = error.map(|error| error.to_string());
        tracing::warn!(error, "the pub/sub connection to Redis is lost");
        self.shared.is_up.store(false, Ordering::Relaxed);
        self.shared.table.disconnect();
    }
}

/// Adjusts the connection's subscriptions to the table. Returns only on an error.
async fn listen(table: &Table, mut connection: MultiplexedConnection) -> RedisResult<()> {
    let mut in_force = HashSet::new();
    loop {
        let (wanted, left): (Vec<_>, Vec<_>) =
            table.changes().into_iter().partition(|(_topic, is_wanted)| *is_wanted);
        let left = left.into_iter().map(|(topic, _)| topic).filter(|topic| in_force.remove(topic));
        let left: Vec<_> = left.map(Topic::channel).collect();
        for channels in left.chunks(CHANNELS_PER_CALL) {
            connection.unsubscribe(channels).await?;
        }
        let wanted: Vec<_> = wanted.into_iter().map(|(topic, _)| topic).collect();
        for topics in wanted.chunks(CHANNELS_PER_CALL) {
            let new = topics.iter().filter(|topic| in_force.insert(**topic));
            let channels: Vec<_> = new.map(|topic| topic.channel()).collect();
            if !channels.is_empty() {
                connection.subscribe(&channels).await?;
            }
            table.confirm(topics);
        }
        table.stirred.notified().await;
    }
}

/// Returns when the node is partitioned from its Cluster, because no other node then gets its
/// messages, or when it does not reply.
async fn stay_while_well(mut connection: MultiplexedConnection) -> RedisError {
    loop {
        sleep(CLUSTER_POLL_INTERVAL).await;
        let state: RedisResult<String> =
            redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await;
        match state {
            Ok(state) if state.contains("cluster_state:ok") => {}
            Ok(_) => return (redis::ErrorKind::Io, "the node left its Cluster").into(),
            Err(error) => return error,
        }
    }
}

/// Publishes queued messages and losses. Returns on an error, or when all senders are dropped.
async fn speak(
    shared: &Shared,
    outbox: &mut mpsc::Receiver<PublishedFrame>,
    mut connection: MultiplexedConnection,
) -> RedisResult<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        let missed: Vec<_> = shared.lost().drain().collect();
        let mut request = redis::pipe();
        for topic in &missed {
            let lost = shared.envelope(*topic, Payload::Lost);
            request.cmd("PUBLISH").arg(topic.channel()).arg(lost).ignore();
        }
        for outgoing in &batch {
            let PublishedFrame { topic, frame } = outgoing;
            shared.release(frame);
            request.cmd("PUBLISH").arg(topic.channel()).arg(frame).ignore();
        }
        if !request.is_empty() {
            let topics = batch.iter().map(|outgoing| outgoing.topic).chain(missed).collect();
            let in_flight = InFlight { shared, topics };
            request.exec_async(&mut connection).await?;
            in_flight.confirm();
        }
        batch.clear();
        tokio::select! {
            received = outbox.recv_many(&mut batch, BATCH_MAX) => if received == 0 {
                return Ok(());
            },
            () = shared.loss_pending.notified() => {}
        }
    }
}

/// Topics with messages in flight. When it is dropped, as at the end of a connection, they count as
/// lost.
struct InFlight<'a> {
    shared: &'a Shared,
    topics: HashSet<Topic>,
}

impl InFlight<'_> {
    fn confirm(mut self) {
        self.topics.clear();
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.shared.lose(self.topics.drain());
    }
}

/// One log line for each outage, not one for each attempt.
fn complain(error: &RedisError, earlier_failures: u64) {
    if earlier_failures == 0 {
        tracing::warn!(%error, "pub/sub cannot connect to Redis; retrying");
    }
}
