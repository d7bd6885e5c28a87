//! The people in a room: who comes, who goes, where they look.

use std::sync::Arc;

use tokio::time::Instant;

use crate::domain::limits::{ASK_AGAIN_AFTER, SESSIONS_PER_ROOM_MAX};
use crate::domain::seat::{Role, Seat};
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::{DOCUMENT_DAMAGED, Event, Fullness};
use crate::pubsub::Message;
use crate::rooms::room::occupancy::SeatLocation;
use crate::rooms::room::peers::{Step, word};
use crate::rooms::room::{Retired, Room, State};
use crate::sessions::session::{Session, SessionIdentity};
use crate::yjs::awareness::{AwarenessEntry, decode_awareness, encode_awareness};
use crate::yjs::protocol;

impl Room {
    /// Brings a session in: who is here, what has been saved, and a question for what it has.
    ///
    /// # Errors
    ///
    /// [`Retired`] when the room was given up; open it again.
    pub fn join(&self, holding: &Arc<Session>) -> Result<(), Retired> {
        let mut state = self.lock();
        if self.retired.is_cancelled() || SESSIONS_PER_ROOM_MAX <= state.members.len() {
            return Err(Retired);
        }
        state.ask_for_missing(holding);
        let living = state.presence.living();
        if !living.is_empty() {
            holding.outbox().send(protocol::awareness(&encode_awareness(&living)));
        }
        let SessionIdentity { seat, user, .. } = &holding.identity;
        let beside = Seat::new(seat.link, seat.role.other());
        for (_, _, identity) in state.occupancy.taken().filter(|(sits, _, _)| *sits == beside) {
            holding.tell(&Event::PeerJoined(beside.role, &identity.user));
        }
        holding.tell(&Event::DocumentSaved { state_vector: state.saved.state_vector() });
        let damaged = state.is_damaged.then_some(DOCUMENT_DAMAGED);
        for problem in state.not_saved.into_iter().chain(damaged) {
            holding.tell(&Event::Problem(problem));
        }
        if state.size.fullness != Fullness::Ample {
            holding.tell(&state.told_size(&self.limits));
        }
        state.peer_joined(*seat, holding.fence(), user, SeatLocation::Here);
        self.publish_to_peers(word(Step::Joined, &holding.identity, holding.fence()));
        state.members.push(Arc::clone(holding));
        Ok(())
    }

    /// The session's socket is gone: its cursor goes at once, its seat may stay for a while. The
    /// room stays until its [`leave`](Self::leave), or the other servers would not hear it.
    pub fn disconnect(&self, holding: &Session) {
        let mut state = self.lock();
        state.leaving += 1;
        state.members.retain(|member| member.identity.session != holding.identity.session);
        let tombstones = state.presence.leave(holding.identity.session);
        self.broadcast_presence(&state, None, &tombstones);
    }

    /// The session has given up its seat.
    pub fn leave(&self, holding: &Session) {
        let mut state = self.lock();
        state.leaving = state.leaving.saturating_sub(1);
        self.vacate(&mut state, holding);
    }

    /// The session was given a seat, and never sat in it: whoever it was taken from has left.
    pub fn announce_failed_join(&self, holding: &Session) {
        self.vacate(&mut self.lock(), holding);
    }

    /// Not said of a chair that the same person sits on again.
    fn vacate(&self, state: &mut State, holding: &Session) {
        let (seat, fence) = (holding.identity.seat, holding.fence());
        if holding.lost() == Some(LostReason::TakenOver) {
            return state.occupancy.moved(seat, fence);
        }
        state.peer_left(seat, fence);
        self.publish_to_peers(word(Step::Left, &holding.identity, fence));
    }

    /// The lease was restored: asks for what was refused meanwhile.
    pub fn request_missing(&self, holding: &Session) {
        self.lock().ask_for_missing(holding);
    }

