//! An open document: its update log and its members.
//!
//! Under one short lock the room validates an edit, appends it to the log, queues it for the
//! persister and broadcasts it. Nothing under the lock waits. The room holds no live CRDT.
//!
//! # Invariants
//!
//! - **M1** (G10) A rejected update reaches no replica: the room neither appends, broadcasts nor
//!   stores it.
//! - **M2** The room sends every update of the log to each member, in log order, or closes the
//!   member's socket.
//! - **M3** (G7) `document.saved` names a state vector only when the database has all of it.
//! - **M4** `seq` is the highest database number up to which the log has no gap.
//! - **M5** (G8) The room publishes each number that the database gave to it, or names a number from it
//!   on to the first other server that it learns of ([`subscribers`]).

pub(super) mod checkpoints;
pub(super) mod durability;
pub(super) mod maintenance;
pub(super) mod members;
pub(super) mod occupancy;
pub(crate) mod peers;
pub mod persist_queue;
pub mod presence;
pub(super) mod quota;
pub(super) mod recovery;
pub(crate) mod replication;
pub mod review_events;
pub(super) mod saved;
#[cfg(test)]
mod subscriber_tests;
pub(super) mod subscribers;

pub use self::checkpoints::Checkpoint;
pub use self::maintenance::{Maintenance, Trigger};
pub use self::recovery::ResetCause;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::Utc;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::limits::{LONG_MESSAGE_BYTES, NEW_CLIENT_BYTES, REQUEST_AGAIN_AFTER};
use crate::outbox::close::Close;
use crate::outbox::event::{DOCUMENT_DAMAGED, DOCUMENT_FULL, Event, Problem};
use crate::outbox::event::{MEMORY_FULL, STORE_BUDGET_SPENT, UNSAVED_FULL};
use crate::outbox::queue::OutboxQueue;
use crate::pubsub::Message;
use crate::rooms::memory::RoomBytes;
use crate::rooms::room::checkpoints::Checkpoints;
use crate::rooms::room::durability::Durability;
use crate::rooms::room::maintenance::Backlog;
use crate::rooms::room::members::Members;
use crate::rooms::room::occupancy::Occupancy;
use crate::rooms::room::persist_queue::{PendingUpdate, Persister};
use crate::rooms::room::presence::Presence;
use crate::rooms::room::quota::Quota;
use crate::rooms::room::recovery::Integrity;
use crate::rooms::room::review_events::Delivered;
use crate::rooms::room::review_events::Missed;
use crate::rooms::room::saved::Saved;
use crate::rooms::room::subscribers::Subscribers;
use crate::sessions::options::RoomLimits;
use crate::sessions::session::Session;
use crate::storage::guard::FenceGuard;
use crate::storage::log::Append;
use crate::yjs::error::Rejected;
use crate::yjs::log::{Checked, Origin, SERVER_IDS, UpdateLog};
use crate::yjs::protocol;

/// Messages that may wait for publishing. A full queue drops further ones; clients renew presence.
const OUTGOING_MAX: usize = 256;

/// The metrics of an edit, looked up once. The process installs the recorder before any room opens.
static KEYSTROKE: LazyLock<Keystroke> = LazyLock::new(|| Keystroke {
    updates: metrics::counter!("galley_document_updates_total"),
    relay_seconds: metrics::histogram!("galley_relay_seconds", "path" => "room"),
});

struct Keystroke {
    updates: metrics::Counter,
    relay_seconds: metrics::Histogram,
}

#[derive(Debug)]
pub struct Room {
    pub document: DocumentId,
    /// Fires when the room is retired: callers then open the document again.
    pub retired: CancellationToken,
    limits: RoomLimits,
    persister: Persister,
    /// Queue in which the room reports a gap in its review events.
    missed_reviews: Missed,
    state: Mutex<RoomState>,
    stored: Notify,
    /// Messages for the other servers; [`Room::follow`] publishes them.
    outgoing: OutboxQueue<Message>,
    /// Signals a gap: the database has updates that this log lacks.
    behind: Notify,
    /// Signals that `document.saved` is due later.
    saved_later: Notify,
    /// Signals a cause to reset the room; see [`Room::request_reset`].
    reset_due: Notify,
}

