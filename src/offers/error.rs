//! Failures of review offers and their claims.

use std::time::Duration;

use crate::domain::ids::ClaimId;
use crate::domain::limits::{OFFER_CAPACITY_MAX, OFFER_MESSAGE_CHARS_MAX};
use crate::domain::line::InvalidLine;
use crate::locks::{LockError, LocksError};
use crate::offers::waiting_claims::TooMany;
use crate::storage::error::StorageError;

/// Pause that the server names to a user with too many claims in flight.
const CLAIM_RETRY: Duration = Duration::from_secs(1);

/// Failures of offers. Independent of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// There is no such offer.
    #[error("there is no such offer")]
    NoOffer,
    /// No such claim of the offer holds a place, or the caller may not know of it.
    #[error("there is no such claim")]
    NoClaim,
    /// Only the owner of the offer may do this.
    #[error("only the owner of this offer may do that")]
    NotTheOwner,
    /// The owner claimed the own offer.
    #[error("you cannot claim your own offer")]
    OwnOffer,
    /// The caller has a claim of the offer.
    #[error("you have claimed this offer already")]
    AlreadyClaimed(ClaimId),
    /// All places are taken.
    #[error("all places of this offer are taken")]
    SoldOut,
    /// The owner closed the offer.
    #[error("this offer is closed")]
    OfferClosed,
    /// The owner accepted the claim.
    #[error("this claim is accepted; end the partnership instead")]
    ClaimAccepted,
    /// One of the two users has as many partners as a user may have.
    #[error("one of you has as many partners as a user may have")]
    PartnersFull,
    /// The owner has as many open offers as a user may have.
    #[error("you have as many open offers as you may; close some first")]
    TooManyOpen,
    /// The claimant has made as many claims as a user may make in a day.
    #[error("you have made as many claims as you may make in a day")]
    ClaimLimit {
        /// When the limit accepts the next claim.
        retry_after: Duration,
    },
    /// The claimant has as many claims in flight as a user may have.
    #[error("too many claims at once")]
    TooManyAtOnce {
        /// When to retry.
        retry_after: Duration,
    },
    /// The claimant's turn did not come in time, or it passed. Nothing is stored.
    #[error("too many users claim this offer now")]
    LockWaitTimeout,
    /// The title is invalid.
    #[error(transparent)]
    Title(#[from] InvalidLine),
    /// The number of places is invalid.
    #[error("capacity is a whole number from 1 to {OFFER_CAPACITY_MAX}")]
    Capacity,
    /// The message is invalid.
    #[error(
        "a message has at most {OFFER_MESSAGE_CHARS_MAX} characters, and no control characters but \
         line feed and tab"
    )]
    Message,
    /// The database is above its bound.
    #[error("the server has no room for anything new")]
    StorageSpent,
    /// The locks failed.
    #[error(transparent)]
    Locks(#[from] LocksError),
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<LockError> for OfferError {
    fn from(error: LockError) -> Self {
        match error {
            // A full queue, and a grant whose reply came after its lease, are waits without a turn.
            LockError::Busy(_) | LockError::WaitTimeout(_) | LockError::Lost(_) => {
                Self::LockWaitTimeout
            }
            LockError::Unavailable(error) => Self::Locks(error),
        }
    }
}

impl From<TooMany> for OfferError {
    fn from(many: TooMany) -> Self {
        match many {
            TooMany::OfUser => Self::TooManyAtOnce { retry_after: CLAIM_RETRY },
            TooMany::InAll => Self::LockWaitTimeout,
        }
    }
}
