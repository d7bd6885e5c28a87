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

use tokio::sync::oneshot;

use crate::domain::ids::NodeId;
use crate::domain::limits::REQUESTS_MAX;
use crate::pubsub::Reply;

#[derive(Debug, Default)]
pub(super) struct PendingRequests(Mutex<Pending>);

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
pub(super) struct InFlight<'a> {
    requests: &'a PendingRequests,
    pub(super) id: u64,
    pub(super) reply: oneshot::Receiver<Reply>,
}

impl PendingRequests {
    pub(super) fn open(&self, to: NodeId) -> Result<InFlight<'_>, RequestError> {
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
    pub(super) fn complete(&self, from: NodeId, id: u64, reply: Reply) {
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
