//! Versions of a document: list, read, compare, name.
//!
//! The caller checks that the user may read the document. A [`restore`](Versions::restore) needs the writer's
//! seat; a [`replacement`](Versions::replace) by default that no session holds it.

pub(crate) mod http;
pub mod replace;
pub mod restore;

use std::str::FromStr;

use chrono::Utc;
use serde::Serialize;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, InvalidId, VersionId};
use crate::domain::limits::DIFF_TIMEOUT;
use crate::domain::line::{InvalidLine, Line};
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::rooms::RoomError;
use crate::rooms::server_edit::TRIES;
use crate::rooms::texts::Texts;
use crate::seats::{SeatError, Seats};
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::packed::Packed;
use crate::storage::version_plan::NewVersion;
use crate::storage::versions::{StoreOutcome, Version};
use crate::yjs::text::Text;
use crate::yjs::word_diff::{Segment, by_words};

#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("this needs the writer's seat; acquire the seat first")]
    SeatNotHeld,
    #[error("a session holds the writer's seat; wait for its end, or send ?while_open=true")]
    SeatHeld,
    #[error("the text has changed since you read it; read it again")]
    Changed,
    #[error(transparent)]
    Label(#[from] InvalidLine),
    #[error("there are too many named versions already")]
    Full,
    #[error("the text is changing; try again")]
    Contended,
    #[error("with this text the document would be larger than this server takes")]
    TooLarge,
    #[error(transparent)]
    Session(#[from] SeatError),
}

impl From<StorageError> for VersionError {
    fn from(error: StorageError) -> Self {
        Self::Session(error.into())
    }
}

impl From<RoomError> for VersionError {
    fn from(error: RoomError) -> Self {
        Self::Session(error.into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    Current,
    Version(VersionId),
}

impl FromStr for Against {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text == "current" { Ok(Self::Current) } else { text.parse().map(Self::Version) }
    }
}

impl Serialize for Against {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Current => serializer.serialize_str("current"),
            Self::Version(id) => id.serialize(serializer),
        }
    }
}

/// From the older text to the newer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// The older text: the id of a version.
    #[cfg_attr(test, schemars(with = "String"))]
    pub from: Against,
    /// The newer text: the id of a version, or `current`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub to: Against,
    /// In whole words. `equal` and `delete` spell the older text, `equal` and `insert` the newer one.
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
pub struct Versions {
    seats: Seats,
    texts: Texts,
    storage: Storage,
}

impl Versions {
    #[must_use]
    pub fn new(seats: Seats, texts: Texts, storage: Storage) -> Self {
        Self { seats, texts, storage }
    }

    /// Newest first: at most `limit`, below number `before`.
    pub async fn list(
        &self,
        document: DocumentId,
        limit: u32,
        before: Option<i64>,
    ) -> Result<Vec<Version>, VersionError> {
        Ok(self.storage.versions(document, limit, before).await?)
    }

    pub async fn get(
        &self,
        requester: &Requester,
        document: DocumentId,
        id: VersionId,
    ) -> Result<(Version, String), VersionError> {
        let (version, packed) = self.find(document, id).await?;
        let text = self.texts.with_permit(requester, move || packed.unpack()).await??;
        Ok((version, text))
    }

    /// The text must be stored first; the call waits a moment for that. `Full` at the limit of named
    /// versions, `Contended` if the text changes too fast.
    pub async fn name(
        &self,
        user: &User,
        requester: &Requester,
        document: DocumentId,
        label: &str,
    ) -> Result<Version, VersionError> {
        let label = Line::Label.parse(label)?;
        if !self.storage.has_room() {
            return Err(SeatError::Room(RoomError::StorageSpent).into());
        }
        for _ in 0..TRIES {
            let reading = self.texts.durable_snapshot(document, requester);
            let Some(snapshot) = reading.await? else { continue };
            let seq = snapshot.seq;
            let pack = |text: &Text| Packed::of(&text.content());
            let text = self.texts.read_at(document, snapshot, pack).await?;
            let new = NewVersion {
                id: VersionId::generate(),
                document,
                kind: VersionKind::Named,
                label: Some(label.clone()),
                authors: vec![user.clone()],
                restored_from: None,
                seq,
                text,
                now: Utc::now(),
            };
            match self.storage.store_versions(&[new]).await?.pop() {
                Some(StoreOutcome::Stored(version)) => {
                    self.texts.version_stored(document, seq);
                    return Ok(version);
                }
                Some(StoreOutcome::Full) => return Err(VersionError::Full),
                Some(StoreOutcome::Gone) => return Err(VersionError::NotFound("document")),
                // A newer version exists: the snapshot was old.
                Some(StoreOutcome::NotNew) | None => {
                    self.texts.read_on(document).await;
                }
            }
        }
        Err(VersionError::Contended)
    }

    /// Compares with another version, or with the current text.
    pub async fn difference(
        &self,
        requester: &Requester,
        document: DocumentId,
        id: VersionId,
        against: Against,
    ) -> Result<Difference, VersionError> {
        let (version, packed) = self.find(document, id).await?;
        let one = Against::Version(id);
        let segments = match against {
            Against::Current => {
                let compare = move |text: &Text| {
                    let old = packed.unpack()?;
                    Ok::<_, StorageError>(by_words(&old, &text.content(), DIFF_TIMEOUT))
                };
                self.texts.read(document, requester, compare).await??
            }
            Against::Version(other) => {
                let (other, other_packed) = self.find(document, other).await?;
                let is_older = version.number <= other.number;
                let (old, new) =
                    if is_older { (packed, other_packed) } else { (other_packed, packed) };
                let compare = move || {
                    Ok::<_, StorageError>(by_words(&old.unpack()?, &new.unpack()?, DIFF_TIMEOUT))
                };
                let segments = self.texts.with_permit(requester, compare).await??;
                if !is_older {
                    return Ok(Difference { from: against, to: one, segments });
                }
                segments
            }
        };
        Ok(Difference { from: one, to: against, segments })
    }

    pub(crate) async fn find(
        &self,
        document: DocumentId,
        id: VersionId,
    ) -> Result<(Version, Packed), VersionError> {
        let found = self.storage.version(document, id).await?;
        found.ok_or(VersionError::NotFound("version"))
    }
}
