//! The bin, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::storage::bin::{BinnedDocument, MembersDeletion};
use crate::storage::decode::parse;
use crate::storage::documents::Document;
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};

use super::dialect::{Engine, Moment, change_guards, documents, lock, read, transact, user};
use super::documents::{Row, document_from, fetch};

/// Owner, their name, the reviewer of the revoked link, the time of the deletion.
type DeletionRow = (String, String, Option<String>, Moment);

/// A [`Row`] with the time of the deletion.
type BinRow = (String, String, String, String, i64, Moment, Moment, Moment);

impl Engine {
    pub(in crate::storage) async fn bin_document(
        &self,
        id: DocumentId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            lock(tx, id).await?;
            let binned = sqlx::query(
                "UPDATE documents SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL",
            )
            .bind(id.to_string())
            .bind(Moment(now))
            .execute(&mut *tx)
            .await?;
            if binned.rows_affected() == 0 {
                return Ok(false);
            }
            sqlx::query(
                "UPDATE seats SET fence = fence + 1 WHERE link_id IN \
                 (SELECT id FROM share_links WHERE document_id = $1 AND revoked_at IS NULL)",
            )
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
            sqlx::query(
                "UPDATE share_links SET revoked_at = $2, binned = TRUE \
                 WHERE document_id = $1 AND revoked_at IS NULL",
            )
            .bind(id.to_string())
            .bind(Moment(now))
            .execute(&mut *tx)
            .await?;
            change_guards(tx, id).await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn restore_document(
        &self,
        id: DocumentId,
        now: DateTime<Utc>,
    ) -> Result<Option<Document>, StorageError> {
        transact!(self, tx => {
            lock(tx, id).await?;
            let restored = sqlx::query(
                "UPDATE documents SET deleted_at = NULL \
                 WHERE id = $1 AND deleted_at IS NOT NULL",
            )
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
            if restored.rows_affected() == 0 {
                return Ok(None);
            }
            // A server of the previous version may have created another link meanwhile. A document
            // has one active link (G11).
            sqlx::query(
                "UPDATE share_links SET revoked_at = $2 WHERE document_id = $1 \
                 AND revoked_at IS NULL AND EXISTS \
                 (SELECT 1 FROM share_links s WHERE s.document_id = $1 AND s.binned)",
            )
            .bind(id.to_string())
            .bind(Moment(now))
            .execute(&mut *tx)
            .await?;
            sqlx::query(
                "UPDATE share_links SET revoked_at = NULL, binned = FALSE \
                 WHERE document_id = $1 AND binned",
            )
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
            change_guards(tx, id).await?;
            fetch(tx, id).await
        })
    }

    pub(in crate::storage) async fn bin_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<BinnedDocument>, StorageError> {
        read!(self, connection => {
            let rows: Vec<BinRow> = sqlx::query_as(concat!(
                "SELECT d.id, d.title, u.id, u.name, d.characters, d.created_at, d.updated_at, \
                 d.deleted_at FROM ",
                documents!(),
                " d JOIN users u ON u.id = d.owner_id \
                 WHERE d.owner_id = $1 AND d.deleted_at IS NOT NULL \
                 AND ($3 IS NULL OR (d.deleted_at, d.id) < ($3, $4)) \
                 ORDER BY d.deleted_at DESC, d.id DESC LIMIT $2"
            ))
            .bind(owner.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(binned_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn bin_beyond(
        &self,
        owner: &UserId,
        keep: u32,
    ) -> Result<Vec<DocumentId>, StorageError> {
        read!(self, connection => {
            let ids: Vec<String> = sqlx::query_scalar(
                "SELECT id FROM documents WHERE owner_id = $1 AND deleted_at IS NOT NULL \
                 ORDER BY deleted_at DESC, id DESC LIMIT $2 OFFSET $3",
            )
            .bind(owner.as_str())
            .bind(i64::from(PAGE_ROWS_MAX))
            .bind(i64::from(keep))
            .fetch_all(connection)
            .await?;
            Ok(ids.iter().map(|id| parse(id)).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn binned_by(
        &self,
        time: DateTime<Utc>,
        count: u32,
    ) -> Result<Vec<DocumentId>, StorageError> {
        read!(self, connection => {
            let ids: Vec<String> = sqlx::query_scalar(
                "SELECT id FROM documents WHERE deleted_at <= $1 ORDER BY deleted_at LIMIT $2",
            )
            .bind(Moment(time))
            .bind(i64::from(count))
            .fetch_all(connection)
            .await?;
            Ok(ids.iter().map(|id| parse(id)).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn deletion_of(
        &self,
        id: DocumentId,
    ) -> Result<Option<MembersDeletion>, StorageError> {
        read!(self, connection => {
            let row: Option<DeletionRow> = sqlx::query_as(
                "SELECT u.id, u.name, l.reviewer_id, d.deleted_at FROM documents d \
                 JOIN users u ON u.id = d.owner_id \
                 LEFT JOIN share_links l ON l.document_id = d.id AND l.binned \
                 WHERE d.id = $1 AND d.deleted_at IS NOT NULL LIMIT 1",
            )
            .bind(id.to_string())
            .fetch_optional(connection)
            .await?;
            Ok(row.map(deletion_from).transpose()?)
        })
    }

    pub(in crate::storage) async fn deletion_of_link(
        &self,
        link: ShareLinkId,
    ) -> Result<Option<MembersDeletion>, StorageError> {
        read!(self, connection => {
            let row: Option<DeletionRow> = sqlx::query_as(
                "SELECT u.id, u.name, l.reviewer_id, d.deleted_at FROM share_links l \
                 JOIN documents d ON d.id = l.document_id JOIN users u ON u.id = d.owner_id \
                 WHERE l.id = $1 AND l.binned AND d.deleted_at IS NOT NULL",
            )
            .bind(link.to_string())
            .fetch_optional(connection)
            .await?;
            Ok(row.map(deletion_from).transpose()?)
        })
    }
}

fn deletion_from(row: DeletionRow) -> Result<MembersDeletion, StorageError> {
    let (owner, name, reviewer, Moment(at)) = row;
    let reviewer = reviewer.map(|reviewer| parse(&reviewer)).transpose()?;
    Ok(MembersDeletion { owner: user(&owner, name)?, reviewer, at })
}

fn binned_from(row: BinRow) -> Result<BinnedDocument, StorageError> {
    let (id, title, owner, name, characters, created_at, updated_at, Moment(deleted_at)) = row;
    let row: Row = (id, title, owner, name, characters, created_at, updated_at);
    Ok(BinnedDocument { document: document_from(row)?, deleted_at })
}
