//! Documents: the title, owner and counts of each; [`log`](super::log) stores the text.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::domain::ids::{DocumentId, ExternalId, UserId};
use crate::domain::section::StoredSection;
use crate::domain::user::User;
use crate::domain::webhook::WebhookEvent;
use crate::storage::document_webhooks::put_about;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::sections::put_sections;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug)]
pub struct NewDocument {
    /// Its id; never used before.
    pub id: DocumentId,
    pub title: String,
    /// Its id in the host application, if it has one: unique for its owner.
    pub external_id: Option<ExternalId>,
    /// The owner, who is also the writer.
    pub owner: User,
    /// The first update, which gets number 1. Empty: there is none.
    pub update: Bytes,
    pub characters: i64,
    pub sections: Vec<StoredSection>,
    pub now: DateTime<Utc>,
}

/// A document, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Document {
    pub id: DocumentId,
    pub title: String,
    pub external_id: Option<ExternalId>,
    pub owner: User,
    /// Characters as readers count them: extended grapheme clusters (UAX #29). A line break is one, a space is
    /// one, a family emoji is one.
    pub characters: i64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When its title or text last changed.
    pub updated_at: DateTime<Utc>,
}

impl Document {
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.updated_at, id: self.id }
    }
}

pub(crate) const DOCUMENT_COLUMNS: &str = "SELECT d.id, d.title, d.external_id, u.id AS owner_id, \
    u.name AS owner_name, d.characters, d.created_at, d.updated_at";

/// The documents of `owner` outside the bin, with one scan of SQLite's journal.
const OF_OWNER: &str = " FROM (SELECT id, title, external_id, owner_id, characters, created_at, \
      MAX(updated_at, COALESCE(j.at, 0)) AS updated_at FROM documents LEFT JOIN \
      (SELECT document_id, MAX(at) AS at FROM journal GROUP BY document_id) j \
      ON j.document_id = documents.id WHERE owner_id = {owner} AND deleted_at IS NULL) d ";

impl Storage {
    /// Creates a document, and stores its owner's name. `Refused` when an id is in use.
    pub fn create_document<'a>(&'a self, new: &'a NewDocument) -> StorageFuture<'a, Document> {
        let first = i64::from(!new.update.is_empty());
        run!(self, Write, tx => {
            put_user(tx, &new.owner, new.now).await?;
            sql!(
                "INSERT INTO documents \
                 (id, title, owner_id, characters, last_seq, created_at, updated_at, external_id) \
                 VALUES ({new.id}, {new.title}, {new.owner.id}, {new.characters}, {first}, \
                 {new.now}, {new.now}, {new.external_id})"
            )
            .run(tx)
            .await?;
            if first > 0 {
                sql!(
                    "INSERT INTO updates (document_id, seq, bytes) \
                     VALUES ({new.id}, {first}, {new.update})"
                )
                .run(tx)
                .await?;
            }
            if !new.sections.is_empty() {
                put_sections(tx, new.id, &new.sections, 0).await?;
            }
            let event = WebhookEvent::DocumentCreated;
            put_about(tx, event, (new.id, None), new.now, json!({ "owner_id": new.owner.id })).await?;
            Ok(fetch(tx, new.id).await?.ok_or(sqlx::Error::RowNotFound)?)
        })
    }

