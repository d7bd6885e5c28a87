//! The subscriptions of one connection to Redis.
//!
//! Each subscription has its own bounded queue. The table drops signals while the queue is full,
//! and puts a gap in their place: after the queued signals and before the next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::ids::NodeId;
use crate::pubsub::message::{Message, Topic};

/// Signals in one subscriber's queue. A room handles a signal within microseconds. A slower
/// subscriber reads the database, which is faster than catching up.
pub const SIGNALS_MAX: usize = 1_024;

/// The bound of the same queue, in bytes of the bodies.
const SIGNAL_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    Message {
        from: NodeId,
        message: Message,
    },
    /// The subscriber may have missed messages: it reads the database. Also the first signal of
    /// each subscription, once Redis confirms it.
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

/// The signals that a subscriber has not taken.
#[derive(Debug, Default)]
pub(crate) struct SignalQueue {
    waiting: Mutex<PendingSubscribe>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct PendingSubscribe {
    signals: VecDeque<Signal>,
    bytes: usize,
}

impl SignalQueue {
    /// Waits for the next signal. A dropped call takes no signal from the queue.
    pub(crate) async fn next(&self) -> Signal {
        loop {
            // Registered before the queue is read, so that a signal in between wakes this call.
            let arrived = self.arrived.notified();
            if let Some(signal) = self.pop() {
                return signal;
            }
            arrived.await;
        }
    }

    fn push(&self, signal: Signal) {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + signal.bytes();
        let fits = waiting.signals.len() < SIGNALS_MAX && bytes <= SIGNAL_BYTES_MAX;
        let signal = if fits { signal } else { Signal::Gap };
        // The queue merges two gaps in a row, which keeps it within its bound.
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

    fn waiting(&self) -> MutexGuard<'_, PendingSubscribe> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    mode: Mode,
    state: Mutex<State>,
    /// Notified when `State::changed` gets an entry.
    pub(crate) stirred: Notify,
}

/// Whether other servers exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A single server: a subscription is in force at once.
    Alone,
    /// Other servers: the connection task reads [`Table::changes`] and confirms.
    Others,
}

#[derive(Debug, Default)]
struct State {
    topics: HashMap<Topic, Listeners>,
    /// Whether a connection maintains the subscriptions of `topics`.
    is_connected: bool,
    /// Topics that gained their first or lost their last subscriber since the task last read them, that moved
    /// from or to another connection, or that Redis did not confirm.
    /// Without a connection the table records nothing.
    changed: HashSet<Topic>,
}

/// The subscribers of a topic.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// Redis has confirmed the current subscription.
    confirmed: bool,
    queues: Vec<Arc<SignalQueue>>,
}

impl Table {
    pub(crate) fn new(mode: Mode) -> Arc<Self> {
        Arc::new(Self { mode, state: Mutex::default(), stirred: Notify::new() })
    }

    pub(crate) fn join(&self, topic: Topic) -> Arc<SignalQueue> {
        let queue = Arc::new(SignalQueue::default());
        let mut state = self.state();
        let listeners = state.topics.entry(topic).or_default();
        listeners.queues.push(Arc::clone(&queue));
        if listeners.confirmed || self.mode == Mode::Alone {
            queue.push(Signal::Gap);
        } else {
            state.note(topic);
        }
        drop(state);
        self.stirred.notify_one();
        queue
    }

    /// Ends a subscription. With the last one of its topic it calls `last` under its lock: the messages of a
    /// later subscriber follow those of `last`.
    pub(crate) fn leave(&self, topic: Topic, queue: &Arc<SignalQueue>, last: impl FnOnce()) {
        let mut state = self.state();
        let Some(listeners) = state.topics.get_mut(&topic) else { return };
        listeners.queues.retain(|other| !Arc::ptr_eq(other, queue));
        if !listeners.queues.is_empty() {
            return;
        }
        last();
        state.topics.remove(&topic);
        state.note(topic);
        drop(state);
        self.stirred.notify_one();
    }

    /// The topics that changed since the last call, each with whether it has a subscriber; not those in force.
    pub(crate) fn changes(&self) -> HashMap<Topic, bool> {
        let mut state = self.state();
        let changed = std::mem::take(&mut state.changed);
        let is_due = |topic: &Topic| !state.topics.get(topic).is_some_and(|it| it.confirmed);
        let due = changed.into_iter().filter(is_due);
        due.map(|topic| (topic, state.topics.contains_key(&topic))).collect()
    }

