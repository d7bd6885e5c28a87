//! Versions, on `SQLite`.

use sqlx::SqliteConnection;

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::version_policy::VersionMark;
use crate::storage::decode::{corrupt, parse, time};
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::pagination::PAGE_ROWS_MAX;
use crate::storage::seats::{GuardError, Guarded, finish};
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::reviews::store_edit;
use crate::storage::sqlite::write_cache::Invalidate;
use crate::storage::version_plan::{VersionPlan, VersionRow, plan};
use crate::storage::versions::{NewVersion, Packed, StoreOutcome, Version};

/// Selects versions as [`Row`]s.
macro_rules! select_versions {
    ($rest:literal) => {
        concat!(
            "SELECT v.id, v.document_id, v.number, v.kind, v.label, v.authors, v.restored_from, \
             v.seq, v.characters, v.created_at FROM versions v ",
            $rest
        )
    };
}

type Row = (String, String, i64, String, Option<String>, String, Option<i64>, i64, i64, i64);

impl Sqlite {
    pub(in crate::storage) async fn keep_versions(
        &self,
        batch: &[NewVersion],
    ) -> Result<Vec<StoreOutcome>, StorageError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = self.write(Invalidate::Nothing).await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for new in batch {
            outcomes.push(store_version(&mut tx, new, new.seq).await?);
        }
        tx.commit().await?;
        Ok(outcomes)
    }

    pub(in crate::storage) async fn versions(
        &self,
        document: DocumentId,
        limit: u32,
        before: Option<i64>,
    ) -> Result<Vec<Version>, StorageError> {
        let rows: Vec<Row> = sqlx::query_as(select_versions!(
            "WHERE v.document_id = $1 AND v.number < $2 ORDER BY v.number DESC LIMIT $3"
        ))
        .bind(document.to_string())
        .bind(before.unwrap_or(i64::MAX))
        .bind(i64::from(limit.min(PAGE_ROWS_MAX)))
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(version_from).collect()
    }

    pub(in crate::storage) async fn version(
        &self,
        document: DocumentId,
        id: VersionId,
    ) -> Result<Option<(Version, Packed)>, StorageError> {
        let mut tx = self.read().await?;
        let row: Option<Row> =
            sqlx::query_as(select_versions!("WHERE v.document_id = $1 AND v.id = $2"))
                .bind(document.to_string())
                .bind(id.to_string())
                .fetch_optional(&mut *tx)
                .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let version = version_from(row)?;
        let (hash, bytes): (Vec<u8>, Vec<u8>) = sqlx::query_as(
            "SELECT t.hash, t.bytes FROM versions v JOIN version_texts t \
             ON t.document_id = v.document_id AND t.hash = v.text_hash WHERE v.id = $1",
        )
        .bind(id.to_string())
        .fetch_one(&mut *tx)
        .await?;
        let hash = hash.try_into().map_err(|_| corrupt("a hash of another length"))?;
        let characters = version.characters;
        Ok(Some((version, Packed { hash, bytes, characters })))
    }

    pub(in crate::storage) async fn restore_version(
        &self,
        edit: &Append,
        before: &NewVersion,
        after: &NewVersion,
    ) -> Result<Guarded<(Version, i64)>, StorageError> {
        let restoring = async {
            let mut tx = self.write(Invalidate::Document(edit.document)).await?;
            // Stored first: versions are numbered in the order of their points in the log (D8).
            store_version(&mut tx, before, before.seq).await?;
            let seq = store_edit(&mut tx, edit).await?;
            match store_version(&mut tx, after, seq).await? {
                StoreOutcome::Stored(version) => {
                    tx.commit().await?;
                    Ok((version, seq))
                }
                StoreOutcome::Gone => Err(GuardError::Refused(Guarded::NotFound)),
                StoreOutcome::NotNew | StoreOutcome::Full => {
                    Err(GuardError::Refused(Guarded::Full))
                }
            }
        };
        finish(restoring.await)
    }
}

