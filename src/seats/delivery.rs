//! Delivery of committed effects: a commit and its messages are one task (G15).
//!
//! The server drops a handler's future when its client disconnects or its time is over. A commit in
//! flight then finishes in the database without its messages. So a handler runs a commit and all
//! its messages in a task of the server, and awaits that task.
//!
//! A server that dies between the two publishes no message. The comparison at each tick
//! ([`reconcile`](crate::seats::reconcile)) delivers the effect in this case.

use std::panic::resume_unwind;

use tracing::Instrument as _;

use crate::domain::ids::{DocumentId, SessionId, ShareLinkId};
use crate::outbox::close::LostReason;
use crate::pubsub::{Message, Signal, Topic};
use crate::rooms::permits;
use crate::seats::SeatService;
use crate::sessions::session::Session;

impl SeatService {
    /// Runs `work` to its end, even if the caller drops the returned future.
    ///
    /// # Panics
    ///
    /// If `work` panics.
    pub async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.shared.tasks.spawn(permits::passed_on(work).in_current_span()).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime cancels tasks only when the process exits.
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }

    /// Ends both seats of a revoked link, here and on every other server.
    ///
    /// The sockets of this server come first, then the message to the other servers. The keys are
    /// released in the background: a slow Redis delays neither.
    pub async fn revoke(&self, link: ShareLinkId) {
        self.revoke_here(link);
        let message = Message::Revoked(link);
        if let Err(error) = self.shared.relay.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, %link, "the other servers find the revocation at their next tick");
        }
    }

    pub(crate) fn revoke_here(&self, link: ShareLinkId) {
        for session in self.shared.registry.on_link(link) {
            self.lose(&session, LostReason::Revoked);
        }
    }

    /// Ends the sessions of a deleted document on this server, through any link. The other servers
    /// find theirs at their next tick.
    pub fn document_deleted(&self, document: DocumentId) {
        let mut sessions = self.shared.registry.all();
        sessions.retain(|session| session.identity.document == document);
        for session in sessions {
            self.lose(&session, LostReason::Revoked);
        }
    }

    /// Ends a session: its socket is closed at once, its key is released in the background.
    pub(crate) fn lose(&self, session: &Session, reason: LostReason) {
        session.lose(reason);
        if self.shared.registry.leave(session).is_some() {
            self.release_in_background(&session.identity);
        }
    }

    pub(crate) fn evict_here(&self, session_id: SessionId) {
        if let Some(session) = self.shared.registry.session(session_id) {
            self.lose(&session, LostReason::Evicted);
        }
    }

    /// Receives the messages of the other servers about seats.
    pub(crate) async fn handle_cluster_messages(self) {
        let mut cluster = self.shared.relay.subscribe(Topic::Cluster);
        let finished = self.shared.finished.clone();
        while let Some(signal) = finished.run_until_cancelled(cluster.next()).await {
            match signal {
                Signal::Message { message: Message::Revoked(link), .. } => self.revoke_here(link),
                Signal::Message { message: Message::Evicted(session), .. } => {
                    self.evict_here(session);
                }
                Signal::Message { .. } => {}
                // A revocation may be among the lost messages (G14). The comparison runs in a task
                // of its own, so that this one receives the next message at once.
                Signal::Gap => self.reconcile_soon(),
            }
        }
    }
}
