//! Versions: the text of a document at points of its log.
//!
//! A compaction merges rows of the log into a snapshot and drops deleted text. So each version has
//! its own text, compressed; the database stores equal texts of a document once. `version_plan`
//! decides whether a new version is stored, and which older versions are deleted for it.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::domain::ids::{DocumentId, UserId, VersionId};
use crate::domain::user::User;
use crate::domain::version_policy::{VersionKind, VersionMark};
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::corrupt;
use crate::storage::document_webhooks::put_about;
use crate::storage::error::StorageError;
use crate::storage::guard::Guarded;
use crate::storage::locks::{lock, lock_histories};
use crate::storage::log::Append;
use crate::storage::packed::Packed;
use crate::storage::pagination::PAGE_ROWS_MAX;
use crate::storage::statement::{Row, json as text, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::updates::store_edit;
use crate::storage::version_plan::{NewVersion, Refusal, VersionPlan, VersionRow, plan};
use crate::storage::{Storage, StorageFuture};

/// A version of the text of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Version {
    pub id: VersionId,
    #[serde(rename = "document_id")]
    pub document: DocumentId,
    /// Its place among the document's versions: a later one has a higher number.
    pub number: i64,
    /// Why it was recorded. `pause`: the edits paused, or a decision or a restore was about to change the text.
    /// `seat`: the writer released the seat or lost it. `decision`: a decision on a suggestion. `restore`: an
    /// older version was restored.
    pub kind: VersionKind,
    /// The name of a named version.
    pub label: Option<String>,
    /// The users who caused it, under their names of that time.
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<crate::domain::schemas::Author>"))]
    pub authors: Vec<User>,
    /// Of kind `restore`: the number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update in it.
    #[serde(skip)]
    pub seq: i64,
    /// Of its text, as of a document.
    pub characters: i64,
    /// When it was recorded.
    pub created_at: DateTime<Utc>,
}

/// The outcome of storing a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The database stored it.
    Stored(Version),
    /// A version of a later point exists; or it is automatic, and the newest one has this text.
    NotNew,
    /// The document has no room for another named version.
    Full,
    /// There is no such document.
    Gone,
}

impl From<Refusal> for StoreOutcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotNew => Self::NotNew,
            Refusal::Full => Self::Full,
        }
    }
}

const COLUMNS: &str =
    "id, document_id, number, kind, label, authors, restored_from, seq, characters, created_at";

