//! The people in a room: who comes, who goes, where they look.

use std::sync::Arc;

use tokio::time::Instant;

use crate::domain::limits::{ASK_AGAIN_AFTER, SESSIONS_PER_ROOM_MAX};
use crate::domain::seat::{Role, Seat};
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::{DOCUMENT_DAMAGED, Event, Fullness};
use crate::pubsub::Message;
use crate::rooms::room::occupancy::Place;
use crate::rooms::room::peers::{Step, word};
use crate::rooms::room::{Retired, Room, State};
use crate::sessions::session::{Holding, Sitter};
use crate::yjs::awareness::{AwarenessEntry, decode_awareness, encode_awareness};
use crate::yjs::protocol;

impl Room {
    /// Brings a session in: who is here, what has been saved, and a question for what it has.
    ///
    /// # Errors
    ///
    /// [`Retired`] when the room was given up; open it again.
    pub fn join(&self, holding: &Arc<Holding>) -> Result<(), Retired> {
        let mut state = self.lock();
        if self.retired.is_cancelled() || SESSIONS_PER_ROOM_MAX <= state.members.len() {
            return Err(Retired);
        }
        state.ask_for_missing(holding);
        let living = state.presence.living();
        if !living.is_empty() {
            holding.outbox().send(protocol::awareness(&encode_awareness(&living)));
        }
        let Sitter { seat, user, .. } = &holding.sitter;
        let beside = Seat::new(seat.link, seat.role.other());
        for (_, _, sitter) in state.chairs.taken().filter(|(sits, _, _)| *sits == beside) {
            holding.tell(&Event::PeerJoined(beside.role, &sitter.user));
        }
        holding.tell(&Event::DocumentSaved { state_vector: state.saved.state_vector() });
        let damaged = state.is_damaged.then_some(DOCUMENT_DAMAGED);
        for problem in state.not_saved.into_iter().chain(damaged) {
            holding.tell(&Event::Problem(problem));
        }
        if state.size.fullness != Fullness::Ample {
            holding.tell(&state.told_size(&self.limits));
        }
        state.comes(*seat, holding.fence(), user, Place::Here);
        self.say(word(Step::Joined, &holding.sitter, holding.fence()));
        state.members.push(Arc::clone(holding));
        Ok(())
    }

    /// The session's socket is gone: its cursor goes at once, its seat may stay for a while. The
    /// room stays until its [`farewell`](Self::farewell), or the other servers would not hear it.
    pub fn hang_up(&self, holding: &Holding) {
        let mut state = self.lock();
        state.leaving += 1;
        state.members.retain(|member| member.sitter.session != holding.sitter.session);
        let tombstones = state.presence.leave(holding.sitter.session);
        self.spread(&state, None, &tombstones);
    }

    /// The session has given up its seat.
    pub fn farewell(&self, holding: &Holding) {
        let mut state = self.lock();
        state.leaving = state.leaving.saturating_sub(1);
        self.is_over(&mut state, holding);
    }

    /// The session was given a seat, and never sat in it: whoever it was taken from has left.
    pub fn never_sat(&self, holding: &Holding) {
        self.is_over(&mut self.lock(), holding);
    }

    /// Not said of a chair that the same person sits on again.
    fn is_over(&self, state: &mut State, holding: &Holding) {
        let (seat, fence) = (holding.sitter.seat, holding.fence());
        if holding.lost() == Some(LostReason::TakenOver) {
            return state.chairs.moved(seat, fence);
        }
        state.goes(seat, fence);
        self.say(word(Step::Left, &holding.sitter, fence));
    }

    /// The lease was restored: asks for what was refused meanwhile.
    pub fn ask_again(&self, holding: &Holding) {
        self.lock().ask_for_missing(holding);
    }

