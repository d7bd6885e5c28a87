//! Replacement of a text by the host application.
//!
//! No session makes this edit, so it has the fence of the writer's seat as the database ratified it last: a
//! session that takes the seat meanwhile raises the fence, and the edit is made again.

use crate::bounds::permits::Requester;
use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::domain::seat::{Role, Seat};
use crate::domain::text::incoming;
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::rooms::RoomError;
use crate::rooms::server_edit::TRIES;
use crate::storage::guard::FenceGuard;
use crate::storage::packed::Packed;
use crate::versions::restore::Change;
use crate::versions::{VersionError, Versions};

/// The present state that a replacement demands.
#[derive(Clone, Debug, Default)]
pub struct Precondition {
    /// The text has one of these marks. `None`: it may be any.
    pub marks: Option<Vec<String>>,
    /// The writer's seat may be held.
    pub while_open: bool,
}

impl Versions {
    /// The text becomes `text`, by the rule for text of clients. The caller checks that `user` owns the
    /// document. Returns the text as it is stored.
    pub async fn replace(
        &self,
        user: &User,
        requester: &Requester,
        document: DocumentId,
        text: String,
        precondition: &Precondition,
    ) -> Result<String, VersionError> {
        let pack = move || {
            let text = incoming(&text);
            (Packed::of(&text), text)
        };
        let (wanted, text) = self.texts.with_permit(requester, pack).await?;
        for _ in 0..TRIES {
            let guard = self.guard_of_writer(document, precondition.while_open).await?;
            let change = Change {
                document,
                user,
                requester,
                guard,
                wanted: &wanted,
                kind: VersionKind::Pause,
                restored_from: None,
                required: precondition.marks.as_deref(),
            };
            match self.make_equal(&change).await {
                // Another session has the seat now.
                Err(VersionError::SeatNotHeld) => {}
                made => return made.map(|_version| text),
            }
        }
        Err(VersionError::Contended)
    }

    /// The last ratified fence of the writer's seat. `None`: there is none.
    async fn guard_of_writer(
        &self,
        document: DocumentId,
        while_open: bool,
    ) -> Result<Option<FenceGuard>, VersionError> {
        let Some(link) = self.storage.link_of(document).await? else { return Ok(None) };
        let seat = Seat::new(link.id, Role::Writer);
        // Read before the holder: who takes the seat after this exceeds the fence.
        let Some(lookup) = self.storage.seat_lookup(seat).await? else { return Ok(None) };
        if !while_open {
            let seats = self.seats.seats_of(&[link.id]).await;
            match seats.first().and_then(|seats| seats.writer.taken) {
                Some(false) => {}
                Some(true) => return Err(VersionError::SeatHeld),
                None => return Err(RoomError::Busy.into()),
            }
        }
        let fence = lookup.floor;
        Ok((fence != Fence::ZERO).then_some(FenceGuard { seat, fence }))
    }
}
