//! Documents, on PostgreSQL.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::storage::decode::parse;
use crate::storage::documents::{Document, NewDocument};
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::postgres::encoding::{Moment, encoded, text, user};
use crate::storage::postgres::tx_error::TxError;
use crate::storage::postgres::users::put_user;
use crate::storage::postgres::{Postgres, WRITE, read, transaction};

/// Selects documents as [`Row`]s.
macro_rules! select_documents {
    ($rest:literal) => {
        concat!(
            "SELECT d.id, d.title, u.id, u.name, d.characters, d.created_at, d.updated_at \
             FROM documents d JOIN users u ON u.id = d.owner_id ",
            $rest
        )
    };
}

type Row = (String, String, String, String, i64, Moment, Moment);

impl Postgres {
    pub(in crate::storage) async fn create_document(
        &self,
        new: &NewDocument,
    ) -> Result<Document, StorageError> {
        let first = i64::from(!new.update.is_empty());
        let creating = transaction!(self.others, WRITE, tx => {
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
        });
        creating.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn document(
        &self,
        id: DocumentId,
    ) -> Result<Option<Document>, StorageError> {
        let reading = read!(self.others, connection => { fetch(connection, id).await });
        reading.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn documents_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Document>, StorageError> {
        let limit = i64::from(page.limit.min(PAGE_ROWS_MAX));
        let reading = read!(self.others, connection => {
            let query = match &page.before {
                None => sqlx::query_as(select_documents!(
                    "WHERE d.owner_id = $1 ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"
                ))
                .bind(owner.as_str())
                .bind(limit),
                Some(before) => sqlx::query_as(select_documents!(
                    "WHERE d.owner_id = $1 AND (d.updated_at, d.id) < ($3, $4) \
                     ORDER BY d.updated_at DESC, d.id DESC LIMIT $2"
                ))
                .bind(owner.as_str())
                .bind(limit)
                .bind(Moment(before.at))
                .bind(before.id.to_string()),
            };
            let rows: Vec<Row> = query.fetch_all(connection).await?;
            Ok(rows.into_iter().map(document_from).collect::<Result<_, _>>()?)
        });
        reading.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn rename_document(
        &self,
        id: DocumentId,
        title: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Document>, StorageError> {
        let renaming = transaction!(self.others, WRITE, tx => {
            sqlx::query("UPDATE documents SET title = $2, updated_at = $3 WHERE id = $1")
                .bind(id.to_string())
                .bind(encoded(title))
                .bind(Moment(now))
                .execute(&mut *tx)
                .await?;
            fetch(tx, id).await
        });
        renaming.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn delete_document(
        &self,
        id: DocumentId,
    ) -> Result<bool, StorageError> {
        let deleting = transaction!(self.others, WRITE, tx => {
            let locked = sqlx::query("SELECT 1 FROM documents WHERE id = $1 FOR UPDATE")
                .bind(id.to_string())
                .fetch_optional(&mut *tx)
                .await?;
            if locked.is_none() {
                return Ok(false);
            }
            for delete in [
                "DELETE FROM updates WHERE document_id = $1",
                "DELETE FROM clients WHERE document_id = $1",
                "DELETE FROM documents WHERE id = $1",
            ] {
                sqlx::query(delete).bind(id.to_string()).execute(&mut *tx).await?;
            }
            Ok(true)
        });
        deleting.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn set_characters(
        &self,
        id: DocumentId,
        characters: i64,
    ) -> Result<(), StorageError> {
        let setting = transaction!(self.others, WRITE, tx => {
            sqlx::query("UPDATE documents SET characters = $2 WHERE id = $1 AND characters <> $2")
                .bind(id.to_string())
                .bind(characters)
                .execute(tx)
                .await?;
            Ok(())
        });
        setting.map_err(TxError::into_error)
    }
}

/// Locks a document for a change of its dependent rows. Later statements see every commit under the
/// lock. False: there is no such document.
pub(super) async fn lock(connection: &mut PgConnection, id: DocumentId) -> Result<bool, TxError> {
    let query = sqlx::query("SELECT 1 FROM documents WHERE id = $1 FOR NO KEY UPDATE");
    let row = query.bind(id.to_string()).fetch_optional(connection).await?;
    Ok(row.is_some())
}

/// Locks the document of a link, and returns it. `None`: there is no such link.
pub(super) async fn lock_of(
    connection: &mut PgConnection,
    link: ShareLinkId,
) -> Result<Option<DocumentId>, TxError> {
    let id: Option<String> = sqlx::query_scalar(
        "SELECT d.id FROM share_links l JOIN documents d ON d.id = l.document_id \
         WHERE l.id = $1 FOR NO KEY UPDATE OF d",
    )
    .bind(link.to_string())
    .fetch_optional(connection)
    .await?;
    Ok(id.map(|id| parse(&id)).transpose()?)
}

async fn fetch(connection: &mut PgConnection, id: DocumentId) -> Result<Option<Document>, TxError> {
    let row = sqlx::query_as(select_documents!("WHERE d.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(document_from).transpose()?)
}

fn document_from(row: Row) -> Result<Document, StorageError> {
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