    /// Marks a subscription as in force. Earlier messages were missed.
    pub(crate) fn confirm(&self, topic: Topic) {
        let mut state = self.state();
        let Some(listeners) = state.topics.get_mut(&topic) else { return };
        listeners.confirmed = true;
        for queue in &listeners.queues {
            queue.push(Signal::Gap);
        }
    }

    /// Redis ended a subscription. Returns whether it still has a subscriber.
    pub(crate) fn withdraw(&self, topic: Topic) -> bool {
        let mut state = self.state();
        let listeners = state.topics.get_mut(&topic);
        listeners.map(|listeners| listeners.confirmed = false).is_some()
    }

    /// Asks the connection for each subscription that is not in force.
    pub(crate) fn retry(&self) {
        let mut state = self.state();
        let unconfirmed = state.topics.iter().filter(|(_, listeners)| !listeners.confirmed);
        let unconfirmed: Vec<_> = unconfirmed.map(|(topic, _)| *topic).collect();
        let is_any = !unconfirmed.is_empty();
        unconfirmed.into_iter().for_each(|topic| state.note(topic));
        drop(state);
        if is_any {
            self.stirred.notify_one();
        }
    }

    /// Takes the topics that belong elsewhere, with their subscribers.
    pub(crate) fn take_out(&self, is_foreign: impl Fn(Topic) -> bool) -> Vec<(Topic, Listeners)> {
        let mut state = self.state();
        let foreign = state.topics.extract_if(|topic, _| is_foreign(*topic));
        let foreign: Vec<_> = foreign.collect();
        foreign.iter().for_each(|(topic, _)| state.note(*topic));
        drop(state);
        self.stirred.notify_one();
        foreign
    }

    /// Adds the subscribers of a topic that another connection carried.
    pub(crate) fn put_in(&self, topic: Topic, listeners: Listeners) {
        let mut state = self.state();
        state.topics.insert(topic, Listeners { confirmed: false, ..listeners });
        state.note(topic);
        drop(state);
        self.stirred.notify_one();
    }

    /// A new connection is open: it must subscribe to all topics.
    pub(crate) fn connect(&self) {
        let mut state = self.state();
        state.is_connected = true;
        // A confirmation of the former connection may have come after its end.
        state.topics.values_mut().for_each(|listeners| listeners.confirmed = false);
        state.changed = state.topics.keys().copied().collect();
        drop(state);
        self.stirred.notify_one();
    }

    /// The connection is closed: no subscription is in force.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state();
        state.is_connected = false;
        state.changed.clear();
        for listeners in state.topics.values_mut() {
            listeners.confirmed = false;
        }
    }

    /// Queues a signal for the topic's subscribers. Before the confirmation the table drops it: the
    /// gap of the confirmation covers it.
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
    async fn a_slow_subscriber_gets_a_gap_instead_of_missed_messages() {
        let table = Table::new(Mode::Others);
        let subscription = table.join(Topic::Cluster);
        table.confirm(Topic::Cluster);
        assert_eq!(subscription.next().await, Signal::Gap);
        let first = hello();
        for _ in 0..SIGNALS_MAX {
            table.deliver(Topic::Cluster, &first);
        }
        for _ in 0..10 {
            table.deliver(Topic::Cluster, &hello());
        }
        for _ in 0..SIGNALS_MAX {
            assert_eq!(subscription.next().await, first);
        }
        let later = hello();
        table.deliver(Topic::Cluster, &later);
        assert_eq!(subscription.next().await, Signal::Gap);
        assert_eq!(subscription.next().await, later);
    }

    #[tokio::test]
    async fn the_last_subscriber_of_a_topic_ends_its_subscription() {
        let table = Table::new(Mode::Others);
        table.connect();
        let (first, second) = (table.join(Topic::Cluster), table.join(Topic::Cluster));
        assert_eq!(table.changes(), HashMap::from([(Topic::Cluster, true)]));
        table.leave(Topic::Cluster, &first, || {});
        assert_eq!(table.changes(), HashMap::new());
        table.leave(Topic::Cluster, &second, || {});
        assert_eq!(table.changes(), HashMap::from([(Topic::Cluster, false)]));
    }

    #[tokio::test]
    async fn only_the_last_subscriber_of_a_topic_sends_its_last_message() {
        let table = Table::new(Mode::Others);
        let (first, second) = (table.join(Topic::Cluster), table.join(Topic::Cluster));
        let mut sent = Vec::new();
        table.leave(Topic::Cluster, &first, || sent.push(1));
        table.leave(Topic::Cluster, &second, || sent.push(2));
        assert_eq!(sent, [2]);
    }
}
