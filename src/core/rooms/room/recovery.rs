//! Recovery of a room after the database rejects one of its edits, or was set back.
//!
//! The room has broadcast an edit that the database lacks, or the database lost a durable edit. From
//! then on the persister stores nothing of the room (P3). The room's task finds the cause, ends the
//! affected sessions with that reason, and resets the room. A reset closes all sockets; the next
//! session opens the document from the database.
//!
//! # An older database (decision 40)
//!
//! A failover or a restore removes rows that `document.saved` named. The room detects it by
//!
//! - an edit: through [`Append::after`] the database rejects it *before* it leaves a gap in the log;
//! - two consecutive comparisons that find the last number below the room's own;
//! - a published number that the room has, with an update that it lacks;
//! - a seat whose ratified fence is below its holder's.
//!
//! The room first stores the lost durable edits again, as one update of the server. Part of it may
//! use client ids under which no client may write. Then the room closes all sockets with 1012.
//! Clients reconnect with their replicas, and sync step 1 requests the rest from writers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use tokio::time::{sleep, timeout};

use crate::domain::fence::Fence;
use crate::domain::ids::ShareLinkId;
use crate::domain::limits::STORE_AGAIN_TIMEOUT;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::{DOCUMENT_DAMAGED, DOCUMENT_RESET, Event};
use crate::pubsub::{Message, Pubsub, Topic};
use crate::rooms::room::{Room, RoomState};
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::storage::bin::LinkEnd;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::yjs::log::{Origin, UpdateLog};
use crate::yjs::trim;

/// Limit of the query for the cause of a rejection. The room broadcasts edits meanwhile.
const DIAGNOSIS_MAX: Duration = Duration::from_secs(2);
/// Pause between two tries to restore the edits that an older database lacks.
const RESTORE_PAUSE: Duration = Duration::from_millis(200);
/// Consecutive comparisons that find the database behind the room before it counts as set back.
const SET_BACK_COMPARISONS: u8 = 2;

#[derive(Clone, Debug)]
pub enum ResetCause {
    /// The database rejected an edit of this session.
    Refused(Arc<Session>),
    /// The database rejected an earlier edit, on which this one may build.
    Orphaned,
    /// The owner deleted the document.
    Gone,
    /// A row beside the updates does not parse.
    Damaged,
    /// The database lost commits that it had acknowledged.
    SetBack,
}

/// Whether the database has what this room has, and the reset that follows if it has not.
#[derive(Debug)]
pub(crate) struct Integrity {
    /// The stored document is unreadable from some row on: the room rejects edits and merges nothing.
    is_damaged: bool,
    /// The room was reset: the persister stores nothing more of it (P3).
    was_reset: bool,
    cause: Option<ResetCause>,
    /// Consecutive comparisons that found the database behind this room.
    set_back_seen: u8,
}

impl Integrity {
    pub(super) fn new(is_damaged: bool) -> Self {
        Self { is_damaged, was_reset: false, cause: None, set_back_seen: 0 }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(super) fn was_reset(&self) -> bool {
        self.was_reset
    }

    pub(super) fn awaits_reset(&self) -> bool {
        self.cause.is_some()
    }

    /// Whether the persister stores nothing more of the room: its reset is pending or done.
    pub(super) fn takes_no_more(&self) -> bool {
        self.was_reset || self.awaits_reset()
    }

    /// False if the room takes no more already: the first cause stays.
    pub(super) fn begin_reset(&mut self, cause: ResetCause) -> bool {
        let is_first = !self.takes_no_more();
        if is_first {
            self.cause = Some(cause);
        }
        is_first
    }
}

impl Room {
    /// Stops the storing of this room's edits until its task resets it. The first cause stays.
    pub fn request_reset(&self, cause: ResetCause) {
        if self.lock().integrity.begin_reset(cause) {
            self.reset_due.notify_one();
        }
    }

    /// Whether the persister stores nothing more of this room: its reset is pending or done.
    #[must_use]
    pub fn takes_no_more(&self) -> bool {
        self.lock().integrity.takes_no_more()
    }

