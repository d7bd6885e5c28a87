//! The byte budget: the server charges memory that it holds for clients to the user and the address that
//! cause it.
//!
//! Request bodies in transfer, large responses until the client has read them, messages of waiters and
//! unfinished messages draw on one budget. A charge counts bytes when the server holds them, not when a
//! client announces them; a long websocket frame is held from its head on.
//!
//! The budget has a limit for the server, one for an address and one for a user. In addition, a user or an address never holds more than a third of the free bytes (a dynamic
//! threshold, as in switch buffers). One payer alone therefore takes at most a quarter, and each further
//! greedy payer a quarter of the rest. A client that holds nothing yet is served even while others hold
//! their maximum.
//!
//! The server holds the whole buffer of a request body from its first byte on, so it charges the announced
//! length then.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ids::UserId;
use crate::http::auth::credential::Credential;
use crate::http::peer::{Peer, network};

/// A payer holds at most the free bytes divided by this.
const FREE_PART: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub struct BudgetLimits {
    pub all: u64,
    pub address: u64,
    pub user: u64,
}

#[derive(Clone)]
pub struct ByteBudget(Arc<Inner>);

struct Inner {
    limits: BudgetLimits,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: u64,
    addresses: HashMap<IpAddr, u64>,
    users: HashMap<UserId, u64>,
}

/// The user and the address that cause a cost. A request without a valid token has only an address.
#[derive(Clone, Debug)]
pub(crate) struct Payer {
    user: Option<UserId>,
    address: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverBudget {
    Share,
    All,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Share => "this user or address has too many bytes under way",
            Self::All => "the server holds too many bytes already",
        })
    }
}

impl std::error::Error for OverBudget {}

impl Payer {
    pub(crate) fn new(presented: Option<&Credential>, peer: Peer) -> Self {
        Self::of(presented.and_then(Credential::user), peer)
    }

    pub(crate) fn of(user: Option<&UserId>, peer: Peer) -> Self {
        Self { user: user.cloned(), address: network(peer.0) }
    }
}

/// Bytes that a payer holds. Dropping the charge releases them.
pub(crate) struct Charge {
    budget: ByteBudget,
    payer: Payer,
    bytes: u64,
}

impl ByteBudget {
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self(Arc::new(Inner { limits, held: Mutex::default() }))
    }

    pub(crate) fn open(&self, payer: Payer) -> Charge {
        Charge { budget: self.clone(), payer, bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// On an error the charge stays as it was.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        let BudgetLimits { all, address, user } = self.budget.0.limits;
        let mut held = self.budget.held();
        let free = all.saturating_sub(held.all);
        let by_address = held.addresses.get(&self.payer.address).copied().unwrap_or(0);
        let by_user = self.payer.user.as_ref().and_then(|user| held.users.get(user)).copied();
        let by_user = by_user.unwrap_or(0);
        let exceeds =
            |held: u64, most: u64| most.min(free / FREE_PART) < held.saturating_add(bytes);
        // One item above a share is accepted if its payer holds nothing else and it fits, or if the budget
        // is unused: a setting may allow larger documents than the shares of the budget.
        let is_alone = held.all == 0 || by_address + by_user == 0 && bytes <= free;
        if !is_alone {
            if free < bytes {
                return Err(OverBudget::All);
            }
            let is_over_user = self.payer.user.is_some() && exceeds(by_user, user);
            if is_over_user || exceeds(by_address, address) {
                return Err(OverBudget::Share);
            }
        }
        held.all = held.all.saturating_add(bytes);
        add(&mut held.addresses, &self.payer.address, bytes);
        if let Some(user) = &self.payer.user {
            add(&mut held.users, user, bytes);
        }
        drop(held);
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.shrink(self.bytes);
    }

    pub(crate) fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        let mut held = self.budget.held();
        held.all = held.all.saturating_sub(bytes);
        subtract(&mut held.addresses, &self.payer.address, bytes);
        if let Some(user) = &self.payer.user {
            subtract(&mut held.users, user, bytes);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

fn add<K: Clone + Eq + Hash>(held: &mut HashMap<K, u64>, key: &K, bytes: u64) {
    match held.get_mut(key) {
        Some(sum) => *sum = sum.saturating_add(bytes),
        None if bytes == 0 => {}
        None => drop(held.insert(key.clone(), bytes)),
    }
}

/// Subtracts from a key and removes it at zero, so that the map contains only payers with bytes.
fn subtract<K: Eq + Hash>(held: &mut HashMap<K, u64>, key: &K, bytes: u64) {
    let Some(sum) = held.get_mut(key) else { return };
    *sum = sum.saturating_sub(bytes);
    if *sum == 0 {
        held.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const MIB: u64 = 1_024 * 1_024;
    const LIMITS: BudgetLimits = BudgetLimits { all: 192 * MIB, address: 48 * MIB, user: 32 * MIB };

    fn payer(address: u8) -> Payer {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, address));
        Payer { user: Some(UserId::generate()), address }
    }

    fn charge(budget: &ByteBudget, payer: &Payer, bytes: u64) -> Result<Charge, OverBudget> {
        let mut charge = budget.open(payer.clone());
        charge.grow(bytes).map(|()| charge)
    }

    #[test]
    fn g17_a_user_and_an_address_hold_no_more_than_their_shares() {
        let budget = ByteBudget::new(LIMITS);
        let (kim, lee, neighbour) = (payer(1), payer(1), payer(2));
        let mut held: Vec<_> =
            (0..4).map(|_| charge(&budget, &kim, 8 * MIB).expect("room")).collect();
        assert_eq!(charge(&budget, &kim, MIB).err(), Some(OverBudget::Share));
        held.extend((0..2).map(|_| charge(&budget, &lee, 8 * MIB).expect("room")));
        assert_eq!(charge(&budget, &payer(1), MIB).err(), Some(OverBudget::Share));
        held.push(charge(&budget, &neighbour, 30 * MIB).expect("room"));
        held.clear();
        let state = budget.held();
        assert_eq!((state.all, state.users.len(), state.addresses.len()), (0, 0, 0));
    }

    /// W19: 17 users held 507 of 512 MB, and only chance decided whether a further client was served.
    #[test]
    fn g17_shares_shrink_as_the_budget_fills_and_a_new_payer_is_served() {
        let budget = ByteBudget::new(LIMITS);
        let mut held = Vec::new();
        for address in 1..=10 {
            let greedy = payer(address);
            while let Ok(charge) = charge(&budget, &greedy, MIB / 2) {
                held.push(charge);
            }
        }
        let newcomer = charge(&budget, &payer(100), 7 * MIB);
        assert!(newcomer.is_ok(), "{} of {} are held", budget.held().all, LIMITS.all);
    }

    #[test]
    fn g17_one_item_above_every_share_passes_alone() {
        let budget = ByteBudget::new(LIMITS);
        let (kim, lee) = (payer(1), payer(2));
        let large = charge(&budget, &kim, 200 * MIB).expect("alone");
        assert_eq!(charge(&budget, &lee, MIB).err(), Some(OverBudget::All));
        drop(large);
        assert!(charge(&budget, &lee, 100 * MIB).is_ok());
    }

    #[test]
    fn g17_a_charge_that_is_cleared_grows_again() {
        let budget = ByteBudget::new(LIMITS);
        let mut charge = budget.open(payer(1));
        for _ in 0..100 {
            charge.grow(20 * MIB).expect("room");
            charge.clear();
        }
        assert_eq!((charge.bytes(), budget.held().all), (0, 0));
    }
}
