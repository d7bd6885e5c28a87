//! Requests to other servers, each with one reply.
//!
//! Each server subscribes to a topic of its own, and a reply goes to the topic of the requester.
//! The network may lose either message: the request then times out.
//!
//! - **Q1** (G13) At most [`REQUESTS_MAX`] requests are in flight.
//! - **Q2** A reply counts only if the addressed server sent it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::domain::ids::NodeId;
use crate::domain::limits::REQUESTS_MAX;
use crate::pubsub::{Message, Reply, Request, Signal, Topic};
use crate::seats::Seats;
use crate::telemetry::last_hour;

#[derive(Debug, Default)]
pub(crate) struct PendingRequests(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    last_id: u64,
    callers: HashMap<u64, (NodeId, oneshot::Sender<Reply>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// Too many requests are in flight (Q1).
    TooMany,
    TimedOut,
}

/// One request in flight. Its drop frees the id.
struct InFlight<'a> {
    requests: &'a PendingRequests,
    id: u64,
    reply: oneshot::Receiver<Reply>,
}

impl PendingRequests {
    fn open(&self, to: NodeId) -> Result<InFlight<'_>, RequestError> {
        let mut pending = self.pending();
        if pending.callers.len() >= REQUESTS_MAX {
            return Err(RequestError::TooMany);
        }
        pending.last_id += 1;
        let (id, (caller, reply)) = (pending.last_id, oneshot::channel());
        pending.callers.insert(id, (to, caller));
        Ok(InFlight { requests: self, id, reply })
    }

    /// Hands a reply to its caller, if `from` is the addressed server (Q2).
    fn complete(&self, from: NodeId, id: u64, reply: Reply) {
        if let Entry::Occupied(entry) = self.pending().callers.entry(id)
            && entry.get().0 == from
        {
            // The caller may have timed out.
            let _gone = entry.remove().1.send(reply);
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.requests.pending().callers.remove(&self.id);
    }
}

impl Seats {
    /// A request that cannot be published times out.
    pub async fn request(
        &self,
        to: NodeId,
        request: Request,
        limit: Duration,
    ) -> Result<Reply, RequestError> {
        let mut call = self.shared.requests.open(to)?;
        self.publish(to, Message::Request { id: call.id, request }).await;
        let reply = timeout(limit, &mut call.reply).await;
        reply.ok().and_then(Result::ok).ok_or(RequestError::TimedOut)
    }

    pub(crate) async fn publish(&self, to: NodeId, message: Message) {
        if let Err(error) = self.shared.pubsub.publish(Topic::Node(to), &message).await {
            tracing::warn!(%error, peer = %to, "a message to another server cannot be published");
        }
    }

    pub(crate) async fn handle_node_messages(self) {
        let mut messages = self.shared.pubsub.subscribe(Topic::Node(self.shared.pubsub.node()));
        let finished = self.shared.finished.clone();
        while let Some(signal) = finished.run_until_cancelled(messages.next()).await {
            match signal {
                Signal::Message { from, message: Message::Request { id, request } } => {
                    self.serve(from, id, request).await;
                }
                Signal::Message {
                    from,
                    message: Message::Reply { reply: Reply::Name(name), .. },
                } => {
                    self.shared.peers.name(from, name);
                }
                Signal::Message { from, message: Message::Reply { id, reply } } => {
                    self.shared.requests.complete(from, id, reply);
                }
                Signal::Message { from, message: Message::Hello } => {
                    self.heard(from).await;
                }
                Signal::Message { .. } => {}
                // Replies to an earlier announcement may be among the lost messages.
                Signal::Gap => self.announce().await,
            }
        }
    }

    /// Notes that a server runs, and requests its name if that is unknown. A server of a version
    /// without names takes the request for a lost message, and announces itself.
    pub(super) async fn heard(&self, from: NodeId) {
        if self.shared.peers.heard(from, Instant::now()) {
            let request = Request::Name;
            self.publish(from, Message::Request { id: 0, request }).await;
        }
    }

    async fn serve(&self, from: NodeId, id: u64, request: Request) {
        let reply = match request {
            Request::Probe(session) => match self.serve_probe(from, id, session) {
                Some(reply) => reply,
                None => return,
            },
            Request::Replace { session, document } => self.end_for_takeover(session, document),
            Request::Facts(session) => self.facts_reply(session),
            Request::Name => Reply::Name(self.shared.name.clone()),
            Request::Series => {
                serde_json::to_string(&last_hour::minutes()).map_or(Reply::Gone, Reply::Series)
            }
        };
        self.publish(from, Message::Reply { id, reply }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q2_a_reply_of_another_server_is_ignored() {
        let (requests, node) = (PendingRequests::default(), NodeId::generate());
        let mut call = requests.open(node).expect("room");
        requests.complete(NodeId::generate(), call.id, Reply::Alive);
        assert!(call.reply.try_recv().is_err(), "the addressed server did not reply");
        requests.complete(node, call.id, Reply::Gone);
        assert_eq!(call.reply.try_recv(), Ok(Reply::Gone));
        requests.complete(node, call.id, Reply::Alive);
    }

    #[test]
    fn g13_requests_in_flight_to_other_servers_are_bounded() {
        let requests = PendingRequests::default();
        let open = |_| requests.open(NodeId::generate());
        let calls: Vec<_> = (0..REQUESTS_MAX).map(open).collect();
        assert!(calls.iter().all(Result::is_ok) && open(0).is_err());
        drop(calls);
        assert!(open(0).is_ok());
    }
}
