//! Review offers and their claims.
//!
//! The lock of an offer grants the claimants their turns in order of arrival. The database decides
//! beside it: one conditional update takes a place in the transaction that inserts the claim, so an
//! offer never has more claims than places. A user has one claim of an offer that holds a place, by a
//! unique index (G11). The update also compares the fence of the lock's grant: a claimant whose lease
//! ended during a pause takes no place before a later grant's.
//!
//! In PostgreSQL a transaction locks users first, then the offer, then its claims.

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::{ClaimId, OfferId};
use crate::domain::offer::{ClaimState, OfferState};
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

/// An offer to create.
#[derive(Clone, Debug)]
pub struct NewOffer {
    /// Its id.
    pub id: OfferId,
    /// The user who offers the reviews.
    pub owner: User,
    /// The title.
    pub title: String,
    /// A text for its readers.
    pub message: Option<String>,
    /// The number of places.
    pub capacity: u32,
    /// The time of its creation.
    pub now: DateTime<Utc>,
}

/// An offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its id.
    pub id: OfferId,
    /// The user who offers the reviews.
    pub owner: User,
    /// The title.
    pub title: String,
    /// A text for its readers.
    pub message: Option<String>,
    /// The number of places.
    pub capacity: u32,
    /// The places that claims hold.
    pub claimed: u32,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// When its owner closed it.
    pub closed_at: Option<DateTime<Utc>>,
}

impl Offer {
    /// The free places.
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

/// A claim that holds a place of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferClaim {
    /// Its id.
    pub id: ClaimId,
    /// The offer.
    pub offer: OfferId,
    /// The claimant.
    pub user: User,
    /// Its number among all claims of the offer, from 1, in the order of the grants. A withdrawn
    /// claim's number is not assigned again.
    pub number: i64,
    /// Whether the owner accepted it.
    pub state: ClaimState,
    /// A text for the owner.
    pub message: Option<String>,
    /// The time of the claim.
    pub created_at: DateTime<Utc>,
}

impl OfferClaim {
    /// The cursor of the next page, if this claim is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<ClaimId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

/// An offer as one user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferView {
    /// The offer.
    pub offer: Offer,
    /// The user's own claim that holds a place.
    pub claim: Option<OfferClaim>,
}

/// The facts that decide whether a user may claim an offer, of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// The offer, and the user's own claim.
    pub view: OfferView,
    /// The fence of the last grant that took a place.
    pub fence: Fence,
    /// The oldest of the user's last claims that spend the limit of a day. `None`: the limit is not
    /// spent.
    pub spent_since: Option<DateTime<Utc>>,
}

/// A claim to create.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Its id.
    pub id: ClaimId,
    /// The offer.
    pub offer: OfferId,
    /// The claimant.
    pub user: User,
    /// A text for the owner.
    pub message: Option<String>,
    /// The fence of the claimant's grant of the offer's lock.
    pub fence: Fence,
    /// The time of the claim.
    pub now: DateTime<Utc>,
    /// The start of the day whose claims count against the limit.
    pub since: DateTime<Utc>,
}

/// A stored claim, and the places that it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The claim.
    pub claim: OfferClaim,
    /// The free places after it.
    pub remaining: u32,
}

/// The outcome of an acceptance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The claim is accepted, as of this call or before it, and both users are partners.
    Done(OfferClaim),
    /// One of the two users has as many partners as a user may have.
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
