//! A seated session as its socket task uses it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::domain::limits::{AWARENESS_BYTES_MAX, FLUSH_TIMEOUT};
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::Event;
use crate::rooms::room::Room;
use crate::seats::Seats;
use crate::sessions::budgets::SocketBudget;
use crate::sessions::session::{Session, SessionState};
use crate::yjs::log::Origin;
use crate::yjs::protocol::{self, ClientFrame};

pub const TOO_MANY_MESSAGES: Close = Close::TooMuch("too-many-messages");

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEnd {
    /// The server sent this close, or received one, and releases the seat at once.
    Closed(Close),
    /// The connection broke: the seat stays reserved for the resume grace.
    Broken,
}

/// A seated session. The socket task owns it and ends it with [`SeatHandle::leave`]. If a panic drops
/// the session instead, it leaves room and seat as a broken connection does.
#[derive(Debug)]
pub struct SeatHandle {
    seats: Seats,
    session: Arc<Session>,
    room: Arc<Room>,
    budget: SocketBudget,
    has_left: bool,
}

impl SeatHandle {
    pub(crate) fn new(seats: Seats, session: Arc<Session>, room: Arc<Room>) -> Self {
        let budget = seats.budgets().socket();
        Self { seats, session, room, budget, has_left: false }
    }

    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn count_message(&self) -> Result<(), Close> {
        let user = &self.session.identity.user.id;
        let is_within = self.seats.budgets().may_receive(&self.budget, user);
        is_within.then_some(()).ok_or(TOO_MANY_MESSAGES)
    }

    fn may_move(&self, bytes: usize) -> bool {
        let user = &self.session.identity.user.id;
        self.seats.budgets().may_move(&self.budget, user, bytes)
    }

    /// Charges this socket for the cost of a message beyond its own bytes.
    fn pay(&self, bytes: usize) -> Result<(), Close> {
        if bytes == 0 || self.may_move(bytes) {
            Ok(())
        } else {
            Err(Close::TooMuch("too-many-answers"))
        }
    }

    pub fn heard(&self) {
        self.session.heard(Instant::now());
    }

    pub fn answered(&self, number: &[u8]) {
        self.session.answered_by(number);
    }

    /// The pause before the socket reads its next message, if the writer is faster than storage. It ends
    /// after `longest`.
    #[must_use]
    pub fn pause(&self, longest: Duration) -> Option<BoxFuture<'static, ()>> {
        let is_due =
            self.session.identity.seat.role.may_edit_text() && self.room.applies_backpressure();
        let room = is_due.then(|| Arc::clone(&self.room))?;
        let until = Instant::now() + longest;
        Some(Box::pin(async move {
            let _ended = timeout_at(until, room.backpressure_ends()).await;
        }))
    }

    pub fn receive(&self, message: &Bytes) -> Result<(), Close> {
        let now = Instant::now();
        self.count_message()?;
        if !self.may_move(message.len()) {
            return Err(TOO_MANY_MESSAGES);
        }
        if self.seats.limits().message_bytes < message.len() {
            return Err(Close::TooLarge("message"));
        }
        let frame = protocol::parse(message).map_err(|_| Close::Malformed("frame"))?;
        let session = &self.session;
        match frame {
            ClientFrame::SyncStep1(state_vector) => {
                // Five bytes request the whole document, so the session pays for the reply.
                self.pay(self.room.answer(session, state_vector)?)
            }
            ClientFrame::SyncStep2(update) => {
                self.room.record_answer(session);
                self.update(message, update, Origin::Answer, now)
            }
            ClientFrame::Update(update) => self.update(message, update, Origin::Client, now),
            ClientFrame::Awareness(update) if update.len() > AWARENESS_BYTES_MAX => {
                Err(Close::TooLarge("awareness"))
            }
            ClientFrame::Awareness(update) => self.room.receive_presence(session, update, now),
            ClientFrame::QueryAwareness => {
                // One byte requests all presence.
                self.pay(self.room.answer_presence(session))
            }
            // A client has no permission to deny. Old clients send the frame all the same.
            ClientFrame::Auth => Ok(()),
        }
    }

    fn update(
        &self,
        message: &Bytes,
        update: &[u8],
        origin: Origin,
        now: Instant,
    ) -> Result<(), Close> {
        if self.session.identity.seat.role.may_edit_text() {
            let frame = protocol::passed_on(message, update);
            let update = message.slice_ref(update);
            return self.pay(self.room.receive(origin, &self.session, (&update, &frame), now)?);
        }
        // The server drops every update of a reviewer (G10). A sync reply of an honest client may
        // contain the whole document, with edits of the writer that the database lost. So the
        // server notifies the client only of edits that the reviewer may have made.
        let user = &self.session.identity.user.id;
        if origin == Origin::Answer && !self.room.may_bring_edit_of(user, update) {
            return Ok(());
        }
        if !self.session.identity.wants_events {
            // The client has the edit in its replica and reads no `denied` event. The close code
            // stops it, before its user types more into a text that no other replica has.
            return Err(Close::Forbidden("not-the-writer"));
        }
        self.session.notify(&Event::Denied("not-the-writer"));
        Ok(())
    }

    /// Ends the session. Idempotent with every other end of it.
    pub async fn leave(mut self, ending: SocketEnd) {
        self.has_left = true;
        self.room.disconnect(&self.session);
        let (seats, session) = (self.seats.clone(), Arc::clone(&self.session));
        let room = Arc::clone(&self.room);
        let is_late =
            matches!(session.lost_reason(), Some(LostReason::Expired | LostReason::Silent));
        let is_gone = ending == SocketEnd::Broken || is_late;
        if is_gone && session.is_absent_waiter() {
            // The hand-over reached a dead connection: the user never saw the seat.
            seats.store_absent_waiter(&session, false);
        }
        // The rest may wait for storage and locks. The session drops its limiters before that wait.
        drop(self);
        if ending == SocketEnd::Broken && session.went_away() {
            return hold_during_grace_later(seats, session, room);
        }
        end(&seats, &session, &room).await;
    }
}