impl Storage {
    /// In one transaction, with one outcome for each, by position. Deletes older versions to make room.
    /// After an error no version is stored.
    pub fn store_versions<'a>(
        &'a self,
        batch: &'a [NewVersion],
    ) -> StorageFuture<'a, Vec<StoreOutcome>> {
        if batch.is_empty() {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let ids: BTreeSet<_> = batch.iter().map(|new| new.document).collect();
        let documents: Vec<_> = ids.iter().map(ToString::to_string).collect();
        run!(self, Write, tx => {
            // A webhook needs the lock of its document, which comes before that of the history.
            if tx.hooks.want(WebhookEvent::VersionCreated) {
                for id in &ids {
                    lock(tx, *id).await?;
                }
            }
            lock_histories(tx, &documents).await?;
            let mut outcomes = Vec::with_capacity(batch.len());
            for new in batch {
                outcomes.push(store_version(tx, new, new.seq).await?);
            }
            Ok(outcomes)
        })
    }

    /// Newest first: at most `limit`, below number `before`.
    pub fn versions(
        &self,
        document: DocumentId,
        limit: u32,
        before: Option<i64>,
    ) -> StorageFuture<'_, Vec<Version>> {
        run!(self, Read, tx => {
            let versions = sql!([
                "SELECT ", COLUMNS,
                " FROM versions WHERE document_id = {document} \
                 AND number < {before.unwrap_or(i64::MAX)} \
                 ORDER BY number DESC LIMIT {limit.min(PAGE_ROWS_MAX)}",
            ]);
            versions.rows(tx).await?.iter().map(version_from).collect()
        })
    }

    pub fn version(
        &self,
        document: DocumentId,
        id: VersionId,
    ) -> StorageFuture<'_, Option<(Version, Packed)>> {
        run!(self, Snapshot, tx => {
            let version = sql!([
                "SELECT ", COLUMNS, " FROM versions WHERE document_id = {document} AND id = {id}",
            ]);
            let Some(version) = version.row(tx).await? else { return Ok(None) };
            let version = version_from(&version)?;
            let text = sql!(
                "SELECT t.hash, t.bytes FROM versions v JOIN version_texts t \
                 ON t.document_id = v.document_id AND t.hash = v.text_hash WHERE v.id = {id}"
            );
            let text = text.one(tx).await?;
            let (hash, bytes) = (text.get("hash")?, text.get("bytes")?);
            let characters = version.characters;
            Ok(Some((version, Packed { hash, bytes, characters })))
        })
    }

    /// Stores an edit that restores a version, and the texts before and after it as versions, in one
    /// transaction. The text before it is stored only if it is new. The edit must carry the guard of a
    /// writer's seat, and in `expected_seq` the number it was made on. An edit under another user's Yjs
    /// client id is `Stale`: the caller rebuilds it. Returns the number of the edit.
    pub fn restore_version<'a>(
        &'a self,
        edit: &'a Append,
        before: &'a NewVersion,
        after: &'a NewVersion,
    ) -> StorageFuture<'a, Guarded<(Version, i64)>> {
        let documents = [edit.document.to_string()];
        guarded!(self, tx => {
            if lock(tx, edit.document).await?.is_none() {
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
async fn store_version(tx: &mut Tx, new: &NewVersion, seq: i64) -> Result<StoreOutcome, TxError> {
    let last = sql!("SELECT last_seq FROM {@documents} WHERE id = {new.document}");
    let Some(last) = last.value::<i64>(tx).await? else { return Ok(StoreOutcome::Gone) };
    if last < seq {
        // The last update of the version is not stored yet, and may still be lost.
        return Ok(StoreOutcome::NotNew);
    }
    let stored = sql!(
        "SELECT number, kind, created_at, text_bytes, seq, text_hash FROM versions \
         WHERE document_id = {new.document} ORDER BY number"
    );
    let stored = stored.rows(tx).await?;
    match plan(new, seq, stored.iter().map(mark_from).collect::<Result<_, _>>()?) {
        Err(refusal) => Ok(refusal.into()),
        Ok(plan) => Ok(StoreOutcome::Stored(write(tx, new, seq, &plan).await?)),
    }
}

fn mark_from(row: &Row) -> Result<VersionRow, TxError> {
    let (number, kind) = (row.get("number")?, row.get("kind")?);
    let (created_at, bytes) = (row.get("created_at")?, row.get("text_bytes")?);
    let mark = VersionMark { number, kind, created_at, bytes };
    Ok(VersionRow { mark, seq: row.get("seq")?, hash: row.get("text_hash")? })
}

async fn write(
    tx: &mut Tx,
    new: &NewVersion,
    seq: i64,
    plan: &VersionPlan,
) -> Result<Version, TxError> {
    for number in &plan.versions {
        sql!("DELETE FROM versions WHERE document_id = {new.document} AND number = {number}")
            .run(tx)
            .await?;
    }
    for hash in &plan.texts {
        sql!("DELETE FROM version_texts WHERE document_id = {new.document} AND hash = {hash}")
            .run(tx)
            .await?;
    }
    sql!(
        "INSERT INTO version_texts (document_id, hash, bytes) \
         VALUES ({new.document}, {new.text.hash}, {new.text.bytes}) ON CONFLICT DO NOTHING"
    )
    .run(tx)
    .await?;
    let version = sql!(
        [
            "INSERT INTO versions (id, document_id, number, kind, label, authors, restored_from, seq, \
             characters, text_hash, text_bytes, created_at) \
             VALUES ({new.id}, {new.document}, {plan.number}, {new.kind}, {new.label}, {authors}, \
             {new.restored_from}, {seq}, {new.text.characters}, {new.text.hash}, \
             {new.text.length()}, {new.now}) RETURNING ",
            COLUMNS,
        ],
        authors = authors_json(&remembered(tx, &new.authors).await?)?
    );
    let version = version_from(&version.one(tx).await?)?;
    let authors: Vec<_> = version.authors.iter().map(|author| author.id.as_str()).collect();
    let data = json!({
        "version_id": version.id,
        "number": version.number,
        "kind": version.kind,
        "characters": version.characters,
        "author_ids": authors,
    });
    let event = WebhookEvent::VersionCreated;
    put_about(tx, event, (new.document, None), new.now, data).await?;
    Ok(version)
}

/// The authors of a version whom no deletion forgets or has forgotten.
async fn remembered(tx: &mut Tx, authors: &[User]) -> Result<Vec<User>, TxError> {
    if authors.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = authors.iter().map(|author| &author.id).collect();
    let stored = sql!(
        "SELECT u.id FROM {@list:{text(&ids)?}} JOIN users u ON u.id = w.value \
         WHERE NOT EXISTS (SELECT 1 FROM user_deletions d WHERE d.user_id = u.id)"
    );
    let stored: Vec<UserId> = stored.values(tx).await?;
    Ok(authors.iter().filter(|author| stored.contains(&author.id)).cloned().collect())
}

/// As a server of the previous version reads them: with a text as each name.
pub(crate) fn authors_json(authors: &[User]) -> Result<String, StorageError> {
    let named: Vec<_> = authors.iter().map(|it| json!({ "id": it.id, "name": it.name })).collect();
    text(&named)
}

fn version_from(row: &Row) -> Result<Version, TxError> {
    let authors: String = row.get("authors")?;
    Ok(Version {
        id: row.get("id")?,
        document: row.get("document_id")?,
        number: row.get("number")?,
        kind: row.get("kind")?,
        label: row.get("label")?,
        authors: serde_json::from_str(&authors).map_err(corrupt)?,
        restored_from: row.get("restored_from")?,
        seq: row.get("seq")?,
        characters: row.get("characters")?,
        created_at: row.get("created_at")?,
    })
}
