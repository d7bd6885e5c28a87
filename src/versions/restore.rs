//! Edits like any other, made by the server: the text becomes an older version, or one that
//! [`replace`](super::replace) gives.
//!
//! The edit touches only the differences, so anchors and cursors elsewhere stay in place. The texts
//! before and after it are both versions. So a second restore undoes the first.

use bytes::Bytes;
use chrono::Utc;
use tokio::time::Instant;

use crate::bounds::permits::Requester;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::http::entity_tags::mark_of;
use crate::rooms::RoomError;
use crate::rooms::server_edit::{TRIES, is_too_large};
use crate::seats::SeatError;
use crate::storage::error::StorageError;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::log::Append;
use crate::storage::packed::Packed;
use crate::storage::version_plan::NewVersion;
use crate::storage::versions::Version;
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

/// The edit that makes a text equal another one.
pub(super) struct Change<'a> {
    pub(super) document: DocumentId,
    pub(super) user: &'a User,
    pub(super) requester: &'a Requester,
    /// Of the seat; `None`: no session has ever taken it.
    pub(super) guard: Option<FenceGuard>,
    pub(super) wanted: &'a Packed,
    pub(super) kind: VersionKind,
    pub(super) restored_from: Option<i64>,
    /// The present text must have one of these marks.
    pub(super) required: Option<&'a [String]>,
}

struct Edit {
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
        let guard = Some(self.writers_guard(user, document).await?);
        let (version, wanted) = self.find(document, id).await?;
        let change = Change {
            document,
            user,
            requester,
            guard,
            wanted: &wanted,
            kind: VersionKind::Restore,
            restored_from: Some(version.number),
            required: None,
        };
        let restored = self.make_equal(&change).await?;
        Ok(restored.map_or(Restored::Already(version), Restored::Now))
    }

    /// The edit touches the differences only, and the texts before and after it are versions. `None`: the
    /// text is equal already. `Contended` if the text changed during each try.
    pub(super) async fn make_equal(
        &self,
        change: &Change<'_>,
    ) -> Result<Option<Version>, VersionError> {
        let document = change.document;
        for _ in 0..TRIES {
            let reading = self.texts.durable_snapshot(document, change.requester);
            let Some(snapshot) = reading.await? else { continue };
            let (merged, seq) = (snapshot.merged.clone(), snapshot.seq);
            let (wanted, limit) = (change.wanted.clone(), self.texts.bytes_max());
            let required = change.required.map(<[String]>::to_vec);
            let look = move |text: &Text| {
                let is_met = required.is_none_or(|marks| marks.contains(&mark_of(&text.content())));
                is_met.then_some(()).ok_or(VersionError::Changed)?;
                edit(text, merged, &wanted, limit)
            };
            let Some(edit) = self.texts.read_at(document, snapshot, look).await?? else {
                return Ok(None);
            };
            match self.commit(change, edit, seq).await? {
                Some(version) => return Ok(Some(version)),
                None => self.texts.read_on(document).await,
            }
        }
        Err(VersionError::Contended)
    }

    /// Commits the edit with its two versions, and delivers it. `None`: the text has changed since
    /// the server made the edit.
    async fn commit(
        &self,
        change: &Change<'_>,
        edit: Edit,
        seq: i64,
    ) -> Result<Option<Version>, VersionError> {
        let document = change.document;
        let append = Append {
            document,
            guard: change.guard,
            update: edit.update.clone(),
            clients: vec![edit.client],
            user: None,
            expected_seq: Some(seq),
            after: 0,
            now: Utc::now(),
        };
        let version = |text, kind, seq| new_version(document, change.user, text, kind, seq);
        let before = version(edit.before, VersionKind::Pause, seq);
        let after = NewVersion {
            restored_from: change.restored_from,
            ..version(change.wanted.clone(), change.kind, seq + 1)
        };
        let stored = self.storage.restore_version(&append, &before, &after).await?;
        if matches!(stored, Guarded::Stale) {
            return Ok(None);
        }
        let (version, seq) = done(stored)?;
        let fence = change.guard.map_or(Fence::ZERO, |guard| guard.fence);
        self.texts.show_edit(document, fence, seq, edit.update).await;
        self.texts.version_stored(document, seq);
        Ok(Some(version))
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

/// `None`: the text is equal already.
fn edit(
    text: &Text,
    merged: Bytes,
    wanted: &Packed,
    limit: usize,
) -> Result<Option<Edit>, VersionError> {
    let wanted = wanted.unpack().map_err(SeatError::from)?;
    let mut log =
        UpdateLog::open(vec![merged]).map_err(|_| SeatError::Room(RoomError::Unreadable))?;
    let client = server_client_id(&log);
    let update = text.become_text(&wanted, client).map_err(|error| {
        tracing::error!(?error, "a text cannot be changed into another");
        SeatError::Room(RoomError::Unreadable)
    })?;
    let Some(update) = update else { return Ok(None) };
    if is_too_large(&mut log, &update, limit) {
        return Err(VersionError::TooLarge);
    }
    Ok(Some(Edit { client, update, before: Packed::of(&text.content()) }))
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
