//! What becomes of a room when the database refuses one of its edits, or was set back.
//!
//! The room has shown an edit that is in no database, or the database lacks what the room was told
//! is stored. From the refusal on nothing of the room is stored (P3). The room's own task then finds
//! the cause, ends what has to end with the right word, and resets the room: all sockets are closed,
//! and the next session opens the document from the database.
//!
//! # An older database (decision 40)
//!
//! A failover or a restore takes back rows that were called saved. The room notices it by
//!
//! - an edit: [`Append::after`] has the database refuse it *before* it leaves a gap in the log;
//! - two looks in a row that find the last number below the room's own;
//! - an announced number that the room has already, with an update that it has not;
//! - a seat whose ratified fence is below its holder's.
//!
//! The room first stores again what it knows to be saved and the database lacks, as one update of
//! the server's own: part of it may stand under ids that no client may write under. Then it closes
//! all sockets with 1012. Clients come back with their replicas, and sync step 1 asks writers for
//! everything else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use tokio::time::{sleep, timeout};

use crate::domain::fence::Fence;
use crate::domain::ids::ShareLinkId;
use crate::domain::limits::PUT_BACK_PATIENCE;
use crate::outbox::close::{Close, LostReason};
use crate::outbox::event::{DOCUMENT_DAMAGED, DOCUMENT_RESET, Event};
use crate::pubsub::{Message, Pubsub, Topic};
use crate::rooms::room::{Room, State};
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::yjs::log::{Origin, UpdateLog};
use crate::yjs::trim;

/// How long the room looks for the cause of a refusal. Its edits are relayed meanwhile.
const DIAGNOSIS_MAX: Duration = Duration::from_secs(2);
/// The pause between two tries to store again what an older database lacks.
const PUT_BACK_PAUSE: Duration = Duration::from_millis(200);
/// Looks in a row that find the database behind the room before it counts as set back.
const SET_BACK_LOOKS: u8 = 2;

/// Why a room is about to be reset.
#[derive(Clone, Debug)]
pub enum Ailment {
    /// The database refused an edit of this session.
    Refused(Arc<Session>),
    /// An edit before it was refused, and this one may stand on that.
    Orphaned,
    /// The document was deleted.
    Gone,
    /// A row beside the updates does not parse.
    Damaged,
    /// The database is older than what it has acknowledged.
    SetBack,
}

impl Room {
    /// Stops storing what the room takes, until its task has reset it. The first cause stands.
    pub fn ails(&self, ailment: Ailment) {
        let mut state = self.lock();
        if !state.takes_no_more() {
            state.ailment = Some(ailment);
            self.ailing.notify_one();
        }
    }

    /// Whether the database refused something that stands in the log.
    #[must_use]
    pub fn takes_no_more(&self) -> bool {
        self.lock().takes_no_more()
    }

    /// The database has the document up to number `last`. `known` is what this room knew to be
    /// stored before the database was asked, so a lower number means an older database.
    pub fn is_stored_up_to(&self, last: i64, known: i64) {
        let mut state = self.lock();
        if state.is_damaged {
            return;
        }
        if known <= last {
            state.set_back_seen = 0;
            // What this room stored itself, and has not heard of yet, is no news.
            if state.seq < last && state.unsaved_bytes == 0 {
                self.behind.notify_one();
            }
            return;
        }
        state.set_back_seen = state.set_back_seen.saturating_add(1);
        let is_sure = SET_BACK_LOOKS <= state.set_back_seen;
        drop(state);
        if is_sure {
            tracing::error!(document = %self.document, last, known, "the database was set back");
            self.ails(Ailment::SetBack);
        }
    }

    /// Finds the cause of a refusal and resets the room. Run by the room's own task.
    pub(super) async fn treat(&self, relay: &Pubsub, storage: &Storage) {
        let Some(ailment) = self.lock().ailment.clone() else { return };
        match ailment {
            Ailment::Refused(holding) => match cause(storage, &holding).await {
                Cause::SetBack => {
                    self.put_back(relay, storage).await;
                    self.reset(Reset::SetBack);
                }
                Cause::Revoked => {
                    self.revoked(Some(holding.identity.seat.link));
                    holding.lose(LostReason::Revoked);
                    self.reset(Reset::Rejected);
                }
                Cause::Lost(reason) => {
                    holding.lose(reason);
                    self.reset(Reset::Rejected);
                }
            },
            Ailment::Orphaned => self.reset(Reset::Rejected),
            Ailment::Gone => {
                self.revoked(None);
                self.reset(Reset::Rejected);
            }
            Ailment::Damaged => self.reset(Reset::Damaged),
            Ailment::SetBack => {
                self.put_back(relay, storage).await;
                self.reset(Reset::SetBack);
            }
        }
    }

    /// Ends the sessions of a revoked link, or of all links of a deleted document.
    fn revoked(&self, link: Option<ShareLinkId>) {
        let members = self.lock().members.clone();
        for member in members {
            if link.is_none_or(|link| member.identity.seat.link == link) {
                member.lose(LostReason::Revoked);
            }
        }
    }

