//! Review offers, on either engine.

use chrono::{DateTime, Utc};
use sqlx::Row as _;

use crate::domain::ids::{ClaimId, OfferId, UserId};
use crate::domain::limits::{CLOSED_OFFERS_STORED, OFFERS_PURGED_AT_ONCE, OPEN_OFFERS_MAX};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::offers::{NewOffer, Offer, OfferClaim, OfferView};
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};

use super::dialect::{
    Connection, Engine, Moment, Row, TxError, encoded, lock_users, read, single, text, transact,
    user,
};
use super::users::put_user;

/// Selects offers, each with the claim of a user that holds a place of it.
macro_rules! select_views {
    ($also:literal, $rest:literal) => {
        concat!(
            "SELECT o.id, o.owner_id, ou.name AS owner_name, o.title, o.message, o.capacity, \
             o.claimed, o.created_at, o.closed_at, c.id AS claim_id, c.offer_id, c.user_id, \
             cu.name AS user_name, c.number, c.message AS claim_message, c.state, \
             c.created_at AS claim_created_at",
            $also,
            " FROM review_offers o JOIN users ou ON ou.id = o.owner_id \
             LEFT JOIN review_claims c \
             ON c.offer_id = o.id AND c.user_id = $2 AND c.ended_at IS NULL \
             LEFT JOIN users cu ON cu.id = c.user_id ",
            $rest
        )
    };
}
pub(super) use select_views;

/// Selects claims for [`claim_from`].
macro_rules! select_claims {
    ($also:literal, $rest:literal) => {
        concat!(
            "SELECT c.id AS claim_id, c.offer_id, c.user_id, cu.name AS user_name, c.number, \
             c.message AS claim_message, c.state, c.created_at AS claim_created_at",
            $also,
            " FROM review_claims c JOIN users cu ON cu.id = c.user_id ",
            $rest
        )
    };
}

impl Engine {
    pub(in crate::storage) async fn create_offer(
        &self,
        new: &NewOffer,
    ) -> Result<Option<Offer>, StorageError> {
        transact!(self, tx => {
            // The bound is exact: another creation of this owner waits for this one.
            lock_users(tx, &new.owner.id, &new.owner.id).await?;
            put_user(tx, &new.owner, new.now).await?;
            sqlx::query(
                "DELETE FROM review_offers WHERE id IN ( \
                   SELECT id FROM review_offers WHERE owner_id = $1 AND closed_at IS NOT NULL \
                   ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3)",
            )
            .bind(new.owner.id.as_str())
            .bind(OFFERS_PURGED_AT_ONCE)
            .bind(CLOSED_OFFERS_STORED)
            .execute(&mut *tx)
            .await?;
            let made = sqlx::query(
                "INSERT INTO review_offers (id, owner_id, title, message, capacity, created_at) \
                 SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT count(*) FROM review_offers \
                 WHERE owner_id = $2 AND closed_at IS NULL) < $7",
            )
            .bind(new.id.to_string())
            .bind(new.owner.id.as_str())
            .bind(encoded(&new.title))
            .bind(new.message.as_deref().map(encoded))
            .bind(i64::from(new.capacity))
            .bind(Moment(new.now))
            .bind(OPEN_OFFERS_MAX)
            .execute(&mut *tx)
            .await?;
            if made.rows_affected() == 0 {
                return Ok(None);
            }
            let view = fetch(tx, new.id, &new.owner.id).await?;
            Ok(view.map(|view| view.offer))
        })
    }

    pub(in crate::storage) async fn offer(
        &self,
        id: OfferId,
        viewer: &UserId,
    ) -> Result<Option<OfferView>, StorageError> {
        read!(self, connection => { fetch(connection, id, viewer).await })
    }

