//! Claims of review offers, on either engine.

use chrono::{DateTime, Utc};
use sqlx::Row as _;

use crate::domain::ids::{OfferId, UserId};
use crate::domain::limits::{CLAIMS_PER_DAY_MAX, CLAIMS_PURGED_AT_ONCE};
use crate::domain::offer::ClaimState;
use crate::storage::decode::{fence, fence_column, time};
use crate::storage::error::StorageError;
use crate::storage::offers::{Accepted, ClaimTerms, Claimed, NewClaim, OfferClaim};
use crate::storage::partners::Partnership;

use super::dialect::{
    Connection, Engine, Moment, Row, TxError, encoded, lock_users, read, transact,
};
use super::offers::{select_views, slots, view_from};
use super::partners::put_partners;
use super::users::put_user;

impl Engine {
    pub(in crate::storage) async fn claim_terms(
        &self,
        id: OfferId,
        claimant: &UserId,
        since: DateTime<Utc>,
    ) -> Result<Option<ClaimTerms>, StorageError> {
        read!(self, connection => {
            let row: Option<Row> = sqlx::query(select_views!(
                ", o.fence, (SELECT d.created_at FROM review_claims d \
                 WHERE d.user_id = $2 AND $3 < d.created_at \
                 ORDER BY d.created_at DESC LIMIT 1 OFFSET $4) AS spent_since",
                "WHERE o.id = $1"
            ))
            .bind(id.to_string())
            .bind(claimant.as_str())
            .bind(Moment(since))
            .bind(CLAIMS_PER_DAY_MAX - 1)
            .fetch_optional(connection)
            .await?;
            let Some(row) = row else { return Ok(None) };
            let spent_since: Option<Moment> = row.try_get("spent_since")?;
            Ok(Some(ClaimTerms {
                view: view_from(&row)?,
                fence: fence(row.try_get("fence")?)?,
                spent_since: spent_since.map(|Moment(at)| at),
            }))
        })
    }

    pub(in crate::storage) async fn claim_offer(
        &self,
        new: &NewClaim,
    ) -> Result<Option<Claimed>, StorageError> {
        let fence = fence_column(new.fence)?;
        transact!(self, tx => {
            // The limit of a day is exact: another claim of this user waits for this one.
            lock_users(tx, &new.user.id, &new.user.id).await?;
            let taken: Option<(i64, i64)> = sqlx::query_as(
                "UPDATE review_offers \
                 SET claimed = claimed + 1, last_number = last_number + 1, fence = $3 \
                 WHERE id = $1 AND claimed < capacity AND closed_at IS NULL AND fence < $3 \
                 AND owner_id <> $2 AND NOT EXISTS (SELECT 1 FROM review_claims \
                   WHERE offer_id = $1 AND user_id = $2 AND ended_at IS NULL) \
                 AND (SELECT count(*) FROM review_claims \
                   WHERE user_id = $2 AND $4 < created_at) < $5 \
                 RETURNING last_number, capacity - claimed",
            )
            .bind(new.offer.to_string())
            .bind(new.user.id.as_str())
            .bind(fence)
            .bind(Moment(new.since))
            .bind(CLAIMS_PER_DAY_MAX)
            .fetch_optional(&mut *tx)
            .await?;
            let Some((number, remaining)) = taken else { return Ok(None) };
            put_user(tx, &new.user, new.now).await?;
            if !insert(tx, new, number).await? {
                free_slot(tx, new.offer).await?;
                return Ok(None);
            }
            let NewClaim { id, offer, user, message, now, .. } = new.clone();
            let state = ClaimState::Claimed;
            let created_at = time(now.timestamp_millis())?;
            let claim = OfferClaim { id, offer, user, number, state, message, created_at };
            Ok(Some(Claimed { claim, remaining: slots(remaining)? }))
        })
    }

