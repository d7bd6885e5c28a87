//! The store budgets of guests, by address.
//!
//! Only guests have a limit by address: a host application creates the documents of all its users from
//! one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use governor::clock::DefaultClock;

use crate::http::auth::credential::Credential;
use crate::http::auth::tokens::Identity;
use crate::http::error::ApiError;
use crate::http::peer::{Peer, network};
use crate::sessions::store_budget::StoreBudget;

/// Charges the bytes that guests store. Cloning it is cheap.
#[derive(Clone)]
pub struct GuestBytes(Arc<Inner>);

struct Inner {
    per_hour: NonZeroU32,
    clock: DefaultClock,
    budgets: Mutex<HashMap<IpAddr, StoreBudget>>,
}

impl GuestBytes {
    /// Each address's guests store `per_hour` bytes at once, and as many again in an hour.
    #[must_use]
    pub fn new(per_hour: NonZeroU32) -> Self {
        let (clock, budgets) = (DefaultClock::default(), Mutex::default());
        Self(Arc::new(Inner { per_hour, clock, budgets }))
    }

    /// The budget that a user's stored bytes draw on. `None`: the user is no guest.
    pub(crate) fn budget_of(&self, identity: &Identity, peer: Peer) -> Option<StoreBudget> {
        if !identity.is_guest() {
            return None;
        }
        let Inner { per_hour, clock, budgets } = &*self.0;
        let mut budgets = budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = budgets.entry(network(peer.0));
        Some(budget.or_insert_with(|| StoreBudget::new(*per_hour, clock)).clone())
    }

    /// Removes the budgets that are full again and that no session uses. The upkeep task calls it.
    pub fn forget_idle(&self) {
        let mut budgets = self.0.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.retain(|_, budget| !budget.is_unused());
    }
}

/// The budget that a request's stored bytes draw on. Its extraction rejects a request whose
/// `Content-Length` exceeds the budget, before the handler reads the body.
pub(crate) struct Storing(Option<StoreBudget>);

impl Storing {
    /// Charges a document or a review to the address of its guest.
    ///
    /// # Errors
    ///
    /// `TooManyRequests` when the budget rejects the bytes.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), ApiError> {
        let charged = self.0.as_ref().map_or(Ok(()), |budget| budget.charge(bytes));
        charged.map_err(|retry_after| ApiError::TooManyRequests { retry_after })
    }

    /// Checks the length that a request announces. A body in chunks announces none.
    fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let announced = announced.and_then(|length| length.parse().ok());
        let checked =
            self.0.as_ref().zip(announced).map_or(Ok(()), |(budget, bytes)| budget.check(bytes));
        checked.map_err(|retry_after| ApiError::TooManyRequests { retry_after })
    }
}

impl<S> FromRequestParts<S> for Storing
where
    S: Send + Sync,
    GuestBytes: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        let presented = parts.extensions.get::<Credential>();
        let storing = Self(match presented {
            Some(Credential::Person { identity, .. }) => {
                GuestBytes::from_ref(state).budget_of(identity, peer)
            }
            _ => None,
        });
        storing.check(parts)?;
        Ok(storing)
    }
}
