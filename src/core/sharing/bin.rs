//! The bin: deleted documents, for their owners, until the server purges them.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde::Serialize;
use tokio::time::sleep;

use crate::domain::deletion::Deletion;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::limits::{BIN_DOCUMENTS_MAX, PURGED_AT_ONCE};
use crate::domain::user::User;
use crate::sharing::documents::NO_DOCUMENT;
use crate::sharing::{Sharing, SharingError};
use crate::storage::bin::{BinnedDocument, MembersDeletion};
use crate::storage::documents::Document;
use crate::storage::error::StorageError;
use crate::storage::pagination::Page;

/// Bounds of the purge's period, which is a tenth of the retention.
const PURGE_EVERY_MIN: Duration = Duration::from_secs(1);
const PURGE_EVERY_MAX: Duration = Duration::from_secs(600);
/// Pause between two purges of one round. `SQLite` has one writer, and edits wait for it.
const PURGE_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    pub deletion: Deletion,
    /// The time from which on the server purges the document.
    pub purge_at: DateTime<Utc>,
}

// The API publishes one schema for documents in the bin and outside.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Document"))]
pub struct Binned {
    #[serde(flatten)]
    pub row: BinnedDocument,
    /// In the bin: when the server may delete it for ever.
    #[cfg_attr(feature = "schemas", schemars(skip_serializing_if = "outside"))]
    pub purge_at: DateTime<Utc>,
}

impl Sharing {
    /// With a retention of zero a deletion is final. The caller ends the sessions of the document.
    pub async fn delete_document(
        &self,
        caller: &User,
        id: DocumentId,
        now: DateTime<Utc>,
    ) -> Result<Deletion, SharingError> {
        // The database stores whole milliseconds, and every answer names the same time.
        let at = now.trunc_subsecs(3);
        let by = self.document(&caller.id, id).await?.owner;
        let deleted = if self.quota.bin_retention.is_zero() {
            self.storage.delete_document(id).await?
        } else {
            self.storage.bin_document(id, at).await?
        };
        if !deleted {
            return Err(NO_DOCUMENT);
        }
        Ok(Deletion { by, at })
    }

    /// Purges the oldest documents of a user's bin beyond its bound. A failure leaves them to the
    /// next deletion.
    pub async fn bound_bin(&self, owner: &UserId) {
        let purge = async {
            for id in self.storage.bin_beyond(owner, BIN_DOCUMENTS_MAX).await? {
                self.storage.purge_document(id, None).await?;
            }
            Ok::<_, StorageError>(())
        };
        if let Err(error) = purge.await {
            tracing::warn!(%error, "a bin above its bound was not purged");
        }
    }

    /// Zero: a deletion is final.
    #[must_use]
    pub fn bin_retention(&self) -> Duration {
        self.quota.bin_retention
    }

    /// The last deleted first.
    pub async fn bin_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Binned>, SharingError> {
        let rows = self.storage.bin_of(owner, page).await?;
        let with_purge = |row: BinnedDocument| {
            let purge_at = self.purge_at(row.deleted_at);
            Binned { row, purge_at }
        };
        Ok(rows.into_iter().map(with_purge).collect())
    }

    /// Moves a document out of the caller's bin, with its share link, reviews and versions. A document
    /// outside the bin stays as it is. Restorations alternate with the creations of their user, because
    /// both count towards the quota.
    pub async fn restore_document(
        &self,
        caller: &UserId,
        address: IpAddr,
        id: DocumentId,
        now: DateTime<Utc>,
    ) -> Result<Document, SharingError> {
        let _permit = self.permits.acquire(caller, address).await?;
        let deletion = self.storage.deletion_of(id).await?;
        if deletion.is_none() {
            return self.document(caller, id).await;
        }
        deletion.filter(|deletion| deletion.owner.id == *caller).ok_or(NO_DOCUMENT)?;
        self.quota.fits(self.storage.usage_with(caller, id).await?)?;
        match self.storage.restore_document(id, now).await? {
            Some(document) => Ok(document),
            // Restored or purged meanwhile.
            None => self.document(caller, id).await,
        }
    }

    pub async fn purge_document(
        &self,
        caller: &UserId,
        id: DocumentId,
    ) -> Result<(), SharingError> {
        let deletion = self.storage.deletion_of(id).await?;
        deletion.filter(|deletion| deletion.owner.id == *caller).ok_or(NOT_IN_BIN)?;
        let purged = self.storage.purge_document(id, None).await?;
        purged.then_some(()).ok_or(NOT_IN_BIN)
    }

    #[must_use]
    pub fn purge_every(&self) -> Duration {
        (self.quota.bin_retention / 10).clamp(PURGE_EVERY_MIN, PURGE_EVERY_MAX)
    }

    pub async fn purge(&self) {
        match self.purge_due(Utc::now()).await {
            Ok(0) => {}
            Ok(documents) => tracing::info!(documents, "purged the bins"),
            Err(error) => tracing::warn!(%error, "the bins were not purged"),
        }
    }

    async fn purge_due(&self, now: DateTime<Utc>) -> Result<u64, StorageError> {
        let due = now - delta(self.quota.bin_retention);
        let mut purged = 0;
        for id in self.storage.binned_by(due, PURGED_AT_ONCE).await? {
            // Another server may purge the same document, or its owner may restore it.
            purged += u64::from(self.storage.purge_document(id, Some(due)).await?);
            sleep(PURGE_PAUSE).await;
        }
        Ok(purged)
    }

    /// The error for a missing document: with its deletion if the caller is a member.
    pub(super) async fn missing_document(
        &self,
        caller: &UserId,
        id: DocumentId,
    ) -> Result<SharingError, SharingError> {
        let deletion = self.storage.deletion_of(id).await?;
        Ok(self.deleted_for(caller, deletion).unwrap_or(NO_DOCUMENT))
    }

    /// The error for a missing link: with the deletion of its document if the caller is a member.
    pub(super) async fn missing_link(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        otherwise: SharingError,
    ) -> Result<SharingError, SharingError> {
        let deletion = self.storage.deletion_of_link(id).await?;
        Ok(self.deleted_for(caller, deletion).unwrap_or(otherwise))
    }

    fn deleted_for(
        &self,
        caller: &UserId,
        deletion: Option<MembersDeletion>,
    ) -> Option<SharingError> {
        let deletion = deletion.filter(|deletion| deletion.concerns(caller))?.deletion();
        let purge_at = self.purge_at(deletion.at);
        Some(SharingError::Deleted(Box::new(Deleted { deletion, purge_at })))
    }

    fn purge_at(&self, deleted_at: DateTime<Utc>) -> DateTime<Utc> {
        deleted_at + delta(self.quota.bin_retention)
    }
}

const NOT_IN_BIN: SharingError = SharingError::NotFound("document in the bin");

/// The settings bound a retention, so it fits.
fn delta(retention: Duration) -> TimeDelta {
    TimeDelta::from_std(retention).unwrap_or_default()
}
