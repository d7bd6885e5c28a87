//! Statements on share links that only PostgreSQL has: revocations, and the look-up of a seat.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{FromRow as _, PgConnection, Row as _};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::seat::Seat;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::links::ShareLink;
use crate::storage::postgres::Postgres;
use crate::storage::postgres::dialect::{read, transact};
use crate::storage::postgres::encoding::{Moment, text};
use crate::storage::postgres::links::{Row, link_from, select_links};
use crate::storage::postgres::locks::lock_of;
use crate::storage::postgres::tx_error::TxError;

impl Postgres {
    pub(in crate::storage) async fn revoke_link(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
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
        })
    }

    pub(in crate::storage) async fn revoked_among(
        &self,
        links: &[ShareLinkId],
    ) -> Result<Vec<ShareLinkId>, StorageError> {
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        let revoked = read!(self, connection => {
            let revoked: Vec<String> = sqlx::query_scalar(
                "SELECT w.id FROM unnest($1::text[]) AS w (id) \
                 LEFT JOIN share_links l \
                 ON l.id = w.id COLLATE \"C\" AND l.revoked_at IS NULL WHERE l.id IS NULL",
            )
            .bind(wanted.as_slice())
            .fetch_all(connection)
            .await?;
            Ok(revoked)
        })?;
        revoked.iter().map(|id| parse(id)).collect()
    }

    pub(in crate::storage) async fn titles_of(
        &self,
        links: &[ShareLinkId],
    ) -> Result<HashMap<ShareLinkId, String>, StorageError> {
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        let rows = read!(self, connection => {
            let rows: Vec<(String, String)> = sqlx::query_as(
                "SELECT l.id, d.title FROM share_links l JOIN documents d ON d.id = l.document_id \
                 WHERE l.id = ANY($1)",
            )
            .bind(wanted.as_slice())
            .fetch_all(connection)
            .await?;
            Ok(rows)
        })?;
        rows.into_iter().map(|(id, title)| Ok((parse(&id)?, text(title)))).collect()
    }

    pub(in crate::storage) async fn not_reviewing_among(
        &self,
        reviewers: &[(ShareLinkId, UserId)],
    ) -> Result<Vec<(ShareLinkId, UserId)>, StorageError> {
        let (links, users): (Vec<String>, Vec<&str>) =
            reviewers.iter().map(|(link, user)| (link.to_string(), user.as_str())).unzip();
        let former = read!(self, connection => {
            let former: Vec<(String, String)> = sqlx::query_as(
                "SELECT w.link_id, w.user_id FROM unnest($1::text[], $2::text[]) AS w (link_id, user_id) \
                 JOIN share_links l ON l.id = w.link_id COLLATE \"C\" AND l.revoked_at IS NULL \
                 WHERE l.reviewer_id IS DISTINCT FROM w.user_id COLLATE \"C\"",
            )
            .bind(links.as_slice())
            .bind(users.as_slice())
            .fetch_all(connection)
            .await?;
            Ok(former)
        })?;
        former.iter().map(|(link, user)| Ok((parse(link)?, parse(user)?))).collect()
    }
}

/// The link of a seat, its last fence, and the time of its user's name.
pub(super) async fn fetch_with_fence(
    connection: &mut PgConnection,
    seat: Seat,
) -> Result<Option<(ShareLink, Option<i64>, Option<DateTime<Utc>>)>, TxError> {
    let select = select_links!(
        ", s.fence, CASE $2 WHEN 'writer' THEN w.updated_at ELSE r.updated_at END",
        "share_links l",
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
