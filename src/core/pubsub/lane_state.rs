//! The state of a lane, which its connections and its publishers share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::{ErrorKind, PushInfo, PushKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::ids::NodeId;
use crate::locks::redis_client::jittered;
use crate::pubsub::message::{Envelope, Payload, Topic, VERSION};
use crate::pubsub::seal::{Opened, Seal};
use crate::pubsub::subscriptions::{Signal, Table};

/// The bound of the same queue, in bytes.
const OUTBOX_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Topics with an unreported loss. Beyond that Redis itself is unreachable for long; the others wait for
/// the tick.
const LOST_MAX: usize = 16_384;
/// The latest start of a clock: a hundred years.
const CLOCK_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct PublishedFrame {
    pub(crate) topic: Topic,
    pub(crate) frame: Vec<u8>,
}

/// The clock of [`Envelope::sent_us`]. It starts at a random value: two servers with one id have two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendingClock {
    zero: u64,
    began: Instant,
}

impl SendingClock {
    pub(crate) fn start() -> Self {
        let zero = jittered(CLOCK_MAX).as_micros().try_into().unwrap_or(0);
        Self { zero, began: Instant::now() }
    }

    fn now_us(self) -> u64 {
        self.zero + u64::try_from(self.began.elapsed().as_micros()).unwrap_or_default()
    }
}

/// How the topics of a connection travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// To all nodes of a Cluster.
    Plain,
    /// To the node that owns the slot of the channel.
    Sharded,
}

impl Method {
    pub(crate) fn subscription(self, is_wanted: bool) -> &'static str {
        match (self, is_wanted) {
            (Self::Plain, true) => "SUBSCRIBE",
            (Self::Plain, false) => "UNSUBSCRIBE",
            (Self::Sharded, true) => "SSUBSCRIBE",
            (Self::Sharded, false) => "SUNSUBSCRIBE",
        }
    }

    pub(crate) fn publish(self) -> &'static str {
        if self == Self::Plain { "PUBLISH" } else { "SPUBLISH" }
    }
}

/// The slots that the connections of a Cluster did not find at their node.
#[derive(Debug, Default)]
pub(crate) struct Misrouted {
    /// Topics with a message that no node took. Their subscribers get a gap from the node of the new map.
    topics: Mutex<HashSet<Topic>>,
    /// Why Redis takes no sharded pub/sub.
    refusal: OnceLock<String>,
    /// Asks for the slot map.
    pub(crate) found: Notify,
}

impl Misrouted {
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    pub(crate) fn take(&self) -> HashSet<Topic> {
        std::mem::take(&mut self.topics.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut misrouted = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let room = LOST_MAX.saturating_sub(misrouted.len());
        misrouted.extend(topics.into_iter().take(room));
        if !misrouted.is_empty() {
            self.found.notify_one();
        }
    }
}

#[derive(Debug)]
pub(crate) struct LaneState {
    node: NodeId,
    seal: Seal,
    pub(crate) table: Arc<Table>,
    pub(crate) method: Method,
    pub(crate) misrouted: Arc<Misrouted>,
    clock: SendingClock,
    is_up: AtomicBool,
    outbox_bytes: AtomicUsize,
    has_twin: AtomicBool,
    /// Topics whose subscribers may have missed a message. The task publishes the loss once it can.
    lost: Mutex<HashSet<Topic>>,
    /// Wakes the task when `lost` is not empty: the connection may be idle then.
    pub(crate) loss_pending: Notify,
}

impl LaneState {
    pub(crate) fn new(
        (node, clock): (NodeId, SendingClock),
        seal: Seal,
        table: Arc<Table>,
        method: Method,
        misrouted: Arc<Misrouted>,
    ) -> Self {
        Self {
            node,
            seal,
            table,
            method,
            misrouted,
            clock,
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

    pub(crate) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
    }

    pub(crate) fn envelope(&self, topic: Topic, payload: Payload) -> Vec<u8> {
        let envelope = Envelope { from: self.node, sent_us: self.clock.now_us(), payload };
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

    pub(crate) fn take_lost(&self) -> HashSet<Topic> {
        std::mem::take(&mut self.lost())
    }

    /// `Ok` if the slot map was stale: asks for a new one. `Err` ends the connection; on a lane of one node any
    /// other refusal, such as a missing right, ends sharded pub/sub for this server.
    pub(crate) fn judge(&self, error: RedisError) -> RedisResult<()> {
        if self.method == Method::Plain {
            return Err(error);
        }
        let is_misrouted = is_misrouted(&error);
        if !is_misrouted && !matches!(error.kind(), ErrorKind::Server(_)) {
            return Err(error);
        }
        if !is_misrouted {
            let _earlier = self.misrouted.refusal.set(error.to_string());
        }
        self.misrouted.found.notify_one();
        if is_misrouted { Ok(()) } else { Err(error) }
    }

    /// Redis replied to a message. A topic without a node here moves with the next slot map.
    pub(crate) fn published(&self, topic: Topic, reply: RedisResult<Value>) -> RedisResult<()> {
        let Err(error) = reply else { return Ok(()) };
        self.judge(error)?;
        self.misrouted.add([topic]);
        Ok(())
    }

    fn lost(&self) -> MutexGuard<'_, HashSet<Topic>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hear(&self, push: PushInfo) {
        if matches!(push.kind, PushKind::Message | PushKind::SMessage) {
            return self.receive(push.data);
        }
        let Some(Value::BulkString(channel)) = push.data.first() else { return };
        let Some(topic) = Topic::of_channel(channel) else { return };
        match push.kind {
            PushKind::Subscribe | PushKind::SSubscribe => self.table.confirm(topic),
            // Mostly unasked, if there are subscribers: the slot has moved.
            PushKind::SUnsubscribe if self.table.withdraw(topic) => {
                self.misrouted.found.notify_one();
            }
            _ => {}
        }
    }

    fn receive(&self, push: Vec<Value>) {
        let Ok([Value::BulkString(channel), Value::BulkString(frame)]) =
            <[Value; 2]>::try_from(push)
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
                if !(self.clock.zero..=self.clock.now_us()).contains(&envelope.sent_us) {
                    return self.report_twin(topic);
                }
                // This server's own message: measures the round trip with one clock.
                let way = self.clock.now_us().saturating_sub(envelope.sent_us);
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

    /// A message under this server's id, and of another clock: another server has the same id, such as the
    /// copy of a virtual machine. Such servers take each other's messages for losses.
    fn report_twin(&self, topic: Topic) {
        if !self.has_twin.swap(true, Ordering::Relaxed) {
            tracing::error!(node = %self.node, "another server has the id of this one: restart one of them");
        }
        self.table.deliver(topic, &Signal::Gap);
    }
}

/// Whether another node, or none at present, serves the slot.
pub(crate) fn is_misrouted(error: &RedisError) -> bool {
    use ServerErrorKind as Is;
    let ErrorKind::Server(kind) = error.kind() else { return false };
    matches!(
        kind,
        Is::Moved
            | Is::Ask
            | Is::TryAgain
            | Is::ClusterDown
            | Is::MasterDown
            | Is::ReadOnly
            | Is::BusyLoading
    )
}
