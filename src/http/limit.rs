//! Rate limits of requests and of websockets, by user and by address. A websocket has a rate of its own:
//! it costs a claim of a lock and a transaction, and a request mostly one read of the database.
//!
//! The server charges a request with a valid token to its user and to its address, any other request to
//! its address alone. Guests are free, so a limit by user restricts no guest (G17). Many users may share
//! an address, so an address has a higher rate. The entry of guests has a rate of its own. The address
//! is that of the connection, or the one that a [trusted proxy](crate::http::host::Proxies) names.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock, QuantaInstant};
use governor::{DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter};

use crate::bounds::allowances::{Allowance, Allowances};
use crate::domain::ids::UserId;
use crate::http::auth::credential::Credential;
use crate::http::error::ApiError;
use crate::http::peer::{Peer, network};

/// Codes that one address may try, on average and at once. A code has 40 bits: at this rate an address
/// tries 150 of 10¹² within the lifetime of a code.
const TRANSFER_TRIES_PER_MINUTE: NonZeroU32 = at_least_one(10);
/// Builds of exports and imports that one user starts in a second, on average; ten times as many from one
/// address. Each builds the whole text.
const EXPORT_BUILDS_PER_SECOND: NonZeroU32 = at_least_one(1);
/// Burst of those builds: each format of some documents.
const EXPORT_BUILDS_BURST: NonZeroU32 = at_least_one(30);
/// Handles, personal links and ids that one user may try in a minute, and at once: people type them.
/// A guess of a handle costs one.
const PEOPLE_TRIES_PER_MINUTE: NonZeroU32 = at_least_one(30);
/// Unknown handles, links and ids that one address may name in a minute, and at once: ten users.
/// Guests are free, so a limit by user restricts no guest.
const UNKNOWN_PEOPLE_PER_MINUTE: NonZeroU32 = at_least_one(300);
/// Invalid bearer tokens from one address in a second: they may be guesses of the admin token. A
/// backend with a wrong secret stays below it.
const REFUSED_BEARERS_PER_SECOND: NonZeroU32 = at_least_one(10);
/// Burst of invalid bearer tokens from one address: all users behind one address whose tokens expire in
/// the same minute.
const REFUSED_BEARERS_BURST: NonZeroU32 = at_least_one(1_000);

/// How many times the rate of a user an address has: a class room, an office.
const PEOPLE_PER_ADDRESS: u32 = 10;

/// A token bucket: requests on average and at once.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub per_second: NonZeroU32,
    pub burst: NonZeroU32,
}

#[derive(Clone)]
pub struct Limiter(Arc<Limits>);

struct Limits {
    requests: Buckets,
    joins: Buckets,
    builds: Buckets,
    /// Invalid bearer tokens, by address.
    refused_bearers: DefaultKeyedRateLimiter<IpAddr>,
    /// New guests, by address.
    entries: DefaultKeyedRateLimiter<IpAddr>,
    /// Codes that sign a guest in on another device, by address.
    transfers: DefaultKeyedRateLimiter<IpAddr>,
    /// Handles, personal links and ids of other users, by user.
    people: DefaultKeyedRateLimiter<UserId>,
    /// Look-ups of names that no user has, by address: they may be guesses.
    unknown_people: Arc<Allowances>,
    clock: DefaultClock,
}

struct Buckets {
    users: DefaultKeyedRateLimiter<UserId>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
}

impl Limiter {
    /// Grants each user these requests and joins, and each address ten times as many. An address has the
    /// `entries` of guests as they are.
    #[must_use]
    pub fn new(requests: Rate, joins: Rate, entries: Rate) -> Self {
        let builds = Rate { per_second: EXPORT_BUILDS_PER_SECOND, burst: EXPORT_BUILDS_BURST };
        let refused = Quota::per_second(REFUSED_BEARERS_PER_SECOND);
        let entries = Quota::per_second(entries.per_second).allow_burst(entries.burst);
        Self(Arc::new(Limits {
            requests: Buckets::new(requests),
            joins: Buckets::new(joins),
            builds: Buckets::new(builds),
            refused_bearers: RateLimiter::keyed(refused.allow_burst(REFUSED_BEARERS_BURST)),
            entries: RateLimiter::keyed(entries),
            transfers: RateLimiter::keyed(Quota::per_minute(TRANSFER_TRIES_PER_MINUTE)),
            people: RateLimiter::keyed(Quota::per_minute(PEOPLE_TRIES_PER_MINUTE)),
            unknown_people: Allowances::per(Duration::from_mins(1), UNKNOWN_PEOPLE_PER_MINUTE),
            clock: DefaultClock::default(),
        }))
    }

