//! The statements of offers and claims.

use chrono::{DateTime, Utc};

use crate::domain::ids::{ClaimId, OfferId, UserId};
use crate::domain::offer::ClaimState;
use crate::offers::offer::{
    Accepted, ClaimTerms, Claimed, NewClaim, NewOffer, Offer, OfferClaim, OfferView,
};
use crate::storage::decode::time;
use crate::storage::locks::lock_users;
use crate::storage::pagination::Page;
use crate::storage::partners::{Partnership, put_partners};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

/// Open offers of one user. With all places claimed they have 10,000 claims.
const OPEN_OFFERS_MAX: i64 = 100;
/// Closed offers of one user. A new offer deletes the oldest ones beyond it, with their claims;
/// partners stay partners.
const CLOSED_OFFERS_STORED: i64 = 200;
/// Closed offers that a new one deletes, so that its transaction stays short.
const OFFERS_PURGED_AT_ONCE: i64 = 10;
/// Claims of one user within a day, withdrawn ones too: a user who works through many offers, and no
/// program that takes the places of others.
const CLAIMS_PER_DAY_MAX: i64 = 50;
/// Ended claims that a withdrawal deletes: all of a day.
const CLAIMS_PURGED_AT_ONCE: i64 = CLAIMS_PER_DAY_MAX;

/// Selects offers, each with the claim of `viewer` that holds a place of it.
const OFFERS: &str = "SELECT o.id, o.owner_id, ou.name AS owner_name, o.title, o.message, \
     o.capacity, o.claimed, o.created_at, o.closed_at, ";

const CLAIM: &str = "c.id AS claim_id, c.offer_id, c.user_id, cu.name AS user_name, c.number, \
     c.message AS claim_message, c.state, c.created_at AS claim_created_at";

const FROM_OFFERS: &str = " FROM review_offers o JOIN users ou ON ou.id = o.owner_id \
     LEFT JOIN review_claims c ON c.offer_id = o.id AND c.user_id = {viewer} AND c.ended_at IS NULL \
     LEFT JOIN users cu ON cu.id = c.user_id ";

const FROM_CLAIMS: &str = " FROM review_claims c JOIN users cu ON cu.id = c.user_id ";

/// Deletes the owner's oldest closed offers beyond the bound. `None`: the owner has as many open
/// offers as a user may have.
pub fn create_offer<'a>(
    storage: &'a Storage,
    new: &'a NewOffer,
) -> StorageFuture<'a, Option<Offer>> {
    let owner = &new.owner.id;
    run!(storage, Write, tx => {
        // The bound is exact: another creation of this owner waits for this one.
        lock_users(tx, owner, owner).await?;
        put_user(tx, &new.owner, new.now).await?;
        sql!(
            "DELETE FROM review_offers WHERE id IN ( \
               SELECT id FROM review_offers WHERE owner_id = {owner} AND closed_at IS NOT NULL \
               ORDER BY created_at DESC, id DESC LIMIT {OFFERS_PURGED_AT_ONCE} \
               OFFSET {CLOSED_OFFERS_STORED})"
        )
        .run(tx)
        .await?;
        let made = sql!(
            "INSERT INTO review_offers (id, owner_id, title, message, capacity, created_at) \
             SELECT {new.id}, {owner}, {new.title}, {new.message}, {new.capacity}, {new.now} \
             WHERE (SELECT count(*) FROM review_offers \
             WHERE owner_id = {owner} AND closed_at IS NULL) < {OPEN_OFFERS_MAX}"
        );
        if made.run(tx).await? == 0 {
            return Ok(None);
        }
        Ok(fetch(tx, new.id, owner).await?.map(|view| view.offer))
    })
}

pub fn offer<'a>(
    storage: &'a Storage,
    id: OfferId,
    viewer: &'a UserId,
) -> StorageFuture<'a, Option<OfferView>> {
    run!(storage, Read, tx => { fetch(tx, id, viewer).await })
}

/// Newest first.
pub fn offers_of<'a>(
    storage: &'a Storage,
    owner: &'a UserId,
    page: &'a Page<OfferId>,
) -> StorageFuture<'a, Vec<Offer>> {
    run!(storage, Read, tx => {
        // No owner claims the own offer, so any viewer selects none.
        let found = sql!(
            [
                OFFERS,
                CLAIM,
                FROM_OFFERS,
                "WHERE o.owner_id = {owner} AND ({page.before_at()} IS NULL \
                 OR (o.created_at, o.id) < ({page.before_at()}, {page.before_id()})) \
                 ORDER BY o.created_at DESC, o.id DESC LIMIT {page.rows()}",
            ],
            viewer = owner
        );
        found.rows(tx).await?.iter().map(offer_of).collect()
    })
}

