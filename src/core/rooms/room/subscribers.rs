//! The other servers that have the document open: the receivers of a room's messages.
//!
//! A room without them publishes nothing, so a pair on one server costs Redis no command an edit. The
//! rooms find each other by messages, and the numbers of the log and of the reviews close every gap:
//!
//! - A room that subscribes publishes `Hello` once its subscription is in force, then reads the log.
//! - A room that receives `Hello`, `Numbers`, presence or a join records the sender. If it knew no other
//!   server before, it publishes its last numbers and its sessions (M5). It answers each `Hello` by its
//!   sessions, and that of a new server by its last numbers too.
//! - A room that has introduced itself publishes every departure: of a cursor, of a session, and its own
//!   `Goodbye` when it closes. A server that died is forgotten after two ticks without a
//!   message and without a seat of it in the locks.
//!
//! # No commit falls between the two rooms
//!
//! The room records a server, and advances its number after a commit, under one lock. A commit after the
//! record is published, and the other room is subscribed: its message caused the record. A commit before
//! the record has a number that `Numbers` names, and the other room reads the log. Of two rooms that
//! subscribe at once, the one whose `Hello` is published last has the other as its receiver. A room that
//! knows some server publishes to all; a later subscriber reads what was committed before its
//! subscription.
//!
//! A lost message delays a commit until the tick compares the numbers. So is a change of a review between
//! the load of a room and its subscription, if the room that knows it closes then, or there was none. For two ticks after each gap the
//! comparison also reads the holders of the other seats, and finds a server whose message was lost.
//!
//! A server of a version without `Numbers` and `Goodbye` reports each as a gap: it reads the log and
//! publishes `Hello`, which is answered by no message of a new kind. So no gap answers a gap.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::NodeId;

/// Servers that a room tells apart. A further one replaces the one that was silent for longest.
const SERVERS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Subscribers {
    servers: Vec<Subscriber>,
    were_any: bool,
    /// The time of the last gap, until the comparison has searched the locks for unknown servers.
    gap_at: Option<Instant>,
}

#[derive(Debug)]
struct Subscriber {
    node: NodeId,
    /// Its last message, or the last comparison that found a seat of it.
    seen_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    Before,
    /// The room knew no other server, so it has published nothing.
    First,
    Further,
}

impl Subscribers {
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Whether any server has received something of this room, which may outlive the record of it.
    pub(super) fn were_any(&self) -> bool {
        self.were_any
    }

    /// Records that `node` has the document open.
    pub(super) fn record(&mut self, node: NodeId, now: Instant) -> Recorded {
        if let Some(server) = self.servers.iter_mut().find(|server| server.node == node) {
            server.seen_at = now;
            return Recorded::Before;
        }
        let recorded = if self.is_empty() { Recorded::First } else { Recorded::Further };
        if self.servers.len() == SERVERS_MAX {
            let oldest = self.servers.iter().map(|server| server.seen_at).min();
            self.servers.retain(|server| Some(server.seen_at) != oldest);
        }
        self.servers.push(Subscriber { node, seen_at: now });
        self.were_any = true;
        recorded
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        self.servers.retain(|server| server.node != node);
    }

    /// Messages may be lost, of servers that this room does not know.
    pub(super) fn note_gap(&mut self, now: Instant) {
        self.gap_at = Some(now);
    }

    /// Whether the comparison reads the seats that no known peer holds.
    pub(super) fn is_unsure(&self, is_seated: impl Fn(NodeId) -> bool) -> bool {
        self.gap_at.is_some() || self.servers.iter().any(|server| !is_seated(server.node))
    }

    /// A comparison with the locks is complete: forgets the servers that it has not shown, and that were
    /// silent, for `silent_max`.
    pub(super) fn forget_silent(&mut self, now: Instant, silent_max: Duration) {
        let is_over = |since: Instant| silent_max <= now.saturating_duration_since(since);
        self.servers.retain(|server| !is_over(server.seen_at));
        self.gap_at.take_if(|at| is_over(*at));
    }

    /// The comparison failed: the time without a seat starts anew.
    pub(super) fn comparison_failed(&mut self, now: Instant) {
        for server in &mut self.servers {
            server.seen_at = now;
        }
        self.gap_at = self.gap_at.map(|_| now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(4);

    #[tokio::test]
    async fn a_server_is_forgotten_after_two_ticks_without_a_message_and_without_a_seat() {
        let (mut subscribers, now) = (Subscribers::default(), Instant::now());
        let [seated, dead] = [NodeId::generate(), NodeId::generate()];
        assert_eq!(subscribers.record(seated, now), Recorded::First);
        assert_eq!(subscribers.record(dead, now), Recorded::Further);
        for tick in 1..=2 {
            assert!(subscribers.is_unsure(|node| node == seated));
            let now = now + TICK * tick;
            assert_eq!(subscribers.record(seated, now), Recorded::Before);
            subscribers.forget_silent(now, TICK * 2);
        }
        assert!(!subscribers.is_unsure(|node| node == seated));
        subscribers.comparison_failed(now + TICK * 9);
        subscribers.forget_silent(now + TICK * 10, TICK * 2);
        assert!(!subscribers.is_empty(), "an outage of Redis is no evidence");
        subscribers.remove(seated);
        assert_eq!(subscribers.record(dead, now), Recorded::First);
    }

    #[tokio::test]
    async fn g13_the_servers_of_a_room_are_bounded() {
        let (mut subscribers, now) = (Subscribers::default(), Instant::now());
        for number in 0..100 {
            subscribers.record(NodeId::generate(), now + TICK * number);
        }
        assert_eq!(subscribers.servers.len(), SERVERS_MAX);
    }
}
