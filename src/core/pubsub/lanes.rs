//! The lanes of pub/sub: the topics, and the Redis node that carries each.
//!
//! The *common* lane carries all topics, or on a Cluster those of servers. There each primary has a lane of
//! its own for the rooms whose channel has a slot of that primary, by sharded pub/sub: a message of a room
//! stays on that primary and its replicas, while a plain message reaches every node of the Cluster.
//!
//! A subscription changes its lane with the slot map, and begins there with a gap (B1). Before the first map,
//! while the Cluster is not well, and where Redis refuses sharded pub/sub, the common lane carries the rooms too.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

use redis::Client;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::domain::ids::NodeId;
use crate::locks::redis_client::slots::{Range, slot_of};
use crate::locks::redis_client::{Address, Addresses};
use crate::pubsub::connection::{Adopt, ConnectionTask, OUTBOX_MAX};
use crate::pubsub::lane_state::{LaneState, Method, Misrouted, PublishedFrame, SendingClock};
use crate::pubsub::message::{Message, Payload, Topic};
use crate::pubsub::seal::Seal;
use crate::pubsub::subscriptions::{Mode, Signal, SignalQueue, Table};

/// A message was not sent. Its subscribers get a gap as soon as Redis is reachable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PubsubError {
    #[error("pub/sub is unreachable")]
    Unavailable,
    #[error("the pub/sub queue is full")]
    Full,
    #[error("pub/sub is not supported: {0}")]
    Unsupported(String),
}

/// One subscriber of a topic. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    topic: Topic,
    queue: Arc<SignalQueue>,
    lanes: Arc<Lanes>,
}

impl Subscription {
    /// Waits for the next signal. A dropped call takes no signal from the queue.
    pub async fn next(&mut self) -> Signal {
        self.queue.next().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.lanes.leave(self, None);
    }
}

const REFUSED: &str = "Redis refuses sharded pub/sub (see `galley doctor`): until all servers start anew with \
                       the rights, those with and without them hear each other's rooms at the tick";

/// The parts of this server that each lane uses.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) node: NodeId,
    pub(crate) clock: SendingClock,
    pub(crate) seal: Seal,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Lanes {
    /// `None` for a single server.
    service: Option<Service>,
    common: Arc<Lane>,
    /// Of a Cluster whose rooms use sharded pub/sub.
    shards: RwLock<Shards>,
    seeds: Vec<Client>,
    misrouted: Arc<Misrouted>,
}

#[derive(Debug, Default)]
struct Shards {
    ranges: Vec<Range>,
    lanes: Vec<Arc<Lane>>,
    /// The first slot of each range and the index of its lane, by the last slot.
    of_slots: BTreeMap<u16, (u16, usize)>,
}

#[derive(Debug)]
struct Lane {
    /// Of the node of a shard.
    address: Option<Address>,
    table: Arc<Table>,
    /// `None` for a single server.
    wire: Option<Wire>,
}

/// The outbound queue and its tasks, which end with it.
#[derive(Debug)]
struct Wire {
    state: Arc<LaneState>,
    outbox: mpsc::Sender<PublishedFrame>,
    _stop: DropGuard,
}

impl Lanes {
    pub(crate) fn alone() -> Arc<Self> {
        let common = Lane { address: None, table: Table::new(Mode::Alone), wire: None };
        Arc::new(Self::new(None, common, Vec::new(), Arc::default()))
    }

    /// The lanes to a Redis. The slots of a Cluster with `seeds` have lanes of their own.
    pub(crate) fn open(service: Service, addresses: Addresses, seeds: Vec<Client>) -> Arc<Self> {
        Arc::new_cyclic(|lanes: &Weak<Self>| {
            let misrouted = Arc::<Misrouted>::default();
            let (wire, state, outbox, stop) =
                Wire::new(&service, Method::Plain, Arc::clone(&misrouted));
            let lanes = Weak::clone(lanes);
            let adopt = move |ranges| lanes.upgrade().is_some_and(|lanes| lanes.adopt(ranges));
            let adopt = (!seeds.is_empty()).then(|| Box::new(adopt) as Adopt);
            let table = Arc::clone(&state.table);
            let (is_subscribed, outbox) = (true, Some(outbox));
            let task = ConnectionTask { addresses, state, is_subscribed, outbox, adopt };
            service.spawn(task, stop);
            let common = Lane { address: None, table, wire: Some(wire) };
            Self::new(Some(service), common, seeds, misrouted)
        })
    }

