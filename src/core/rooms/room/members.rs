//! The members of a room: join, leave, presence, and events to them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::domain::ids::SessionId;
use crate::domain::limits::{REQUEST_AGAIN_AFTER, SESSIONS_PER_ROOM_MAX};
use crate::domain::seat::Role;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::{DOCUMENT_DAMAGED, Event, Fullness};
use crate::pubsub::Message;
use crate::rooms::room::occupancy::SeatLocation;
use crate::rooms::room::peers::{Step, peer_message};
use crate::rooms::room::{NotJoined, Room, RoomState};
use crate::sessions::session::{Session, SessionIdentity};
use crate::yjs::awareness::{AwarenessEntry, decode_awareness, encode_awareness};
use crate::yjs::protocol;

/// The sessions in a room.
#[derive(Debug, Default)]
pub(crate) struct Members {
    sessions: Vec<Arc<Session>>,
    /// The session without a reply to the sync step 1 after a gap, and the time of that request.
    requested: Option<(SessionId, Instant)>,
    /// Sessions with a broken socket for which the room has not yet published `peer.left`.
    leaving: usize,
}

impl Members {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether no session is in the room, and the other servers know it.
    pub(super) fn are_gone(&self) -> bool {
        self.is_empty() && self.leaving == 0
    }

    pub(super) fn want_events(&self) -> bool {
        self.iter().any(|member| member.identity.wants_events)
    }

    pub(super) fn send_to_others(&self, session: &Session, frame: &Bytes) {
        for member in self.iter() {
            if member.identity.session != session.identity.session {
                member.outbox().send(frame.clone());
            }
        }
    }

    pub(super) fn send_to_all(&self, frame: &Bytes) {
        self.iter().for_each(|member| member.outbox().send(frame.clone()));
    }

    pub(super) fn broadcast_event(&self, event: &Event<'_>) {
        if self.want_events() {
            self.send_event(None, &event.frame());
        }
    }

    pub(super) fn broadcast_json(&self, to: Option<Role>, json: &str) {
        self.send_event(to, &protocol::event(json));
    }

    fn send_event(&self, to: Option<Role>, frame: &Bytes) {
        for member in self.iter() {
            let is_meant = to.is_none_or(|role| role == member.identity.seat.role);
            if is_meant && member.identity.wants_events {
                member.outbox().send(frame.clone());
            }
        }
    }

    /// Whether a session may be asked for its updates after a gap. A reply to an outstanding request carries
    /// all that the client has by then, so the room sends no second one within [`REQUEST_AGAIN_AFTER`].
    fn may_request(&mut self, session: SessionId, now: Instant) -> bool {
        let is_outstanding =
            self.requested.is_some_and(|(of, at)| of == session && now < at + REQUEST_AGAIN_AFTER);
        if !is_outstanding {
            self.requested = Some((session, now));
        }
        !is_outstanding
    }
}

impl Room {
    /// Adds a session. The room sends it the peers, the saved state vector, and a sync step 1 that
    /// requests its unsaved edits. Fails with [`NotJoined`] when the room is retired or full.
    pub fn join(&self, session: &Arc<Session>) -> Result<(), NotJoined> {
        let mut state = self.lock();
        if self.retired.is_cancelled() {
            return Err(NotJoined::Retired);
        }
        if state.members.sessions.len() >= SESSIONS_PER_ROOM_MAX {
            return Err(NotJoined::Full);
        }
        state.send_sync_request(session);
        let living = state.presence.living();
        if !living.is_empty() {
            session.outbox().send(protocol::awareness(&encode_awareness(&living)));
        }
        let SessionIdentity { seat, user, .. } = &session.identity;
        for (peer, _, occupant) in state.occupancy.taken().filter(|it| seat.is_beside(it.0)) {
            session.notify(&Event::PeerJoined(peer.role, &occupant.user));
        }
        session.notify(&Event::DocumentSaved { state_vector: state.saved.state_vector() });
        let damaged = state.integrity.is_damaged().then_some(DOCUMENT_DAMAGED);
        for problem in state.durability.failure().into_iter().chain(damaged) {
            session.notify(&Event::Problem(problem));
        }
        if state.quota.fullness != Fullness::Ample {
            session.notify(&state.size_event(&self.limits));
        }
        state.peer_joined(*seat, session.fence(), user, SeatLocation::Here);
        let joined = peer_message(Step::Joined, &session.identity, session.fence());
        self.publish_to_others(&state, joined);
        state.members.sessions.push(Arc::clone(session));
        Ok(())
    }

    /// The session's socket closed. The room removes its cursor at once; its seat may stay reserved.
    /// The room stays open until [`leave`](Self::leave), or it could not publish `peer.left`.
    pub fn disconnect(&self, session: &Session) {
        let mut state = self.lock();
        state.members.leaving += 1;
        state.members.sessions.retain(|member| member.identity.session != session.identity.session);
        let tombstones = state.presence.leave(session.identity.session, Instant::now());
        self.broadcast_presence(&state, None, &tombstones);
    }