impl Drop for SeatHandle {
    fn drop(&mut self) {
        // Without Tokio the process is exiting, and its seats expire.
        if self.has_left || Handle::try_current().is_err() {
            return;
        }
        tracing::error!(seat = %self.session.identity.seat, "a socket task ended and left its session open");
        self.room.disconnect(&self.session);
        self.session.outbox().close(Close::Left);
        self.session.went_away();
        let (seats, session) = (self.seats.clone(), Arc::clone(&self.session));
        hold_during_grace_later(seats, session, Arc::clone(&self.room));
    }
}

fn hold_during_grace_later(seats: Seats, session: Arc<Session>, room: Arc<Room>) {
    let now = Instant::now();
    let grace = seats.shared.terms.resume_grace.saturating_sub(session.silent_for(now));
    let tasks = seats.shared.tasks.tracker.clone();
    #[expect(clippy::disallowed_methods, reason = "one for each session")]
    tasks.spawn(hold_during_grace(seats, session, room, now + grace));
}

/// Reserves the seat of a broken connection for the resume grace, then ends the session.
async fn hold_during_grace(seats: Seats, session: Arc<Session>, room: Arc<Room>, until: Instant) {
    // A stopping server ends the grace at once: a client can only resume on another server.
    let stop = seats.shared.stop.clone();
    stop.run_until_cancelled(sleep_until(until)).await;
    // It also ends a session whose seat was lost in between: no other code path publishes its end.
    end(&seats, &session, &room).await;
}

async fn end(seats: &Seats, session: &Session, room: &Arc<Room>) {
    // The database rejects pending edits under the next fence, so they are flushed first. During
    // the flush the seat counts as away: a probe by the same user succeeds at once.
    let was_seated = session.went_away() || session.state() == SessionState::Away;
    if was_seated && session.identity.seat.role.may_edit_text() {
        let _flushed = room.flushed_within(FLUSH_TIMEOUT).await;
    }
    let has_point = session.identity.seat.role.may_edit_text() && room.writer_left(session);
    seats.release_seat(session).await;
    room.leave(session);
    if has_point {
        seats.shared.rooms.history.left(room);
    }
    seats.shared.rooms.close_if_unused(room);
}
