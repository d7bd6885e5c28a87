//! Failures of review offers and their claims.

use std::time::Duration;

use crate::domain::ids::ClaimId;
use crate::domain::line::InvalidLine;
use crate::locks::{LockError, LocksError};
use crate::offers::waiting_claims::TooMany;
use crate::offers::{OFFER_CAPACITY_MAX, OFFER_MESSAGE_CHARS_MAX};
use crate::storage::error::StorageError;

const CLAIM_RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("there is no such offer")]
    NoOffer,
    /// No such claim of the offer holds a place, or the caller may not know of it.
    #[error("there is no such claim")]
    NoClaim,
    #[error("only the owner of this offer may do that")]
    NotTheOwner,
    #[error("you cannot claim your own offer")]
    OwnOffer,
    #[error("you have claimed this offer already")]
    AlreadyClaimed(ClaimId),
    #[error("all places of this offer are taken")]
    SoldOut,
    #[error("this offer is closed")]
    OfferClosed,
    #[error("this claim is accepted; end the partnership instead")]
    ClaimAccepted,
    #[error("one of you has as many partners as a user may have")]
    PartnersFull,
    #[error("you have as many open offers as you may; close some first")]
    TooManyOpen,
    #[error("you have made as many claims as you may make in a day")]
    ClaimLimit { retry_after: Duration },
    #[error("too many claims at once")]
    TooManyAtOnce { retry_after: Duration },
    /// The lock was not granted in time, or its lease ended. Nothing is stored.
    #[error("too many users claim this offer now")]
    LockWaitTimeout,
    #[error(transparent)]
    Title(#[from] InvalidLine),
    #[error("capacity is a whole number from 1 to {OFFER_CAPACITY_MAX}")]
    Capacity,
    #[error("a message has at most {OFFER_MESSAGE_CHARS_MAX} characters")]
    Message,
    #[error("the server has no room for anything new")]
    StorageSpent,
    #[error(transparent)]
    Locks(#[from] LocksError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<LockError> for OfferError {
    fn from(error: LockError) -> Self {
        match error {
            // A full queue, and a grant whose reply came after its lease, are waits without a grant.
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
