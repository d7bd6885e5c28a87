//! Edits that the server makes: it applies a suggestion or restores a version.
//!
//! The server builds such an edit from the stored text, under a Yjs client id of its own. The database
//! commits the edit only if that text is still the last one; otherwise the server builds it again. After
//! the commit the server broadcasts the edit to its room and publishes it to other servers.

use bytes::Bytes;

use crate::bounds::permits::Requester;
use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::domain::limits::FLUSH_TIMEOUT;
use crate::pubsub::{Message, Topic};
use crate::rooms::RoomError;
use crate::rooms::snapshot::Snapshot;
use crate::rooms::texts::Texts;
use crate::yjs::log::{Origin, UpdateLog};

/// Whether an edit makes a document exceed its size limit, as in [`excess`].
pub fn is_too_large(log: &mut UpdateLog, update: &Bytes, limit: usize) -> bool {
    excess(log, update, limit).is_some()
}

/// The bytes by which an edit makes a document exceed its size limit. An edit that shrinks the document
/// passes always. The cost: two merges of the whole log.
pub(crate) fn excess(log: &mut UpdateLog, update: &Bytes, limit: usize) -> Option<usize> {
    let before = log.merged().len();
    match log.check(update, Origin::Server) {
        Ok(checked) => log.append(update.clone(), checked),
        // Storage rejects this edit.
        Err(_) => return None,
    }
    let after = log.merged().len();
    after.checked_sub(limit).filter(|excess| *excess > 0 && before < after)
}

/// Attempts of one edit. The bound ends an edit whose text changes during every attempt.
pub const TRIES: usize = 8;

impl Texts {
    /// A snapshot of a document without unsaved updates. `None`: the document had unsaved updates and
    /// this call has waited up to [`FLUSH_TIMEOUT`] for them; the caller reads again.
    pub async fn durable_snapshot(
        &self,
        document: DocumentId,
        requester: &Requester,
    ) -> Result<Option<Snapshot>, RoomError> {
        let snapshot = self.snapshot(document, requester).await?;
        if snapshot.is_durable {
            return Ok(Some(snapshot));
        }
        drop(snapshot);
        if let Some(room) = self.rooms.find(document) {
            // After a time-out the caller's next read of the room decides.
            let _flushed = room.flushed_within(FLUSH_TIMEOUT).await;
        }
        Ok(None)
    }

    pub async fn show_edit(&self, document: DocumentId, fence: Fence, seq: i64, update: Bytes) {
        if self.rooms.find(document).is_some_and(|room| !room.take_stored(seq, &update)) {
            return;
        }
        // Without a room this server does not know whether others have the document open.
        let message = Message::Update { seq, fence, update };
        if let Err(error) = self.rooms.pubsub.publish(Topic::Room(document), &message).await {
            tracing::debug!(%error, "an edit was not published; other servers read it from the database");
        }
    }

    /// Reads updates from the database that another server has stored.
    pub async fn read_on(&self, document: DocumentId) {
        if let Some(room) = self.rooms.find(document) {
            room.catch_up(&self.rooms.storage).await;
        }
    }

    /// Whether the database had updates behind the text of number `seq`, which the room has read now.
    pub async fn is_behind(&self, document: DocumentId, seq: i64) -> bool {
        self.read_on(document).await;
        // A text without a room is from the database.
        self.rooms.find(document).is_some_and(|room| room.seq() != seq)
    }

    pub fn version_stored(&self, document: DocumentId, seq: i64) {
        if let Some(room) = self.rooms.find(document) {
            room.version_stored(seq);
        }
    }
}
