//! Partners, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::limits::PARTNERS_MAX;
use crate::domain::offer::ClaimState;
use crate::domain::review_request::RequestState;
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
        transact!(self, tx => {
            lock_users(tx, one, other).await?;
            put_partners(tx, one, other, now).await
        })
    }

    pub(in crate::storage) async fn remove_partners(
        &self,
        one: &UserId,
        other: &UserId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let (low, high) = sorted(one, other);
        transact!(self, tx => {
            lock_users(tx, one, other).await?;
            let removed = sqlx::query("DELETE FROM partners WHERE low_id = $1 AND high_id = $2")
                .bind(low.as_str())
                .bind(high.as_str())
                .execute(&mut *tx)
                .await?;
            if removed.rows_affected() == 0 {
                return Ok(false);
            }
            end_accepted_claims(tx, one, other, now).await?;
            end_pending(tx, one, other, now).await?;
            Ok(true)
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

/// Ends the accepted claims of two users on each other's offers, and frees their places. The transaction
/// has locked both users, so no acceptance runs meanwhile.
async fn end_accepted_claims(
    connection: &mut Connection,
    one: &UserId,
    other: &UserId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    // The offers come first: each is the lock of its claims.
    sqlx::query(
        "UPDATE review_offers SET claimed = claimed - 1 WHERE EXISTS ( \
           SELECT 1 FROM review_claims c WHERE c.offer_id = review_offers.id \
           AND c.state = $3 AND c.ended_at IS NULL AND c.user_id <> review_offers.owner_id \
           AND c.user_id IN ($1, $2)) \
         AND owner_id IN ($1, $2)",
    )
    .bind(one.as_str())
    .bind(other.as_str())
    .bind(ClaimState::Accepted.as_str())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE review_claims SET ended_at = $4 WHERE state = $3 AND ended_at IS NULL \
         AND user_id IN ($1, $2) AND offer_id IN ( \
           SELECT id FROM review_offers WHERE owner_id IN ($1, $2) AND owner_id <> user_id)",
    )
    .bind(one.as_str())
    .bind(other.as_str())
    .bind(ClaimState::Accepted.as_str())
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends the pending request of a pair: `one` withdraws the own one, or declines that of the other. A claim
/// of an offer makes partners beside a request.
async fn end_pending(
    connection: &mut Connection,
    one: &UserId,
    other: &UserId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let (low, high) = sorted(one, other);
    sqlx::query(
        "UPDATE review_requests SET decided_at = $4, \
           state = CASE WHEN sender_id = $3 THEN $5 ELSE $6 END \
         WHERE low_id = $1 AND high_id = $2 AND state = 'pending' AND expires_at > $4",
    )
    .bind(low.as_str())
    .bind(high.as_str())
    .bind(one.as_str())
    .bind(Moment(now))
    .bind(RequestState::Withdrawn.as_str())
    .bind(RequestState::Declined.as_str())
    .execute(connection)
    .await?;
    Ok(())
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
