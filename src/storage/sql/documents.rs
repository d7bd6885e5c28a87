//! Documents, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::DocumentId;
use crate::storage::decode::parse;
use crate::storage::documents::{Document, NewDocument};
use crate::storage::error::StorageError;

use super::dialect::{
    Connection, Engine, Moment, TxError, documents, encoded, read, text, transact, user,
};
use super::users::put_user;

/// Selects documents as [`Row`]s.
macro_rules! select_documents {
    ($from:expr, $rest:literal) => {
        concat!(
            "SELECT d.id, d.title, u.id, u.name, d.characters, d.created_at, d.updated_at FROM ",
            $from,
            " d JOIN users u ON u.id = d.owner_id ",
            $rest
        )
    };
}
pub(super) use select_documents;

pub(super) type Row = (String, String, String, String, i64, Moment, Moment);

impl Engine {
    pub(in crate::storage) async fn create_document(
        &self,
        new: &NewDocument,
    ) -> Result<Document, StorageError> {
        let first = i64::from(!new.update.is_empty());
        transact!(self, tx => {
            put_user(tx, &new.owner, new.now).await?;
            sqlx::query(
                "INSERT INTO documents \
                 (id, title, owner_id, characters, last_seq, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $6)",
            )
            .bind(new.id.to_string())
            .bind(encoded(&new.title))
            .bind(new.owner.id.as_str())
            .bind(new.characters)
            .bind(first)
            .bind(Moment(new.now))
            .execute(&mut *tx)
            .await?;
            if 0 < first {
                sqlx::query("INSERT INTO updates (document_id, seq, bytes) VALUES ($1, $2, $3)")
                    .bind(new.id.to_string())
                    .bind(first)
                    .bind(new.update.as_ref())
                    .execute(&mut *tx)
                    .await?;
            }
            Ok(fetch(tx, new.id).await?.ok_or(sqlx::Error::RowNotFound)?)
        })
    }

    pub(in crate::storage) async fn document(
        &self,
        id: DocumentId,
    ) -> Result<Option<Document>, StorageError> {
        read!(self, connection => { fetch(connection, id).await })
    }

    pub(in crate::storage) async fn rename_document(
        &self,
        id: DocumentId,
        title: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Document>, StorageError> {
        transact!(self, tx => {
            sqlx::query(
                "UPDATE documents SET title = $2, updated_at = $3 \
                 WHERE id = $1 AND deleted_at IS NULL",
            )
                .bind(id.to_string())
                .bind(encoded(title))
                .bind(Moment(now))
                .execute(&mut *tx)
                .await?;
            fetch(tx, id).await
        })
    }

    pub(in crate::storage) async fn set_characters(
        &self,
        id: DocumentId,
        characters: i64,
    ) -> Result<(), StorageError> {
        transact!(self, tx => {
            sqlx::query("UPDATE documents SET characters = $2 WHERE id = $1 AND characters <> $2")
                .bind(id.to_string())
                .bind(characters)
                .execute(tx)
                .await?;
            Ok(())
        })
    }
}

/// A document outside the bin.
pub(super) async fn fetch(
    connection: &mut Connection,
    id: DocumentId,
) -> Result<Option<Document>, TxError> {
    let row =
        sqlx::query_as(select_documents!(documents!(), "WHERE d.id = $1 AND d.deleted_at IS NULL"))
            .bind(id.to_string())
            .fetch_optional(connection)
            .await?;
    Ok(row.map(document_from).transpose()?)
}

pub(super) fn document_from(row: Row) -> Result<Document, StorageError> {
    let (id, title, owner_id, owner_name, characters, Moment(created_at), Moment(updated_at)) = row;
    Ok(Document {
        id: parse(&id)?,
        title: text(title),
        owner: user(&owner_id, owner_name)?,
        characters,
        created_at,
        updated_at,
    })
}