    pub fn leave(&self, session: &Session) {
        let mut state = self.lock();
        state.members.leaving = state.members.leaving.saturating_sub(1);
        self.vacate(&mut state, session);
    }

    pub fn announce_failed_join(&self, session: &Session) {
        self.vacate(&mut self.lock(), session);
    }

    /// Publishes `peer.left`, except when another session of the same user took the seat over.
    fn vacate(&self, state: &mut RoomState, session: &Session) {
        let (seat, fence) = (session.identity.seat, session.fence());
        if session.lost_reason() == Some(LostReason::TakenOver) {
            return state.occupancy.moved(seat, fence);
        }
        state.peer_left(seat, fence);
        if state.subscribers.were_any() {
            self.queue_message(peer_message(Step::Left, &session.identity, fence));
        }
    }

    /// The session's lease was restored: requests the edits that the room rejected meanwhile.
    pub fn request_missing(&self, session: &Session) {
        self.lock().send_sync_request(session);
    }

    pub fn receive_presence(
        &self,
        session: &Session,
        update: &[u8],
        now: Instant,
    ) -> Result<(), Close> {
        let entries = decode_awareness(update).map_err(|_| Close::Malformed("awareness"))?;
        let mut state = self.lock();
        let RoomState { presence, owners, .. } = &mut *state;
        let received = presence
            .receive(&session.identity, entries, owners, now)
            .map_err(|_| Close::Malformed("awareness-state"))?;
        if received.moved {
            session.record_activity(now);
        }
        if !received.echo.is_empty() {
            session.outbox().send(protocol::awareness(&encode_awareness(&received.echo)));
        }
        self.broadcast_presence(&state, Some(session), &received.news);
        Ok(())
    }

    /// Replies to a query for all presence; returns the bytes of the reply.
    pub fn answer_presence(&self, session: &Session) -> usize {
        let living = self.lock().presence.living();
        let frame = protocol::awareness(&encode_awareness(&living));
        let bytes = frame.len();
        session.outbox().send(frame);
        bytes
    }

    /// The client replied to the room's sync step 1.
    pub fn record_answer(&self, session: &Session) {
        let session_id = session.identity.session;
        self.lock().members.requested.take_if(|(of, _)| *of == session_id);
    }

    /// Removes presence that no client renews, and broadcasts its tombstones.
    pub fn expire_presence(&self, now: Instant) {
        let mut state = self.lock();
        let tombstones = state.presence.expire(now);
        self.broadcast_presence(&state, None, &tombstones);
    }

    /// The session in that role acted by REST on another server: this restarts its idle timeout.
    pub(super) fn worked(&self, role: Role) {
        let state = self.lock();
        let workers = state.members.iter().filter(|member| member.identity.seat.role == role);
        workers.for_each(|member| member.edited(Instant::now()));
    }

    pub fn broadcast_json(&self, to: Option<Role>, json: &str) {
        self.lock().members.broadcast_json(to, json);
    }

    /// Broadcasts presence to all members but `except`, and publishes it to the other servers, if there are any.
    fn broadcast_presence(
        &self,
        state: &RoomState,
        except: Option<&Session>,
        news: &[AwarenessEntry],
    ) {
        if news.is_empty() {
            return;
        }
        let update = encode_awareness(news);
        let frame = protocol::awareness(&update);
        let message = Message::Presence(update.into());
        match except {
            Some(session) => {
                state.members.send_to_others(session, &frame);
                self.publish_to_others(state, message);
            }
            // Tombstones: a server that was forgotten may show their clients.
            None => {
                state.members.send_to_all(&frame);
                if state.subscribers.were_any() {
                    self.queue_message(message);
                }
            }
        }
    }

    pub(super) fn publish_event(&self, state: &RoomState, event: &Event<'_>) {
        self.publish_to_others(state, Message::Event { to: None, json: event.json() });
    }

    /// Queues a message for the other servers, if the room knows one.
    fn publish_to_others(&self, state: &RoomState, message: Message) {
        if !state.subscribers.is_empty() {
            self.queue_message(message);
        }
    }

    pub(super) fn queue_message(&self, message: Message) {
        if self.outgoing.push(message).is_err() {
            tracing::debug!(document = %self.document, "the outgoing queue is full: a message is dropped");
        }
    }
}

impl RoomState {
    /// Requests from a writer the updates that the log lacks. The room would reject a reviewer's.
    pub(super) fn send_sync_request(&self, session: &Session) {
        if session.identity.seat.role.may_edit_text() {
            session.outbox().send(protocol::sync_step1(&self.log.state_vector()));
        }
    }

    /// An edit builds on an update that the log lacks: requests it and returns the bytes of the request.
    pub(super) fn request_after_gap(&mut self, session: &Session, now: Instant) -> usize {
        if !self.members.may_request(session.identity.session, now) {
            return 0;
        }
        let vector = self.log.state_vector();
        session.outbox().send(protocol::sync_step1(&vector));
        vector.len()
    }
}