    fn new(
        service: Option<Service>,
        common: Lane,
        seeds: Vec<Client>,
        misrouted: Arc<Misrouted>,
    ) -> Self {
        Self { service, common: Arc::new(common), shards: RwLock::default(), seeds, misrouted }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.service.is_none()
    }

    pub(crate) fn join(self: &Arc<Self>, topic: Topic) -> Subscription {
        let queue = self.lane_of(&self.shards(), topic).table.join(topic);
        Subscription { topic, queue, lanes: Arc::clone(self) }
    }

    /// Ends a subscription. If it is the last one of its topic, publishes `last` before any message of a
    /// later subscriber.
    pub(crate) fn leave(&self, subscription: &Subscription, last: Option<&Message>) {
        let Subscription { topic, queue, .. } = subscription;
        let shards = self.shards();
        let lane = self.lane_of(&shards, *topic);
        lane.table.leave(*topic, queue, || {
            let _lost = last.map(|last| lane.publish(*topic, last));
        });
    }

    /// Subscribers get a gap if the message was not queued.
    pub(crate) fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        self.lane_of(&self.shards(), topic).publish(topic, message)
    }

    pub(crate) async fn close(&self) {
        if let Some(Service { tasks, stop, .. }) = &self.service {
            stop.cancel();
            tasks.wait().await;
        }
    }

    fn shards(&self) -> RwLockReadGuard<'_, Shards> {
        self.shards.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane_of<'a>(&'a self, shards: &'a Shards, topic: Topic) -> &'a Arc<Lane> {
        shards.lane_of(topic).unwrap_or(&self.common)
    }

    /// Takes a slot map, an empty one for none: opens the lanes of new primaries, closes those of nodes without
    /// slots, and moves subscriptions and losses to the lane of their slot. Returns whether the map is new.
    fn adopt(&self, mut ranges: Vec<Range>) -> bool {
        let mut shards = self.shards.write().unwrap_or_else(PoisonError::into_inner);
        let refusal = self.misrouted.refusal();
        if refusal.is_some() {
            ranges.clear();
        }
        let is_new = ranges != shards.ranges;
        let mut lost = self.misrouted.take();
        if is_new {
            if let Some(why) = refusal {
                tracing::error!(why, "{REFUSED}");
            }
            let before = std::mem::take(&mut *shards);
            *shards = before.read(ranges, |address| self.open_shard(address));
            for lane in before.lanes.iter().chain([&self.common]) {
                lost.extend(self.move_topics(&shards, lane));
            }
        }
        shards.lanes.iter().for_each(|lane| lane.table.retry());
        lost.into_iter().for_each(|topic| self.lane_of(&shards, topic).lose(topic));
        is_new
    }

    /// Moves the topics of a lane that the new map gives to another. Returns those with a possible loss: the
    /// former node may have taken messages that reached no other server.
    fn move_topics(&self, shards: &Shards, lane: &Arc<Lane>) -> HashSet<Topic> {
        let foreign = |topic| !Arc::ptr_eq(self.lane_of(shards, topic), lane);
        let mut lost = lane.wire.as_ref().map(|wire| wire.state.take_lost()).unwrap_or_default();
        for (topic, listeners) in lane.table.take_out(foreign) {
            self.lane_of(shards, topic).table.put_in(topic, listeners);
            lost.insert(topic);
        }
        lost
    }

    fn open_shard(&self, address: &Address) -> Option<Arc<Lane>> {
        let service = self.service.as_ref()?;
        let client = address.client_like(self.seeds.first()?).ok()?;
        let misrouted = Arc::clone(&self.misrouted);
        let (wire, state, outbox, stop) = Wire::new(service, Method::Sharded, misrouted);
        for (is_subscribed, outbox) in [(true, None), (false, Some(outbox))] {
            let addresses = Addresses::new(vec![client.clone()]);
            let state = Arc::clone(&state);
            let task = ConnectionTask { addresses, state, is_subscribed, outbox, adopt: None };
            service.spawn(task, stop.clone());
        }
        let table = Arc::clone(&state.table);
        Some(Arc::new(Lane { address: Some(address.clone()), table, wire: Some(wire) }))
    }
}

