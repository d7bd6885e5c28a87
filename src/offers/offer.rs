//! Review offers and their claims.
//!
//! The lock of an offer is granted to the claimants in order of arrival. The database decides
//! beside it: one conditional update takes a place in the transaction that inserts the claim, so an
//! offer never has more claims than places. A user has one claim of an offer that holds a place, by a
//! unique index (G11). The update also compares the fence of the lock's grant: a claimant whose lease
//! ended during a pause takes no place before a later grant's.
//!
//! In PostgreSQL a transaction locks users first, then the offer, then its claims.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::fence::Fence;
use crate::domain::ids::{ClaimId, OfferId};
use crate::domain::offer::{ClaimState, OfferState};
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

#[derive(Clone, Debug)]
pub struct NewOffer {
    pub id: OfferId,
    pub owner: User,
    pub title: String,
    pub message: Option<String>,
    pub capacity: u32,
    pub now: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub id: OfferId,
    pub owner: User,
    pub title: String,
    pub message: Option<String>,
    pub capacity: u32,
    pub claimed: u32,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

impl Offer {
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.capacity.saturating_sub(self.claimed)
    }

    /// The state: closed comes before sold out.
    #[must_use]
    pub fn state(&self) -> OfferState {
        match (self.closed_at, self.remaining()) {
            (Some(_), _) => OfferState::Closed,
            (None, 0) => OfferState::SoldOut,
            (None, _) => OfferState::Open,
        }
    }

    /// The cursor of the next page, if this offer is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<OfferId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfferClaim {
    pub id: ClaimId,
    #[serde(rename = "offer_id")]
    pub offer: OfferId,
    pub user: User,
    /// Counts the claims of the offer in the order of their grants. The number of a withdrawn claim does not
    /// return.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub number: i64,
    pub state: ClaimState,
    /// A text for the owner.
    pub message: Option<String>,
    pub created_at: DateTime<Utc>,
}

impl OfferClaim {
    /// The cursor of the next page, if this claim is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<ClaimId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferView {
    pub offer: Offer,
    pub claim: Option<OfferClaim>,
}

/// The facts are of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// With the user's own claim.
    pub view: OfferView,
    /// The fence of the last grant that took a place.
    pub fence: Fence,
    /// The oldest of the last claims that spend the limit of a day. `None`: it is not spent.
    pub spent_since: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug)]
pub struct NewClaim {
    pub id: ClaimId,
    pub offer: OfferId,
    pub user: User,
    pub message: Option<String>,
    pub fence: Fence,
    pub now: DateTime<Utc>,
    /// The start of the day whose claims count against the limit.
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub claim: OfferClaim,
    pub remaining: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The claim is accepted, as of this call or before it, and both users are partners.
    Done(OfferClaim),
    Full,
    /// No such claim of the offer holds a place.
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::UserId;

    #[test]
    fn an_offer_is_sold_out_without_a_free_slot_and_closed_in_any_case() {
        let owner = User { id: UserId::generate(), name: "Kim".to_owned() };
        let now = DateTime::UNIX_EPOCH;
        let (id, title) = (OfferId::generate(), "five reviews".to_owned());
        let offer = |claimed, closed_at| Offer {
            id,
            owner: owner.clone(),
            title: title.clone(),
            message: None,
            capacity: 5,
            claimed,
            created_at: now,
            closed_at,
        };
        assert_eq!((offer(4, None).remaining(), offer(4, None).state()), (1, OfferState::Open));
        assert_eq!(offer(5, None).state(), OfferState::SoldOut);
        assert_eq!(offer(5, Some(now)).state(), OfferState::Closed);
        assert_eq!(offer(0, Some(now)).state(), OfferState::Closed);
    }
}
