//! Statements on documents that only PostgreSQL has: lists and the final deletion.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::decode::parse;
use crate::storage::documents::Document;
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::postgres::Postgres;
use crate::storage::postgres::dialect::{read, transact};
use crate::storage::postgres::documents::{Row, document_from, select_documents};
use crate::storage::postgres::encoding::Moment;
use crate::storage::postgres::tx_error::TxError;

impl Postgres {
    pub(in crate::storage) async fn documents_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Document>, StorageError> {
        let limit = i64::from(page.limit.min(PAGE_ROWS_MAX));
        read!(self, connection => {
            let query = match &page.before {
                None => sqlx::query_as(select_documents!(
                    "documents",
                    "WHERE d.owner_id = $1 AND d.deleted_at IS NULL ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"
                ))
                .bind(owner.as_str())
                .bind(limit),
                Some(before) => sqlx::query_as(select_documents!(
                    "documents",
                    "WHERE d.owner_id = $1 AND d.deleted_at IS NULL AND (d.updated_at, d.id) < ($3, $4) \
                     ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"
                ))
                .bind(owner.as_str())
                .bind(limit)
                .bind(Moment(before.at))
                .bind(before.id.to_string()),
            };
            let rows: Vec<Row> = query.fetch_all(connection).await?;
            Ok(rows.into_iter().map(document_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn delete_document(
        &self,
        id: DocumentId,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            let locked = sqlx::query("SELECT 1 FROM documents WHERE id = $1 FOR UPDATE")
                .bind(id.to_string())
                .fetch_optional(&mut *tx)
                .await?;
            if locked.is_none() {
                return Ok(false);
            }
            delete_rows(tx, id).await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn purge_document(
        &self,
        id: DocumentId,
        deleted_by: Option<DateTime<Utc>>,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            let locked = sqlx::query(
                "SELECT 1 FROM documents \
                 WHERE id = $1 AND deleted_at <= COALESCE($2, deleted_at) FOR UPDATE",
            )
            .bind(id.to_string())
            .bind(deleted_by.map(Moment))
            .fetch_optional(&mut *tx)
            .await?;
            if locked.is_none() {
                return Ok(false);
            }
            delete_rows(tx, id).await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn review_change_numbers(
        &self,
        documents: &[DocumentId],
    ) -> Result<HashMap<DocumentId, i64>, StorageError> {
        let wanted: Vec<_> = documents.iter().map(ToString::to_string).collect();
        read!(self, connection => {
            let rows: Vec<(String, i64)> =
                sqlx::query_as("SELECT id, review_changes FROM documents WHERE id = ANY($1)")
                    .bind(wanted.as_slice())
                    .fetch_all(connection)
                    .await?;
            let numbers = rows.into_iter().map(|(id, last)| Ok((parse(&id)?, last)));
            Ok(numbers.collect::<Result<_, StorageError>>()?)
        })
    }
}

/// Deletes a document under its lock. No reference to `documents` deletes the first two tables.
async fn delete_rows(connection: &mut PgConnection, id: DocumentId) -> Result<(), TxError> {
    for delete in [
        "DELETE FROM updates WHERE document_id = $1",
        "DELETE FROM clients WHERE document_id = $1",
        "DELETE FROM documents WHERE id = $1",
    ] {
        sqlx::query(delete).bind(id.to_string()).execute(&mut *connection).await?;
    }
    Ok(())
}