/// Stores a version inside a write transaction: the rows of its decision stay valid until the commit.
async fn store_version(
    connection: &mut SqliteConnection,
    new: &NewVersion,
    seq: i64,
) -> Result<StoreOutcome, StorageError> {
    let last: Option<i64> = sqlx::query_scalar("SELECT last_seq FROM documents_now WHERE id = $1")
        .bind(new.document.to_string())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(last) = last else {
        return Ok(StoreOutcome::Gone);
    };
    if last < seq {
        // The last update of the version is not stored yet, and may still be lost.
        return Ok(StoreOutcome::NotNew);
    }
    match plan(new, seq, lock_for_update(connection, new.document).await?) {
        Err(refusal) => Ok(refusal.into()),
        Ok(plan) => Ok(StoreOutcome::Stored(write(connection, new, seq, &plan).await?)),
    }
}

async fn lock_for_update(
    connection: &mut SqliteConnection,
    document: DocumentId,
) -> Result<Vec<VersionRow>, StorageError> {
    let rows: Vec<(i64, String, i64, i64, i64, Vec<u8>)> = sqlx::query_as(
        "SELECT number, kind, created_at, text_bytes, seq, text_hash FROM versions \
         WHERE document_id = $1 ORDER BY number",
    )
    .bind(document.to_string())
    .fetch_all(connection)
    .await?;
    let stands = |(number, kind, created_at, bytes, seq, hash): (i64, String, i64, i64, i64, _)| {
        let mark =
            VersionMark { number, kind: parse(&kind)?, created_at: time(created_at)?, bytes };
        Ok(VersionRow { mark, seq, hash })
    };
    rows.into_iter().map(stands).collect()
}

async fn write(
    connection: &mut SqliteConnection,
    new: &NewVersion,
    seq: i64,
    plan: &VersionPlan,
) -> Result<Version, StorageError> {
    for number in &plan.versions {
        sqlx::query("DELETE FROM versions WHERE document_id = $1 AND number = $2")
            .bind(new.document.to_string())
            .bind(number)
            .execute(&mut *connection)
            .await?;
    }
    for hash in &plan.texts {
        sqlx::query("DELETE FROM version_texts WHERE document_id = $1 AND hash = $2")
            .bind(new.document.to_string())
            .bind(hash.as_slice())
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(
        "INSERT INTO version_texts (document_id, hash, bytes) VALUES ($1, $2, $3) \
         ON CONFLICT DO NOTHING",
    )
    .bind(new.document.to_string())
    .bind(new.text.hash.as_slice())
    .bind(new.text.bytes.as_slice())
    .execute(&mut *connection)
    .await?;
    let authors = serde_json::to_string(&new.authors).map_err(corrupt)?;
    sqlx::query(
        "INSERT INTO versions (id, document_id, number, kind, label, authors, restored_from, \
         seq, characters, text_hash, text_bytes, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(new.id.to_string())
    .bind(new.document.to_string())
    .bind(plan.number)
    .bind(new.kind.as_str())
    .bind(new.label.as_deref())
    .bind(authors)
    .bind(new.restored_from)
    .bind(seq)
    .bind(new.text.characters)
    .bind(new.text.hash.as_slice())
    .bind(new.text.length())
    .bind(new.now.timestamp_millis())
    .execute(&mut *connection)
    .await?;
    let row = sqlx::query_as(select_versions!("WHERE v.id = $1"))
        .bind(new.id.to_string())
        .fetch_one(connection)
        .await?;
    version_from(row)
}

fn version_from(row: Row) -> Result<Version, StorageError> {
    let (id, document, number, kind, label, authors, restored_from, seq, characters, created_at) =
        row;
    Ok(Version {
        id: parse(&id)?,
        document: parse(&document)?,
        number,
        kind: parse(&kind)?,
        label,
        authors: serde_json::from_str(&authors).map_err(corrupt)?,
        restored_from,
        seq,
        characters,
        created_at: time(created_at)?,
    })
}
