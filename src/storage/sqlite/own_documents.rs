//! Statements on documents that only `SQLite` has: lists and the final deletion.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::decode::{corrupt, parse};
use crate::storage::documents::Document;
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::documents::{Row, document_from, select_documents};

/// Selects from the documents of `$1`, as `documents_now` has them, with one scan of the journal.
macro_rules! select_of_owner {
    ($rest:literal) => {
        select_documents!(
            "(SELECT id, title, owner_id, characters, created_at, \
              MAX(updated_at, COALESCE(j.at, 0)) AS updated_at FROM documents LEFT JOIN \
              (SELECT document_id, MAX(at) AS at FROM journal GROUP BY document_id) j \
              ON j.document_id = documents.id WHERE owner_id = $1 AND deleted_at IS NULL)",
            $rest
        )
    };
}

impl Sqlite {
    pub(in crate::storage) async fn documents_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Document>, StorageError> {
        let limit = page.limit.min(PAGE_ROWS_MAX);
        let query = match &page.before {
            None => {
                sqlx::query_as(select_of_owner!("ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"))
                    .bind(owner.as_str())
                    .bind(limit)
            }
            Some(before) => sqlx::query_as(select_of_owner!(
                "WHERE (d.updated_at, d.id) < ($3, $4) \
                 ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"
            ))
            .bind(owner.as_str())
            .bind(limit)
            .bind(before.at.timestamp_millis())
            .bind(before.id.to_string()),
        };
        let rows: Vec<Row> = query.fetch_all(&self.readers).await?;
        rows.into_iter().map(document_from).collect()
    }

    pub(in crate::storage) async fn delete_document(
        &self,
        id: DocumentId,
    ) -> Result<bool, StorageError> {
        let mut tx = self.write().await?;
        let deleted = sqlx::query("DELETE FROM documents WHERE id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        clear_journal(&mut tx, id).await?;
        tx.commit().await?;
        Ok(0 < deleted.rows_affected())
    }

    pub(in crate::storage) async fn purge_document(
        &self,
        id: DocumentId,
        deleted_by: Option<DateTime<Utc>>,
    ) -> Result<bool, StorageError> {
        let mut tx = self.write().await?;
        let deleted = sqlx::query(
            "DELETE FROM documents WHERE id = $1 AND deleted_at <= COALESCE($2, deleted_at)",
        )
        .bind(id.to_string())
        .bind(deleted_by.map(|time| time.timestamp_millis()))
        .execute(&mut *tx)
        .await?;
        if deleted.rows_affected() == 0 {
            return Ok(false);
        }
        clear_journal(&mut tx, id).await?;
        tx.commit().await?;
        Ok(true)
    }

    pub(in crate::storage) async fn review_change_numbers(
        &self,
        documents: &[DocumentId],
    ) -> Result<HashMap<DocumentId, i64>, StorageError> {
        let wanted: Vec<_> = documents.iter().map(ToString::to_string).collect();
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "SELECT d.id, d.review_changes FROM json_each($1) w \
             CROSS JOIN documents d ON d.id = w.value",
        )
        .bind(serde_json::to_string(&wanted).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(|(id, last)| Ok((parse(&id)?, last))).collect()
    }
}

/// Deletes the updates of a deleted document. No reference to `documents` deletes them.
async fn clear_journal(
    connection: &mut SqliteConnection,
    id: DocumentId,
) -> Result<(), StorageError> {
    let query = sqlx::query("DELETE FROM journal WHERE document_id = $1");
    query.bind(id.to_string()).execute(connection).await?;
    Ok(())
}