    /// The error is the time until the limit accepts the next request, as in the checks below.
    pub(crate) fn check(&self, presented: &Credential, peer: Peer) -> Result<(), Duration> {
        let user = presented.user();
        self.wait(self.0.requests.check(user, peer))
    }

    /// An invalid bearer token may be a guess of the admin token.
    pub(crate) fn check_refused_bearer(&self, peer: Peer) -> Result<(), Duration> {
        self.wait(self.0.refused_bearers.check_key(&network(peer.0)).err())
    }

    pub(crate) fn check_entry(&self, peer: Peer) -> Result<(), Duration> {
        self.wait(self.0.entries.check_key(&network(peer.0)).err())
    }

    /// A code for another device may be a guess.
    pub(crate) fn check_transfer(&self, peer: Peer) -> Result<(), Duration> {
        self.wait(self.0.transfers.check_key(&network(peer.0)).err())
    }

    pub(crate) fn check_build(&self, user: &UserId, peer: Peer) -> Result<(), Duration> {
        self.wait(self.0.builds.check(Some(user), peer))
    }

    /// Also takes one of the guesses of the address. The caller spends it if no user has that handle, link or id.
    pub(crate) fn check_people(&self, user: &UserId, peer: Peer) -> Result<Allowance, Duration> {
        let guess = self.0.unknown_people.take(network(peer.0), Instant::now())?;
        self.wait(self.0.people.check_key(user).err())?;
        Ok(guess)
    }

    fn wait(&self, refused: Option<NotUntil<QuantaInstant>>) -> Result<(), Duration> {
        refused.map_or(Ok(()), |until| Err(until.wait_time_from(self.0.clock.now())))
    }

    /// False above the rate.
    pub(crate) fn may_join(&self, user: Option<&UserId>, peer: Peer) -> bool {
        self.0.joins.check(user, peer).is_none()
    }

    /// Removes full buckets. The upkeep task calls it, or memory would grow with every user and address.
    pub fn forget_the_quiet(&self) {
        for buckets in [&self.0.requests, &self.0.joins, &self.0.builds] {
            buckets.users.retain_recent();
            buckets.addresses.retain_recent();
        }
        self.0.refused_bearers.retain_recent();
        self.0.entries.retain_recent();
        self.0.transfers.retain_recent();
        self.0.people.retain_recent();
        self.0.unknown_people.forget_the_quiet(Instant::now());
    }
}

impl Buckets {
    fn new(rate: Rate) -> Self {
        let many = NonZeroU32::MIN.saturating_add(PEOPLE_PER_ADDRESS - 1);
        let quota = |times: NonZeroU32| {
            Quota::per_second(rate.per_second.saturating_mul(times))
                .allow_burst(rate.burst.saturating_mul(times))
        };
        let (users, addresses) = (quota(NonZeroU32::MIN), quota(many));
        Self { users: RateLimiter::keyed(users), addresses: RateLimiter::keyed(addresses) }
    }

    fn check(&self, user: Option<&UserId>, peer: Peer) -> Option<NotUntil<QuantaInstant>> {
        // The user's bucket comes first: a request that it rejects takes nothing from other users of the
        // address.
        user.and_then(|user| self.users.check_key(user).err())
            .or_else(|| self.addresses.check_key(&network(peer.0)).err())
    }
}

/// Counts a request for a page or a file, which needs no token, by its address.
pub(crate) async fn by_address(
    State(limiter): State<Limiter>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    match limiter.check(&Credential::Nothing, peer) {
        Ok(()) => next.run(request).await,
        Err(retry_after) => ApiError::TooManyRequests { retry_after }.into_response(),
    }
}

