//! Partners, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::limits::PARTNERS_MAX;
use crate::storage::error::StorageError;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::partners::{Partner, Partnership, sorted};

use super::dialect::{
    Connection, Engine, Moment, TxError, lock_users, read, transact, user as user_from,
};

impl Engine {
    pub(in crate::storage) async fn make_partners(
        &self,
        one: &UserId,
        other: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Partnership, StorageError> {
        transact!(self, Nothing, tx => {
            lock_users(tx, one, other).await?;
            put_partners(tx, one, other, now).await
        })
    }

    pub(in crate::storage) async fn remove_partners(
        &self,
        one: &UserId,
        other: &UserId,
    ) -> Result<bool, StorageError> {
        let (low, high) = sorted(one, other);
        transact!(self, Nothing, tx => {
            let removed = sqlx::query("DELETE FROM partners WHERE low_id = $1 AND high_id = $2")
                .bind(low.as_str())
                .bind(high.as_str())
                .execute(tx)
                .await?;
            Ok(0 < removed.rows_affected())
        })
    }

    pub(in crate::storage) async fn are_partners(
        &self,
        one: &UserId,
        other: &UserId,
    ) -> Result<bool, StorageError> {
        read!(self, connection => { are_partners(connection, one, other).await })
    }

    pub(in crate::storage) async fn partners_of(
        &self,
        user: &UserId,
        page: &Page<UserId>,
    ) -> Result<Vec<Partner>, StorageError> {
        read!(self, connection => {
            // Two selects, one for each index.
            let rows: Vec<(String, String, Moment)> = sqlx::query_as(
                "SELECT u.id, u.name, p.since FROM ( \
                   SELECT high_id AS id, since FROM partners WHERE low_id = $1 \
                   UNION ALL SELECT low_id, since FROM partners WHERE high_id = $1 \
                 ) p JOIN users u ON u.id = p.id \
                 WHERE $3 IS NULL OR (p.since, p.id) < ($3, $4) \
                 ORDER BY p.since DESC, p.id DESC LIMIT $2",
            )
            .bind(user.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.as_ref().map(|before| Moment(before.at)))
            .bind(page.before.as_ref().map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            let partner = |(id, name, Moment(since)): (String, String, Moment)| {
                Ok(Partner { user: user_from(&id, name)?, since })
            };
            Ok(rows.into_iter().map(partner).collect::<Result<_, StorageError>>()?)
        })
    }
}

/// Whether two users are partners.
pub(super) async fn are_partners(
    connection: &mut Connection,
    one: &UserId,
    other: &UserId,
) -> Result<bool, TxError> {
    let (low, high) = sorted(one, other);
    let select = "SELECT 1 FROM partners WHERE low_id = $1 AND high_id = $2";
    let row = sqlx::query(select).bind(low.as_str()).bind(high.as_str());
    Ok(row.fetch_optional(connection).await?.is_some())
}

/// Makes two users partners; the transaction has locked both. `Full` changes no row.
pub(super) async fn put_partners(
    connection: &mut Connection,
    one: &UserId,
    other: &UserId,
    now: DateTime<Utc>,
) -> Result<Partnership, TxError> {
    let (low, high) = sorted(one, other);
    let made = sqlx::query(
        "INSERT INTO partners (low_id, high_id, since) SELECT $1, $2, $3 \
         WHERE (SELECT count(*) FROM partners WHERE low_id = $1 OR high_id = $1) < $4 \
         AND (SELECT count(*) FROM partners WHERE low_id = $2 OR high_id = $2) < $4 \
         ON CONFLICT (low_id, high_id) DO NOTHING",
    )
    .bind(low.as_str())
    .bind(high.as_str())
    .bind(Moment(now))
    .bind(PARTNERS_MAX)
    .execute(&mut *connection)
    .await?;
    if 0 < made.rows_affected() {
        return Ok(Partnership::Made);
    }
    let are_partners = are_partners(connection, one, other).await?;
    Ok(if are_partners { Partnership::Existing } else { Partnership::Full })
}
