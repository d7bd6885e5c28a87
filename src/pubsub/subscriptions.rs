//! Who in this process listens to what.
//!
//! Each subscription has a queue of its own, with a bound. What comes while it is full is dropped,
//! and the subscriber is told so by a gap in the right place: after what it still has, before what
//! comes later.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::ids::NodeId;
use crate::pubsub::message::{Message, Topic};

/// Signals that may wait for one subscriber. A room reads its own within microseconds; what is
/// slower than this many reads the database, which is faster than catching up.
pub const SIGNALS_MAX: usize = 1_024;

/// The same in bytes of their bodies.
const SIGNAL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Another server said something.
    Message {
        /// Which server.
        from: NodeId,
        /// What it said.
        message: Message,
    },
    /// Something may have been missed: read the database. It is also the first signal of each
    /// subscription, once it is confirmed.
    Gap,
}

impl Signal {
    fn bytes(&self) -> usize {
        match self {
            Self::Message { message, .. } => message.bytes(),
            Self::Gap => 0,
        }
    }
}

/// One listener of a topic. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    topic: Topic,
    queue: Arc<Queue>,
    table: Arc<Table>,
}

impl Subscription {
    /// The next signal; waits for ever if none comes.
    ///
    /// # Cancel safety
    ///
    /// A signal that was not returned stays for the next call.
    pub async fn next(&mut self) -> Signal {
        loop {
            // Asked for before the look, so that what comes between the two is not slept through.
            let arrived = self.queue.arrived.notified();
            if let Some(signal) = self.queue.pop() {
                return signal;
            }
            arrived.await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.table.leave(self.topic, &self.queue);
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    signals: VecDeque<Signal>,
    /// Of all bodies together.
    bytes: usize,
}

impl Queue {
    fn push(&self, signal: Signal) {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + signal.bytes();
        let fits = waiting.signals.len() < SIGNALS_MAX && bytes <= SIGNAL_BYTES_MAX;
        let signal = if fits { signal } else { Signal::Gap };
        // Two gaps in a row say no more than one, which keeps the queue within its bound.
        if signal != Signal::Gap || waiting.signals.back() != Some(&Signal::Gap) {
            waiting.bytes += signal.bytes();
            waiting.signals.push_back(signal);
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    fn pop(&self) -> Option<Signal> {
        let mut waiting = self.waiting();
        let signal = waiting.signals.pop_front()?;
        waiting.bytes -= signal.bytes();
        Some(signal)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All subscriptions of a process.
#[derive(Debug)]
pub(crate) struct Table {
    reach: Reach,
    state: Mutex<State>,
    /// There is something in `State::changed`.
    pub(crate) stirred: Notify,
}

/// Who else can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nobody: a subscription is in force at once.
    Alone,
    /// Other servers: somebody looks at [`Table::changes`] and confirms.
    Others,
}

#[derive(Debug, Default)]
struct State {
    topics: HashMap<Topic, Listeners>,
    /// There is a connection whose subscriptions follow `topics`.
    is_connected: bool,
    /// Topics that were listened to first or left last since somebody looked. Nobody looks, and
    /// nothing is noted, while there is no connection.
    changed: HashSet<Topic>,
}

#[derive(Debug, Default)]
struct Listeners {
    /// The server has confirmed the subscription that is in force now.
    confirmed: bool,
    queues: Vec<Arc<Queue>>,
}

impl Table {
    pub(crate) fn new(reach: Reach) -> Arc<Self> {
        Arc::new(Self { reach, state: Mutex::default(), stirred: Notify::new() })
    }

    pub(crate) fn join(self: &Arc<Self>, topic: Topic) -> Subscription {
        let queue = Arc::new(Queue::default());
        let mut state = self.state();
        let listeners = state.topics.entry(topic).or_default();
        listeners.queues.push(Arc::clone(&queue));
        if listeners.confirmed || self.reach == Reach::Alone {
            queue.push(Signal::Gap);
        } else {
            state.note(topic);
        }
        drop(state);
        self.stirred.notify_one();
        Subscription { topic, queue, table: Arc::clone(self) }
    }

    fn leave(&self, topic: Topic, queue: &Arc<Queue>) {
        let mut state = self.state();
        let Some(listeners) = state.topics.get_mut(&topic) else { return };
        listeners.queues.retain(|other| !Arc::ptr_eq(other, queue));
        if !listeners.queues.is_empty() {
            return;
        }
        state.topics.remove(&topic);
        state.note(topic);
        drop(state);
        self.stirred.notify_one();
    }

    /// The topics that changed since the last call, each with whether anybody listens to it.
    pub(crate) fn changes(&self) -> HashMap<Topic, bool> {
        let mut state = self.state();
        let changed = std::mem::take(&mut state.changed);
        changed.into_iter().map(|topic| (topic, state.topics.contains_key(&topic))).collect()
    }

    /// These subscriptions are in force from now on; what was said before is missed.
    pub(crate) fn confirm(&self, topics: &[Topic]) {
        let mut state = self.state();
        for topic in topics {
            let Some(listeners) = state.topics.get_mut(topic) else { continue };
            listeners.confirmed = true;
            for queue in &listeners.queues {
                queue.push(Signal::Gap);
            }
        }
    }

    /// There is a new connection: everything is to be subscribed to.
    pub(crate) fn connect(&self) {
        let mut state = self.state();
        state.is_connected = true;
        state.changed = state.topics.keys().copied().collect();
        drop(state);
        self.stirred.notify_one();
    }

    /// No subscription is in force any more.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state();
        state.is_connected = false;
        state.changed.clear();
        for listeners in state.topics.values_mut() {
            listeners.confirmed = false;
        }
    }

    /// Hands a signal to those who listen. Before the subscription is confirmed it is dropped: the
    /// gap that comes with that covers it.
    pub(crate) fn deliver(&self, topic: Topic, signal: &Signal) {
        let state = self.state();
        let Some(listeners) = state.topics.get(&topic).filter(|it| it.confirmed) else { return };
        for queue in &listeners.queues {
            queue.push(signal.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, topic: Topic) {
        if self.is_connected {
            self.changed.insert(topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Signal {
        Signal::Message { from: NodeId::generate(), message: Message::Hello }
    }

    #[tokio::test]
    async fn what_a_slow_subscriber_missed_is_a_gap_in_its_place() {
        let table = Table::new(Reach::Others);
        let mut subscription = table.join(Topic::Cluster);
        table.confirm(&[Topic::Cluster]);
        assert_eq!(subscription.next().await, Signal::Gap);
        let kept = hello();
        for _ in 0..SIGNALS_MAX {
            table.deliver(Topic::Cluster, &kept);
        }
        for _ in 0..10 {
            table.deliver(Topic::Cluster, &hello());
        }
        for _ in 0..SIGNALS_MAX {
            assert_eq!(subscription.next().await, kept);
        }
        let later = hello();
        table.deliver(Topic::Cluster, &later);
        assert_eq!(subscription.next().await, Signal::Gap);
        assert_eq!(subscription.next().await, later);
    }

    #[tokio::test]
    async fn the_last_to_leave_ends_the_subscription() {
        let table = Table::new(Reach::Others);
        table.connect();
        let (first, second) = (table.join(Topic::Cluster), table.join(Topic::Cluster));
        assert_eq!(table.changes(), HashMap::from([(Topic::Cluster, true)]));
        drop(first);
        assert_eq!(table.changes(), HashMap::new());
        drop(second);
        assert_eq!(table.changes(), HashMap::from([(Topic::Cluster, false)]));
    }
}
