//! The statements of the sections of a document: one row with all of them. Its version is the number of the
//! change that set it, so a server that missed the change reads it (G15).

use crate::domain::ids::DocumentId;
use crate::domain::section::StoredSection;
use crate::storage::decode::corrupt;
use crate::storage::guard::Guarded;
use crate::storage::locks::lock;
use crate::storage::statement::{json, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

impl Storage {
    /// The sections of a document with their version. It is 0 before the first ones.
    pub fn sections(&self, id: DocumentId) -> StorageFuture<'_, (i64, Vec<StoredSection>)> {
        run!(self, Read, tx => {
            Ok(sections_after(tx, id, -1).await?.unwrap_or_default())
        })
    }

    /// Replaces the sections of a document: their new version. `VersionMismatch` unless the version is
    /// `expected`.
    pub fn set_sections<'a>(
        &'a self,
        id: DocumentId,
        sections: &'a [StoredSection],
        expected: Option<i64>,
    ) -> StorageFuture<'a, Guarded<i64>> {
        guarded!(self, tx => {
            lock(tx, id).await?;
            let version = sql!(
                "SELECT COALESCE(s.version, 0) AS version FROM documents d \
                 LEFT JOIN document_sections s ON s.document_id = d.id \
                 WHERE d.id = {id} AND d.deleted_at IS NULL"
            );
            let Some(current) = version.value::<i64>(tx).await? else {
                return Err(TxError::Refused(Guarded::NotFound));
            };
            if expected.is_some_and(|expected| expected != current) {
                return Err(TxError::Refused(Guarded::VersionMismatch { current }));
            }
            let change = sql!(
                "UPDATE documents SET review_changes = review_changes + 1 WHERE id = {id} \
                 RETURNING review_changes"
            );
            let change = change.one(tx).await?.get(0)?;
            put_sections(tx, id, sections, change).await?;
            Ok(change)
        })
    }
}

pub(crate) async fn put_sections(
    tx: &mut Tx,
    id: DocumentId,
    sections: &[StoredSection],
    version: i64,
) -> Result<(), TxError> {
    let put = sql!(
        "INSERT INTO document_sections (document_id, version, sections) \
         VALUES ({id}, {version}, {json(sections)?}) ON CONFLICT (document_id) DO UPDATE \
         SET version = excluded.version, sections = excluded.sections"
    );
    put.run(tx).await.map(drop)
}

/// The sections of a document with their version, if they were set after change number `after`.
pub(crate) async fn sections_after(
    tx: &mut Tx,
    id: DocumentId,
    after: i64,
) -> Result<Option<(i64, Vec<StoredSection>)>, TxError> {
    let row = sql!(
        "SELECT version, sections FROM document_sections WHERE document_id = {id} \
         AND version > {after}"
    );
    let Some(row) = row.row(tx).await? else { return Ok(None) };
    let sections: String = row.get("sections")?;
    Ok(Some((row.get("version")?, serde_json::from_str(&sections).map_err(corrupt)?)))
}
