//! Restore of an older version: an edit like any other, made by the server.
//!
//! The edit touches only the differences, so anchors and cursors elsewhere stay in place. The texts
//! before and after the restore are both versions. So a second restore undoes the first.

use bytes::Bytes;
use chrono::Utc;
use tokio::time::Instant;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::rooms::RoomError;
use crate::rooms::server_edit::{TRIES, is_too_large};
use crate::seats::SeatError;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::seats::{FenceGuard, Guarded};
use crate::storage::versions::{NewVersion, Packed, Version};
use crate::versions::{VersionError, Versions};
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::text::Text;

#[derive(Clone, Debug)]
pub enum Restored {
    /// The text equals that version again. The restored text is a version of its own.
    Now(Version),
    /// The text equals that version already.
    Already(Version),
}

struct Return {
    client: u64,
    update: Bytes,
    before: Packed,
}

impl Versions {
    /// Needs the writer's seat. `Contended` if the text changed during each try.
    pub async fn restore(
        &self,
        user: &User,
        requester: &Requester,
        document: DocumentId,
        id: VersionId,
    ) -> Result<Restored, VersionError> {
        let guard = self.writers_guard(user, document).await?;
        let (version, packed) = self.find(document, id).await?;
        for _ in 0..TRIES {
            let rooms = &self.rooms;
            let Some(snapshot) = rooms.durable_snapshot(document, requester).await? else {
                continue;
            };
            let (merged, seq) = (snapshot.merged.clone(), snapshot.seq);
            let (wanted, limit) = (packed.clone(), self.seats.limits().document_bytes);
            let look = move |text: &Text| way_back(text, merged, &wanted, limit);
            let Some(edit) = self.rooms.read_text(document, snapshot, look).await?? else {
                return Ok(Restored::Already(version));
            };
            let append = Append {
                document,
                guard: Some(guard),
                update: edit.update.clone(),
                clients: vec![edit.client],
                user: None,
                expected_seq: Some(seq),
                after: 0,
                now: Utc::now(),
            };
            let before = new_version(document, user, edit.before, VersionKind::Pause, seq);
            let after = NewVersion {
                restored_from: Some(version.number),
                ..new_version(document, user, packed.clone(), VersionKind::Restore, seq + 1)
            };
            match self.commit(append, before, after).await? {
                Some(restored) => return Ok(Restored::Now(restored)),
                None => self.rooms.read_on(document).await,
            }
        }
        Err(VersionError::Contended)
    }

    /// Commits the edit with its two versions, and delivers it. `None`: the text has changed since
    /// the server made the edit.
    async fn commit(
        &self,
        edit: Append,
        before: NewVersion,
        after: NewVersion,
    ) -> Result<Option<Version>, VersionError> {
        let guard = edit.guard.ok_or(VersionError::SeatNotHeld)?;
        let restored = self.storage.restore_version(&edit, &before, &after).await?;
        if matches!(restored, Guarded::Stale) {
            return Ok(None);
        }
        let (restored, seq) = done(restored)?;
        self.rooms.show_edit(edit.document, guard.fence, seq, edit.update).await;
        self.rooms.version_stored(edit.document, seq);
        Ok(Some(restored))
    }

    /// The write guard of the writer's seat, if `user` holds it at this moment. A restore counts as
    /// activity and resets the idle timeout.
    async fn writers_guard(
        &self,
        user: &User,
        document: DocumentId,
    ) -> Result<FenceGuard, VersionError> {
        let link = self.storage.link_of(document).await?.ok_or(VersionError::SeatNotHeld)?;
        let seat = Seat::new(link.id, Role::Writer);
        let fence = self.seats.holds(&user.id, seat).await?;
        let fence = fence.ok_or(VersionError::SeatNotHeld)?;
        if let Some(session) = self.seats.registry().seated_in(seat) {
            session.record_activity(Instant::now());
        }
        Ok(FenceGuard { seat, fence })
    }
}

/// `None`: the text equals the version already.
fn way_back(
    text: &Text,
    merged: Bytes,
    wanted: &Packed,
    limit: usize,
) -> Result<Option<Return>, VersionError> {
    let wanted = wanted.unpack().map_err(SeatError::from)?;
    let mut log =
        UpdateLog::open(vec![merged]).map_err(|_| SeatError::Room(RoomError::Unreadable))?;
    let client = server_client_id(&log);
    let update = text.become_text(&wanted, client).map_err(|error| {
        tracing::error!(?error, "a version cannot be restored");
        SeatError::Room(RoomError::Unreadable)
    })?;
    let Some(update) = update else { return Ok(None) };
    if is_too_large(&mut log, &update, limit) {
        return Err(VersionError::TooLarge);
    }
    Ok(Some(Return { client, update, before: Packed::of(&text.content()) }))
}

fn new_version(
    document: DocumentId,
    user: &User,
    text: Packed,
    kind: VersionKind,
    seq: i64,
) -> NewVersion {
    NewVersion {
        id: VersionId::generate(),
        document,
        kind,
        label: None,
        authors: vec![user.clone()],
        restored_from: None,
        seq,
        text,
        now: Utc::now(),
    }
}

fn done<T>(guarded: Guarded<T>) -> Result<T, VersionError> {
    match guarded {
        Guarded::Done(value) => Ok(value),
        Guarded::Fenced => Err(VersionError::SeatNotHeld),
        Guarded::NotFound => Err(VersionError::NotFound("document")),
        Guarded::Stale | Guarded::VersionMismatch { .. } => Err(VersionError::Contended),
        Guarded::Full => {
            let error = StorageError::Refused("a restored version was not stored".to_owned());
            Err(error.into())
        }
    }
}