    /// Takes in what a client says of its cursor.
    ///
    /// # Errors
    ///
    /// [`Close::Malformed`] when it says it wrongly.
    pub fn receive_presence(
        &self,
        holding: &Holding,
        update: &[u8],
        now: Instant,
    ) -> Result<(), Close> {
        let entries = decode_awareness(update).map_err(|_| Close::Malformed("awareness"))?;
        let mut state = self.lock();
        let State { presence, owners, .. } = &mut *state;
        let received = presence
            .receive(&holding.sitter, entries, owners, now)
            .map_err(|_| Close::Malformed("awareness-state"))?;
        if received.moved {
            holding.was_active(now);
        }
        if !received.echo.is_empty() {
            holding.outbox().send(protocol::awareness(&encode_awareness(&received.echo)));
        }
        self.spread(&state, Some(holding), &received.news);
        Ok(())
    }

    /// Answers a query for everybody's presence; returns the bytes of the answer.
    pub fn answer_presence(&self, holding: &Holding) -> usize {
        let living = self.lock().presence.living();
        let frame = protocol::awareness(&encode_awareness(&living));
        let bytes = frame.len();
        holding.outbox().send(frame);
        bytes
    }

    /// A client answers what the room asked it for.
    pub fn was_answered(&self, holding: &Holding) {
        let session = holding.sitter.session;
        self.lock().asked.take_if(|(of, _)| *of == session);
    }

    /// Buries the presence that nobody renews.
    pub fn expire_presence(&self, now: Instant) {
        let mut state = self.lock();
        let tombstones = state.presence.expire(now);
        self.spread(&state, None, &tombstones);
    }

    /// Whoever sits there has worked, although nothing came by their socket.
    pub(super) fn worked(&self, role: Role) {
        let state = self.lock();
        let workers = state.members.iter().filter(|member| member.sitter.seat.role == role);
        workers.for_each(|member| member.edited(Instant::now()));
    }

    /// Sends an event to everybody here who sits in `to`, or to all.
    pub fn tell(&self, to: Option<Role>, json: &str) {
        let frame = protocol::event(json);
        for member in &self.lock().members {
            let is_meant = to.is_none_or(|role| role == member.sitter.seat.role);
            if is_meant && member.sitter.wants_events {
                member.outbox().send(frame.clone());
            }
        }
    }

    /// Tells presence to everybody here but `except`, and to the other servers.
    fn spread(&self, state: &State, except: Option<&Holding>, news: &[AwarenessEntry]) {
        if news.is_empty() {
            return;
        }
        let update = encode_awareness(news);
        let frame = protocol::awareness(&update);
        match except {
            Some(holding) => state.send_to_others(holding, &frame),
            None => state.send_to_all(&frame),
        }
        self.say(Message::Presence(update.into()));
    }

    pub(super) fn tell_servers(&self, event: &Event<'_>) {
        self.say(Message::Event { to: None, json: event.json() });
    }

    fn say(&self, message: Message) {
        if self.outgoing.push(message).is_err() {
            tracing::debug!(document = %self.document, "too much to say to the other servers");
        }
    }
}

impl State {
    /// Asks a writer for what the server has not. A reviewer has nothing that would be taken.
    pub(super) fn ask_for_missing(&self, holding: &Holding) {
        if holding.sitter.seat.role.may_edit_text() {
            holding.outbox().send(protocol::sync_step1(&self.log.state_vector()));
        }
    }

    /// An edit builds on something that the room has not: asks its writer for that, and returns the
    /// bytes of the question. A writer that has not answered the last question answers it with
    /// everything it has by then, so the room asks no second one for a while.
    pub(super) fn ask_upon_gap(&mut self, holding: &Holding, now: Instant) -> usize {
        let session = holding.sitter.session;
        if self.asked.is_some_and(|(of, at)| of == session && now < at + ASK_AGAIN_AFTER) {
            return 0;
        }
        self.asked = Some((session, now));
        let vector = self.log.state_vector();
        holding.outbox().send(protocol::sync_step1(&vector));
        vector.len()
    }
}
