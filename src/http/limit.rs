//! How often one person, or one address, may ask.
//!
//! A person with a valid token is counted by their id, everybody else by the address they come
//! from; `X-Forwarded-For` is anybody's word and is not believed. Many people may share an address,
//! so an address has more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::domain::ids::UserId;
use crate::http::caller::Presented;

/// How much more an address has than a person: a class room, an office.
const PEOPLE_PER_ADDRESS: u32 = 10;

/// The address at the other end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Default for Peer {
    fn default() -> Self {
        Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

/// Requests on average and at once.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// On average, each second.
    pub per_second: NonZeroU32,
    /// At once.
    pub burst: NonZeroU32,
}

/// Counts requests. A cheap handle.
#[derive(Clone)]
pub struct Limiter(Arc<Buckets>);

struct Buckets {
    users: DefaultKeyedRateLimiter<UserId>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
}

impl Limiter {
    /// Lets each person have `rate`, and each address ten times as much.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let many = NonZeroU32::MIN.saturating_add(PEOPLE_PER_ADDRESS - 1);
        let quota = |times: NonZeroU32| {
            Quota::per_second(rate.per_second.saturating_mul(times))
                .allow_burst(rate.burst.saturating_mul(times))
        };
        Self(Arc::new(Buckets {
            users: RateLimiter::keyed(quota(NonZeroU32::MIN)),
            addresses: RateLimiter::keyed(quota(many)),
            clock: DefaultClock::default(),
        }))
    }

    /// Counts one request.
    ///
    /// # Errors
    ///
    /// How long to wait until one more is taken.
    pub(crate) fn check(&self, presented: &Presented, peer: Peer) -> Result<(), Duration> {
        let refused = match presented {
            Presented::Person { identity, .. } => self.0.users.check_key(&identity.user.id).err(),
            Presented::Nothing | Presented::Refused | Presented::AdminToken => {
                self.0.addresses.check_key(&network(peer.0)).err()
            }
        };
        refused.map_or(Ok(()), |until| Err(until.wait_time_from(self.0.clock.now())))
    }

    /// Forgets who has not asked for a while; owed now and then, or memory grows with every name.
    pub fn forget_the_quiet(&self) {
        self.0.users.retain_recent();
        self.0.addresses.retain_recent();
    }
}

/// One customer's worth of addresses: IPv6 is handed out by the /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(burst: u32) -> Limiter {
        let burst = NonZeroU32::new(burst).expect("not zero");
        Limiter::new(Rate { per_second: NonZeroU32::MIN, burst })
    }

    #[test]
    fn an_address_that_asks_too_often_is_told_when_to_come_back() {
        let limiter = limiter(2);
        let peer = Peer(IpAddr::V4(Ipv4Addr::LOCALHOST));
        for _ in 0..20 {
            assert_eq!(limiter.check(&Presented::Nothing, peer), Ok(()));
        }
        let wait = limiter.check(&Presented::Nothing, peer).expect_err("too many");
        assert!(wait <= Duration::from_secs(1));
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(limiter.check(&Presented::Nothing, other), Ok(()));
    }

    #[test]
    fn a_bad_token_does_not_buy_a_fresh_bucket() {
        let limiter = limiter(1);
        for _ in 0..10 {
            assert_eq!(limiter.check(&Presented::Refused, Peer::default()), Ok(()));
        }
        assert!(limiter.check(&Presented::Nothing, Peer::default()).is_err());
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_a_bucket() {
        let at = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(at("2001:db8:1:2:3::4"), at("2001:db8:1:2:ffff::"));
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:3::"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
    }
}
