//! The liveness probe and the end of a user's own session on another server.
//!
//! ```text
//!   server of the new connection           server of the old socket
//!     liveness probe of the session  ────►  pings the socket
//!                                    ◄────  Alive, or Gone: broken, silent, or no such session
//!     takeover of the seat           ────►  ends the session (4410), flushes its edits
//!                                    ◄────  Flushed, or Flushing: the requester repeats
//! ```
//!
//! A requester without a [reply](crate::seats::peer_rpc) in time continues as if the other server
//! were dead. No edit is stored twice, because the new fence exceeds the old one. A session that
//! misses the message of its end finds its key gone at its next renewal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{sleep, timeout};

use crate::domain::ids::{DocumentId, NodeId, SessionId};
use crate::domain::limits::{FLUSH_TIMEOUT, PEER_ACK_TIMEOUT, PROBE_TIMEOUT, REQUESTS_MAX};
use crate::locks::Holder;
use crate::outbox::close::LostReason;
use crate::pubsub::{Message, Reply, Request};
use crate::seats::Seats;
use crate::seats::peer_rpc::RequestError;
use crate::sessions::session::{Session, SessionState};

/// Pauses between the requests for one flush: doubles from the first to the second. A flush takes
/// some milliseconds.
const FLUSH_POLL_PAUSES: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_millis(100));

#[derive(Debug)]
pub(crate) struct Liveness {
    /// At most one probe for each session on another server is in flight: all its callers share
    /// the result. So a flood of claims for one seat publishes one message.
    probes: Mutex<HashMap<SessionId, Weak<OnceCell<bool>>>>,
    /// Permits for probes that other servers request (G13).
    permits: Arc<Semaphore>,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { probes: Mutex::default(), permits: Arc::new(Semaphore::new(REQUESTS_MAX)) }
    }
}

impl Liveness {
    fn probe_of(&self, session_id: SessionId) -> Arc<OnceCell<bool>> {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = probes.get(&session_id).and_then(Weak::upgrade) {
            return probe;
        }
        probes.retain(|_, probe| probe.strong_count() > 0);
        let probe = Arc::default();
        probes.insert(session_id, Arc::downgrade(&probe));
        probe
    }
}

impl Seats {
    /// Whether the session that holds a seat is alive, on any server. Probes its socket, within
    /// [`PROBE_TIMEOUT`].
    pub(crate) async fn is_alive(&self, holder: &Holder) -> bool {
        let Ok(session_id) = holder.value.parse::<SessionId>() else {
            // A value set by hand is no session: no server can probe it, and no claim may replace
            // it.
            return true;
        };
        match self.shared.registry.session(session_id) {
            Some(session) => probe(&session).await,
            // The session has left the registry, and the release of its key is in flight (R1).
            None if holder.owner.node == self.shared.pubsub.node() => false,
            None => {
                let node = holder.owner.node;
                let result = self.shared.liveness.probe_of(session_id);
                let probing = async || {
                    let reply = self
                        .shared
                        .peers
                        .request(node, Request::Probe(session_id), PROBE_TIMEOUT)
                        .await;
                    // With too many requests in flight no session loses its seat.
                    matches!(reply, Ok(Reply::Alive) | Err(RequestError::TooMany))
                };
                *result.get_or_init(probing).await
            }
        }
    }

    /// Notifies the server of `former` that `session` replaces it. For a seat that may edit the
    /// text, waits until that server has flushed the edits. Once the new fence is ratified, the
    /// database rejects every write under the old one.
    ///
    /// The wait ends when the other server does not reply, or after [`FLUSH_TIMEOUT`]. The cost:
    /// the document loses the edits not flushed by then, and the other server opens it afresh.
    /// Their author does not lose them: `document.saved` never named them, and the old tab retains
    /// them.
    pub(crate) async fn flush_elsewhere(&self, session: &Session, former: &Holder) {
        let (node, identity) = (former.owner.node, &session.identity);
        let Ok(session_id) = former.value.parse::<SessionId>() else { return };
        if node == self.shared.pubsub.node() {
            return;
        }
        let request = Request::Replace { session: session_id, document: identity.document };
        let without_reply = Message::Request { id: 0, request };
        if !identity.seat.role.may_edit_text() {
            return self.shared.peers.publish(node, without_reply).await;
        }
        let flush = async {
            let (mut pause, mut limit) = (FLUSH_POLL_PAUSES.0, PEER_ACK_TIMEOUT);
            while self.shared.peers.request(node, request, limit).await? == Reply::Flushing {
                sleep(pause).await;
                // The first reply proves that the server lives.
                (pause, limit) = ((pause * 2).min(FLUSH_POLL_PAUSES.1), FLUSH_TIMEOUT);
            }
            Ok(())
        };
        match timeout(FLUSH_TIMEOUT, flush).await {
            Ok(Ok(())) => {}
            Ok(Err(RequestError::TooMany)) => self.shared.peers.publish(node, without_reply).await,
            Ok(Err(RequestError::TimedOut)) | Err(_) => {
                tracing::warn!(seat = %identity.seat, peer = %node, "a seat was taken over from a silent server");
            }
        }
    }

