//! The bin: deleted documents, until their owners restore them or a server purges them.
//!
//! The deletion revokes the document's active link in the same transaction, so the guards of its
//! seats fail from the commit on (D2). It also raises the fences: a restored link accepts no write
//! of a session from before the deletion.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::deletion::Deletion;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::documents::{
    DOCUMENT_COLUMNS, Document, delete_rows, document_of, fetch, put_deleted,
};
use crate::storage::error::StorageError;
use crate::storage::locks::{change_guards, lock};
use crate::storage::pagination::{Cursor, PAGE_ROWS_MAX, Page};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BinnedDocument {
    #[serde(flatten)]
    pub document: Document,
    /// In the bin: when it was deleted.
    #[cfg_attr(feature = "schemas", schemars(skip_serializing_if = "outside"))]
    pub deleted_at: DateTime<Utc>,
}

impl BinnedDocument {
    #[must_use]
    pub fn cursor(&self) -> Cursor<DocumentId> {
        Cursor { at: self.deleted_at, id: self.document.id }
    }
}

/// The deletion of a document, and the users who may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersDeletion {
    pub owner: User,
    pub reviewer: Option<UserId>,
    pub at: DateTime<Utc>,
}

impl MembersDeletion {
    #[must_use]
    pub fn concerns(&self, user: &UserId) -> bool {
        self.owner.id == *user || self.reviewer.as_ref() == Some(user)
    }

    #[must_use]
    pub fn deletion(self) -> Deletion {
        Deletion { by: self.owner, at: self.at }
    }
}

/// Why a share link is not active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Its writer or an administrator revoked it.
    Revoked,
    /// The owner deleted the document. `None`: it is not in the bin any more.
    Deleted(Option<Deletion>),
}

impl Storage {
    pub async fn end_of_link(&self, link: ShareLinkId) -> Result<LinkEnd, StorageError> {
        let deletion = self.deletion_of_link(link).await?;
        if deletion.is_some() || self.link(link).await?.is_none() {
            return Ok(LinkEnd::Deleted(deletion.map(MembersDeletion::deletion)));
        }
        Ok(LinkEnd::Revoked)
    }
}