    pub(in crate::storage) async fn offers_of(
        &self,
        owner: &UserId,
        page: &Page<OfferId>,
    ) -> Result<Vec<Offer>, StorageError> {
        read!(self, connection => {
            // No owner claims the own offer: the parameter of the claim's user is the owner.
            let rows: Vec<Row> = sqlx::query(select_views!(
                "",
                "WHERE o.owner_id = $1 AND o.owner_id = $2 \
                 AND ($4 IS NULL OR (o.created_at, o.id) < ($4, $5)) \
                 ORDER BY o.created_at DESC, o.id DESC LIMIT $3"
            ))
            .bind(owner.as_str())
            .bind(owner.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            rows.iter().map(offer_from).collect()
        })
    }

    pub(in crate::storage) async fn close_offer(
        &self,
        id: OfferId,
        owner: &UserId,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        single!(self, tx => {
            let closed = sqlx::query(
                "UPDATE review_offers SET closed_at = COALESCE(closed_at, $3) \
                 WHERE id = $1 AND owner_id = $2",
            )
            .bind(id.to_string())
            .bind(owner.as_str())
            .bind(Moment(now))
            .execute(tx)
            .await?;
            Ok(0 < closed.rows_affected())
        })
    }

    pub(in crate::storage) async fn claims_of(
        &self,
        offer: OfferId,
        only: Option<&UserId>,
        page: &Page<ClaimId>,
    ) -> Result<Vec<OfferClaim>, StorageError> {
        read!(self, connection => {
            let rows: Vec<Row> = sqlx::query(select_claims!(
                "",
                "WHERE c.offer_id = $1 AND c.ended_at IS NULL \
                 AND ($2 IS NULL OR c.user_id = $2) \
                 AND ($4 IS NULL OR (c.created_at, c.id) < ($4, $5)) \
                 ORDER BY c.created_at DESC, c.id DESC LIMIT $3"
            ))
            .bind(offer.to_string())
            .bind(only.map(UserId::as_str))
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .fetch_all(connection)
            .await?;
            rows.iter().map(claim_from).collect()
        })
    }

    pub(in crate::storage) async fn claim_of(
        &self,
        offer: OfferId,
        id: ClaimId,
    ) -> Result<Option<(OfferClaim, UserId)>, StorageError> {
        read!(self, connection => {
            let row: Option<Row> = sqlx::query(select_claims!(
                ", o.owner_id",
                "JOIN review_offers o ON o.id = c.offer_id \
                 WHERE c.id = $2 AND c.offer_id = $1 AND c.ended_at IS NULL"
            ))
            .bind(offer.to_string())
            .bind(id.to_string())
            .fetch_optional(connection)
            .await?;
            let Some(row) = row else { return Ok(None) };
            let owner: String = row.try_get("owner_id")?;
            Ok(Some((claim_from(&row)?, parse(&owner)?)))
        })
    }
}

async fn fetch(
    connection: &mut Connection,
    id: OfferId,
    viewer: &UserId,
) -> Result<Option<OfferView>, TxError> {
    let row: Option<Row> = sqlx::query(select_views!("", "WHERE o.id = $1"))
        .bind(id.to_string())
        .bind(viewer.as_str())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(view_from).transpose()
}

pub(super) fn view_from(row: &Row) -> Result<OfferView, TxError> {
    let claim: Option<String> = row.try_get("claim_id")?;
    let claim = claim.map(|_id| claim_from(row)).transpose()?;
    Ok(OfferView { offer: offer_from(row)?, claim })
}

fn offer_from(row: &Row) -> Result<Offer, TxError> {
    let (id, owner): (String, String) = (row.try_get("id")?, row.try_get("owner_id")?);
    let Moment(created_at) = row.try_get("created_at")?;
    let closed_at: Option<Moment> = row.try_get("closed_at")?;
    let message: Option<String> = row.try_get("message")?;
    Ok(Offer {
        id: parse(&id)?,
        owner: user(&owner, row.try_get("owner_name")?)?,
        title: text(row.try_get("title")?),
        message: message.map(text),
        capacity: slots(row.try_get("capacity")?)?,
        claimed: slots(row.try_get("claimed")?)?,
        created_at,
        closed_at: closed_at.map(|Moment(at)| at),
    })
}

fn claim_from(row: &Row) -> Result<OfferClaim, TxError> {
    let (id, offer): (String, String) = (row.try_get("claim_id")?, row.try_get("offer_id")?);
    let (claimant, state): (String, String) = (row.try_get("user_id")?, row.try_get("state")?);
    let message: Option<String> = row.try_get("claim_message")?;
    let Moment(created_at) = row.try_get("claim_created_at")?;
    Ok(OfferClaim {
        id: parse(&id)?,
        offer: parse(&offer)?,
        user: user(&claimant, row.try_get("user_name")?)?,
        number: row.try_get("number")?,
        state: parse(&state)?,
        message: message.map(text),
        created_at,
    })
}

pub(super) fn slots(column: i64) -> Result<u32, StorageError> {
    u32::try_from(column).map_err(corrupt)
}
