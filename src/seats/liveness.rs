//! The liveness probe and the end of a user's own session on another server.
//!
//! ```text
//!   server of the new connection           server of the old socket
//!     liveness probe of the session  ────►  pings the socket
//!                                    ◄────  Alive, or Gone: broken, silent, or no such session
//!     takeover of the seat           ────►  ends the session (4410), flushes its edits
//!                                    ◄────  Settling at once if the flush takes time; Settled
//! ```
//!
//! Each server subscribes to a topic of its own, and a reply goes to the topic of the requester.
//! The network may lose any of these messages: a requester without a reply in time continues as if
//! the other server were dead. No edit is stored twice, because the new fence exceeds the old one.
//! A session that misses the message of its end finds its key gone at its next renewal.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::domain::ids::{DocumentId, NodeId, SessionId};
use crate::domain::limits::{FLUSH_TIMEOUT, PEER_ACK_TIMEOUT, PROBE_TIMEOUT, QUESTIONS_MAX};
use crate::locks::Holder;
use crate::outbox::close::LostReason;
use crate::pubsub::{Message, Reply, Signal, Topic};
use crate::seats::SeatService;
use crate::seats::peer_rpc::PendingRequests;
use crate::sessions::session::{Session, SessionState};

/// Requests of this process to other servers, and permits for the requests of others.
#[derive(Debug)]
pub(crate) struct Liveness {
    questions: Arc<PendingRequests>,
    /// Permits for requests of other servers that take time (G13).
    looking: Arc<Semaphore>,
}

impl Default for Liveness {
    fn default() -> Self {
        let looking = Arc::new(Semaphore::new(QUESTIONS_MAX));
        Self { questions: Arc::default(), looking }
    }
}

impl SeatService {
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
            None if holder.owner.node == self.shared.relay.node() => false,
            None => self.probe_elsewhere(holder.owner.node, session_id).await,
        }
    }

    async fn probe_elsewhere(&self, node: NodeId, session_id: SessionId) -> bool {
        let Some(mut asked) = self.shared.across.questions.knock(node, session_id) else {
            // Too many open requests. In doubt no session loses its seat.
            return true;
        };
        if asked.is_new {
            self.publish(node, Message::Knocked { question: asked.number, session: session_id })
                .await;
        }
        let answer = timeout(PROBE_TIMEOUT, asked.answer(|_any| true)).await;
        answer == Ok(Reply::Alive)
    }

    /// Notifies the server of `former` that `session` replaces it. For a seat that may
    /// edit the text, waits until that server has flushed the edits. Once the new fence is
    /// ratified, the database rejects every write under the old one.
    ///
    /// The wait ends when the other server does not answer, or after [`FLUSH_TIMEOUT`]. The cost:
    /// the document loses the edits not flushed by then, and the other server opens it afresh.
    /// Their author does not lose them: `document.saved` never named them, and the old tab retains
    /// them.
    pub(crate) async fn settle_elsewhere(&self, session: &Session, former: &Holder) {
        let node = former.owner.node;
        let Ok(session_id) = former.value.parse::<SessionId>() else { return };
        if node == self.shared.relay.node() {
            return;
        }
        let asked = self.shared.across.questions.ask(node);
        let question = asked.as_ref().map_or(0, |asked| asked.number);
        let identity = &session.identity;
        let document = identity.document;
        let said =
            self.publish(node, Message::Replaced { question, session: session_id, document }).await;
        let Some(mut asked) = asked.filter(|_| said && identity.seat.role.may_edit_text()) else {
            return;
        };
        let settled = async {
            timeout(PEER_ACK_TIMEOUT, asked.answer(|_any| true)).await?;
            timeout(FLUSH_TIMEOUT, asked.answer(|answer| answer == Reply::Settled)).await
        };
        if settled.await.is_err() {
            tracing::warn!(seat = %identity.seat, %node, "a seat was taken over from a silent server");
        }
    }

    /// Receives the requests of other servers and their replies.
    pub(crate) async fn handle_node_messages(self) {
        let mut questions = self.shared.relay.subscribe(Topic::Node(self.shared.relay.node()));
        let finished = self.shared.finished.clone();
        while let Some(signal) = finished.run_until_cancelled(questions.next()).await {
            let Signal::Message { from, message } = signal else { continue };
            match message {
                Message::Knocked { question, session: session_id } => {
                    self.look_for_life(from, question, session_id).await;
                }
                Message::Replaced { question, session: session_id, document } => {
                    self.end_for_takeover(session_id);
                    self.have_settled(from, question, document).await;
                }
                Message::Question { id, of } => self.tell_of(from, id, of).await,
                Message::Answer { id, json } => self.shared.questions.answered(id, json),
                Message::Answered { question, answer } => {
                    self.shared.across.questions.answered(from, question, answer);
                }
                Message::Update { .. }
                | Message::Presence(_)
                | Message::Hello
                | Message::Event { .. }
                | Message::Review { .. }
                | Message::Worked(_)
                | Message::Revoked(_)
                | Message::Evicted(_) => {}
            }
        }
    }

    async fn look_for_life(&self, from: NodeId, question: u64, session_id: SessionId) {
        let Some(session) = self.shared.registry.session(session_id) else {
            return self.answer(from, question, Reply::Gone).await;
        };
        let Ok(place) = Arc::clone(&self.shared.across.looking).try_acquire_owned() else {
            return self.answer(from, question, Reply::Alive).await;
        };
        let sessions = self.clone();
        self.shared.tasks.spawn(async move {
            let answer = if probe(&session).await { Reply::Alive } else { Reply::Gone };
            sessions.answer(from, question, answer).await;
            drop(place);
        });
    }

    /// Ends a session whose seat a takeover granted to another session of its user. There is no key
    /// to release.
    fn end_for_takeover(&self, session_id: SessionId) {
        if let Some(session) = self.shared.registry.session(session_id) {
            session.lose(LostReason::TakenOver);
            self.shared.registry.leave(&session);
        }
    }

    async fn have_settled(&self, from: NodeId, question: u64, document: DocumentId) {
        let room = self.shared.rooms.find(document);
        let Some(room) = room.filter(|room| !room.is_durable()) else {
            return self.answer(from, question, Reply::Settled).await;
        };
        self.answer(from, question, Reply::Settling).await;
        let Ok(place) = Arc::clone(&self.shared.across.looking).try_acquire_owned() else { return };
        let sessions = self.clone();
        self.shared.tasks.spawn(async move {
            if room.flushed_within(FLUSH_TIMEOUT).await {
                sessions.answer(from, question, Reply::Settled).await;
            }
            drop(place);
        });
    }

    async fn answer(&self, to: NodeId, question: u64, answer: Reply) {
        self.publish(to, Message::Answered { question, answer }).await;
    }

    /// Publishes to one server. False if the publish failed.
    async fn publish(&self, to: NodeId, message: Message) -> bool {
        let said = self.shared.relay.publish(Topic::Node(to), &message).await;
        if let Err(error) = &said {
            tracing::warn!(%error, node = %to, "a message to another server cannot be published");
        }
        said.is_ok()
    }
}

/// A broken connection is dead at once. Any other is dead if it does not answer a ping.
async fn probe(session: &Session) -> bool {
    match session.phase() {
        SessionState::Away | SessionState::Ended => false,
        SessionState::Claiming | SessionState::Held | SessionState::Uncertain => {
            session.answers_within(PROBE_TIMEOUT).await
        }
    }
}