/// Closes an offer of this owner. Idempotent. False: there is no such offer.
pub fn close_offer<'a>(
    storage: &'a Storage,
    id: OfferId,
    owner: &'a UserId,
    now: DateTime<Utc>,
) -> StorageFuture<'a, bool> {
    run!(storage, One, tx => {
        let closed = sql!(
            "UPDATE review_offers SET closed_at = COALESCE(closed_at, {now}) \
             WHERE id = {id} AND owner_id = {owner}"
        );
        Ok(closed.run(tx).await? > 0)
    })
}

/// With one statement. Claims after `since` count against the limit of a day.
pub fn claim_terms<'a>(
    storage: &'a Storage,
    id: OfferId,
    claimant: &'a UserId,
    since: DateTime<Utc>,
) -> StorageFuture<'a, Option<ClaimTerms>> {
    run!(storage, Read, tx => {
        let found = sql!(
            [
                OFFERS,
                CLAIM,
                ", o.fence, (SELECT d.created_at FROM review_claims d \
                 WHERE d.user_id = {viewer} AND {since} < d.created_at \
                 ORDER BY d.created_at DESC LIMIT 1 \
                 OFFSET {CLAIMS_PER_DAY_MAX - 1}) AS spent_since",
                FROM_OFFERS,
                "WHERE o.id = {id}",
            ],
            viewer = claimant
        );
        let Some(row) = found.row(tx).await? else { return Ok(None) };
        let (view, fence) = (view_of(&row)?, row.get("fence")?);
        Ok(Some(ClaimTerms { view, fence, spent_since: row.get("spent_since")? }))
    })
}

/// Takes a place of an offer. `None`: nothing is stored, because the offer has no free place for
/// this user, or a later grant of its lock took one; [`claim_terms`] says which.
pub fn claim_offer<'a>(
    storage: &'a Storage,
    new: &'a NewClaim,
) -> StorageFuture<'a, Option<Claimed>> {
    run!(storage, Write, tx => {
        // The limit of a day is exact: another claim of this user waits for this one.
        lock_users(tx, &new.user.id, &new.user.id).await?;
        let taken = sql!(
            "UPDATE review_offers \
             SET claimed = claimed + 1, last_number = last_number + 1, fence = {new.fence} \
             WHERE id = {new.offer} AND claimed < capacity AND closed_at IS NULL \
             AND fence < {new.fence} AND owner_id <> {new.user.id} \
             AND NOT EXISTS (SELECT 1 FROM review_claims \
               WHERE offer_id = {new.offer} AND user_id = {new.user.id} AND ended_at IS NULL) \
             AND (SELECT count(*) FROM review_claims \
               WHERE user_id = {new.user.id} AND {new.since} < created_at) < {CLAIMS_PER_DAY_MAX} \
             RETURNING last_number, capacity - claimed AS remaining"
        );
        let Some(taken) = taken.row(tx).await? else { return Ok(None) };
        let number: i64 = taken.get("last_number")?;
        put_user(tx, &new.user, new.now).await?;
        let state = ClaimState::Claimed;
        // The lock of the offer excludes another claim of this user, and the unique index rejects it.
        let made = sql!(
            "INSERT INTO review_claims \
               (id, offer_id, user_id, number, message, state, created_at) \
             VALUES ({new.id}, {new.offer}, {new.user.id}, {number}, {new.message}, {state}, \
             {new.now}) ON CONFLICT (offer_id, user_id) WHERE ended_at IS NULL DO NOTHING"
        );
        if made.run(tx).await? == 0 {
            free_slot(tx, new.offer).await?;
            return Ok(None);
        }
        let NewClaim { id, offer, user, message, now, .. } = new.clone();
        let created_at = time(now.timestamp_millis())?;
        let claim = OfferClaim { id, offer, user, number, state, message, created_at };
        Ok(Some(Claimed { claim, remaining: taken.get("remaining")? }))
    })
}

/// Reads a page of an offer's claims that hold a place, newest first; with `only` that user's.
pub fn claims_of<'a>(
    storage: &'a Storage,
    offer: OfferId,
    only: Option<&'a UserId>,
    page: &'a Page<ClaimId>,
) -> StorageFuture<'a, Vec<OfferClaim>> {
    run!(storage, Read, tx => {
        let found = sql!([
            "SELECT ",
            CLAIM,
            FROM_CLAIMS,
            "WHERE c.offer_id = {offer} AND c.ended_at IS NULL \
             AND ({only} IS NULL OR c.user_id = {only}) \
             AND ({page.before_at()} IS NULL \
             OR (c.created_at, c.id) < ({page.before_at()}, {page.before_id()})) \
             ORDER BY c.created_at DESC, c.id DESC LIMIT {page.rows()}",
        ]);
        found.rows(tx).await?.iter().map(decode_claim).collect()
    })
}

