//! An open document: a log of updates and the people who look at it.
//!
//! A keystroke is checked, appended to the log, sent to the others and owed to the database, all
//! under one short lock and without waiting for anything. No live CRDT is kept.
//!
//! # Invariants
//!
//! - **M1** (G10) What is not taken is in no replica: it is neither appended, relayed nor stored.
//! - **M2** Everybody in the room has been sent every update of the log, in its order, or is
//!   closed.
//! - **M3** (G7) `document.saved` names a state vector only when all of it is in the database.
//! - **M4** `seq` is the last database number up to which the log holds everything.

mod chores;
mod company;
mod debt;
mod follow;
mod points;
pub mod presence;

pub use chores::{Chores, Occasion, Snapshot};
pub use debt::Debt;
pub use points::Point;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::Utc;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::{DocumentId, UserId};
use crate::relay::Message;
use crate::session::close::Close;
use crate::session::event::{DOCUMENT_FULL, Event, Problem, UNSAVED_FULL};
use crate::session::holding::Holding;
use crate::session::options::RoomLimits;
use crate::session::persist::{Owed, Persister};
use crate::session::queue::Queue;
use crate::session::room::chores::Untidy;
use crate::session::room::points::Points;
use crate::session::room::presence::Presence;
use crate::storage::log::Append;
use crate::storage::seats::Guard;
use crate::sync::error::Rejected;
use crate::sync::frame;
use crate::sync::log::{Checked, Origin, UpdateLog};

/// Messages that may wait for the other servers. Presence beyond it is dropped: it is renewed.
const OUTGOING_MAX: usize = 256;

/// An open document.
#[derive(Debug)]
pub struct Room {
    /// Which one.
    pub document: DocumentId,
    /// Fires when the room is no longer to be used.
    pub retired: CancellationToken,
    limits: RoomLimits,
    persister: Persister,
    state: Mutex<State>,
    owed: watch::Sender<usize>,
    /// For the other servers; see [`Room::follow`].
    outgoing: Queue<Message>,
    /// The database has something that this log has not.
    behind: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) log: UpdateLog,
    pub(super) seq: i64,
    pub(super) members: Vec<Arc<Holding>>,
    /// Sessions whose socket is gone, and of whom nobody has said yet that they left.
    pub(super) leaving: usize,
    pub(super) presence: Presence,
    owners: HashMap<u64, UserId>,
    /// Rises with each update, so that what was derived from the text can be kept.
    version: u64,
    untidy: Untidy,
    points: Points,
    owed_bytes: usize,
    /// Updates taken here, and how many of those the database has: it takes them in order.
    taken: u64,
    stored: u64,
    /// The state vector that the database has all of (M3).
    saved: Bytes,
    /// The state vector after the update of that number; saved when that one is.
    milestone: Option<(u64, Bytes)>,
    told_not_saved: bool,
    /// The database refused something that stands in the log: nothing more of it is stored (P3).
    was_reset: bool,
}

/// What is needed to open a room.
#[derive(Debug)]
pub struct Opening {
    /// The document.
    pub document: DocumentId,
    /// Its log.
    pub log: UpdateLog,
    /// The database number of its last update.
    pub seq: i64,
    /// In how many rows the database has it.
    pub rows: usize,
    /// Which user each client id belongs to.
    pub owners: HashMap<u64, UserId>,
}

/// The room was given up between finding and using it.
#[derive(Debug, PartialEq, Eq)]
pub struct Retired;

impl Room {
    /// Opens a room.
    #[must_use]
    pub fn open(opening: Opening, limits: RoomLimits, persister: Persister) -> Self {
        let Opening { document, log, seq, rows, owners } = opening;
        let saved = log.state_vector();
        let state = State {
            log,
            seq,
            members: Vec::new(),
            leaving: 0,
            presence: Presence::default(),
            owners,
            version: 0,
            untidy: Untidy::new(rows),
            points: Points::default(),
            owed_bytes: 0,
            taken: 0,
            stored: 0,
            saved,
            milestone: None,
            told_not_saved: false,
            was_reset: false,
        };
        Self {
            document,
            retired: CancellationToken::new(),
            limits,
            persister,
            state: Mutex::new(state),
            owed: watch::Sender::new(0),
            outgoing: Queue::new(OUTGOING_MAX),
            behind: Notify::new(),
        }
    }

    /// Gives the room up if nobody is in it and the database is owed nothing.
    pub fn retire_if_unused(&self) -> bool {
        let state = self.lock();
        let is_empty = state.members.is_empty() && state.leaving == 0;
        let unused = is_empty && (state.owed_bytes == 0 || state.was_reset);
        if unused {
            self.retired.cancel();
        }
        unused
    }

    /// Answers a sync step 1.
    ///
    /// # Errors
    ///
    /// [`Close::Malformed`] when the state vector is none.
    pub fn answer(&self, holding: &Holding, state_vector: &[u8]) -> Result<(), Close> {
        let state = self.lock();
        let diff = state.log.diff(state_vector).map_err(|_| Close::Malformed("state-vector"))?;
        holding.outbox().send(frame::sync_step2(&diff));
        Ok(())
    }

