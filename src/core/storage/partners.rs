//! Partners: pairs of users of whom one accepted a request or a claim of the other.
//!
//! A pair has one row, also when several servers make it at once (G11): its key is the lower id and the
//! higher id. A transaction that adds a row has locked both users, so that the bound of each is exact.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::UserId;
use crate::domain::limits::PARTNERS_MAX;
use crate::domain::offer::ClaimState;
use crate::domain::review_request::RequestState;
use crate::domain::user::User;
use crate::storage::locks::lock_users;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
pub struct Partner {
    pub user: User,
    pub since: DateTime<Utc>,
}

impl Partner {
    /// The cursor of the next page, if this partner is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<UserId> {
        Cursor { at: self.since, id: self.user.id.clone() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partnership {
    /// They are partners as of this call.
    Made,
    /// They were partners before it.
    Existing,
    Full,
}

/// The two users of a pair, the lower id first.
pub fn sorted<'u>(one: &'u UserId, other: &'u UserId) -> (&'u UserId, &'u UserId) {
    if one <= other { (one, other) } else { (other, one) }
}

impl Storage {
    /// Makes two users partners. Idempotent. Both must have a row, and `one` must not be `other`.
    pub fn make_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Partnership> {
        run!(self, Write, tx => {
            lock_users(tx, one, other).await?;
            put_partners(tx, one, other, now).await
        })
    }

    /// Ends a partnership, for `one` of the two. In the same transaction their accepted claims of each
    /// other's offers end, which frees the places, and a pending request of the pair is withdrawn or
    /// declined. False: they are no partners, and nothing changes.
    pub fn remove_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, bool> {
        let (low, high) = sorted(one, other);
        run!(self, Write, tx => {
            // No acceptance runs meanwhile.
            lock_users(tx, one, other).await?;
            let removed = sql!("DELETE FROM partners WHERE low_id = {low} AND high_id = {high}");
            if removed.run(tx).await? == 0 {
                return Ok(false);
            }
            // The offers come first: each is the lock of its claims.
            sql!(
                "UPDATE review_offers SET claimed = claimed - 1 WHERE EXISTS ( \
                   SELECT 1 FROM review_claims c WHERE c.offer_id = review_offers.id \
                   AND c.state = {ClaimState::Accepted} AND c.ended_at IS NULL \
                   AND c.user_id <> review_offers.owner_id AND c.user_id IN ({one}, {other})) \
                 AND owner_id IN ({one}, {other})"
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE review_claims SET ended_at = {now} WHERE state = {ClaimState::Accepted} \
                 AND ended_at IS NULL AND user_id IN ({one}, {other}) AND offer_id IN ( \
                   SELECT id FROM review_offers \
                   WHERE owner_id IN ({one}, {other}) AND owner_id <> user_id)"
            )
            .run(tx)
            .await?;
            // `one` withdraws the own request, or declines that of the other. A claim of an offer makes
            // partners beside a request.
            sql!(
                "UPDATE review_requests SET decided_at = {now}, \
                   state = CASE WHEN sender_id = {one} THEN {RequestState::Withdrawn} \
                   ELSE {RequestState::Declined} END \
                 WHERE low_id = {low} AND high_id = {high} AND state = 'pending' \
                 AND expires_at > {now}"
            )
            .run(tx)
            .await?;
            Ok(true)
        })
    }

    pub fn are_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
    ) -> StorageFuture<'a, bool> {
        run!(self, Read, tx => { are_partners(tx, one, other).await })
    }

    /// Reads a page of a user's partners, newest first.
    pub fn partners_of<'a>(
        &'a self,
        user: &'a UserId,
        page: &'a Page<UserId>,
    ) -> StorageFuture<'a, Vec<Partner>> {
        run!(self, Read, tx => {
            // Two selects, one for each index.
            let found = sql!(
                "SELECT u.id, u.name, p.since FROM ( \
                   SELECT high_id AS id, since FROM partners WHERE low_id = {user} \
                   UNION ALL SELECT low_id, since FROM partners WHERE high_id = {user} \
                 ) p JOIN users u ON u.id = p.id \
                 WHERE {page.before_at()} IS NULL \
                 OR (p.since, p.id) < ({page.before_at()}, {page.before_id()}) \
                 ORDER BY p.since DESC, p.id DESC LIMIT {page.rows()}"
            );
            let partner = |row: &Row| {
                Ok(Partner { user: row.user("id", "name")?, since: row.get("since")? })
            };
            found.rows(tx).await?.iter().map(partner).collect()
        })
    }
}

pub(crate) async fn are_partners(
    tx: &mut Tx,
    one: &UserId,
    other: &UserId,
) -> Result<bool, TxError> {
    let (low, high) = sorted(one, other);
    let found = sql!("SELECT 1 FROM partners WHERE low_id = {low} AND high_id = {high}");
    Ok(found.row(tx).await?.is_some())
}

/// Makes two users partners; the transaction has locked both. `Full` changes no row.
pub async fn put_partners(
    tx: &mut Tx,
    one: &UserId,
    other: &UserId,
    now: DateTime<Utc>,
) -> Result<Partnership, TxError> {
    let (low, high) = sorted(one, other);
    let made = sql!(
        "INSERT INTO partners (low_id, high_id, since) SELECT {low}, {high}, {now} \
         WHERE (SELECT count(*) FROM partners WHERE low_id = {low} \
         OR high_id = {low}) < {PARTNERS_MAX} \
         AND (SELECT count(*) FROM partners WHERE low_id = {high} \
         OR high_id = {high}) < {PARTNERS_MAX} ON CONFLICT (low_id, high_id) DO NOTHING"
    );
    if made.run(tx).await? > 0 {
        return Ok(Partnership::Made);
    }
    let are_partners = are_partners(tx, one, other).await?;
    Ok(if are_partners { Partnership::Existing } else { Partnership::Full })
}