impl Shards {
    /// The map of these ranges. Known lanes are reused; `open` opens the others.
    fn read(&self, ranges: Vec<Range>, open: impl Fn(&Address) -> Option<Arc<Lane>>) -> Self {
        let (mut lanes, mut of_slots) = (Vec::<Arc<Lane>>::new(), BTreeMap::new());
        for Range { first, last, primary } in &ranges {
            let is_of_it = |lane: &&Arc<Lane>| lane.address.as_ref() == Some(primary);
            let known = lanes.iter().chain(&self.lanes).find(is_of_it).cloned();
            let Some(lane) = known.or_else(|| open(primary)) else { continue };
            let index = lanes.iter().position(|other| Arc::ptr_eq(other, &lane));
            of_slots.insert(*last, (*first, index.unwrap_or(lanes.len())));
            if index.is_none() {
                lanes.push(lane);
            }
        }
        Self { ranges, lanes, of_slots }
    }

    fn lane_of(&self, topic: Topic) -> Option<&Arc<Lane>> {
        if self.lanes.is_empty() || !matches!(topic, Topic::Room(_)) {
            return None;
        }
        let slot = slot_of(&topic.channel());
        let (_last, (first, lane)) = self.of_slots.range(slot..).next()?;
        self.lanes.get(*lane).filter(|_| *first <= slot)
    }
}

impl Service {
    fn spawn(&self, task: ConnectionTask, stop: CancellationToken) {
        let node = self.node;
        #[expect(clippy::disallowed_methods, reason = "two for each node of Redis")]
        self.tasks.spawn(task.run(stop).instrument(tracing::info_span!("pubsub", %node)));
    }
}

impl Wire {
    fn new(
        service: &Service,
        method: Method,
        misrouted: Arc<Misrouted>,
    ) -> (Self, Arc<LaneState>, mpsc::Receiver<PublishedFrame>, CancellationToken) {
        let table = Table::new(Mode::Others);
        let seal = service.seal.clone();
        let state =
            Arc::new(LaneState::new((service.node, service.clock), seal, table, method, misrouted));
        let (outbox, waiting) = mpsc::channel(OUTBOX_MAX);
        let stop = service.stop.child_token();
        let wire = Self { state: Arc::clone(&state), outbox, _stop: stop.clone().drop_guard() };
        (wire, state, waiting, stop)
    }

    fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        if !self.state.is_up() {
            return Err(PubsubError::Unavailable);
        }
        let frame = self.state.envelope(topic, Payload::Message(message.clone()));
        if !self.state.reserve(&frame) {
            return Err(PubsubError::Full);
        }
        self.outbox.try_send(PublishedFrame { topic, frame }).map_err(|refused| {
            self.state.release(&refused.into_inner().frame);
            PubsubError::Full
        })
    }
}

impl Lane {
    fn publish(&self, topic: Topic, message: &Message) -> Result<(), PubsubError> {
        let Some(wire) = &self.wire else { return Ok(()) };
        let published = wire.publish(topic, message);
        if published.is_err() {
            self.lose(topic);
        }
        published
    }

    fn lose(&self, topic: Topic) {
        self.wire.iter().for_each(|wire| wire.state.lose([topic]));
    }
}
