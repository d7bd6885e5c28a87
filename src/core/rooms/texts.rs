//! The texts of documents, with the edits that are relayed and not yet stored.
//!
//! [`Texts::read`] is the road of every reader: a request, a review, an export. A server edit reads the text that it
//! edits as a [`Snapshot`] ([`Texts::durable_snapshot`]), and builds it by [`Texts::read_at`]. The text is that of
//! the open room, or of the database: a read opens no room.

use std::sync::Arc;

use crate::bounds::permits::Requester;
use crate::domain::ids::DocumentId;
use crate::rooms::snapshot::Snapshot;
use crate::rooms::version_recorder::History;
use crate::rooms::{Opened, RoomError, Rooms};
use crate::yjs::text::Text;

#[derive(Clone, Debug)]
pub struct Texts {
    pub(super) rooms: Arc<Rooms>,
}

impl Texts {
    #[must_use]
    pub fn new(rooms: Rooms) -> Self {
        Self { rooms: Arc::new(rooms) }
    }

    #[must_use]
    pub fn is_open(&self, document: DocumentId) -> bool {
        self.rooms.find(document).is_some()
    }

    /// The longest document, in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.rooms.limits.document_bytes
    }

    pub async fn read<T: Send + 'static>(
        &self,
        document: DocumentId,
        requester: &Requester,
        read: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        let snapshot = self.snapshot(document, requester).await?;
        self.read_at(document, snapshot, read).await
    }

    pub async fn read_at<T: Send + 'static>(
        &self,
        document: DocumentId,
        snapshot: Snapshot,
        read: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        self.rooms.text_builder.read(document, snapshot, read).await
    }

    /// Acquires a build permit first: a waiting caller holds no document in memory. Dropping the future
    /// leaves no work behind.
    pub async fn snapshot(
        &self,
        document: DocumentId,
        requester: &Requester,
    ) -> Result<Snapshot, RoomError> {
        let rooms = &self.rooms;
        let permit = Some(rooms.text_builder.permit(requester).await?);
        // A caller would take the readable part for the whole text. A room shows that it is damaged.
        if let Some(room) = rooms.find(document) {
            if room.is_damaged() {
                return Err(RoomError::Unreadable);
            }
            let snapshot = rooms.beside(room.bytes(), move || room.snapshot()).await?;
            return Ok(Snapshot { permit, ..snapshot });
        }
        let Opened { mut log, seq, is_damaged, .. } = rooms.read(document).await?;
        if is_damaged {
            return Err(RoomError::Unreadable);
        }
        let merged = rooms.beside(log.bytes(), move || log.merged()).await?;
        Ok(Snapshot { merged, seq, is_durable: true, version: 0, permit })
    }

    pub(crate) fn history(&self) -> &History {
        &self.rooms.history
    }

    /// Runs work on texts on a blocking thread, under a permit of the requester.
    pub async fn with_permit<T: Send + 'static>(
        &self,
        requester: &Requester,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        self.rooms.text_builder.with_permit(requester, work).await
    }
}
