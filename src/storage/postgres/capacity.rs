//! Stored bytes, on PostgreSQL.

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::capacity::Usage;
use crate::storage::error::StorageError;
use crate::storage::postgres::Postgres;
use crate::storage::postgres::dialect::read;

impl Postgres {
    pub(in crate::storage) async fn usage_of(
        &self,
        owner: &UserId,
        binned: Option<DocumentId>,
    ) -> Result<Usage, StorageError> {
        read!(self, connection => {
            // PostgreSQL stores the length of a long value beside it, and does not read the value.
            let (documents, bytes) = sqlx::query_as(
                "SELECT count(*), COALESCE(SUM( \
                 COALESCE((SELECT octet_length(bytes) FROM snapshots WHERE document_id = d.id), 0) \
                 + COALESCE((SELECT SUM(octet_length(bytes)) FROM updates \
                             WHERE document_id = d.id), 0)), 0)::bigint \
                 FROM documents d WHERE owner_id = $1 AND (deleted_at IS NULL OR id = $2)",
            )
            .bind(owner.as_str())
            .bind(binned.map(|id| id.to_string()))
            .fetch_one(connection)
            .await?;
            Ok(Usage { documents, bytes })
        })
    }

    pub(in crate::storage) async fn stored_bytes(&self) -> Result<u64, StorageError> {
        read!(self, connection => {
            let bytes: i64 = sqlx::query_scalar("SELECT pg_database_size(current_database())")
                .fetch_one(connection)
                .await?;
            Ok(bytes.try_into().unwrap_or_default())
        })
    }
}