/// With the owner of its offer.
pub fn claim_of(
    storage: &Storage,
    offer: OfferId,
    id: ClaimId,
) -> StorageFuture<'_, Option<(OfferClaim, UserId)>> {
    run!(storage, Read, tx => {
        let found = sql!([
            "SELECT ",
            CLAIM,
            ", o.owner_id",
            FROM_CLAIMS,
            "JOIN review_offers o ON o.id = c.offer_id \
             WHERE c.id = {id} AND c.offer_id = {offer} AND c.ended_at IS NULL",
        ]);
        let row = found.row(tx).await?;
        row.map(|row| Ok((decode_claim(&row)?, row.get("owner_id")?))).transpose()
    })
}

/// Ends a claim that is not accepted, and frees its place. It stays stored while it counts against
/// the claimant's limit, which is after `since`. False: there is no such claim.
pub fn end_claim<'a>(
    storage: &'a Storage,
    claim: &'a OfferClaim,
    now: DateTime<Utc>,
    since: DateTime<Utc>,
) -> StorageFuture<'a, bool> {
    run!(storage, Write, tx => {
        // The offer comes first: it is the lock of its claims.
        if !free_slot(tx, claim.offer).await? {
            return Ok(false);
        }
        let ended = sql!(
            "UPDATE review_claims SET ended_at = {now} \
             WHERE id = {claim.id} AND ended_at IS NULL AND state = {ClaimState::Claimed}"
        );
        if ended.run(tx).await? == 0 {
            let take_again =
                sql!("UPDATE review_offers SET claimed = claimed + 1 WHERE id = {claim.offer}");
            take_again.run(tx).await?;
            return Ok(false);
        }
        sql!(
            "DELETE FROM review_claims WHERE id IN (SELECT id FROM review_claims \
             WHERE user_id = {claim.user.id} AND created_at <= {since} AND ended_at IS NOT NULL \
             ORDER BY created_at LIMIT {CLAIMS_PURGED_AT_ONCE})"
        )
        .run(tx)
        .await?;
        Ok(true)
    })
}

/// Accepts a claim and makes both users partners, in one transaction. Idempotent.
pub fn accept_claim<'a>(
    storage: &'a Storage,
    claim: &'a OfferClaim,
    owner: &'a UserId,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Accepted> {
    let accepted = OfferClaim { state: ClaimState::Accepted, ..claim.clone() };
    run!(storage, Write, tx => {
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

async fn fetch(tx: &mut Tx, id: OfferId, viewer: &UserId) -> Result<Option<OfferView>, TxError> {
    let found = sql!([OFFERS, CLAIM, FROM_OFFERS, "WHERE o.id = {id}"], viewer);
    found.row(tx).await?.as_ref().map(view_of).transpose()
}

/// Frees a place, and locks the offer. False: none is taken.
async fn free_slot(tx: &mut Tx, offer: OfferId) -> Result<bool, TxError> {
    let freed =
        sql!("UPDATE review_offers SET claimed = claimed - 1 WHERE id = {offer} AND 0 < claimed");
    Ok(freed.run(tx).await? > 0)
}

/// Moves a claim that holds a place from one state to another. False: it has another state, or has ended.
async fn move_state(
    tx: &mut Tx,
    claim: &OfferClaim,
    from: ClaimState,
    to: ClaimState,
) -> Result<bool, TxError> {
    let moved = sql!(
        "UPDATE review_claims SET state = {to} WHERE id = {claim.id} AND state = {from} \
         AND ended_at IS NULL"
    );
    Ok(moved.run(tx).await? > 0)
}

fn view_of(row: &Row) -> Result<OfferView, TxError> {
    let claim = row.get::<Option<ClaimId>>("claim_id")?;
    Ok(OfferView { offer: offer_of(row)?, claim: claim.map(|_id| decode_claim(row)).transpose()? })
}

fn offer_of(row: &Row) -> Result<Offer, TxError> {
    Ok(Offer {
        id: row.get("id")?,
        owner: row.user("owner_id", "owner_name")?,
        title: row.get("title")?,
        message: row.get("message")?,
        capacity: row.get("capacity")?,
        claimed: row.get("claimed")?,
        created_at: row.get("created_at")?,
        closed_at: row.get("closed_at")?,
    })
}

fn decode_claim(row: &Row) -> Result<OfferClaim, TxError> {
    Ok(OfferClaim {
        id: row.get("claim_id")?,
        offer: row.get("offer_id")?,
        user: row.user("user_id", "user_name")?,
        number: row.get("number")?,
        state: row.get("state")?,
        message: row.get("claim_message")?,
        created_at: row.get("claim_created_at")?,
    })
}
