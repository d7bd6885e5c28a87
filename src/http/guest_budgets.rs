//! The budgets of guests, by address: the bytes that they store, and acts that take something from one
//! other person. A request fills an inbox, a claim takes a place, a handle is gone for all others.
//!
//! Only guests have a limit by address: a host application creates the documents of all its users from
//! one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRef, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

use crate::bounds::allowances::{Allowance, Allowances, Bucket};
use crate::http::auth::credential::Credential;
use crate::http::auth::tokens::Identity;
use crate::http::error::{ApiError, Contract, Failure};
use crate::http::peer::{Peer, network};

/// The settings of the acts that a day limits.
pub const REQUESTS: &str = "limits.guest_requests_per_address";
pub const CLAIMS: &str = "limits.guest_claims_per_address";
pub const HANDLES: &str = "limits.guest_handles_per_address";

#[derive(Clone)]
pub struct GuestBudgets(Arc<Inner>);

struct Inner {
    stored: Arc<Allowances>,
    /// By setting. A missing one has no limit.
    acts: HashMap<&'static str, Arc<Allowances>>,
}

impl GuestBudgets {
    /// Each address's guests store `per_hour` bytes at once, and as many again in an hour. Of each act
    /// they have so many at once, and again in a day. Zero: any number.
    #[must_use]
    pub fn new(per_hour: NonZeroU32, acts: [(&'static str, u32); 3]) -> Self {
        let per_day = |most| Allowances::per(Duration::from_hours(24), most);
        let act = |(key, most)| Some((key, NonZeroU32::new(most).map(per_day)?));
        let acts = acts.into_iter().filter_map(act).collect();
        let stored = Allowances::per(Duration::from_hours(1), per_hour);
        Self(Arc::new(Inner { stored, acts }))
    }

    /// The budget that a user's stored bytes draw on. `None`: the user is no guest.
    pub(crate) fn budget_of(&self, identity: &Identity, peer: Peer) -> Option<Bucket> {
        identity.is_guest().then(|| self.0.stored.bucket(network(peer.0)))
    }

    /// Removes the budgets that are full again and that no session uses. The upkeep task calls it.
    pub fn forget_idle(&self) {
        let all = self.0.acts.values().chain([&self.0.stored]);
        all.for_each(|budgets| budgets.forget_the_quiet(Instant::now()));
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{key}: guests have reached this limit")]
pub struct GuestLimit {
    pub key: &'static str,
    /// When the next act may be allowed.
    pub retry_after: Duration,
}

impl Failure for GuestLimit {
    fn contract(&self) -> Contract {
        (StatusCode::TOO_MANY_REQUESTS, "guest-limit", "Too often for guests")
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(self.retry_after)
    }
}

/// The bytes that a request has charged to a store budget.
#[derive(Clone, Default)]
struct Charged(Arc<Mutex<Option<(Bucket, usize)>>>);

/// Releases the bytes of a refused request, which has stored nothing: a client that another limit delays
/// does not spend this one by its tries.
pub(crate) async fn release_refused(mut request: Request, next: Next) -> Response {
    let charged = Charged::default();
    request.extensions_mut().insert(charged.clone());
    let response = next.run(request).await;
    let charged = charged.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((budget, bytes)) = charged.filter(|_| response.status().is_client_error()) {
        budget.release(bytes);
    }
    response
}

/// The extraction rejects a request whose `Content-Length` exceeds the budget, before the handler reads
/// the body.
pub(crate) struct Storing(Option<(Bucket, GuestBudgets, IpAddr)>, Charged);

impl Storing {
    /// Charges a document or a review to the address of its guest.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), ApiError> {
        let Some((budget, ..)) = &self.0 else { return Ok(()) };
        let charged = budget.charge(bytes);
        charged.map_err(|retry_after| ApiError::TooManyRequests { retry_after })?;
        *self.1.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((budget.clone(), bytes));
        Ok(())
    }

    /// Takes an act of the day. A drop without `Allowance::spend` returns it.
    pub(crate) fn take(&self, key: &'static str) -> Result<Allowance, GuestLimit> {
        let act =
            self.0.as_ref().and_then(|(_, all, address)| Some((all.0.acts.get(key)?, address)));
        let Some((acts, address)) = act else { return Ok(Allowance::default()) };
        let taken = acts.take(*address, Instant::now());
        taken.map_err(|retry_after| GuestLimit { key, retry_after })
    }

    /// Checks the length that a request announces. A body in chunks announces none.
    fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let announced = announced.and_then(|length| length.parse().ok());
        let checked = self.0.as_ref().zip(announced);
        let checked = checked.map_or(Ok(()), |((budget, ..), bytes)| budget.check(bytes));
        checked.map_err(|retry_after| ApiError::TooManyRequests { retry_after })
    }
}

impl<S> FromRequestParts<S> for Storing
where
    S: Send + Sync,
    GuestBudgets: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        let presented = parts.extensions.get::<Credential>();
        let of_guest = match presented {
            Some(Credential::Person { identity, .. }) => {
                let all = GuestBudgets::from_ref(state);
                all.budget_of(identity, peer).map(|budget| (budget, all, network(peer.0)))
            }
            _ => None,
        };
        let charged = parts.extensions.get::<Charged>().cloned().unwrap_or_default();
        let storing = Self(of_guest, charged);
        storing.check(parts)?;
        Ok(storing)
    }
}
