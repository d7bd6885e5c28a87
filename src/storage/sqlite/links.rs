//! Share links, on `SQLite`.

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow as _, Row as _, SqliteConnection, SqlitePool};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::user::User;
use crate::storage::decode::{corrupt, parse, time, user};
use crate::storage::error::StorageError;
use crate::storage::links::{FindOrCreate, Joined, NewShareLink, ShareLink};
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::users::put_user;
use crate::storage::sqlite::write_cache::Invalidate;

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

type Row = (
    String,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Vec<u8>,
    i64,
    Option<i64>,
);

/// A seat's position, its link, its last fence and the time of its user's name.
type SeatRow = (usize, ShareLink, Option<i64>, Option<DateTime<Utc>>);

impl Sqlite {
    pub(in crate::storage) async fn find_or_create_link(
        &self,
        new: &NewShareLink,
    ) -> Result<Option<(ShareLink, FindOrCreate)>, StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        let made = sqlx::query(
            "INSERT INTO share_links (id, document_id, invite_hash, created_at) \
             SELECT $1, d.id, $3, $4 FROM documents d WHERE d.id = $2 \
             ON CONFLICT (document_id) WHERE revoked_at IS NULL DO NOTHING",
        )
        .bind(new.id.to_string())
        .bind(new.document_id.to_string())
        .bind(new.invite_hash.as_slice())
        .bind(new.now.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        let found =
            if made.rows_affected() == 0 { FindOrCreate::Existing } else { FindOrCreate::Created };
        let active = select_links!("WHERE l.document_id = $1 AND l.revoked_at IS NULL");
        let row = sqlx::query_as(active)
            .bind(new.document_id.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        let link = row.map(link_from).transpose()?;
        tx.commit().await?;
        Ok(link.map(|link| (link, found)))
    }

    pub(in crate::storage) async fn link(
        &self,
        id: ShareLinkId,
    ) -> Result<Option<ShareLink>, StorageError> {
        let mut reader = self.readers.acquire().await?;
        fetch(&mut reader, id).await
    }

    pub(in crate::storage) async fn link_of(
        &self,
        document: DocumentId,
    ) -> Result<Option<ShareLink>, StorageError> {
        let active = select_links!("WHERE l.document_id = $1 AND l.revoked_at IS NULL");
        let row: Option<Row> =
            sqlx::query_as(active).bind(document.to_string()).fetch_optional(&self.readers).await?;
        row.map(link_from).transpose()
    }

    pub(in crate::storage) async fn links_of(
        &self,
        user: &UserId,
        page: &Page<ShareLinkId>,
    ) -> Result<Vec<ShareLink>, StorageError> {
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
        .bind(page.limit.min(PAGE_ROWS_MAX))
        .bind(page.before.map(|before| before.at.timestamp_millis()))
        .bind(page.before.map(|before| before.id.to_string()))
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(link_from).collect()
    }

    pub(in crate::storage) async fn join_link(
        &self,
        id: ShareLinkId,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<Joined, StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        put_user(&mut tx, user, now).await?;
        let joined = sqlx::query(
            "UPDATE share_links SET reviewer_id = $2, joined_at = COALESCE(joined_at, $3) \
             WHERE id = $1 AND revoked_at IS NULL AND (reviewer_id IS NULL OR reviewer_id = $2)",
        )
        .bind(id.to_string())
        .bind(user.id.as_str())
        .bind(now.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        let link = fetch(&mut tx, id).await?.filter(|link| link.revoked_at.is_none());
        let Some(link) = link else {
            return Ok(Joined::Gone);
        };
        if joined.rows_affected() == 0 {
            return Ok(Joined::ReviewerExists);
        }
        tx.commit().await?;
        Ok(Joined::Reviewer(link))
    }

    pub(in crate::storage) async fn revoke_link(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let mut tx = self.write(Invalidate::Everything).await?;
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
}

async fn fetch(
    connection: &mut SqliteConnection,
    id: ShareLinkId,
) -> Result<Option<ShareLink>, StorageError> {
    let row = sqlx::query_as(select_links!("WHERE l.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    row.map(link_from).transpose()
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
        let named_at: Option<i64> = row.try_get(12)?;
        let link = link_from(Row::from_row(&row)?)?;
        Ok((usize::try_from(at).map_err(corrupt)?, link, fence, named_at.map(time).transpose()?))
    };
    rows.into_iter().map(read).collect()
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
        created_at,
        revoked_at,
    ) = row;
    let reviewer = reviewer_id.zip(reviewer_name).map(|(id, name)| user(&id, name));
    Ok(ShareLink {
        id: parse(&id)?,
        document_id: parse(&document_id)?,
        title,
        writer: user(&writer_id, writer_name)?,
        reviewer: reviewer.transpose()?,
        invite_hash: invite_hash.try_into().map_err(|_| corrupt("an invite's hash"))?,
        created_at: time(created_at)?,
        revoked_at: revoked_at.map(time).transpose()?,
    })
}
