//! Edits that the server makes: a suggestion put in, a version restored.
//!
//! Such an edit is made of the text as it is stored, under a Yjs client id of the server's own, and
//! stored on the condition that this text is still the last one. Otherwise it is made again. Only
//! then it is shown, here and on the other servers.

use bytes::Bytes;

use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::domain::limits::SETTLE_PATIENCE;
use crate::pubsub::{Message, Topic};
use crate::rooms::room::Snapshot;
use crate::rooms::{RoomError, Rooms};
use crate::yjs::log::{Origin, UpdateLog};

/// Whether an edit makes a document larger than it may be. What makes it smaller is always taken.
/// Walks through all of the document.
pub(crate) fn is_too_large(log: &mut UpdateLog, update: &Bytes, limit: usize) -> bool {
    let before = log.merged().len();
    match log.check(update, Origin::Server) {
        Ok(checked) => log.append(update.clone(), checked),
        // Storage will refuse it.
        Err(_) => return false,
    }
    let after = log.merged().len();
    limit < after && before < after
}

/// Tries before a text that never rests is given up on.
pub(crate) const TRIES: usize = 8;

impl Rooms {
    /// A look at a document of which the database is owed nothing. `None`: it was owed something;
    /// a moment was waited, look again.
    pub(crate) async fn settled_snapshot(
        &self,
        document: DocumentId,
    ) -> Result<Option<Snapshot>, RoomError> {
        let snapshot = self.snapshot(document).await?;
        if snapshot.is_settled {
            return Ok(Some(snapshot));
        }
        drop(snapshot);
        if let Some(room) = self.find(document) {
            // Out of patience: the next look at the room says whether to go on.
            let _settled = room.settled_within(SETTLE_PATIENCE).await;
        }
        Ok(None)
    }

    /// Shows a stored edit to everybody who looks at the document.
    pub(crate) async fn show_edit(
        &self,
        document: DocumentId,
        fence: Fence,
        seq: i64,
        update: Bytes,
    ) {
        if let Some(room) = self.find(document) {
            room.take_stored(seq, &update);
        }
        let message = Message::Update { seq, fence, update };
        if let Err(error) = self.relay.publish(Topic::Room(document), &message).await {
            tracing::debug!(%error, "the other servers will read the edit from the database");
        }
    }

    /// Another server stored something that this one has not heard of yet.
    pub(crate) async fn read_on(&self, document: DocumentId) {
        if let Some(room) = self.find(document) {
            room.catch_up(&self.storage).await;
        }
    }

    /// A version of that point has been kept.
    pub(crate) fn point_kept(&self, document: DocumentId, seq: i64) {
        if let Some(room) = self.find(document) {
            room.point_kept(seq);
        }
    }
}