    pub(in crate::storage) async fn end_claim(
        &self,
        claim: &OfferClaim,
        now: DateTime<Utc>,
        since: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            // The offer comes first: it is the lock of its claims.
            if !free_slot(tx, claim.offer).await? {
                return Ok(false);
            }
            let ended = sqlx::query(
                "UPDATE review_claims SET ended_at = $2 \
                 WHERE id = $1 AND ended_at IS NULL AND state = $3",
            )
            .bind(claim.id.to_string())
            .bind(Moment(now))
            .bind(ClaimState::Claimed.as_str())
            .execute(&mut *tx)
            .await?;
            if ended.rows_affected() == 0 {
                take_slot_again(tx, claim.offer).await?;
                return Ok(false);
            }
            sqlx::query(
                "DELETE FROM review_claims WHERE id IN (SELECT id FROM review_claims \
                 WHERE user_id = $1 AND created_at <= $2 AND ended_at IS NOT NULL \
                 ORDER BY created_at LIMIT $3)",
            )
            .bind(claim.user.id.as_str())
            .bind(Moment(since))
            .bind(CLAIMS_PURGED_AT_ONCE)
            .execute(tx)
            .await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn accept_claim(
        &self,
        claim: &OfferClaim,
        owner: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Accepted, StorageError> {
        let accepted = OfferClaim { state: ClaimState::Accepted, ..claim.clone() };
        transact!(self, tx => {
            lock_users(tx, owner, &claim.user.id).await?;
            if !move_state(tx, claim, ClaimState::Claimed, accepted.state).await? {
                // Of two acceptances at once the second makes no partners: the first pair may have parted.
                let is_live = move_state(tx, claim, accepted.state, accepted.state).await?;
                return Ok(if is_live { Accepted::Done(accepted.clone()) } else { Accepted::Gone });
            }
            match put_partners(tx, owner, &claim.user.id, now).await? {
                Partnership::Made | Partnership::Existing => Ok(Accepted::Done(accepted.clone())),
                Partnership::Full => {
                    move_state(tx, claim, accepted.state, ClaimState::Claimed).await?;
                    Ok(Accepted::Full)
                }
            }
        })
    }
}

/// Inserts a claim. False: the user has another claim of the offer, which the lock of the offer
/// excludes and the unique index rejects.
async fn insert(connection: &mut Connection, new: &NewClaim, number: i64) -> Result<bool, TxError> {
    let made = sqlx::query(
        "INSERT INTO review_claims (id, offer_id, user_id, number, message, state, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (offer_id, user_id) WHERE ended_at IS NULL DO NOTHING",
    )
    .bind(new.id.to_string())
    .bind(new.offer.to_string())
    .bind(new.user.id.as_str())
    .bind(number)
    .bind(new.message.as_deref().map(encoded))
    .bind(ClaimState::Claimed.as_str())
    .bind(Moment(new.now))
    .execute(connection)
    .await?;
    Ok(0 < made.rows_affected())
}

/// Frees a place, and locks the offer. False: none is taken.
async fn free_slot(connection: &mut Connection, offer: OfferId) -> Result<bool, TxError> {
    let update = "UPDATE review_offers SET claimed = claimed - 1 WHERE id = $1 AND 0 < claimed";
    let freed = sqlx::query(update).bind(offer.to_string()).execute(connection).await?;
    Ok(0 < freed.rows_affected())
}

/// Reverts [`free_slot`] in the same transaction.
async fn take_slot_again(connection: &mut Connection, offer: OfferId) -> Result<(), TxError> {
    let update = "UPDATE review_offers SET claimed = claimed + 1 WHERE id = $1";
    sqlx::query(update).bind(offer.to_string()).execute(connection).await?;
    Ok(())
}

/// Moves a claim that holds a place from one state to another. False: it has another state, or has ended.
async fn move_state(
    connection: &mut Connection,
    claim: &OfferClaim,
    from: ClaimState,
    to: ClaimState,
) -> Result<bool, TxError> {
    let moved = sqlx::query(
        "UPDATE review_claims SET state = $3 WHERE id = $1 AND state = $2 AND ended_at IS NULL",
    )
    .bind(claim.id.to_string())
    .bind(from.as_str())
    .bind(to.as_str())
    .execute(connection)
    .await?;
    Ok(0 < moved.rows_affected())
}
