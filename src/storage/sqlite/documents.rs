//! Documents, on `SQLite`.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::ids::{DocumentId, UserId};
use crate::storage::decode::{parse, time, user};
use crate::storage::documents::{Document, NewDocument};
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::sqlite::users::put_user;
use crate::storage::sqlite::write_cache::Invalidate;
use crate::storage::sqlite::{Sqlite, log};

/// Selects documents as [`Row`]s.
macro_rules! select_documents {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT d.id, d.title, u.id, u.name, d.characters, d.created_at, d.updated_at FROM ",
            $from,
            " d JOIN users u ON u.id = d.owner_id ",
            $rest
        )
    };
}

/// Selects from the documents of `$1`, as `documents_now` has them, with one scan of the journal.
macro_rules! select_of_owner {
    ($rest:literal) => {
        select_documents!(
            "(SELECT id, title, owner_id, characters, created_at, \
              MAX(updated_at, COALESCE(j.at, 0)) AS updated_at FROM documents LEFT JOIN \
              (SELECT document_id, MAX(at) AS at FROM journal GROUP BY document_id) j \
              ON j.document_id = documents.id WHERE owner_id = $1)",
            $rest
        )
    };
}

type Row = (String, String, String, String, i64, i64, i64);

impl Sqlite {
    pub(in crate::storage) async fn create_document(
        &self,
        new: &NewDocument,
    ) -> Result<Document, StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        put_user(&mut tx, &new.owner, new.now).await?;
        let first = i64::from(!new.update.is_empty());
        sqlx::query(
            "INSERT INTO documents \
             (id, title, owner_id, characters, last_seq, created_at, updated_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $6)",
        )
        .bind(new.id.to_string())
        .bind(new.title.as_str())
        .bind(new.owner.id.as_str())
        .bind(new.characters)
        .bind(first)
        .bind(new.now.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        if 0 < first {
            log::insert_update(&mut tx, new.id, first, &new.update).await?;
        }
        let document = fetch(&mut tx, new.id).await?.ok_or(sqlx::Error::RowNotFound)?;
        tx.commit().await?;
        Ok(document)
    }

    pub(in crate::storage) async fn document(
        &self,
        id: DocumentId,
    ) -> Result<Option<Document>, StorageError> {
        let mut reader = self.readers.acquire().await?;
        fetch(&mut reader, id).await
    }

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
        query.fetch_all(&self.readers).await?.into_iter().map(document_from).collect()
    }

    pub(in crate::storage) async fn rename_document(
        &self,
        id: DocumentId,
        title: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Document>, StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        sqlx::query("UPDATE documents SET title = $2, updated_at = $3 WHERE id = $1")
            .bind(id.to_string())
            .bind(title)
            .bind(now.timestamp_millis())
            .execute(&mut *tx)
            .await?;
        let document = fetch(&mut tx, id).await?;
        tx.commit().await?;
        Ok(document)
    }

    pub(in crate::storage) async fn delete_document(
        &self,
        id: DocumentId,
    ) -> Result<bool, StorageError> {
        let mut tx = self.write(Invalidate::Everything).await?;
        sqlx::query("DELETE FROM journal WHERE document_id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        let deleted = sqlx::query("DELETE FROM documents WHERE id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(0 < deleted.rows_affected())
    }

    pub(in crate::storage) async fn set_characters(
        &self,
        id: DocumentId,
        characters: i64,
    ) -> Result<(), StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        sqlx::query("UPDATE documents SET characters = $2 WHERE id = $1 AND characters <> $2")
            .bind(id.to_string())
            .bind(characters)
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }
}

async fn fetch(
    connection: &mut SqliteConnection,
    id: DocumentId,
) -> Result<Option<Document>, StorageError> {
    let row = sqlx::query_as(select_documents!("documents_now", "WHERE d.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    row.map(document_from).transpose()
}

fn document_from(row: Row) -> Result<Document, StorageError> {
    let (id, title, owner_id, owner_name, characters, created_at, updated_at) = row;
    Ok(Document {
        id: parse(&id)?,
        title,
        owner: user(&owner_id, owner_name)?,
        characters,
        created_at: time(created_at)?,
        updated_at: time(updated_at)?,
    })
}