    /// Takes in what a client says of its cursor.
    ///
    /// # Errors
    ///
    /// [`Close::Malformed`] when it says it wrongly.
    pub fn receive_presence(
        &self,
        holding: &Session,
        update: &[u8],
        now: Instant,
    ) -> Result<(), Close> {
        let entries = decode_awareness(update).map_err(|_| Close::Malformed("awareness"))?;
        let mut state = self.lock();
        let State { presence, owners, .. } = &mut *state;
        let received = presence
            .receive(&holding.identity, entries, owners, now)
            .map_err(|_| Close::Malformed("awareness-state"))?;
        if received.moved {
            holding.was_active(now);
        }
        if !received.echo.is_empty() {
            holding.outbox().send(protocol::awareness(&encode_awareness(&received.echo)));
        }
        self.broadcast_presence(&state, Some(holding), &received.news);
        Ok(())
    }

    /// Answers a query for everybody's presence; returns the bytes of the answer.
    pub fn answer_presence(&self, holding: &Session) -> usize {
        let living = self.lock().presence.living();
        let frame = protocol::awareness(&encode_awareness(&living));
        let bytes = frame.len();
        holding.outbox().send(frame);
        bytes
    }

    /// A client answers what the room asked it for.
    pub fn was_answered(&self, holding: &Session) {
        let session = holding.identity.session;
        self.lock().asked.take_if(|(of, _)| *of == session);
    }

    /// Buries the presence that nobody renews.
    pub fn expire_presence(&self, now: Instant) {
        let mut state = self.lock();
        let tombstones = state.presence.expire(now);
        self.broadcast_presence(&state, None, &tombstones);
    }

    /// Whoever sits there has worked, although nothing came by their socket.
    pub(super) fn worked(&self, role: Role) {
        let state = self.lock();
        let workers = state.members.iter().filter(|member| member.identity.seat.role == role);
        workers.for_each(|member| member.edited(Instant::now()));
    }

    /// Sends an event to everybody here who sits in `to`, or to all.
    pub fn tell(&self, to: Option<Role>, json: &str) {
        let frame = protocol::event(json);
        for member in &self.lock().members {
            let is_meant = to.is_none_or(|role| role == member.identity.seat.role);
            if is_meant && member.identity.wants_events {
                member.outbox().send(frame.clone());
            }
        }
    }

    /// Tells presence to everybody here but `except`, and to the other servers.
    fn broadcast_presence(&self, state: &State, except: Option<&Session>, news: &[AwarenessEntry]) {
        if news.is_empty() {
            return;
        }
        let update = encode_awareness(news);
        let frame = protocol::awareness(&update);
        match except {
            Some(holding) => state.send_to_others(holding, &frame),
            None => state.send_to_all(&frame),
        }
        self.publish_to_peers(Message::Presence(update.into()));
    }

    pub(super) fn tell_servers(&self, event: &Event<'_>) {
        self.publish_to_peers(Message::Event { to: None, json: event.json() });
    }

    fn publish_to_peers(&self, message: Message) {
        if self.outgoing.push(message).is_err() {
            tracing::debug!(document = %self.document, "too much to say to the other servers");
        }
    }
}

impl State {
    /// Asks a writer for what the server has not. A reviewer has nothing that would be taken.
    pub(super) fn ask_for_missing(&self, holding: &Session) {
        if holding.identity.seat.role.may_edit_text() {
            holding.outbox().send(protocol::sync_step1(&self.log.state_vector()));
        }
    }

    /// An edit builds on something that the room has not: asks its writer for that, and returns the
    /// bytes of the question. A writer that has not answered the last question answers it with
    /// everything it has by then, so the room asks no second one for a while.
    pub(super) fn ask_upon_gap(&mut self, holding: &Session, now: Instant) -> usize {
        let session = holding.identity.session;
        if self.asked.is_some_and(|(of, at)| of == session && now < at + ASK_AGAIN_AFTER) {
            return 0;
        }
        self.asked = Some((session, now));
        let vector = self.log.state_vector();
        holding.outbox().send(protocol::sync_step1(&vector));
        vector.len()
    }
}