    /// The database has the document up to number `last`. `expected` is the room's number *before* the
    /// query, so a lower `last` means an older database.
    pub fn compare_stored(&self, last: i64, expected: i64) {
        let mut state = self.lock();
        if state.integrity.is_damaged {
            return;
        }
        if expected <= last {
            state.integrity.set_back_seen = 0;
            // With pending updates the higher number may be this room's own commit, whose result is
            // still on its way.
            if state.seq < last && state.durability.is_saved() {
                self.behind.notify_one();
            }
            return;
        }
        let seen = &mut state.integrity.set_back_seen;
        *seen = seen.saturating_add(1);
        let is_sure = *seen >= SET_BACK_COMPARISONS;
        drop(state);
        if is_sure {
            tracing::error!(document = %self.document, last, expected, "the database was set back");
            self.request_reset(ResetCause::SetBack);
        }
    }

    pub(super) async fn find_cause_and_reset(&self, pubsub: &Pubsub, storage: &Storage) {
        let Some(cause) = self.lock().integrity.cause.clone() else { return };
        match cause {
            ResetCause::Refused(session) => match cause_of_rejection(storage, &session).await {
                Cause::SetBack => {
                    self.restore_lost_edits(pubsub, storage).await;
                    self.reset(Reset::SetBack);
                }
                Cause::Ended(end) => {
                    self.ended(Some(session.identity.seat.link), &end);
                    lose_to(&session, &end);
                    self.reset(Reset::Rejected);
                }
                Cause::Lost(reason) => {
                    session.lose(reason);
                    self.reset(Reset::Rejected);
                }
            },
            ResetCause::Orphaned => self.reset(Reset::Rejected),
            ResetCause::Gone => {
                self.ended(None, &LinkEnd::Deleted(None));
                self.reset(Reset::Rejected);
            }
            ResetCause::Damaged => self.reset(Reset::Damaged),
            ResetCause::SetBack => {
                self.restore_lost_edits(pubsub, storage).await;
                self.reset(Reset::SetBack);
            }
        }
    }

    /// Ends the sessions of a link that is not active, or of all links of a purged document.
    fn ended(&self, link: Option<ShareLinkId>, end: &LinkEnd) {
        let members: Vec<_> = self.lock().members.iter().cloned().collect();
        for member in members {
            if link.is_none_or(|link| member.identity.seat.link == link) {
                lose_to(&member, end);
            }
        }
    }

    fn reset(&self, why: Reset) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.integrity.was_reset, true) {
            return;
        }
        self.retired.cancel();
        for member in state.members.iter() {
            why.notify(member);
        }
    }

    /// Restores the durable edits that the database lacks. All tries together end within
    /// [`STORE_AGAIN_TIMEOUT`], and at once when the room is retired (G16).
    async fn restore_lost_edits(&self, pubsub: &Pubsub, storage: &Storage) {
        let tries = timeout(STORE_AGAIN_TIMEOUT, self.restore_until_done(pubsub, storage));
        if let Some(Err(_elapsed)) = self.retired.run_until_cancelled(tries).await {
            tracing::error!(document = %self.document, "lost edits are not restored: clients must send them");
        }
    }

    async fn restore_until_done(&self, pubsub: &Pubsub, storage: &Storage) {
        loop {
            match self.try_restore(pubsub, storage).await {
                Ok(Done::Yes) => return,
                Ok(Done::OthersWereFaster) => {}
                Err(error) => {
                    tracing::warn!(document = %self.document, %error, "cannot restore lost edits");
                    sleep(RESTORE_PAUSE).await;
                }
            }
        }
    }

    /// The durable edits of this room that a database with these rows lacks. `None` if it lacks none, or
    /// if the rows are unreadable.
    fn lost_by(&self, rows: Vec<Bytes>) -> Option<Bytes> {
        let (database, broken) = UpdateLog::open_up_to(rows);
        let lost = self.lock().saved_beyond(&database).filter(|_| broken.is_none())?;
        let checked = database.check(&lost, Origin::Server).ok()?;
        checked.is_new.then_some(lost)
    }

    async fn try_restore(&self, pubsub: &Pubsub, storage: &Storage) -> Result<Done, StorageError> {
        let Some(stored) = storage.log(self.document).await? else { return Ok(Done::Yes) };
        if stored.hole().is_some() || stored.damage.is_some() {
            return Ok(Done::Yes);
        }
        let last = stored.seq;
        let Some(lost) = self.lost_by(stored.parts) else { return Ok(Done::Yes) };
        let append = Append {
            document: self.document,
            guard: None,
            update: lost.clone(),
            // The next edit of a user binds the client id to its owner again.
            clients: Vec::new(),
            user: None,
            expected_seq: Some(last),
            after: 0,
            now: Utc::now(),
        };
        let bytes = lost.len();
        match storage.append(&[append]).await?.pop() {
            Some(Appended::Stored { seq }) => {
                tracing::error!(document = %self.document, seq, bytes, "restored edits that the database had lost");
                let message = Message::Update { seq, fence: Fence::ZERO, update: lost };
                if let Err(error) = pubsub.publish(Topic::Room(self.document), &message).await {
                    tracing::debug!(%error, "cannot publish to the other servers: they read the log");
                }
                Ok(Done::Yes)
            }
            Some(Appended::Stale) => Ok(Done::OthersWereFaster),
            Some(Appended::Busy) => {
                sleep(RESTORE_PAUSE).await;
                Ok(Done::OthersWereFaster)
            }
            _ => Ok(Done::Yes),
        }
    }
}

