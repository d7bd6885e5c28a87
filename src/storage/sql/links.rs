//! Share links, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::links::{FindOrCreate, Joined, NewShareLink, ShareLink};
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};

use super::dialect::{
    Connection, Engine, Moment, TxError, lock, lock_of, read, text, transact, user,
};
use super::invites::{forget_attempt, note_attempt};
use super::users::put_user;

/// Selects links as [`Row`]s, with further columns of the caller's.
macro_rules! select_links {
    ($rest:literal) => {
        select_links!("", "share_links l", $rest)
    };
    ($also:literal, $from:literal, $rest:literal) => {
        concat!(
            "SELECT l.id, l.document_id, d.title, w.id, w.name, r.id, r.name, l.invite_hash, \
             l.created_at, l.revoked_at",
            $also,
            " FROM ",
            $from,
            " JOIN documents d ON d.id = l.document_id \
             JOIN users w ON w.id = d.owner_id \
             LEFT JOIN users r ON r.id = l.reviewer_id ",
            $rest
        )
    };
}
pub(super) use select_links;

pub(super) type Row = (
    String,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Vec<u8>,
    Moment,
    Option<Moment>,
);

impl Engine {
    pub(in crate::storage) async fn find_or_create_link(
        &self,
        new: &NewShareLink,
    ) -> Result<Option<(ShareLink, FindOrCreate)>, StorageError> {
        transact!(self, tx => {
            if !lock(tx, new.document_id).await? {
                return Ok(None);
            }
            find_or_create(tx, new).await
        })
    }

    pub(in crate::storage) async fn link(
        &self,
        id: ShareLinkId,
    ) -> Result<Option<ShareLink>, StorageError> {
        read!(self, connection => { fetch(connection, id).await })
    }

    pub(in crate::storage) async fn link_of(
        &self,
        document: DocumentId,
    ) -> Result<Option<ShareLink>, StorageError> {
        read!(self, connection => { fetch_active(connection, document).await })
    }

    pub(in crate::storage) async fn links_of(
        &self,
        user: &UserId,
        page: &Page<ShareLinkId>,
    ) -> Result<Vec<ShareLink>, StorageError> {
        read!(self, connection => {
            // Two selects, one for each index: `OR` across tables would read every link.
            let rows: Vec<Row> = sqlx::query_as(select_links!(
                "WHERE l.revoked_at IS NULL AND l.id IN ( \
                   SELECT id FROM share_links WHERE reviewer_id = $1 AND revoked_at IS NULL \
                   UNION \
                   SELECT s.id FROM documents o JOIN share_links s ON s.document_id = o.id \
                   WHERE o.owner_id = $1 AND s.revoked_at IS NULL \
                 ) AND ($3 IS NULL OR (l.created_at, l.id) < ($3, $4)) \
                 ORDER BY l.created_at DESC, l.id DESC LIMIT $2"
            ))
            .bind(user.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(link_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn join_link(
        &self,
        id: ShareLinkId,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<Joined, StorageError> {
        transact!(self, tx => {
            lock_of(tx, id).await?;
            let before = fetch(tx, id).await?.filter(|link| link.revoked_at.is_none());
            let Some(before) = before else {
                return Ok(Joined::Gone);
            };
            put_user(tx, user, now).await?;
            if before.reviewer.is_some_and(|reviewer| reviewer.id != user.id) {
                let is_noted = note_attempt(tx, id, &user.id, now).await?;
                return Ok(Joined::ReviewerExists { document: before.document_id, is_noted });
            }
            put_reviewer(tx, id, &user.id, now).await?;
            let link = fetch(tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            Ok(Joined::Reviewer(link))
        })
    }
}

/// Finds or creates the link of a document, under its lock. `None`: there is no such document.
pub(super) async fn find_or_create(
    connection: &mut Connection,
    new: &NewShareLink,
) -> Result<Option<(ShareLink, FindOrCreate)>, TxError> {
    let made = sqlx::query(
        "INSERT INTO share_links (id, document_id, invite_hash, created_at) \
         SELECT $1, d.id, $3, $4 FROM documents d \
         WHERE d.id = $2 AND d.deleted_at IS NULL \
         ON CONFLICT (document_id) WHERE revoked_at IS NULL DO NOTHING",
    )
    .bind(new.id.to_string())
    .bind(new.document_id.to_string())
    .bind(new.invite_hash.as_slice())
    .bind(Moment(new.now))
    .execute(&mut *connection)
    .await?;
    let is_old = made.rows_affected() == 0;
    let found = if is_old { FindOrCreate::Existing } else { FindOrCreate::Created };
    let link = fetch_active(connection, new.document_id).await?;
    Ok(link.map(|link| (link, found)))
}

/// Makes a user who has a row the reviewer of a link without another, under the lock of its document.
pub(super) async fn put_reviewer(
    connection: &mut Connection,
    link: ShareLinkId,
    user: &UserId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    forget_attempt(connection, link, user).await?;
    sqlx::query(
        "UPDATE share_links SET reviewer_id = $2, joined_at = COALESCE(joined_at, $3) \
         WHERE id = $1",
    )
    .bind(link.to_string())
    .bind(user.as_str())
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(())
}

async fn fetch(connection: &mut Connection, id: ShareLinkId) -> Result<Option<ShareLink>, TxError> {
    let row = sqlx::query_as(select_links!("WHERE l.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(link_from).transpose()?)
}

pub(super) async fn fetch_active(
    connection: &mut Connection,
    document: DocumentId,
) -> Result<Option<ShareLink>, TxError> {
    let row = sqlx::query_as(select_links!("WHERE l.document_id = $1 AND l.revoked_at IS NULL"))
        .bind(document.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(link_from).transpose()?)
}

pub(super) fn link_from(row: Row) -> Result<ShareLink, StorageError> {
    let (
        id,
        document_id,
        title,
        writer_id,
        writer_name,
        reviewer_id,
        reviewer_name,
        invite_hash,
        Moment(created_at),
        revoked_at,
    ) = row;
    let reviewer = reviewer_id.zip(reviewer_name).map(|(id, name)| user(&id, name));
    Ok(ShareLink {
        id: parse(&id)?,
        document_id: parse(&document_id)?,
        title: text(title),
        writer: user(&writer_id, writer_name)?,
        reviewer: reviewer.transpose()?,
        invite_hash: invite_hash.try_into().map_err(|_| corrupt("an invite's hash"))?,
        created_at,
        revoked_at: revoked_at.map(|Moment(at)| at),
    })
}
