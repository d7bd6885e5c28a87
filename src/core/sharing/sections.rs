//! The sections of a document: the owner sets them, its members read them.

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::section::StoredSection;
use crate::sharing::documents::NO_DOCUMENT;
use crate::sharing::{Sharing, SharingError};
use crate::storage::guard::Guarded;

impl Sharing {
    /// The sections of a document that the caller may read, with their version.
    pub async fn sections(
        &self,
        caller: &UserId,
        id: DocumentId,
    ) -> Result<(i64, Vec<StoredSection>), SharingError> {
        self.may_read(caller, id).await?;
        Ok(self.storage.sections(id).await?)
    }

    /// Replaces the sections of a document: their new version. [`SharingError::SectionsChanged`] unless
    /// the version is `expected`.
    pub async fn set_sections(
        &self,
        id: DocumentId,
        sections: &[StoredSection],
        expected: Option<i64>,
    ) -> Result<i64, SharingError> {
        if !sections.is_empty() && !self.storage.has_room() {
            return Err(SharingError::StorageSpent);
        }
        match self.storage.set_sections(id, sections, expected).await? {
            Guarded::Done(version) => Ok(version),
            Guarded::VersionMismatch { .. } => Err(SharingError::SectionsChanged),
            Guarded::NotFound | Guarded::Fenced | Guarded::Stale | Guarded::Full => {
                Err(NO_DOCUMENT)
            }
        }
    }
}