    /// The reply to a liveness probe of another server. None: a task probes the client and replies.
    pub(super) fn serve_probe(
        &self,
        from: NodeId,
        id: u64,
        session_id: SessionId,
    ) -> Option<Reply> {
        let Some(session) = self.shared.registry.session(session_id) else {
            return Some(Reply::Gone);
        };
        let Ok(permit) = Arc::clone(&self.shared.liveness.permits).try_acquire_owned() else {
            return Some(Reply::Alive);
        };
        let peers = self.shared.peers.clone();
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        self.shared.tasks.tracker.spawn(async move {
            let reply = if probe(&session).await { Reply::Alive } else { Reply::Gone };
            peers.publish(from, Message::Reply { id, reply }).await;
            drop(permit);
        });
        None
    }

    /// Ends a session whose seat a takeover granted to another session of its user. There is no key
    /// to release. The reply says whether edits of the document are pending; it depends on no
    /// permit, so a flood of probes cannot delay it.
    pub(super) fn end_for_takeover(&self, session_id: SessionId, document: DocumentId) -> Reply {
        if let Some(session) = self.shared.registry.session(session_id) {
            session.lose(LostReason::TakenOver);
            self.shared.registry.leave(&session);
        }
        let room = self.shared.rooms.find(document);
        if room.is_none_or(|room| room.is_durable()) { Reply::Flushed } else { Reply::Flushing }
    }
}

/// A broken connection is dead at once. Any other is dead if it does not answer a ping.
async fn probe(session: &Session) -> bool {
    match session.state() {
        SessionState::Away | SessionState::Ended => false,
        SessionState::Claiming | SessionState::Held | SessionState::Uncertain => {
            session.answers_within(PROBE_TIMEOUT).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::panic_tests::Office;
    use crate::yjs::protocol;
    use crate::yjs::text::document_from_text;

    #[tokio::test]
    async fn a_takeover_learns_of_the_flush_while_probes_have_all_permits() {
        let office = Office::open().await;
        let (service, document) = (&office.runtime.seats, office.stored.document);
        let permits = service.shared.liveness.permits.available_permits();
        let permits =
            service.shared.liveness.permits.acquire_many(u32::try_from(permits).expect("few"));
        let _permits = permits.await.expect("permits");
        let seated = office.acquire_seat().await;
        let session_id = service.registry().all()[0].identity.session;
        let node = NodeId::generate();
        assert_eq!(service.serve_probe(node, 1, session_id), Some(Reply::Alive));
        seated.receive(&protocol::update(&document_from_text("Dear", 7))).expect("an edit");
        assert_eq!(service.end_for_takeover(session_id, document), Reply::Flushing);
        let room = service.shared.rooms.find(document).expect("an open room");
        room.flushed().await;
        assert_eq!(service.end_for_takeover(session_id, document), Reply::Flushed);
        assert_eq!(service.serve_probe(node, 2, session_id), Some(Reply::Gone));
    }

    #[test]
    fn probes_of_one_session_share_their_result_until_the_last_caller_leaves() {
        let (liveness, session_id) = (Liveness::default(), SessionId::generate());
        let (first, second) = (liveness.probe_of(session_id), liveness.probe_of(session_id));
        assert!(Arc::ptr_eq(&first, &second));
        first.set(true).expect("the first result");
        drop((first, second));
        assert_eq!(liveness.probe_of(session_id).get(), None);
        let _other = liveness.probe_of(SessionId::generate());
        assert_eq!(liveness.probes.lock().expect("no panic").len(), 1);
    }
}
