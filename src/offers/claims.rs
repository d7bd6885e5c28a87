//! Claims of the places of review offers: in order of arrival; withdrawn, declined, accepted.
//!
//! A claimant reads the offer once. If the offer has a free place, the claimant joins the wait queue of
//! the offer's lock (`offer:<id>`), acquires it in order of arrival, and takes a place in one
//! transaction. The conditional update of that transaction is the second line beside the lock
//! ([`storage::offers`](crate::offers::offer)).
//!
//! # Invariants
//!
//! - **O1** An offer never has more claims than places: by the conditional update, without the lock.
//! - **O2** The numbers of the claims follow the grants of the lock. The update compares the fence, so a
//!   claimant whose lease ended takes no place before a later grant's.
//! - **O3** A claimant that leaves the queue holds no place and delays no other. A dropped wait leaves
//!   the queue; the caller of [`Offers::claim`] lets that call run to its end.
//! - **O4** A claim waits for at most [`CLAIM_WAIT`]. A claim that takes the last place, or finds that it
//!   is taken, notifies the waiting claims of its server. Each reads the offer once and leaves the queue,
//!   so few of them acquire the lock in vain: about one for each server.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{ClaimId, OfferId, UserId};
use crate::domain::offer::{ClaimState, OfferState};
use crate::domain::user::User;
use crate::locks::{
    AcquireOptions, Guard, Lease, LockError, LockName, LocksError, Policy, WaitPolicy,
};
use crate::offers::error::OfferError;
use crate::offers::offer::{Accepted, ClaimTerms, Claimed, NewClaim, OfferClaim, OfferView};
use crate::offers::store;
use crate::offers::waiting_claims::WaitingClaim;
use crate::offers::{Offers, parse_message};
use crate::storage::pagination::Page;

/// The day of `store::CLAIMS_PER_DAY_MAX`.
const CLAIM_DAY: TimeDelta = TimeDelta::hours(24);
/// Interval at which a waiting claim polls the queue without a message, and its longest wait.
/// 500 waiters send 500 short scripts a second in all. The wait is below the timeout of a request.
const CLAIM_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// Lease of an offer's lock, never renewed: a claim commits within some milliseconds. The waiters of
/// a dead server's claim continue after it, within their own wait.
const CLAIM_LEASE: Duration = Duration::from_secs(4);
/// Further attempts of a claim that Redis does not answer in time. Each takes a second and a half at
/// most, so a claim without Redis fails within five seconds.
const CLAIM_RETRIES: u32 = 2;
// A waiter outlasts the lease of a dead claimant before it.
const _: () = assert!(CLAIM_LEASE.as_millis() * 2 < CLAIM_WAIT.1.as_millis());

/// The grant of an offer's lock to a claimant, held for [`CLAIM_LEASE`]. A drop releases it.
#[must_use = "a drop releases the lock"]
#[derive(Debug)]
pub struct OfferGrant {
    claimant: User,
    offer: OfferId,
    message: Option<String>,
    guard: Guard,
    waiting: WaitingClaim,
}

impl Offers {
    /// [`OfferError`]: the offer has no free place for this user, read without the lock;
    /// [`OfferError::LockWaitTimeout`] after [`CLAIM_WAIT`], and at once if the wait queue is full.
    ///
    /// # Cancel safety
    ///
    /// A drop leaves the queue and passes a hand-over on to the next waiter; nothing is stored (O3).
    pub async fn await_grant(
        &self,
        claimant: &User,
        offer: OfferId,
        message: Option<&str>,
    ) -> Result<OfferGrant, OfferError> {
        let message = parse_message(message)?;
        self.admit()?;
        let mut waiting = self.waiting.enter(&claimant.id, offer)?;
        let terms = self.terms(&claimant.id, offer, Utc::now()).await?;
        let guard = tokio::select! {
            biased;
            guard = self.acquire(offer, terms.fence) => guard?,
            refused = self.refusal(&mut waiting, &claimant.id, offer) => return Err(refused),
        };
        let grant = OfferGrant { claimant: claimant.clone(), offer, message, guard, waiting };
        if grant.waiting.is_notified() {
            // Other waiters need the lock: one read answers instead of a transaction.
            self.terms(&claimant.id, offer, Utc::now()).await?;
        }
        Ok(grant)
    }

    /// Acquires the lock of an offer in order of arrival, with a fence above `floor`. A claim that Redis
    /// does not answer in time, as in a storm of claims, joins the queue again, at its end.
    async fn acquire(&self, offer: OfferId, floor: Fence) -> Result<Guard, LockError> {
        let name = LockName::named(&format!("offer:{offer}"));
        let (slice, total) = CLAIM_WAIT;
        let ends = Instant::now() + total;
        let mut retries = 0;
        loop {
            let total = ends.saturating_duration_since(Instant::now());
            let options = AcquireOptions::new(Lease::Fixed(CLAIM_LEASE))
                .with(Policy::Queue(WaitPolicy { slice, total }))
                .above(floor);
            match self.locks.lock(&name, &options).await {
                Err(LockError::Unavailable(LocksError::Unavailable(_)))
                    if retries < CLAIM_RETRIES && Instant::now() < ends =>
                {
                    retries += 1;
                }
                acquired => return acquired,
            }
        }
    }

