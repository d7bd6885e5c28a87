//! The failures of review offers as problems.

use std::time::Duration;

use axum::http::StatusCode;

use crate::http::error::contracts::STORAGE_FULL;
use crate::http::error::{ApiError, Contract};
use crate::partners::offer_error::OfferError;
use crate::seats::SeatError;

/// Status, name and title of a failure.
pub(super) fn offer_contract(error: &OfferError) -> Contract {
    use StatusCode as Is;
    match error {
        OfferError::NoOffer | OfferError::NoClaim => (Is::NOT_FOUND, "not-found", "Not found"),
        OfferError::NotTheOwner => (Is::FORBIDDEN, "not-the-owner", "Not the owner"),
        OfferError::OwnOffer => (Is::UNPROCESSABLE_ENTITY, "own-offer", "Your own offer"),
        OfferError::AlreadyClaimed(_) => (Is::CONFLICT, "already-claimed", "Claimed already"),
        OfferError::SoldOut => (Is::CONFLICT, "sold-out", "All places are taken"),
        OfferError::OfferClosed => (Is::CONFLICT, "offer-closed", "The offer is closed"),
        OfferError::ClaimAccepted => (Is::CONFLICT, "claim-accepted", "The claim is accepted"),
        OfferError::PartnersFull => (Is::CONFLICT, "too-many", "Too many"),
        OfferError::TooManyOpen => (Is::CONFLICT, "quota-spent", "The quota is spent"),
        OfferError::ClaimLimit { .. } => {
            (Is::TOO_MANY_REQUESTS, "claim-limit", "Too many claims in a day")
        }
        OfferError::TooManyAtOnce { .. } => {
            (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
        }
        OfferError::LockWaitTimeout => {
            (Is::SERVICE_UNAVAILABLE, "lock-wait-timeout", "Your turn did not come in time")
        }
        OfferError::Title(_) | OfferError::Capacity | OfferError::Message => {
            (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid")
        }
        OfferError::StorageSpent => STORAGE_FULL,
        OfferError::Locks(_) | OfferError::Storage(_) => {
            (Is::SERVICE_UNAVAILABLE, "unavailable", "Try again")
        }
    }
}

/// When a limit accepts the next request.
pub(super) fn retry_after(error: &OfferError) -> Option<Duration> {
    if let OfferError::ClaimLimit { retry_after } | OfferError::TooManyAtOnce { retry_after } =
        error
    {
        return Some(*retry_after);
    }
    None
}

/// Failures of the locks and of storage are those of a session.
impl From<OfferError> for ApiError {
    fn from(error: OfferError) -> Self {
        match error {
            OfferError::Locks(error) => Self::Session(SeatError::Locks(error)),
            OfferError::Storage(error) => Self::Session(error.into()),
            other => Self::Offer(other),
        }
    }
}