#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) log: UpdateLog,
    memory: RoomBytes,
    ticked_at: Option<u64>,
    pub(crate) seq: i64,
    pub(crate) members: Members,
    occupancy: Occupancy,
    subscribers: Subscribers,
    pub(crate) presence: Presence,
    owners: HashMap<u64, UserId>,
    reviews: Delivered,
    /// Rises with each update. Caches of the text compare it.
    version: u64,
    backlog: Backlog,
    checkpoints: Checkpoints,
    quota: Quota,
    durability: Durability,
    saved: Saved,
    integrity: Integrity,
}

#[derive(Debug)]
pub struct Opening {
    pub document: DocumentId,
    pub log: UpdateLog,
    pub memory: RoomBytes,
    pub seq: i64,
    pub rows: usize,
    /// The user that owns each Yjs client id.
    pub owners: HashMap<u64, UserId>,
    pub review_changes: i64,
    /// Whether the database has more rows, which are unreadable.
    pub is_damaged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJoined {
    /// Another task retired the room between its lookup and its use: the caller opens it again.
    Retired,
    Full,
}

impl Room {
    #[must_use]
    pub fn open(
        opening: Opening,
        limits: RoomLimits,
        persister: Persister,
        missed_reviews: Missed,
    ) -> Self {
        let Opening { document, log, memory, seq, rows, owners, review_changes, is_damaged } =
            opening;
        let saved = Saved::up_to(log.state_vector());
        let state = RoomState {
            log,
            memory,
            ticked_at: None,
            seq,
            members: Members::default(),
            occupancy: Occupancy::default(),
            subscribers: Subscribers::default(),
            presence: Presence::default(),
            owners,
            reviews: Delivered::up_to(review_changes),
            version: 0,
            backlog: Backlog::new(rows),
            checkpoints: Checkpoints::default(),
            quota: Quota::default(),
            durability: Durability::default(),
            saved,
            integrity: Integrity::new(is_damaged),
        };
        let room = Self {
            document,
            retired: CancellationToken::new(),
            limits,
            persister,
            missed_reviews,
            state: Mutex::new(state),
            stored: Notify::new(),
            outgoing: OutboxQueue::new(OUTGOING_MAX),
            behind: Notify::new(),
            saved_later: Notify::new(),
            reset_due: Notify::new(),
        };
        room.weigh_again(&mut room.lock(), Instant::now());
        room
    }

    pub fn retire_if_unused(&self) -> bool {
        let state = self.lock();
        let is_kept = !state.durability.is_saved() || state.integrity.awaits_reset();
        let unused = state.members.are_gone() && (!is_kept || state.integrity.was_reset());
        if unused {
            self.retired.cancel();
        }
        unused
    }

    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.lock().integrity.is_damaged()
    }

    /// Returns the bytes that the server read and sent for the reply.
    pub fn answer(&self, session: &Session, state_vector: &[u8]) -> Result<usize, Close> {
        let state = self.lock();
        let (diff, cost) =
            state.log.answer(state_vector).map_err(|_| Close::Malformed("state-vector"))?;
        session.outbox().send(protocol::sync_step2(&diff));
        Ok(cost)
    }

    /// Validates a writer's update, broadcasts `frame` and queues the update for the persister (M1).
    /// Returns the bytes it costs beyond its own: a sync step 1, or rows of new client ids. A reply to
    /// sync step 1 ([`Origin::Answer`]) may restore a server's edit that the database lost (decision
    /// 40). `Err` closes the socket. Any other rejection reaches the client as an event.
    pub fn receive(
        self: &Arc<Self>,
        origin: Origin,
        session: &Arc<Session>,
        (update, frame): (&Bytes, &Bytes),
        now: Instant,
    ) -> Result<usize, Close> {
        let mut state = self.lock();
        // Only a session in the state `Uncertain` is asked for its rejected edits after a renewal. The
        // state must therefore change here, before a renewal can move the deadline.
        session.check_deadline(now);
        if !session.may_write(now) {
            // A rejected edit is activity all the same, and so is an edit that builds on it.
            match state.log.check(update, origin) {
                Ok(checked) if !checked.is_new => {}
                Ok(_) | Err(Rejected::Gap) => session.record_activity(now),
                Err(_) => {}
            }
            session.notify(&Event::Denied("seat-uncertain"));
            return Ok(0);
        }
        let checked = match state.log.check(update, origin) {
            Ok(checked) => checked,
            // Backpressure rejected the updates below this one. With a request at each keystroke the
            // client would send all of them each time.
            Err(Rejected::Gap) if state.durability.has_rejected() => {
                return refuse(session, state.why_full());
            }
            Err(Rejected::Gap) => return Ok(state.request_after_gap(session, now)),
            Err(Rejected::Forbidden(why)) => return Err(Close::Forbidden(why)),
            Err(Rejected::Malformed(why) | Rejected::Unsupported(why)) => {
                return Err(Close::Malformed(why));
            }
            Err(Rejected::TooDeep) => return Err(Close::Malformed("nested-too-deeply")),
        };
        if !checked.is_new {
            return Ok(0);
        }
        if state.integrity.is_damaged() {
            return refuse(session, DOCUMENT_DAMAGED);
        }
        let user = &session.identity.user.id;
        if checked.clients.iter().any(|client| state.owners.get(client).is_some_and(|o| o != user))
        {
            return Err(Close::Forbidden("client-id-of-another"));
        }
        // An empty backlog accepts an update of any size: no commit could make room for a larger one.
        if !state.durability.has_room(update.len(), self.limits.unsaved_bytes) {
            state.durability.reject(None);
            return refuse(session, UNSAVED_FULL);
        }
        if update.len() as u64 > LONG_MESSAGE_BYTES && state.memory.is_full() {
            state.durability.reject(None);
            return refuse(session, MEMORY_FULL);
        }
        if !state.admit(update, &checked, &self.limits, now) {
            self.set_full(&mut state);
            return refuse(session, DOCUMENT_FULL);
        }
        self.take(&mut state, session, (update, frame), checked, now)
    }

