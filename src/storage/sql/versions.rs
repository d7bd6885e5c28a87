//! Versions, on either engine.

use std::collections::BTreeSet;

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::version_policy::VersionMark;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::pagination::PAGE_ROWS_MAX;
use crate::storage::seats::Guarded;
use crate::storage::version_plan::{VersionPlan, VersionRow, plan};
use crate::storage::versions::{NewVersion, Packed, StoreOutcome, Version};

use super::dialect::{
    Connection, Engine, Moment, TxError, documents, encoded, guarded, lock, lock_histories, read,
    snapshot, text, transact,
};
use super::reviews::store_edit;

/// The columns of a [`Row`].
macro_rules! columns {
    () => {
        "id, document_id, number, kind, label, authors, restored_from, seq, characters, created_at"
    };
}

type Row = (String, String, i64, String, Option<String>, String, Option<i64>, i64, i64, Moment);
type MarkRow = (i64, String, Moment, i64, i64, Vec<u8>);

impl Engine {
    pub(in crate::storage) async fn keep_versions(
        &self,
        batch: &[NewVersion],
    ) -> Result<Vec<StoreOutcome>, StorageError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let documents: BTreeSet<_> = batch.iter().map(|new| new.document).collect();
        let documents: Vec<_> = documents.iter().map(ToString::to_string).collect();
        transact!(self, tx => {
            lock_histories(tx, &documents).await?;
            let mut outcomes = Vec::with_capacity(batch.len());
            for new in batch {
                outcomes.push(store_version(tx, new, new.seq).await?);
            }
            Ok(outcomes)
        })
    }

    pub(in crate::storage) async fn versions(
        &self,
        document: DocumentId,
        limit: u32,
        before: Option<i64>,
    ) -> Result<Vec<Version>, StorageError> {
        let limit = i64::from(limit.min(PAGE_ROWS_MAX));
        read!(self, connection => {
            let rows: Vec<Row> = sqlx::query_as(concat!("SELECT ", columns!(), " FROM versions WHERE document_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3"))
            .bind(document.to_string())
            .bind(before.unwrap_or(i64::MAX))
            .bind(limit)
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(version_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn version(
        &self,
        document: DocumentId,
        id: VersionId,
    ) -> Result<Option<(Version, Packed)>, StorageError> {
        snapshot!(self, tx => {
            let row: Option<Row> =
                sqlx::query_as(concat!("SELECT ", columns!(), " FROM versions WHERE document_id = $1 AND id = $2"))
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
            .fetch_one(tx)
            .await?;
            let hash = hash.try_into().map_err(|_| corrupt("a hash of another length"))?;
            let characters = version.characters;
            Ok(Some((version, Packed { hash, bytes, characters })))
        })
    }

    pub(in crate::storage) async fn restore_version(
        &self,
        edit: &Append,
        before: &NewVersion,
        after: &NewVersion,
    ) -> Result<Guarded<(Version, i64)>, StorageError> {
        let documents = [edit.document.to_string()];
        guarded!(self, tx => {
            if !lock(tx, edit.document).await? {
                return Err(TxError::Refused(Guarded::NotFound));
            }
            lock_histories(tx, &documents).await?;
            // Stored first: versions are numbered in the order of their points in the log (D8).
            store_version(tx, before, before.seq).await?;
            let seq = store_edit(tx, edit).await?;
            match store_version(tx, after, seq).await? {
                StoreOutcome::Stored(version) => Ok((version, seq)),
                StoreOutcome::Gone => Err(TxError::Refused(Guarded::NotFound)),
                StoreOutcome::NotNew | StoreOutcome::Full => Err(TxError::Refused(Guarded::Full)),
            }
        })
    }
}

/// Stores a version, under the lock of its document's history: the rows of its decision stay valid until
/// the commit.
async fn store_version(
    connection: &mut Connection,
    new: &NewVersion,
    seq: i64,
) -> Result<StoreOutcome, TxError> {
    let last: Option<i64> =
        sqlx::query_scalar(concat!("SELECT last_seq FROM ", documents!(), " WHERE id = $1"))
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
    connection: &mut Connection,
    document: DocumentId,
) -> Result<Vec<VersionRow>, TxError> {
    let rows: Vec<MarkRow> = sqlx::query_as(
        "SELECT number, kind, created_at, text_bytes, seq, text_hash FROM versions \
         WHERE document_id = $1 ORDER BY number",
    )
    .bind(document.to_string())
    .fetch_all(connection)
    .await?;
    let stands = |(number, kind, Moment(created_at), bytes, seq, hash): MarkRow| {
        let mark = VersionMark { number, kind: parse(&kind)?, created_at, bytes };
        Ok::<_, StorageError>(VersionRow { mark, seq, hash })
    };
    Ok(rows.into_iter().map(stands).collect::<Result<_, _>>()?)
}

async fn write(
    connection: &mut Connection,
    new: &NewVersion,
    seq: i64,
    plan: &VersionPlan,
) -> Result<Version, TxError> {
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
    let row = sqlx::query_as(concat!(
        "INSERT INTO versions (id, document_id, number, kind, label, authors, restored_from, seq, \
         characters, text_hash, text_bytes, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING ",
        columns!()
    ))
    .bind(new.id.to_string())
    .bind(new.document.to_string())
    .bind(plan.number)
    .bind(new.kind.as_str())
    .bind(new.label.as_deref().map(encoded))
    .bind(encoded(&authors))
    .bind(new.restored_from)
    .bind(seq)
    .bind(new.text.characters)
    .bind(new.text.hash.as_slice())
    .bind(new.text.length())
    .bind(Moment(new.now))
    .fetch_one(connection)
    .await?;
    Ok(version_from(row)?)
}

fn version_from(row: Row) -> Result<Version, StorageError> {
    let (id, document, number, kind, label, authors, restored_from, seq, characters, at) = row;
    let Moment(created_at) = at;
    Ok(Version {
        id: parse(&id)?,
        document: parse(&document)?,
        number,
        kind: parse(&kind)?,
        label: label.map(text),
        authors: serde_json::from_str(&text(authors)).map_err(corrupt)?,
        restored_from,
        seq,
        characters,
        created_at,
    })
}
