//! The contract of the failures of requests and partners.

use std::time::Duration;

use axum::http::StatusCode;

use crate::domain::ids::RequestId;
use crate::domain::review_request::RequestState;
use crate::http::error::Contract;
use crate::http::error::contracts::{STORAGE_FULL, session_contract};
use crate::partners::PartnersError;
use crate::seats::SeatError;

/// Status, name and title.
pub(super) fn contract(error: &PartnersError) -> Contract {
    use StatusCode as Is;
    match error {
        PartnersError::UnknownUser => (Is::NOT_FOUND, "unknown-user", "Unknown user"),
        PartnersError::OwnSelf => (Is::UNPROCESSABLE_ENTITY, "own-self", "This is you"),
        PartnersError::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
        PartnersError::Handle(_) => (Is::UNPROCESSABLE_ENTITY, "invalid-handle", "Invalid handle"),
        PartnersError::HandleTaken => (Is::CONFLICT, "handle-taken", "The handle is taken"),
        PartnersError::Message | PartnersError::DocumentOfReviewer => {
            (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid")
        }
        PartnersError::AlreadySent(_) => {
            (Is::CONFLICT, "request-already-sent", "A request is pending")
        }
        PartnersError::AlreadyReceived(_) => {
            (Is::CONFLICT, "request-already-received", "A request of this user is pending")
        }
        PartnersError::AlreadyPartners => (Is::CONFLICT, "already-partners", "Partners already"),
        PartnersError::NotPending(_) => {
            (Is::CONFLICT, "request-not-pending", "The request is decided")
        }
        PartnersError::NotTheReceiver => {
            (Is::FORBIDDEN, "not-the-receiver", "Not the receiver of the request")
        }
        PartnersError::NotTheSender => {
            (Is::FORBIDDEN, "not-the-sender", "Not the sender of the request")
        }
        PartnersError::GuestLimit { .. } => {
            (Is::TOO_MANY_REQUESTS, "guest-limit", "Too often for guests")
        }
        PartnersError::NoGuestRequests => {
            (Is::FORBIDDEN, "no-guest-requests", "No requests of guests")
        }
        PartnersError::TooManyPending(_) | PartnersError::TooManyToday { .. } => {
            (Is::TOO_MANY_REQUESTS, "request-limit", "Too many review requests")
        }
        PartnersError::PartnersFull => (Is::CONFLICT, "too-many", "Too many"),
        PartnersError::LockTimeout => (Is::SERVICE_UNAVAILABLE, "lock-wait-timeout", "Try again"),
        PartnersError::StorageSpent => STORAGE_FULL,
        PartnersError::Locks(_) => (Is::SERVICE_UNAVAILABLE, "unavailable", "Try again"),
        PartnersError::Storage(error) => session_contract(&SeatError::from(error.clone())),
    }
}

/// The time until the bound admits the next request.
pub(super) fn retry_after(error: &PartnersError) -> Option<Duration> {
    match error {
        PartnersError::TooManyToday { retry_after }
        | PartnersError::GuestLimit { retry_after, .. } => Some(*retry_after),
        _other => None,
    }
}

/// The pending request that stands in the way.
pub(super) fn pending(error: &PartnersError) -> Option<RequestId> {
    match error {
        PartnersError::AlreadySent(id) | PartnersError::AlreadyReceived(id) => Some(*id),
        _other => None,
    }
}

/// The state of a request that is not pending.
pub(super) fn state(error: &PartnersError) -> Option<RequestState> {
    match error {
        PartnersError::NotPending(state) => Some(*state),
        _other => None,
    }
}