    /// Takes a writer's update: checks it, relays it and owes it to the database (M1).
    ///
    /// # Errors
    ///
    /// [`Close`] when the socket must end; otherwise a refusal is told by an event.
    pub fn receive(
        self: &Arc<Self>,
        holding: &Arc<Holding>,
        update: &Bytes,
        now: Instant,
    ) -> Result<(), Close> {
        let mut state = self.lock();
        if !holding.may_write(now) {
            holding.look_at_deadline(now);
            holding.tell(&Event::Denied("seat-uncertain"));
            return Ok(());
        }
        let checked = match state.log.check(update, Origin::Client) {
            Ok(checked) => checked,
            Err(Rejected::Gap) => {
                state.ask_for_missing(holding);
                return Ok(());
            }
            Err(Rejected::Forbidden(why)) => return Err(Close::Forbidden(why)),
            Err(Rejected::Malformed(why) | Rejected::Unsupported(why)) => {
                return Err(Close::Malformed(why));
            }
            Err(Rejected::TooDeep) => return Err(Close::Malformed("nested-too-deeply")),
        };
        if !checked.is_new {
            return Ok(());
        }
        if let Some(refusal) = state.refusal(update.len(), &self.limits) {
            return refuse(holding, refusal);
        }
        let user = &holding.sitter.user.id;
        if checked.clients.iter().any(|client| state.owners.get(client).is_some_and(|o| o != user))
        {
            return Err(Close::Forbidden("client-id-of-another"));
        }
        self.take(&mut state, holding, update, checked, now)
    }

    fn take(
        self: &Arc<Self>,
        state: &mut State,
        holding: &Arc<Holding>,
        update: &Bytes,
        checked: Checked,
        now: Instant,
    ) -> Result<(), Close> {
        let sitter = &holding.sitter;
        let Ok(place) = self.persister.reserve() else {
            return refuse(holding, UNSAVED_FULL);
        };
        state.before_edit(sitter, now);
        let append = Append {
            document: self.document,
            guard: Some(Guard { seat: sitter.seat, fence: holding.fence() }),
            update: update.clone(),
            clients: checked.clients.clone(),
            user: Some(sitter.user.id.clone()),
            expected_seq: None,
            now: Utc::now(),
        };
        let debt = Debt { bytes: update.len() };
        place.store(Owed { room: Arc::clone(self), holding: Arc::clone(holding), append, debt });
        state.owed_bytes += update.len();
        self.owed.send_replace(state.owed_bytes);
        for client in &checked.clients {
            state.owners.entry(*client).or_insert_with(|| sitter.user.id.clone());
        }
        state.append(update.clone(), checked);
        state.book();
        holding.edited(now);
        state.send_to_others(holding, &frame::update(update));
        metrics::counter!("galley_document_updates_total").increment(1);
        metrics::histogram!("galley_relay_seconds", "path" => "room")
            .record(now.elapsed().as_secs_f64());
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Appends a checked update.
    pub(super) fn append(&mut self, update: Bytes, checked: Checked) {
        self.log.append(update, checked);
        self.version += 1;
        self.untidy.rows += 1;
    }

    /// Books an update as taken. One milestone is under way at a time, so that a burst of edits
    /// is answered once or twice, and yet there is progress to tell while more keeps coming.
    fn book(&mut self) {
        self.taken += 1;
        if self.milestone.is_none() {
            self.milestone = Some((self.taken, self.log.state_vector()));
        }
    }

    /// Tells everybody up to where the document is safe, if that has moved (M3).
    pub(super) fn look_at_saved(&mut self) {
        if self.stored == self.taken {
            self.milestone = None;
            self.saved = self.log.state_vector();
        } else {
            match self.milestone.take_if(|(number, _)| *number <= self.stored) {
                Some((_, state_vector)) => self.saved = state_vector,
                None => return,
            }
        }
        self.tell_all(&Event::DocumentSaved { state_vector: &self.saved });
    }

    pub(super) fn send_to_others(&self, holding: &Holding, frame: &Bytes) {
        for member in &self.members {
            if member.sitter.session != holding.sitter.session {
                member.outbox().send(frame.clone());
            }
        }
    }

    pub(super) fn send_to_all(&self, frame: &Bytes) {
        for member in &self.members {
            member.outbox().send(frame.clone());
        }
    }

    pub(super) fn tell_all(&self, event: &Event<'_>) {
        let mut members = self.members.iter().filter(|m| m.sitter.wants_events).peekable();
        if members.peek().is_none() {
            return;
        }
        let frame = event.frame();
        for member in members {
            member.outbox().send(frame.clone());
        }
    }

    fn refusal(&mut self, more: usize, limits: &RoomLimits) -> Option<Problem> {
        if limits.unsaved_bytes < self.owed_bytes + more {
            return Some(UNSAVED_FULL);
        }
        if self.log.bytes() + more <= limits.document_bytes {
            return None;
        }
        // Merging forgets the text of what was deleted.
        let _whole = self.log.merged();
        (limits.document_bytes < self.log.bytes() + more).then_some(DOCUMENT_FULL)
    }
}

/// Tells of an edit that is not taken for want of room. A page can show that and stay; a client
/// that hears no events would go on typing into nothing, and is closed.
fn refuse(holding: &Holding, problem: Problem) -> Result<(), Close> {
    if !holding.sitter.wants_events {
        return Err(if problem == DOCUMENT_FULL {
            Close::TooLarge("document")
        } else {
            Close::Unavailable("storage")
        });
    }
    holding.tell(&Event::Problem(problem));
    holding.tell(&Event::Denied("not-stored"));
    Ok(())
}
