//! Connection slots: limits open connections, for the whole server and for each address.
//!
//! The head of a request may take ten seconds, so one address could hold every slot without a token. An
//! address therefore has a limit of its own, and never holds more than a third of the free slots (a
//! dynamic threshold, as in the [byte budget](crate::http::byte_budget)). One address takes at most a
//! quarter of all, and each further greedy address a quarter of the rest, so four of them leave a third
//! to others. Connections of trusted proxies count only towards the server's limit.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::bounds::shares::{Share, Shares};
use crate::http::peer::network;

/// An address holds at most the free slots divided by this.
const FREE_PART: u64 = 3;
/// A browser opens six connections to a server, and one websocket per page. An address holds as many
/// while any slot is free.
const CONNECTIONS_OF_A_BROWSER: u64 = 8;
/// A rejected connection costs its sender nothing, so lines need a limit.
const WARN_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    pub all: u64,
    pub address: u64,
}

#[derive(Clone)]
pub(crate) struct ConnectionSlots {
    limits: ConnectionLimits,
    shares: Shares<IpAddr>,
    refusals: Arc<Mutex<Refusals>>,
}

pub(crate) type ConnectionSlot = Share<IpAddr>;

#[derive(Default)]
struct Refusals {
    warned_at: Option<Instant>,
    /// Connections that were closed since the last line.
    closed: u64,
}

impl ConnectionSlots {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, shares: Shares::default(), refusals: Arc::default() }
    }

    /// Takes a slot, counted for the address if there is one. `None`: all slots are taken.
    pub(crate) fn take(&self, address: Option<IpAddr>) -> Option<ConnectionSlot> {
        let address = address.map(network);
        let admit = |all, own| {
            let free = self.limits.all.saturating_sub(all);
            let share = (free / FREE_PART).max(CONNECTIONS_OF_A_BROWSER);
            let is_over_address = self.limits.address.min(share) <= own;
            if is_over_address || free == 0 { Err(is_over_address) } else { Ok(()) }
        };
        let taken = self.shares.take(address, admit).map_err(|is_over_address| {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.warn(address.filter(|_| is_over_address));
        });
        taken.ok()
    }
}

impl Refusals {
    fn warn(&mut self, address: Option<IpAddr>) {
        self.closed += 1;
        let now = Instant::now();
        if self.warned_at.is_some_and(|at| now.duration_since(at) < WARN_EVERY) {
            return;
        }
        let closed = std::mem::take(&mut self.closed);
        self.warned_at = Some(now);
        match address {
            Some(address) => {
                tracing::warn!(%address, closed, "an address holds its share; closed unanswered");
            }
            None => tracing::warn!(closed, "all connection slots are taken; closed unanswered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn g17_an_address_takes_its_slots_and_leaves_the_others() {
        let slots = ConnectionSlots::new(ConnectionLimits { all: 5, address: 3 });
        let at = |last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let mut held: Vec<_> = (0..9).filter_map(|_| slots.take(at(1))).collect();
        assert_eq!(held.len(), 3);
        held.extend(slots.take(at(2)));
        held.extend(slots.take(None));
        assert_eq!(held.len(), 5);
        assert!(slots.take(at(3)).is_none());
        held.clear();
        assert!(slots.shares.is_empty());
    }

    /// Four addresses with a quarter each left no connection to others.
    #[tokio::test]
    async fn g17_the_share_of_an_address_shrinks_and_a_new_address_connects() {
        let slots = ConnectionSlots::new(ConnectionLimits { all: 20_000, address: 5_000 });
        let at = |last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let mut held = Vec::new();
        let mut fill = |last| {
            let before = held.len();
            held.extend(std::iter::from_fn(|| slots.take(at(last))));
            held.len() - before
        };
        assert_eq!([1, 2, 3, 4].map(&mut fill), [5_000, 3_750, 2_812, 2_109]);
        assert!((5..25).all(|last| fill(last) >= 8));
    }
}
