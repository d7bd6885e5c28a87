//! The claims that this server handles: their bounds, and their notifications.
//!
//! A claim that waits for its grant holds a place in the queue of its offer's lock, up to ten seconds.
//! When this server finds an offer without a free place, it notifies its waiting claims of that offer.
//! Each then reads the offer once and leaves the queue. Without that, 500 claimants would acquire the
//! lock one after another, each to find that all places are taken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::bounds::shares::{Share, Shares};
use crate::domain::ids::{OfferId, UserId};

/// Claims of one user that one server handles at once: some tabs.
const CLAIMS_WAITING_PER_USER_MAX: u64 = 4;
/// Claims that one server handles at once. Each takes some kilobytes. The wait queue of one offer
/// holds 1,000 claims of all servers.
const CLAIMS_WAITING_MAX: u64 = 4_096;

#[derive(Clone, Debug, Default)]
pub(super) struct WaitingClaims {
    shares: Shares<UserId>,
    /// An offer without a claim has no entry.
    offers: Arc<Mutex<HashMap<OfferId, watch::Sender<()>>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooMany {
    OfUser,
    InAll,
}

/// A claim from its first read to its answer. Its drop removes it.
#[derive(Debug)]
pub(super) struct WaitingClaim {
    claims: WaitingClaims,
    offer: OfferId,
    changes: watch::Receiver<()>,
    _share: Share<UserId>,
}

impl WaitingClaims {
    /// Registers a claim. It receives every later notification of its offer, so a claimant that reads
    /// the offer after this misses none.
    pub(super) fn enter(&self, user: &UserId, offer: OfferId) -> Result<WaitingClaim, TooMany> {
        let share = self.shares.take(Some(user.clone()), |all, own| {
            if all >= CLAIMS_WAITING_MAX {
                return Err(TooMany::InAll);
            }
            if own < CLAIMS_WAITING_PER_USER_MAX { Ok(()) } else { Err(TooMany::OfUser) }
        })?;
        let changes = self.offers().entry(offer).or_default().subscribe();
        Ok(WaitingClaim { claims: self.clone(), offer, changes, _share: share })
    }

    /// Notifies the claims that wait for an offer: it has no free place, or was closed.
    pub(super) fn notify(&self, offer: OfferId) {
        if let Some(changes) = self.offers().get(&offer) {
            changes.send_replace(());
        }
    }

    fn offers(&self) -> MutexGuard<'_, HashMap<OfferId, watch::Sender<()>>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingClaim {
    /// Waits for a notification that this claim has not received.
    ///
    /// # Cancel safety
    ///
    /// No notification is lost.
    pub(super) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The registry holds the sender for as long as this claim.
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn is_notified(&self) -> bool {
        self.changes.has_changed().unwrap_or(false)
    }
}

impl Drop for WaitingClaim {
    fn drop(&mut self) {
        let mut offers = self.claims.offers();
        // The receiver of this claim is the last one.
        if offers.get(&self.offer).is_some_and(|changes| changes.receiver_count() == 1) {
            offers.remove(&self.offer);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn g13_waiting_claims_of_a_user_and_of_a_server_have_bounds() {
        let claims = WaitingClaims::default();
        let (kim, offer) = (UserId::generate(), OfferId::generate());
        let enter = |user: &UserId| claims.enter(user, offer);
        let mut waiting: Vec<_> =
            (0..CLAIMS_WAITING_PER_USER_MAX).map(|_| enter(&kim).expect("room")).collect();
        assert_eq!(enter(&kim).err(), Some(TooMany::OfUser));
        while (waiting.len() as u64) < CLAIMS_WAITING_MAX {
            waiting.push(enter(&UserId::generate()).expect("room"));
        }
        assert_eq!(enter(&UserId::generate()).err(), Some(TooMany::InAll));
        waiting.clear();
        assert!(claims.shares.is_empty() && claims.offers().is_empty());
    }

    #[test]
    fn a_notification_reaches_each_waiting_claim_of_its_offer_once() {
        let claims = WaitingClaims::default();
        let (offer, other) = (OfferId::generate(), OfferId::generate());
        let enter = |offer| claims.enter(&UserId::generate(), offer).expect("room");
        let (mut first, mut second, mut elsewhere) = (enter(offer), enter(offer), enter(other));
        claims.notify(offer);
        assert!(first.is_notified());
        for claim in [&mut first, &mut second] {
            assert!(claim.changed().now_or_never().is_some());
            assert!(!claim.is_notified() && claim.changed().now_or_never().is_none());
        }
        assert!(elsewhere.changed().now_or_never().is_none());
        // A claim that enters later reads the offer itself.
        assert!(enter(offer).changed().now_or_never().is_none());
    }
}
