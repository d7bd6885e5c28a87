//! Delivery of committed effects: a commit and its messages are one task (G15).
//!
//! The server drops a request's future when its client disconnects or its time is over. A commit in
//! flight then finishes in the database without its messages. So the route of a change runs its handler in
//! a task of the server ([`complete`](crate::tasks::Tasks::complete)), and awaits that task.
//!
//! A server that dies between the two publishes no message. The comparison at each tick
//! ([`reconcile`](crate::seats::reconcile)) delivers the effect in this case.

use tokio::time::Instant;

use crate::domain::deletion::Deletion;
use crate::domain::ids::{DocumentId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::locks::LockName;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::Event;
use crate::pubsub::{Message, Topic};
use crate::seats::Seats;
use crate::sessions::session::Session;
use crate::storage::bin::LinkEnd;

impl Seats {
    /// Ends both seats of a revoked link, here and on every other server.
    ///
    /// The sockets of this server come first, then the message to the other servers. The keys are
    /// released in the background: a slow Redis delays neither.
    pub async fn revoke(&self, link: ShareLinkId) {
        self.revoke_here(link);
        let message = Message::Revoked(link);
        if let Err(error) = self.shared.pubsub.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, %link, "the other servers find the revocation at their next tick");
        }
    }

    pub(crate) fn revoke_here(&self, link: ShareLinkId) {
        for session in self.shared.registry.on_link(link) {
            self.lose(&session, LostReason::Revoked);
        }
    }

    /// Ends the sessions of a former reviewer in the reviewer's seat, here and on every other server.
    /// The link and the writer's session stay.
    ///
    /// Its key is released on behalf of a server that cannot: the next reviewer does not wait for the
    /// lease.
    pub async fn reviewer_removed(&self, link: ShareLinkId, user: &UserId) {
        self.reviewer_removed_here(link, user);
        let message = Message::Removed { link, user: user.clone() };
        if let Err(error) = self.shared.pubsub.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, %link, "the other servers find the former reviewer at their next tick");
        }
        let name = LockName::seat(Seat::new(link, Role::Reviewer));
        if let Ok(Some(holder)) = self.shared.locks.holder(&name).await
            && holder.owner.id == *user
        {
            self.shared.locks.release_in_background(name, holder.value);
        }
    }

    pub(crate) fn reviewer_removed_here(&self, link: ShareLinkId, user: &UserId) {
        for session in self.shared.registry.on_link(link) {
            let identity = &session.identity;
            if identity.seat.role == Role::Reviewer && identity.user.id == *user {
                self.lose(&session, LostReason::Removed);
            }
        }
    }

    /// Delivers the event of a numbered change to the sessions of a document, on every server.
    pub async fn deliver_change(&self, document: DocumentId, change: i64, event: &Event<'_>) {
        let json = event.json();
        let room = self.shared.rooms.find(document);
        if room.is_some_and(|room| !room.take_review_event(change, &json)) {
            return;
        }
        // Without a room this server does not know whether others have the document open.
        let message = Message::Review { change, json };
        if let Err(error) = self.shared.pubsub.publish(Topic::Room(document), &message).await {
            tracing::warn!(%document, %error, "the other servers find a change at their next tick");
        }
    }

    /// Resets the idle timeout of a seat's session, on the server of its socket.
    pub(crate) async fn record_work(&self, document: DocumentId, seat: Seat) {
        if let Some(session) = self.shared.registry.seated_in(seat) {
            return session.edited(Instant::now());
        }
        let worked = Message::Worked(seat.role);
        if let Err(error) = self.shared.pubsub.publish(Topic::Room(document), &worked).await {
            tracing::warn!(%error, "the work of a member cannot be published to the other servers");
        }
    }

    pub async fn notify_writer(&self, document: DocumentId, event: &Event<'_>) {
        let (to, json) = (Some(Role::Writer), event.json());
        if let Some(room) = self.shared.rooms.find(document) {
            room.broadcast_json(to, &json);
        }
        let message = Message::Event { to, json };
        if let Err(error) = self.shared.pubsub.publish(Topic::Room(document), &message).await {
            tracing::debug!(%document, %error, "an event did not reach the other servers");
        }
    }

    pub async fn document_deleted(&self, document: DocumentId, deletion: Deletion) {
        self.deleted_here(document, &deletion);
        let message = Message::Deleted { document, deletion };
        if let Err(error) = self.shared.pubsub.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, %document, "the other servers find the deletion at their next tick");
        }
    }

    pub(super) fn deleted_here(&self, document: DocumentId, deletion: &Deletion) {
        let mut sessions = self.shared.registry.all();
        sessions.retain(|session| session.identity.document == document);
        for session in sessions {
            self.lose_to(&session, Some(deletion));
        }
    }

    /// Ends a session: its socket is closed at once, its key is released in the background.
    pub(crate) fn lose(&self, session: &Session, reason: LostReason) {
        session.lose(reason);
        self.release_lost(session);
    }

    fn lose_to(&self, session: &Session, deletion: Option<&Deletion>) {
        session.lose_to(deletion);
        self.release_lost(session);
    }

    pub(super) fn release_lost(&self, session: &Session) {
        if self.shared.registry.leave(session).is_some() {
            self.release_in_background(&session.identity);
            self.announce_departure(session);
        }
    }

    pub(crate) async fn lose_with_link(&self, session: &Session) {
        let link = session.identity.seat.link;
        match self.shared.storage.end_of_link(link).await {
            Ok(LinkEnd::Deleted(deletion)) => self.lose_to(session, deletion.as_ref()),
            Ok(LinkEnd::Revoked) => self.lose(session, LostReason::Revoked),
            // The database rejects the session's writes already, so its end does not wait.
            Err(error) => {
                tracing::warn!(%error, %link, "the end of a share link cannot be read");
                self.lose(session, LostReason::Revoked);
            }
        }
    }

    pub(crate) async fn close_of_link(&self, link: ShareLinkId, user: &UserId) -> Close {
        match self.shared.storage.deletion_of_link(link).await {
            Ok(Some(deletion)) if deletion.concerns(user) => Close::Lost(LostReason::Deleted),
            Ok(_) => Close::NoSuchLink,
            Err(error) => {
                tracing::warn!(%error, %link, "the end of a share link cannot be read");
                Close::NoSuchLink
            }
        }
    }

    /// Ends a session whose grant the database has vacated, on its server.
    pub async fn evict(&self, session: SessionId) {
        self.evict_here(session);
        let message = Message::Evicted(session);
        if let Err(error) = self.shared.pubsub.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, "the session's server finds the eviction at its next renewal");
        }
    }

    pub(super) fn evict_here(&self, session_id: SessionId) {
        if let Some(session) = self.shared.registry.session(session_id) {
            self.lose(&session, LostReason::Evicted);
        }
    }
}
