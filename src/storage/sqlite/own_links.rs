//! Statements on share links that only `SQLite` has: revocations, and the look-up of seats.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow as _, Row as _, SqlitePool};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::links::ShareLink;
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::dialect::Moment;
use crate::storage::sqlite::links::{Row, link_from, select_links};

/// A seat's position, its link, its last fence and the time of its user's name.
type SeatRow = (usize, ShareLink, Option<i64>, Option<DateTime<Utc>>);

impl Sqlite {
    pub(in crate::storage) async fn revoke_link(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let mut tx = self.write().await?;
        let revoked = sqlx::query(
            "UPDATE share_links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
        )
        .bind(id.to_string())
        .bind(now.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(0 < revoked.rows_affected())
    }

    pub(in crate::storage) async fn revoked_among(
        &self,
        links: &[ShareLinkId],
    ) -> Result<Vec<ShareLinkId>, StorageError> {
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        // One look-up by primary key for each link: `json_each` on the left comes first.
        let revoked: Vec<String> = sqlx::query_scalar(
            "SELECT w.value FROM json_each($1) w \
             LEFT JOIN share_links l ON l.id = w.value AND l.revoked_at IS NULL \
             WHERE l.id IS NULL",
        )
        .bind(serde_json::to_string(&wanted).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        revoked.iter().map(|id| parse(id)).collect()
    }

    pub(in crate::storage) async fn titles_of(
        &self,
        links: &[ShareLinkId],
    ) -> Result<HashMap<ShareLinkId, String>, StorageError> {
        let wanted: Vec<_> = links.iter().map(ToString::to_string).collect();
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT l.id, d.title FROM json_each($1) w CROSS JOIN share_links l ON l.id = w.value \
             JOIN documents d ON d.id = l.document_id",
        )
        .bind(serde_json::to_string(&wanted).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(|(id, title)| Ok((parse(&id)?, title))).collect()
    }

    pub(in crate::storage) async fn not_reviewing_among(
        &self,
        reviewers: &[(ShareLinkId, UserId)],
    ) -> Result<Vec<(ShareLinkId, UserId)>, StorageError> {
        let former: Vec<(String, String)> = sqlx::query_as(
            "SELECT w.value ->> 0, w.value ->> 1 FROM json_each($1) w \
             CROSS JOIN share_links l ON l.id = w.value ->> 0 AND l.revoked_at IS NULL \
             WHERE l.reviewer_id IS NOT w.value ->> 1",
        )
        .bind(serde_json::to_string(reviewers).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        former.iter().map(|(link, user)| Ok((parse(link)?, parse(user)?))).collect()
    }
}

/// The links of some seats. Each row has the seat's position in `seats`, its last fence, and the
/// time of its user's name.
pub(super) async fn fetch_with_fences(
    readers: &SqlitePool,
    seats: &[(String, &str)],
) -> Result<Vec<SeatRow>, StorageError> {
    // The seats come first: otherwise SQLite reads every link. The seats are one JSON text, so any
    // number of them is the same statement.
    let select = select_links!(
        ", s.fence, wanted.key, \
         CASE wanted.value ->> 1 WHEN 'writer' THEN w.updated_at ELSE r.updated_at END",
        "json_each($1) wanted CROSS JOIN share_links l ON l.id = wanted.value ->> 0",
        "LEFT JOIN seats s ON s.link_id = l.id AND s.role = wanted.value ->> 1"
    );
    let wanted = serde_json::to_string(seats).map_err(corrupt)?;
    let rows = sqlx::query(select).bind(wanted).fetch_all(readers).await?;
    let read = |row: SqliteRow| {
        let (fence, at): (Option<i64>, i64) = (row.try_get(10)?, row.try_get(11)?);
        let named_at: Option<Moment> = row.try_get(12)?;
        let link = link_from(Row::from_row(&row)?)?;
        Ok((usize::try_from(at).map_err(corrupt)?, link, fence, named_at.map(|Moment(at)| at)))
    };
    rows.into_iter().map(read).collect()
}