    /// The document of an owner with this id of the host application, and whether it is in the bin.
    pub fn external_document<'a>(
        &'a self,
        owner: &'a UserId,
        id: &'a ExternalId,
    ) -> StorageFuture<'a, Option<(Document, bool)>> {
        run!(self, Read, tx => {
            let document = sql!([
                DOCUMENT_COLUMNS,
                ", d.deleted_at IS NOT NULL AS is_binned \
                 FROM {@documents} d JOIN users u ON u.id = d.owner_id \
                 WHERE d.owner_id = {owner} AND d.external_id = {id}",
            ]);
            let row = document.row(tx).await?;
            row.map(|row| Ok((document_of(&row)?, row.get("is_binned")?))).transpose()
        })
    }

    pub fn document(&self, id: DocumentId) -> StorageFuture<'_, Option<Document>> {
        run!(self, Read, tx => { fetch(tx, id).await })
    }

    /// Last updated first.
    pub fn documents_of<'a>(
        &'a self,
        owner: &'a UserId,
        page: &'a Page<DocumentId>,
    ) -> StorageFuture<'a, Vec<Document>> {
        run!(self, Read, tx => {
            let documents = sql!(
                sqlite: [
                    DOCUMENT_COLUMNS, OF_OWNER,
                    "JOIN users u ON u.id = d.owner_id \
                     WHERE ({page.before_at()} IS NULL \
                     OR (d.updated_at, d.id) < ({page.before_at()}, {page.before_id()})) \
                     ORDER BY d.updated_at DESC, d.id DESC LIMIT {page.rows()}",
                ],
                postgres: [
                    DOCUMENT_COLUMNS,
                    " FROM documents d JOIN users u ON u.id = d.owner_id \
                     WHERE d.owner_id = {owner} AND d.deleted_at IS NULL \
                     AND ({page.before_at()} IS NULL \
                     OR (d.updated_at, d.id) < ({page.before_at()}, {page.before_id()})) \
                     ORDER BY d.updated_at DESC, d.id DESC LIMIT {page.rows()}",
                ]
            );
            documents.rows(tx).await?.iter().map(document_of).collect()
        })
    }

    /// Sets the title of a document. `None`: there is no such document.
    pub fn rename_document<'a>(
        &'a self,
        id: DocumentId,
        title: &'a str,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Option<Document>> {
        run!(self, Write, tx => {
            sql!(
                "UPDATE documents SET title = {title}, updated_at = {now} \
                 WHERE id = {id} AND deleted_at IS NULL"
            )
            .run(tx)
            .await?;
            fetch(tx, id).await
        })
    }

    /// With text, links, seats, reviews and versions. False: there is no such document.
    pub fn delete_document(&self, id: DocumentId) -> StorageFuture<'_, bool> {
        run!(self, Write, tx => {
            let is_locked = sql!("SELECT 1 FROM documents WHERE id = {id}{@for update}");
            let is_locked = is_locked.row(tx).await?.is_some();
            if is_locked {
                delete_rows(tx, id).await?;
            }
            Ok(is_locked)
        })
    }

    /// Stores the character count of a document. It is not an edit: `updated_at` stays.
    pub fn set_characters(&self, id: DocumentId, characters: i64) -> StorageFuture<'_, ()> {
        run!(self, Write, tx => {
            sql!(
                "UPDATE documents SET characters = {characters} WHERE id = {id} \
                 AND characters <> {characters}"
            )
            .run(tx)
            .await
            .map(drop)
        })
    }
}

/// A document in the bin can be restored.
pub(crate) async fn put_deleted(
    tx: &mut Tx,
    id: DocumentId,
    now: DateTime<Utc>,
    is_permanent: bool,
) -> Result<(), TxError> {
    let data = json!({ "permanent": is_permanent });
    put_about(tx, WebhookEvent::DocumentDeleted, (id, None), now, data).await
}

/// Deletes a document under its lock. No reference to `documents` deletes the rows of the first table, and in
/// PostgreSQL those of the second.
pub(crate) async fn delete_rows(tx: &mut Tx, id: DocumentId) -> Result<(), TxError> {
    put_deleted(tx, id, Utc::now(), true).await?;
    sql!(
        sqlite: ["DELETE FROM journal WHERE document_id = {id}"],
        postgres: ["DELETE FROM updates WHERE document_id = {id}"]
    )
    .run(tx)
    .await?;
    sql!("DELETE FROM clients WHERE document_id = {id}").run(tx).await?;
    sql!("DELETE FROM documents WHERE id = {id}").run(tx).await?;
    Ok(())
}

pub(crate) async fn fetch(tx: &mut Tx, id: DocumentId) -> Result<Option<Document>, TxError> {
    let document = sql!([
        DOCUMENT_COLUMNS,
        " FROM {@documents} d JOIN users u ON u.id = d.owner_id \
         WHERE d.id = {id} AND d.deleted_at IS NULL",
    ]);
    document.row(tx).await?.as_ref().map(document_of).transpose()
}

pub(crate) fn document_of(row: &Row) -> Result<Document, TxError> {
    Ok(Document {
        id: row.get("id")?,
        title: row.get("title")?,
        external_id: row.get("external_id")?,
        owner: row.user("owner_id", "owner_name")?,
        characters: row.get("characters")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