    fn take(
        self: &Arc<Self>,
        state: &mut RoomState,
        session: &Arc<Session>,
        (update, frame): (&Bytes, &Bytes),
        mut checked: Checked,
        now: Instant,
    ) -> Result<usize, Close> {
        let identity = &session.identity;
        let cost = state.new_clients(&checked).saturating_mul(NEW_CLIENT_BYTES);
        let Ok(permit) = self.persister.reserve() else {
            state.durability.reject(None);
            return refuse(session, UNSAVED_FULL);
        };
        // The last check, so that an edit with another reason for rejection costs no budget.
        if let Some(budget) = &identity.store_budget
            && let Err(wait) = budget.charge(update.len())
        {
            state.durability.reject(Some(now + wait.max(REQUEST_AGAIN_AFTER)));
            return refuse(session, STORE_BUDGET_SPENT);
        }
        state.before_edit(identity, now);
        // A server's client id has no owner, even if a client restores an edit under it.
        checked.clients.retain(|client| !SERVER_IDS.contains(client));
        for client in &checked.clients {
            state.owners.entry(*client).or_insert_with(|| identity.user.id.clone());
        }
        let append = Append {
            document: self.document,
            guard: Some(FenceGuard { seat: identity.seat, fence: session.fence() }),
            update: update.clone(),
            clients: std::mem::take(&mut checked.clients),
            user: Some(identity.user.id.clone()),
            expected_seq: None,
            after: 0,
            now: Utc::now(),
        };
        permit.store(PendingUpdate {
            room: Arc::clone(self),
            session: Arc::clone(session),
            append,
        });
        state.durability.queue(update.len());
        state.append(update.clone(), checked);
        if let Some(problem) = self.persister.problem() {
            state.broadcast_not_saved(problem);
        }
        self.weigh_again(state, now);
        state.saved.book(&state.log);
        session.edited(now);
        state.members.send_to_others(session, frame);
        KEYSTROKE.updates.increment(1);
        KEYSTROKE.relay_seconds.record(now.elapsed().as_secs_f64());
        Ok(cost)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    pub(crate) fn append(&mut self, update: Bytes, checked: Checked) {
        self.log.append(update, checked);
        self.memory.set(self.log.bytes());
        self.version += 1;
        self.backlog.rows += 1;
    }
}

/// Rejects an edit that the room cannot store. A client with events stays open and shows the
/// problem. A client without events would lose every further edit, so the room closes its socket.
fn refuse(session: &Session, problem: Problem) -> Result<usize, Close> {
    if !session.identity.wants_events {
        return Err(match problem {
            DOCUMENT_FULL => Close::TooLarge("document"),
            DOCUMENT_DAMAGED => Close::Forbidden("document-damaged"),
            STORE_BUDGET_SPENT => Close::TooMuch("too-many-bytes"),
            MEMORY_FULL => Close::Unavailable("memory"),
            _ => Close::Unavailable("storage"),
        });
    }
    session.notify(&Event::Problem(problem));
    session.notify(&Event::Denied("not-stored"));
    Ok(0)
}