pub(super) const fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(number - 1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::http::auth::credential::CredentialSource;
    use crate::http::auth::tokens::TokenRefused;

    fn limiter(burst: u32) -> Limiter {
        let burst = NonZeroU32::new(burst).expect("not zero");
        let rate = Rate { per_second: NonZeroU32::MIN, burst };
        Limiter::new(rate, rate, rate)
    }

    #[test]
    fn an_address_above_its_rate_gets_a_retry_after() {
        let limiter = limiter(2);
        let peer = Peer(IpAddr::V4(Ipv4Addr::LOCALHOST));
        for _ in 0..20 {
            assert_eq!(limiter.check(&Credential::Nothing, peer), Ok(()));
        }
        let wait = limiter.check(&Credential::Nothing, peer).expect_err("too many");
        assert!(wait <= Duration::from_secs(1));
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(limiter.check(&Credential::Nothing, other), Ok(()));
    }

    #[test]
    fn a_bad_token_does_not_buy_a_fresh_bucket() {
        let limiter = limiter(1);
        let refused =
            Credential::Refused { cause: TokenRefused("signature"), by: CredentialSource::Bearer };
        for _ in 0..10 {
            assert_eq!(limiter.check(&refused, Peer::default()), Ok(()));
        }
        assert!(limiter.check(&Credential::Nothing, Peer::default()).is_err());
    }

    #[test]
    fn g13_a_user_above_the_join_rate_may_still_send_requests_and_others_may_join() {
        let (limiter, peer) = (limiter(3), Peer::default());
        let (kim, lee) = (UserId::generate(), UserId::generate());
        assert!((0..3).all(|_| limiter.may_join(Some(&kim), peer)));
        assert!(!limiter.may_join(Some(&kim), peer));
        assert!(limiter.may_join(Some(&lee), peer));
        // The limiter charges four joins with a token to the address as well.
        assert!((4..30).all(|_| limiter.may_join(None, peer)));
        assert!(!limiter.may_join(None, peer));
        assert_eq!(limiter.check(&Credential::Nothing, peer), Ok(()));
    }

    #[test]
    fn g17_guesses_of_a_token_are_counted_apart_from_requests() {
        let (limiter, peer) = (limiter(1), Peer::default());
        assert!((0..1_000).all(|_| limiter.check_refused_bearer(peer).is_ok()));
        assert!((0..100).any(|_| limiter.check_refused_bearer(peer).is_err()));
        assert_eq!(limiter.check(&Credential::Nothing, peer), Ok(()));
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(limiter.check_refused_bearer(other), Ok(()));
    }

    #[test]
    fn g17_an_address_tries_few_codes_and_hinders_no_other() {
        let limiter = limiter(1);
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert!((0..10).all(|_| limiter.check_transfer(Peer::default()).is_ok()));
        assert!(limiter.check_transfer(Peer::default()).is_err());
        assert_eq!(limiter.check_transfer(other), Ok(()));
        assert_eq!(limiter.check(&Credential::Nothing, Peer::default()), Ok(()));
    }

    #[test]
    fn g17_a_user_names_few_people_and_an_address_few_unknown_ones() {
        let (limiter, peer) = (limiter(1), Peer::default());
        let (kim, lee) = (UserId::generate(), UserId::generate());
        assert!((0..30).all(|_| limiter.check_people(&kim, peer).is_ok()));
        assert!(limiter.check_people(&kim, peer).is_err());
        assert!(limiter.check_people(&lee, peer).is_ok());
        // Guests of one address guess with as many ids as they like.
        let guess = || limiter.check_people(&UserId::generate(), peer).map(Allowance::spend);
        assert!((0..300).all(|_| guess().is_ok()));
        assert!(guess().is_err());
        assert!(limiter.check_people(&lee, peer).is_err(), "a user's name would be an answer");
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert!(limiter.check_people(&lee, other).is_ok());
    }

    #[test]
    fn g17_guests_enter_at_the_rate_of_their_address() {
        let limiter = limiter(3);
        let other = Peer(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert!((0..3).all(|_| limiter.check_entry(Peer::default()).is_ok()));
        assert!(limiter.check_entry(Peer::default()).is_err());
        assert_eq!(limiter.check_entry(other), Ok(()));
        assert_eq!(limiter.check(&Credential::Nothing, Peer::default()), Ok(()));
    }
}