impl Storage {
    /// Revokes its active link. False: there is no such document outside the bin.
    pub fn bin_document(&self, id: DocumentId, now: DateTime<Utc>) -> StorageFuture<'_, bool> {
        run!(self, Write, tx => {
            lock(tx, id).await?;
            let binned = sql!(
                "UPDATE documents SET deleted_at = {now} WHERE id = {id} AND deleted_at IS NULL"
            );
            if binned.run(tx).await? == 0 {
                return Ok(false);
            }
            sql!(
                "UPDATE seats SET fence = fence + 1 WHERE link_id IN \
                 (SELECT id FROM share_links WHERE document_id = {id} AND revoked_at IS NULL)"
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE share_links SET revoked_at = {now}, binned = TRUE \
                 WHERE document_id = {id} AND revoked_at IS NULL"
            )
            .run(tx)
            .await?;
            change_guards(tx, id).await?;
            put_deleted(tx, id, now, false).await?;
            Ok(true)
        })
    }

    /// Activates the link that the deletion revoked. `None`: the document is not in the bin.
    pub fn restore_document(
        &self,
        id: DocumentId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'_, Option<Document>> {
        run!(self, Write, tx => {
            lock(tx, id).await?;
            let restored = sql!(
                "UPDATE documents SET deleted_at = NULL WHERE id = {id} AND deleted_at IS NOT NULL"
            );
            if restored.run(tx).await? == 0 {
                return Ok(None);
            }
            // A server of the previous version may have created another link meanwhile. A document
            // has one active link (G11).
            sql!(
                "UPDATE share_links SET revoked_at = {now} WHERE document_id = {id} \
                 AND revoked_at IS NULL AND EXISTS \
                 (SELECT 1 FROM share_links s WHERE s.document_id = {id} AND s.binned)"
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE share_links SET revoked_at = NULL, binned = FALSE \
                 WHERE document_id = {id} AND binned"
            )
            .run(tx)
            .await?;
            change_guards(tx, id).await?;
            fetch(tx, id).await
        })
    }

    /// Deletes all its rows. With a time it purges only a document that was deleted by then. False: there
    /// is no such document in the bin.
    pub fn purge_document(
        &self,
        id: DocumentId,
        deleted_by: Option<DateTime<Utc>>,
    ) -> StorageFuture<'_, bool> {
        run!(self, Write, tx => {
            let is_locked = sql!(
                "SELECT 1 FROM documents \
                 WHERE id = {id} AND deleted_at <= COALESCE({deleted_by}, deleted_at){@for update}"
            );
            let is_locked = is_locked.row(tx).await?.is_some();
            if is_locked {
                delete_rows(tx, id).await?;
            }
            Ok(is_locked)
        })
    }

    /// Last deleted first.
    pub fn bin_of<'a>(
        &'a self,
        owner: &'a UserId,
        page: &'a Page<DocumentId>,
    ) -> StorageFuture<'a, Vec<BinnedDocument>> {
        run!(self, Read, tx => {
            let binned = sql!([
                DOCUMENT_COLUMNS,
                ", d.deleted_at FROM {@documents} d JOIN users u ON u.id = d.owner_id \
                 WHERE d.owner_id = {owner} AND d.deleted_at IS NOT NULL \
                 AND ({page.before_at()} IS NULL \
                 OR (d.deleted_at, d.id) < ({page.before_at()}, {page.before_id()})) \
                 ORDER BY d.deleted_at DESC, d.id DESC LIMIT {page.rows()}",
            ]);
            let binned = binned.rows(tx).await?;
            let of = |row: &Row| {
                Ok(BinnedDocument { document: document_of(row)?, deleted_at: row.get("deleted_at")? })
            };
            binned.iter().map(of).collect()
        })
    }

    /// The documents of a user's bin beyond the `keep` last deleted ones, at most a page.
    pub fn bin_beyond<'a>(
        &'a self,
        owner: &'a UserId,
        keep: u32,
    ) -> StorageFuture<'a, Vec<DocumentId>> {
        run!(self, Read, tx => {
            let beyond = sql!(
                "SELECT id FROM documents WHERE owner_id = {owner} AND deleted_at IS NOT NULL \
                 ORDER BY deleted_at DESC, id DESC LIMIT {PAGE_ROWS_MAX} OFFSET {keep}"
            );
            beyond.values(tx).await
        })
    }

    /// At most `count` documents that were deleted by `time`, the first deleted first.
    pub fn binned_by(&self, time: DateTime<Utc>, count: u32) -> StorageFuture<'_, Vec<DocumentId>> {
        run!(self, Read, tx => {
            let binned = sql!(
                "SELECT id FROM documents WHERE deleted_at <= {time} \
                 ORDER BY deleted_at LIMIT {count}"
            );
            binned.values(tx).await
        })
    }

    pub fn deletion_of(&self, id: DocumentId) -> StorageFuture<'_, Option<MembersDeletion>> {
        run!(self, Read, tx => {
            let deletion = sql!(
                "SELECT u.id, u.name, l.reviewer_id, d.deleted_at FROM documents d \
                 JOIN users u ON u.id = d.owner_id \
                 LEFT JOIN share_links l ON l.document_id = d.id AND l.binned \
                 WHERE d.id = {id} AND d.deleted_at IS NOT NULL LIMIT 1"
            );
            deletion.row(tx).await?.as_ref().map(deletion_from).transpose()
        })
    }

    /// The deletion of the document of a link that it revoked.
    pub fn deletion_of_link(
        &self,
        link: ShareLinkId,
    ) -> StorageFuture<'_, Option<MembersDeletion>> {
        run!(self, Read, tx => {
            let deletion = sql!(
                "SELECT u.id, u.name, l.reviewer_id, d.deleted_at FROM share_links l \
                 JOIN documents d ON d.id = l.document_id JOIN users u ON u.id = d.owner_id \
                 WHERE l.id = {link} AND l.binned AND d.deleted_at IS NOT NULL"
            );
            deletion.row(tx).await?.as_ref().map(deletion_from).transpose()
        })
    }
}

fn deletion_from(row: &Row) -> Result<MembersDeletion, TxError> {
    let (owner, reviewer) = (row.user("id", "name")?, row.get("reviewer_id")?);
    Ok(MembersDeletion { owner, reviewer, at: row.get("deleted_at")? })
}
