//! Share links, on PostgreSQL.

use chrono::{DateTime, Utc};
use sqlx::{FromRow as _, PgConnection, Row as _};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::links::{FindOrCreate, Joined, NewShareLink, ShareLink};
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::postgres::documents::{lock, lock_of};
use crate::storage::postgres::encoding::{Moment, text, user};
use crate::storage::postgres::tx_error::TxError;
use crate::storage::postgres::users::put_user;
use crate::storage::postgres::{Postgres, WRITE, read, transaction};

/// Selects links as [`Row`]s, with further columns of the caller's.
macro_rules! select_links {
    ($rest:literal) => {
        select_links!("", $rest)
    };
    ($also:literal, $rest:literal) => {
        concat!(
            "SELECT l.id, l.document_id, d.title, w.id, w.name, r.id, r.name, l.invite_hash, \
             l.created_at, l.revoked_at",
            $also,
            " FROM share_links l \
             JOIN documents d ON d.id = l.document_id \
             JOIN users w ON w.id = d.owner_id \
             LEFT JOIN users r ON r.id = l.reviewer_id ",
            $rest
        )
    };
}

type Row = (
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

impl Postgres {
    pub(in crate::storage) async fn find_or_create_link(
        &self,
        new: &NewShareLink,
    ) -> Result<Option<(ShareLink, FindOrCreate)>, StorageError> {
        let finding = transaction!(self.others, WRITE, tx => {
            if !lock(tx, new.document_id).await? {
                return Ok(None);
            }
            let made = sqlx::query(
                "INSERT INTO share_links (id, document_id, invite_hash, created_at) \
                 VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (document_id) WHERE revoked_at IS NULL DO NOTHING",
            )
            .bind(new.id.to_string())
            .bind(new.document_id.to_string())
            .bind(new.invite_hash.as_slice())
            .bind(Moment(new.now))
            .execute(&mut *tx)
            .await?;
            let found = if made.rows_affected() == 0 { FindOrCreate::Existing } else { FindOrCreate::Created };
            let link = fetch_active(tx, new.document_id).await?;
            Ok(link.map(|link| (link, found)))
        });
        finding.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn link(
        &self,
        id: ShareLinkId,
    ) -> Result<Option<ShareLink>, StorageError> {
        let reading = read!(self.others, connection => { fetch(connection, id).await });
        reading.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn link_of(
        &self,
        document: DocumentId,
    ) -> Result<Option<ShareLink>, StorageError> {
        let reading =
            read!(self.others, connection => { fetch_active(connection, document).await });
        reading.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn links_of(
        &self,
        user: &UserId,
        page: &Page<ShareLinkId>,
    ) -> Result<Vec<ShareLink>, StorageError> {
        let reading = read!(self.others, connection => {
            // Two selects, one for each index: `OR` across tables would read every link.
            let rows: Vec<Row> = sqlx::query_as(select_links!(
                "WHERE l.revoked_at IS NULL AND l.id IN ( \
                   SELECT id FROM share_links WHERE reviewer_id = $1 AND revoked_at IS NULL \
                   UNION \
                   SELECT s.id FROM documents o JOIN share_links s ON s.document_id = o.id \
                   WHERE o.owner_id = $1 AND s.revoked_at IS NULL \
                 ) AND ($3::timestamptz IS NULL OR (l.created_at, l.id) < ($3, $4)) \
                 ORDER BY l.created_at DESC, l.id DESC LIMIT $2"
            ))
            .bind(user.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(link_from).collect::<Result<_, _>>()?)
        });
        reading.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn join_link(
        &self,
        id: ShareLinkId,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<Joined, StorageError> {
        let joining = transaction!(self.others, WRITE, tx => {
            lock_of(tx, id).await?;
            let before = fetch(tx, id).await?.filter(|link| link.revoked_at.is_none());
            let Some(before) = before else {
                return Ok(Joined::Gone);
            };
            if before.reviewer.is_some_and(|reviewer| reviewer.id != user.id) {
                return Ok(Joined::ReviewerExists);
            }
            put_user(tx, user, now).await?;
            sqlx::query(
                "UPDATE share_links SET reviewer_id = $2, joined_at = COALESCE(joined_at, $3) \
                 WHERE id = $1",
            )
            .bind(id.to_string())
            .bind(user.id.as_str())
            .bind(Moment(now))
            .execute(&mut *tx)
            .await?;
            let link = fetch(tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            Ok(Joined::Reviewer(link))
        });
        joining.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn revoke_link(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let revoking = transaction!(self.others, WRITE, tx => {
            lock_of(tx, id).await?;
            let revoked = sqlx::query(
                "WITH revoked AS ( \
                   UPDATE share_links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL \
                   RETURNING document_id \
                 ) UPDATE documents d SET grants = d.grants + 1 FROM revoked r \
                 WHERE d.id = r.document_id",
            )
            .bind(id.to_string())
            .bind(Moment(now))
            .execute(tx)
            .await?;
            Ok(0 < revoked.rows_affected())
        });
        revoking.map_err(TxError::into_error)
    }

    pub(in crate::storage) async fn revoked_among(
        &self,
        links: &[ShareLinkId],
    ) -> Result<Vec<ShareLinkId>, StorageError> {
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        let reading = read!(self.others, connection => {
            let revoked: Vec<String> = sqlx::query_scalar(
                "SELECT w.id FROM unnest($1::text[]) AS w (id) \
                 LEFT JOIN share_links l \
                 ON l.id = w.id COLLATE \"C\" AND l.revoked_at IS NULL WHERE l.id IS NULL",
            )
            .bind(wanted.as_slice())
            .fetch_all(connection)
            .await?;
            Ok(revoked)
        });
        let revoked = reading.map_err(TxError::into_error)?;
        revoked.iter().map(|id| parse(id)).collect()
    }
}

async fn fetch(
    connection: &mut PgConnection,
    id: ShareLinkId,
) -> Result<Option<ShareLink>, TxError> {
    let row = sqlx::query_as(select_links!("WHERE l.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(link_from).transpose()?)
}

/// The link of a seat, its last fence, and the time of its user's name.
pub(super) async fn fetch_with_fence(
    connection: &mut PgConnection,
    seat: Seat,
) -> Result<Option<(ShareLink, Option<i64>, Option<DateTime<Utc>>)>, TxError> {
    let select = select_links!(
        ", s.fence, CASE $2 WHEN 'writer' THEN w.updated_at ELSE r.updated_at END",
        "LEFT JOIN seats s ON s.link_id = l.id AND s.role = $2 WHERE l.id = $1"
    );
    let row = sqlx::query(select)
        .bind(seat.link.to_string())
        .bind(seat.role.as_str())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let named_at: Option<Moment> = row.try_get(11)?;
    Ok(Some((link_from(Row::from_row(&row)?)?, row.try_get(10)?, named_at.map(|Moment(at)| at))))
}

async fn fetch_active(
    connection: &mut PgConnection,
    document: DocumentId,
) -> Result<Option<ShareLink>, TxError> {
    let row = sqlx::query_as(select_links!("WHERE l.document_id = $1 AND l.revoked_at IS NULL"))
        .bind(document.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(link_from).transpose()?)
}

fn link_from(row: Row) -> Result<ShareLink, StorageError> {
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
