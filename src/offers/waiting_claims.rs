//! The claims that this server handles: their bounds, and their notifications.
//!
//! A claim that waits for its turn holds a place in the queue of its offer's lock, up to ten seconds.
//! When this server finds an offer without a free place, it notifies its waiting claims of that offer.
//! Each then reads the offer once and leaves the queue. Without that, 500 claimants would acquire the
//! lock one after another, each to find that all places are taken.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::domain::ids::{OfferId, UserId};
use crate::domain::limits::{CLAIMS_WAITING_MAX, CLAIMS_WAITING_PER_USER_MAX};

#[derive(Clone, Debug, Default)]
pub(super) struct WaitingClaims(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    all: usize,
    users: HashMap<UserId, usize>,
    offers: HashMap<OfferId, Watched>,
}

#[derive(Debug)]
struct Watched {
    claims: usize,
    changes: watch::Sender<()>,
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
    user: UserId,
    offer: OfferId,
    changes: watch::Receiver<()>,
}

impl WaitingClaims {
    /// Registers a claim. It receives every later notification of its offer, so a claimant that reads
    /// the offer after this misses none.
    pub(super) fn enter(&self, user: &UserId, offer: OfferId) -> Result<WaitingClaim, TooMany> {
        let mut waiting = self.waiting();
        if CLAIMS_WAITING_MAX <= waiting.all {
            return Err(TooMany::InAll);
        }
        let of_user = waiting.users.entry(user.clone()).or_default();
        if CLAIMS_WAITING_PER_USER_MAX <= *of_user {
            return Err(TooMany::OfUser);
        }
        *of_user += 1;
        waiting.all += 1;
        let new = || Watched { claims: 0, changes: watch::Sender::new(()) };
        let watched = waiting.offers.entry(offer).or_insert_with(new);
        watched.claims += 1;
        let changes = watched.changes.subscribe();
        drop(waiting);
        Ok(WaitingClaim { claims: self.clone(), user: user.clone(), offer, changes })
    }

    /// Notifies the claims that wait for an offer: it has no free place, or was closed.
    pub(super) fn notify(&self, offer: OfferId) {
        if let Some(watched) = self.waiting().offers.get(&offer) {
            watched.changes.send_replace(());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut waiting = self.claims.waiting();
        waiting.all = waiting.all.saturating_sub(1);
        subtract_one(&mut waiting.users, &self.user, |claims| claims);
        subtract_one(&mut waiting.offers, &self.offer, |watched| &mut watched.claims);
    }
}

fn subtract_one<K: Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    claims: impl Fn(&mut V) -> &mut usize,
) {
    let Some(entry) = map.get_mut(key) else { return };
    let left = claims(entry);
    *left = left.saturating_sub(1);
    if *left == 0 {
        map.remove(key);
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
        while waiting.len() < CLAIMS_WAITING_MAX {
            waiting.push(enter(&UserId::generate()).expect("room"));
        }
        assert_eq!(enter(&UserId::generate()).err(), Some(TooMany::InAll));
        waiting.clear();
        let left = claims.waiting();
        assert_eq!((left.all, left.users.len(), left.offers.len()), (0, 0, 0));
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