impl RoomState {
    /// The saved part of this room that `database` lacks. While updates are pending, the log holds
    /// edits that were never durable; the result omits them. It also omits all deletions then, because
    /// a state vector does not cover deletions.
    fn saved_beyond(&self, database: &UpdateLog) -> Option<Bytes> {
        let lost = self.log.diff(&database.state_vector()).ok()?;
        if self.durability.is_saved() {
            Some(lost)
        } else {
            trim::up_to(&lost, self.saved.state_vector())
        }
    }
}

enum Done {
    Yes,
    OthersWereFaster,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reset {
    /// The replicas hold an edit that the database rejected (G10). A page discards its replica and
    /// reopens the document. A client without events would send its replica again, so it gets a final
    /// close.
    Rejected,
    /// As `Rejected`, because a row of the document does not parse.
    Damaged,
    /// The replicas hold edits that the database lost: clients reconnect and restore them.
    SetBack,
}

impl Reset {
    fn notify(self, member: &Session) {
        let events = member.identity.wants_events;
        if self == Self::Damaged {
            member.notify(&Event::Problem(DOCUMENT_DAMAGED));
        }
        if self != Self::SetBack {
            member.notify(&Event::Problem(DOCUMENT_RESET));
        }
        member.outbox().close(match self {
            Self::SetBack => Close::Restart("database-set-back"),
            Self::Rejected | Self::Damaged if events => Close::Restart("document-reset"),
            Self::Rejected => Close::Rejected,
            Self::Damaged => Close::Forbidden("document-damaged"),
        });
    }
}

enum Cause {
    Ended(LinkEnd),
    Lost(LostReason),
    /// The database lost the grant's ratified fence.
    SetBack,
}

fn lose_to(session: &Session, end: &LinkEnd) {
    match end {
        LinkEnd::Revoked => session.lose(LostReason::Revoked),
        LinkEnd::Deleted(deletion) => session.lose_to(deletion.as_ref()),
    };
}

async fn cause_of_rejection(storage: &Storage, session: &Session) -> Cause {
    if let Some(reason) = session.lost_reason() {
        return Cause::Lost(reason);
    }
    let fence = session.fence();
    match timeout(DIAGNOSIS_MAX, storage.seat_lookup_alone(session.identity.seat)).await {
        Ok(Ok(Some(lookup))) if lookup.link.revoked_at.is_some() => {
            let end = timeout(DIAGNOSIS_MAX, storage.end_of_link(lookup.link.id)).await;
            Cause::Ended(end.ok().and_then(Result::ok).unwrap_or(LinkEnd::Revoked))
        }
        Ok(Ok(None)) => Cause::Ended(LinkEnd::Deleted(None)),
        Ok(Ok(Some(lookup))) if lookup.floor < fence => Cause::SetBack,
        Ok(Ok(Some(lookup))) if lookup.floor.evicts(fence) => Cause::Lost(LostReason::Evicted),
        Ok(Ok(Some(_))) => Cause::Lost(LostReason::Expired),
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot read the cause of a rejection");
            Cause::Lost(LostReason::Expired)
        }
        Err(_elapsed) => Cause::Lost(LostReason::Expired),
    }
}
