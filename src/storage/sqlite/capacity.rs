//! Stored bytes, on `SQLite`.

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::capacity::Usage;
use crate::storage::error::StorageError;
use crate::storage::sqlite::Sqlite;

impl Sqlite {
    pub(in crate::storage) async fn usage_of(
        &self,
        owner: &UserId,
        binned: Option<DocumentId>,
    ) -> Result<Usage, StorageError> {
        // The head of a row contains the length of a blob, so SQLite reads no blob. The journal has at
        // most some thousand rows.
        let (documents, bytes) = sqlx::query_as(
            "SELECT count(*), COALESCE(SUM( \
             COALESCE((SELECT octet_length(bytes) FROM snapshots WHERE document_id = d.id), 0) \
             + COALESCE((SELECT SUM(octet_length(bytes)) FROM updates \
                         WHERE document_id = d.id), 0)), 0) \
             + COALESCE((SELECT SUM(octet_length(j.bytes)) FROM journal j \
                         CROSS JOIN documents o ON o.id = j.document_id \
                         WHERE o.owner_id = $1 AND (o.deleted_at IS NULL OR o.id = $2)), 0) \
             FROM documents d WHERE owner_id = $1 AND (deleted_at IS NULL OR id = $2)",
        )
        .bind(owner.as_str())
        .bind(binned.map(|id| id.to_string()))
        .fetch_one(&self.readers)
        .await?;
        Ok(Usage { documents, bytes })
    }

    pub(in crate::storage) async fn stored_bytes(&self) -> Result<u64, StorageError> {
        let bytes: i64 = sqlx::query_scalar(
            "SELECT (p.page_count - f.freelist_count) * s.page_size \
             FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s",
        )
        .fetch_one(&self.readers)
        .await?;
        Ok(bytes.try_into().unwrap_or_default())
    }
}
