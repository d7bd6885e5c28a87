//! The byte budget: the server charges memory that it holds for clients to the user and the address that
//! cause it.
//!
//! Request bodies in transfer, large responses until the client has read them, messages of waiters and
//! unfinished messages draw on one budget. A charge counts bytes when the server holds them, not when a
//! client announces them; a long websocket frame is held from its head on.
//!
//! The budget has a limit for the server, one for an address and one for a user. In addition, a user or an
//! address never holds more than a third of the free bytes (a dynamic threshold, as in switch buffers).
//! One payer alone therefore takes at most a quarter, and each further greedy payer a quarter of the rest.
//! A client that holds nothing yet is served even while others hold their maximum.
//!
//! The server holds the whole buffer of a request body from its first byte on, so it charges the announced
//! length then.

use std::fmt;
use std::net::IpAddr;

use crate::bounds::shares::{Share, Shares};
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
pub struct ByteBudget {
    limits: BudgetLimits,
    shares: Shares<PayerKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PayerKey {
    Address(IpAddr),
    User(UserId),
}

/// The address and the user that cause a cost. A request without a valid token has only an address.
#[derive(Clone, Debug)]
pub(crate) struct Payer([Option<PayerKey>; 2]);

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
        let address = Some(PayerKey::Address(network(peer.0)));
        Self([address, user.cloned().map(PayerKey::User)])
    }
}

/// Bytes that a payer holds. Dropping the charge releases them.
pub(crate) struct Charge {
    limits: BudgetLimits,
    share: Share<PayerKey>,
}

impl ByteBudget {
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self { limits, shares: Shares::default() }
    }

    pub(crate) fn open(&self, payer: Payer) -> Charge {
        Charge { limits: self.limits, share: self.shares.open(payer.0) }
    }
}

impl Charge {
    /// On an error the charge stays as it was.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        let BudgetLimits { all, address, user } = self.limits;
        let has_user = self.share.keys()[1].is_some();
        self.share.grow(bytes, |held, [by_address, by_user]| {
            let free = all.saturating_sub(held);
            let exceeds =
                |held: u64, most: u64| most.min(free / FREE_PART) < held.saturating_add(bytes);
            // One item above a share is accepted if its payer holds nothing else and it fits, or if the
            // budget is unused: a setting may allow larger documents than the shares of the budget.
            if held == 0 || by_address + by_user == 0 && bytes <= free {
                return Ok(());
            }
            if free < bytes {
                return Err(OverBudget::All);
            }
            let is_over_share = has_user && exceeds(by_user, user) || exceeds(by_address, address);
            if is_over_share { Err(OverBudget::Share) } else { Ok(()) }
        })
    }

    pub(crate) fn clear(&mut self) {
        self.share.shrink(self.share.units());
    }

    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.share.shrink(bytes);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.share.units()
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
        Payer::of(Some(&UserId::generate()), Peer(address))
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
        assert!(budget.shares.is_empty());
    }

    /// 17 users held 507 of 512 MB, and only chance decided whether a further client was served.
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
        assert!(newcomer.is_ok());
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
        assert_eq!((charge.bytes(), budget.shares.is_empty()), (0, true));
    }
}