    /// Closes all sockets; the document is opened again from the database.
    fn reset(&self, why: Reset) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.was_reset, true) {
            return;
        }
        self.retired.cancel();
        for member in &state.members {
            why.tell(member);
        }
    }

    /// Stores again what this room knows to be saved and the database lacks. Ends within
    /// [`PUT_BACK_PATIENCE`] over all tries, and at once when the room is retired (G16).
    async fn put_back(&self, relay: &Pubsub, storage: &Storage) {
        let tries = timeout(PUT_BACK_PATIENCE, self.put_back_until_done(relay, storage));
        if let Some(Err(_elapsed)) = self.retired.run_until_cancelled(tries).await {
            tracing::error!(document = %self.document, "lost edits are not restored; clients bring them");
        }
    }

    async fn put_back_until_done(&self, relay: &Pubsub, storage: &Storage) {
        loop {
            match self.try_put_back(relay, storage).await {
                Ok(Done::Yes) => return,
                Ok(Done::OthersWereFaster) => {}
                Err(error) => {
                    tracing::warn!(document = %self.document, %error, "cannot restore lost edits");
                    sleep(PUT_BACK_PAUSE).await;
                }
            }
        }
    }

    /// What a database with these rows lacks of what this room knows to be saved. `None`: nothing, or
    /// the rows cannot be read.
    fn lost_by(&self, rows: Vec<Bytes>) -> Option<Bytes> {
        let (database, broken) = UpdateLog::open_up_to(rows);
        let lost = self.lock().saved_beyond(&database).filter(|_| broken.is_none())?;
        let checked = database.check(&lost, Origin::Server).ok()?;
        checked.is_new.then_some(lost)
    }

    async fn try_put_back(&self, relay: &Pubsub, storage: &Storage) -> Result<Done, StorageError> {
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
            // Whose ids they are, is bound again when their user writes next.
            clients: Vec::new(),
            user: None,
            expected_seq: Some(last),
            after: 0,
            now: Utc::now(),
        };
        let bytes = lost.len();
        match storage.append(&[append]).await?.pop() {
            Some(Appended::Stored { seq }) => {
                tracing::error!(document = %self.document, seq, bytes, "stored again what the database had lost");
                let message = Message::Update { seq, fence: Fence::ZERO, update: lost };
                if let Err(error) = relay.publish(Topic::Room(self.document), &message).await {
                    tracing::debug!(%error, "the other servers will read it from the database");
                }
                Ok(Done::Yes)
            }
            Some(Appended::Stale) => Ok(Done::OthersWereFaster),
            Some(Appended::Busy) => {
                sleep(PUT_BACK_PAUSE).await;
                Ok(Done::OthersWereFaster)
            }
            _ => Ok(Done::Yes),
        }
    }
}

impl State {
    pub(super) fn takes_no_more(&self) -> bool {
        self.was_reset || self.ailment.is_some()
    }

    /// What of this room was called saved and is not in `database`. While something is owed, the
    /// log holds edits that were never stored: these are left out, and all deletions, of which a
    /// state vector says nothing.
    fn saved_beyond(&self, database: &UpdateLog) -> Option<Bytes> {
        let lost = self.log.diff(&database.state_vector()).ok()?;
        if self.unsaved_bytes == 0 {
            Some(lost)
        } else {
            trim::up_to(&lost, self.saved.state_vector())
        }
    }
}

/// Whether a try to store lost edits again came to its end.
enum Done {
    Yes,
    OthersWereFaster,
}

/// With which words sockets are closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reset {
    /// The replicas hold an edit that the database refused (G10). A page opens the document afresh;
    /// a client that hears no events would bring its replica back, and is told to stop.
    Rejected,
    /// The same, because a row of the document does not parse.
    Damaged,
    /// The replicas hold what the database lost: clients are to bring it back.
    SetBack,
}

impl Reset {
    fn tell(self, member: &Session) {
        let events = member.identity.wants_events;
        if self == Self::Damaged {
            member.tell(&Event::Problem(DOCUMENT_DAMAGED));
        }
        if self != Self::SetBack {
            member.tell(&Event::Problem(DOCUMENT_RESET));
        }
        member.outbox().close(match self {
            Self::SetBack => Close::Restart("database-set-back"),
            Self::Rejected | Self::Damaged if events => Close::Restart("document-reset"),
            Self::Rejected => Close::Rejected,
            Self::Damaged => Close::Forbidden("document-damaged"),
        });
    }
}

/// Why the database refused the edit of a seat.
enum Cause {
    /// The link was revoked, or its document deleted.
    Revoked,
    /// The seat was lost in another way.
    Lost(LostReason),
    /// The database has lost the grant.
    SetBack,
}

/// Looks in the database why a seat's edit was refused.
async fn cause(storage: &Storage, holding: &Session) -> Cause {
    if let Some(reason) = holding.lost() {
        return Cause::Lost(reason);
    }
    let fence = holding.fence();
    match timeout(DIAGNOSIS_MAX, storage.door(holding.identity.seat)).await {
        Ok(Ok(Some(door))) if door.link.revoked_at.is_some() => Cause::Revoked,
        Ok(Ok(None)) => Cause::Revoked,
        Ok(Ok(Some(door))) if door.floor < fence => Cause::SetBack,
        // An eviction raises the fence by one; the next grant's fence is a time in µs.
        Ok(Ok(Some(door))) if door.floor.0 == fence.0.saturating_add(1) => {
            Cause::Lost(LostReason::Evicted)
        }
        Ok(Ok(Some(_))) => Cause::Lost(LostReason::Expired),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the cause of a refusal cannot be read");
            Cause::Lost(LostReason::Expired)
        }
        Err(_elapsed) => Cause::Lost(LostReason::Expired),
    }
}
