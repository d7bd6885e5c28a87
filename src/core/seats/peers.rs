//! The other servers: those that this one has heard of, and the messages to one of them.
//!
//! Each server announces itself to all others each minute ([`ANNOUNCED_EVERY`]) and when one of its
//! subscriptions becomes active; each of them replies. Without messages a server knows no peer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::domain::ids::NodeId;
use crate::pubsub::{Message, Pubsub, Reply, Request, Topic};
use crate::seats::peer_rpc::{PendingRequests, RequestError};

pub(crate) const ANNOUNCED_EVERY: Duration = Duration::from_secs(60);

/// A server that has been silent for longer has ended.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// An ended server is named for this long.
const NAMED_FOR: Duration = Duration::from_secs(3_600);

/// A server announces itself again when its subscription is active, so a first request may be lost. A server of
/// a version without names answers each request by an announcement.
const REQUESTS_FOR_NAME_MAX: u8 = 8;

#[derive(Clone, Debug)]
pub struct Peers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The name of this server, for administrators.
    name: String,
    pubsub: Pubsub,
    requests: PendingRequests,
    known: Mutex<HashMap<NodeId, Peer>>,
}

#[derive(Debug)]
struct Peer {
    heard: Instant,
    name: Option<String>,
    /// How often this server has requested the name.
    requested: u8,
}

impl Peers {
    #[must_use]
    pub fn new(name: String, pubsub: Pubsub) -> Self {
        let (requests, known) = Default::default();
        Self(Arc::new(Inner { name, pubsub, requests, known }))
    }

    pub(crate) fn pubsub(&self) -> &Pubsub {
        &self.0.pubsub
    }

    /// The id of this server.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.0.pubsub.node()
    }

    #[must_use]
    pub fn name_of(&self, node: NodeId) -> Option<String> {
        let is_self = node == self.node();
        if is_self { Some(self.0.name.clone()) } else { self.known().get(&node)?.name.clone() }
    }

    /// A request that cannot be published times out.
    pub async fn request(
        &self,
        to: NodeId,
        request: Request,
        limit: Duration,
    ) -> Result<Reply, RequestError> {
        let mut call = self.0.requests.open(to)?;
        self.publish(to, Message::Request { id: call.id, request }).await;
        let reply = timeout(limit, &mut call.reply).await;
        reply.ok().and_then(Result::ok).ok_or(RequestError::TimedOut)
    }

    pub(super) async fn publish(&self, to: NodeId, message: Message) {
        if let Err(error) = self.0.pubsub.publish(Topic::Node(to), &message).await {
            tracing::warn!(%error, peer = %to, "a message to another server cannot be published");
        }
    }

    /// Announces this server to all others. A lost announcement is repeated within a minute.
    pub(super) async fn announce(&self) {
        let _unsent = self.0.pubsub.publish(Topic::Cluster, &Message::Hello).await;
    }

    /// Hands a reply to its caller. The reply with a name has none.
    pub(super) fn receive(&self, from: NodeId, id: u64, reply: Reply) {
        let Reply::Name(name) = reply else { return self.0.requests.complete(from, id, reply) };
        if let Some(peer) = self.known().get_mut(&from) {
            peer.name = Some(name);
        }
    }

    /// Records that a server runs, and requests its name if that is unknown. A server of a version
    /// without names takes the request for a lost message, and announces itself.
    pub(super) async fn heard(&self, from: NodeId) {
        if self.record(from, Instant::now()) {
            let request = Request::Name;
            self.publish(from, Message::Request { id: 0, request }).await;
        }
    }

    /// Whether to request the name of the server.
    fn record(&self, node: NodeId, now: Instant) -> bool {
        let mut known = self.known();
        let peer = known.entry(node).or_insert(Peer { heard: now, name: None, requested: 0 });
        peer.heard = now;
        let requests = peer.name.is_none() && peer.requested < REQUESTS_FOR_NAME_MAX;
        peer.requested += u8::from(requests);
        requests
    }

    pub fn running_and_ended(&self, now: Instant) -> (Vec<NodeId>, Vec<NodeId>) {
        let mut known = self.known();
        known.retain(|_, peer| now.duration_since(peer.heard) < NAMED_FOR);
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for (node, peer) in known.iter() {
            let runs = now.duration_since(peer.heard) < SILENCE_MAX;
            if runs { running.push(*node) } else { ended.push(*node) }
        }
        (running, ended)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<NodeId, Peer>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_for_an_hour_after_its_end() {
        let peers = Peers::new("galley-2".to_owned(), Pubsub::alone(NodeId::generate()));
        let (node, began) = (NodeId::generate(), Instant::now());
        let requested = (0..20).filter(|_| peers.record(node, began)).count();
        assert_eq!(requested, usize::from(REQUESTS_FOR_NAME_MAX));
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX / 2), (vec![node], vec![]));
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX), (vec![], vec![node]));
        assert_eq!(peers.running_and_ended(began + NAMED_FOR), (vec![], vec![]));
        assert!(peers.record(node, began), "it was forgotten");
        peers.receive(node, 0, Reply::Name("galley-1".to_owned()));
        assert!(!peers.record(node, began));
        assert_eq!(peers.name_of(node).as_deref(), Some("galley-1"));
    }
}