    /// Claims a place under the claimant's grant, and releases the lock. [`OfferError::LockWaitTimeout`]: a
    /// later grant of the lock took a place, because this one's lease has ended (O2).
    ///
    /// # Cancel safety
    ///
    /// Dropped in flight, the claim may or may not be stored, and a background task releases the lock.
    pub async fn claim(
        &self,
        grant: OfferGrant,
        now: DateTime<Utc>,
    ) -> Result<OfferClaim, OfferError> {
        let OfferGrant { claimant, offer, message, guard, waiting } = grant;
        let new = NewClaim {
            id: ClaimId::generate(),
            offer,
            user: claimant,
            message,
            fence: guard.fence(),
            now,
            since: now - CLAIM_DAY,
        };
        let claimed = self.take_slot(&new, &guard).await;
        let is_spent = match &claimed {
            Ok(claimed) => claimed.remaining == 0,
            Err(refused) => matches!(refused, OfferError::SoldOut | OfferError::OfferClosed),
        };
        if is_spent {
            // Before the release, so that the waiters of this server do not acquire the lock.
            self.waiting.notify(offer);
        }
        drop(waiting);
        if let Err(error) = guard.release().await {
            // A background task retries the release, or the lease ends.
            tracing::debug!(%error, %offer, "a release is pending");
        }
        Ok(claimed?.claim)
    }

    /// Takes a place. A withdrawal may free one between the update that finds none and the read that
    /// says why: the claimant has the lock and tries again.
    async fn take_slot(&self, new: &NewClaim, guard: &Guard) -> Result<Claimed, OfferError> {
        loop {
            if let Some(claimed) = store::claim_offer(&self.storage, new).await? {
                return Ok(claimed);
            }
            let terms = self.terms(&new.user.id, new.offer, new.now).await?;
            if new.fence <= terms.fence || !guard.is_held() {
                return Err(OfferError::LockWaitTimeout);
            }
        }
    }

    /// Newest first: all for the owner of the offer, the own one for another user.
    pub async fn claims(
        &self,
        caller: &UserId,
        offer: OfferId,
        page: &Page<ClaimId>,
    ) -> Result<Vec<OfferClaim>, OfferError> {
        let owner = self.offer(caller, offer).await?.offer.owner.id;
        let only = (owner != *caller).then_some(caller);
        Ok(store::claims_of(&self.storage, offer, only, page).await?)
    }

    /// The claimant withdraws a claim, or the owner of the offer declines it. Its place is free again.
    /// [`OfferError::NoClaim`] for every other user.
    pub async fn end_claim(
        &self,
        caller: &UserId,
        offer: OfferId,
        id: ClaimId,
        now: DateTime<Utc>,
    ) -> Result<(), OfferError> {
        let (claim, owner) = self.claim_for(caller, offer, id).await?;
        if claim.state == ClaimState::Claimed
            && store::end_claim(&self.storage, &claim, now, now - CLAIM_DAY).await?
        {
            tracing::debug!(%offer, claim = %id, is_declined = owner == *caller, "a claim ended");
            return Ok(());
        }
        // A concurrent call has accepted or ended it.
        let (_accepted, _owner) = self.claim_for(caller, offer, id).await?;
        Err(OfferError::ClaimAccepted)
    }

    /// Accepts a claim, for the owner of the offer: both users are partners, and the claim keeps its
    /// place. Idempotent. [`OfferError::NoClaim`] for every other user.
    pub async fn accept_claim(
        &self,
        caller: &UserId,
        offer: OfferId,
        id: ClaimId,
        now: DateTime<Utc>,
    ) -> Result<OfferClaim, OfferError> {
        let (claim, owner) = self.claim_for(caller, offer, id).await?;
        if owner != *caller {
            return Err(OfferError::NotTheOwner);
        }
        if claim.state == ClaimState::Accepted {
            return Ok(claim);
        }
        match store::accept_claim(&self.storage, &claim, &owner, now).await? {
            Accepted::Done(claim) => Ok(claim),
            Accepted::Full => Err(OfferError::PartnersFull),
            Accepted::Gone => Err(OfferError::NoClaim),
        }
    }

    /// For the claimant and the owner of the offer.
    async fn claim_for(
        &self,
        caller: &UserId,
        offer: OfferId,
        id: ClaimId,
    ) -> Result<(OfferClaim, UserId), OfferError> {
        let found = store::claim_of(&self.storage, offer, id).await?;
        let mine = found.filter(|(claim, owner)| owner == caller || claim.user.id == *caller);
        mine.ok_or(OfferError::NoClaim)
    }

    async fn terms(
        &self,
        claimant: &UserId,
        offer: OfferId,
        now: DateTime<Utc>,
    ) -> Result<ClaimTerms, OfferError> {
        let terms = store::claim_terms(&self.storage, offer, claimant, now - CLAIM_DAY).await?;
        let terms = terms.ok_or(OfferError::NoOffer)?;
        permits(&terms, claimant, now).map(|()| terms)
    }

    /// Waits until a notified read finds that the user cannot claim the offer.
    async fn refusal(
        &self,
        waiting: &mut WaitingClaim,
        claimant: &UserId,
        offer: OfferId,
    ) -> OfferError {
        loop {
            waiting.changed().await;
            if let Err(refused) = self.terms(claimant, offer, Utc::now()).await {
                return refused;
            }
        }
    }
}

fn permits(terms: &ClaimTerms, claimant: &UserId, now: DateTime<Utc>) -> Result<(), OfferError> {
    let OfferView { offer, claim } = &terms.view;
    if offer.owner.id == *claimant {
        return Err(OfferError::OwnOffer);
    }
    if let Some(claim) = claim {
        return Err(OfferError::AlreadyClaimed(claim.id));
    }
    match offer.state() {
        OfferState::Closed => return Err(OfferError::OfferClosed),
        OfferState::SoldOut => return Err(OfferError::SoldOut),
        OfferState::Open => {}
    }
    match terms.spent_since {
        None => Ok(()),
        Some(since) => {
            let retry_after = (since + CLAIM_DAY - now).to_std().unwrap_or_default();
            Err(OfferError::ClaimLimit { retry_after })
        }
    }
}
