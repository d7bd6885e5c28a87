//! Rate limits of requests and of websockets, by user and by address. A websocket has a rate of its own:
//! it costs a claim of a lock and a transaction, and a request mostly one read of the database.
//!
//! The server charges a request with a valid token to its user and to its address, any other request to
//! its address alone. Guests are free, so a limit by user restricts no guest (G17). Many users may share
//! an address, so an address has a higher rate. The entry of guests has a rate of its own. The address
//! is that of the connection, or the one that a [trusted proxy](crate::http::host::Proxies) names.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::bounds::allowances::{Allowance, Allowances, spend_both};
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
    refused_bearers: Arc<Allowances>,
    /// New guests, by address.
    entries: Arc<Allowances>,
    /// Codes that sign a guest in on another device, by address.
    transfers: Arc<Allowances>,
    /// Handles, personal links and ids of other users, by user.
    people: Arc<Allowances<UserId>>,
    /// Look-ups of names that no user has, by address: they may be guesses.
    unknown_people: Arc<Allowances>,
}

struct Buckets {
    users: Arc<Allowances<UserId>>,
    addresses: Arc<Allowances>,
}

impl Limiter {
    /// Grants each user these requests and joins, and each address ten times as many. An address has the
    /// `entries` of guests as they are.
    #[must_use]
    pub fn new(requests: Rate, joins: Rate, entries: Rate) -> Self {
        let minute = Duration::from_mins(1);
        let builds = Rate { per_second: EXPORT_BUILDS_PER_SECOND, burst: EXPORT_BUILDS_BURST };
        Self(Arc::new(Limits {
            requests: Buckets::new(requests),
            joins: Buckets::new(joins),
            builds: Buckets::new(builds),
            refused_bearers: Allowances::rate(REFUSED_BEARERS_PER_SECOND, REFUSED_BEARERS_BURST),
            entries: Allowances::rate(entries.per_second, entries.burst),
            transfers: Allowances::per(minute, TRANSFER_TRIES_PER_MINUTE),
            people: Allowances::per(minute, PEOPLE_TRIES_PER_MINUTE),
            unknown_people: Allowances::per(minute, UNKNOWN_PEOPLE_PER_MINUTE),
        }))
    }

    /// The error is the time until the limit accepts the next request, as in the checks below.
    pub(crate) fn check(&self, presented: &Credential, peer: Peer) -> Result<(), Duration> {
        self.0.requests.spend(presented.user(), peer, Instant::now())
    }

    /// An invalid bearer token may be a guess of the admin token.
    pub(crate) fn check_refused_bearer(&self, peer: Peer) -> Result<(), Duration> {
        spend(&self.0.refused_bearers, peer)
    }

    pub(crate) fn check_entry(&self, peer: Peer) -> Result<(), Duration> {
        spend(&self.0.entries, peer)
    }

    /// A code for another device may be a guess.
    pub(crate) fn check_transfer(&self, peer: Peer) -> Result<(), Duration> {
        spend(&self.0.transfers, peer)
    }

    pub(crate) fn check_build(&self, user: &UserId, peer: Peer) -> Result<(), Duration> {
        self.0.builds.spend(Some(user), peer, Instant::now())
    }

    /// Also takes one of the guesses of the address. The caller spends it if no user has that handle, link or id.
    pub(crate) fn check_people(&self, user: &UserId, peer: Peer) -> Result<Allowance, Duration> {
        let now = Instant::now();
        let guess = self.0.unknown_people.take(network(peer.0), now);
        let named = self.0.people.take(user.clone(), now);
        match (guess, named) {
            (Ok(guess), Ok(named)) => {
                named.spend();
                Ok(guess)
            }
            (guess, named) => Err(guess.err().max(named.err()).unwrap_or_default()),
        }
    }

    /// False above the rate.
    pub(crate) fn may_join(&self, user: Option<&UserId>, peer: Peer) -> bool {
        self.0.joins.spend(user, peer, Instant::now()).is_ok()
    }

    /// Removes full buckets. The upkeep task calls it, or memory would grow with every user and address.
    pub fn forget_the_quiet(&self) {
        let now = Instant::now();
        let Limits { requests, joins, builds, .. } = &*self.0;
        for buckets in [requests, joins, builds] {
            buckets.users.forget_the_quiet(now);
            buckets.addresses.forget_the_quiet(now);
        }
        let Limits { refused_bearers, entries, transfers, unknown_people, people, .. } = &*self.0;
        for addresses in [refused_bearers, entries, transfers, unknown_people] {
            addresses.forget_the_quiet(now);
        }
        people.forget_the_quiet(now);
    }
}

fn spend(addresses: &Arc<Allowances>, peer: Peer) -> Result<(), Duration> {
    addresses.take(network(peer.0), Instant::now()).map(Allowance::spend)
}

impl Buckets {
    fn new(Rate { per_second, burst }: Rate) -> Self {
        let many = NonZeroU32::MIN.saturating_add(PEOPLE_PER_ADDRESS - 1);
        let (per_address, at_once) = (per_second.saturating_mul(many), burst.saturating_mul(many));
        Self {
            users: Allowances::rate(per_second, burst),
            addresses: Allowances::rate(per_address, at_once),
        }
    }

    /// A request that the user's bucket rejects takes nothing from other users of the address, and one that
    /// the address's rejects takes nothing from the user.
    fn spend(&self, user: Option<&UserId>, peer: Peer, now: Instant) -> Result<(), Duration> {
        let user = user.map_or(Ok(Allowance::default()), |user| self.users.take(user.clone(), now));
        spend_both(user, self.addresses.take(network(peer.0), now))
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
    use std::net::{IpAddr, Ipv4Addr};

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

    type Try = fn(&Limits, &UserId, Peer, Instant) -> Result<(), Duration>;

    /// A client spends each limit, tries twenty times more, and waits for the time of the error.
    #[test]
    fn g17_each_limit_passes_a_client_that_obeys_the_wait_and_a_refused_try_costs_nothing() {
        fn take(of: &Arc<Allowances>, peer: Peer, now: Instant) -> Result<(), Duration> {
            of.take(network(peer.0), now).map(Allowance::spend)
        }
        let limits: [(&str, Try); 10] = [
            ("requests", |it, kim, peer, now| it.requests.spend(Some(kim), peer, now)),
            ("requests of an address", |it, _, peer, now| it.requests.spend(None, peer, now)),
            ("joins", |it, kim, peer, now| it.joins.spend(Some(kim), peer, now)),
            ("joins of an address", |it, _, peer, now| it.joins.spend(None, peer, now)),
            ("builds", |it, kim, peer, now| it.builds.spend(Some(kim), peer, now)),
            ("bearers", |it, _, peer, now| take(&it.refused_bearers, peer, now)),
            ("entries", |it, _, peer, now| take(&it.entries, peer, now)),
            ("transfers", |it, _, peer, now| take(&it.transfers, peer, now)),
            ("unknown people", |it, _, peer, now| take(&it.unknown_people, peer, now)),
            ("people", |it, kim, _, now| it.people.take(kim.clone(), now).map(Allowance::spend)),
        ];
        let (limiter, kim) = (limiter(3), UserId::generate());
        for (name, spend) in limits {
            let mut now = Instant::now() + Duration::from_hours(24);
            let spend = |now| spend(&limiter.0, &kim, Peer::default(), now);
            while spend(now).is_ok() {}
            for _ in 0..3 {
                let wait = spend(now).expect_err(name);
                assert!((0..20).all(|_| spend(now) == Err(wait)), "{name}");
                now += wait;
                assert_eq!(spend(now), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn g17_a_user_whose_address_is_spent_has_the_own_requests_afterwards() {
        let (limiter, kim, now) = (limiter(1), UserId::generate(), Instant::now());
        let spend = |user, now| limiter.0.requests.spend(user, Peer::default(), now);
        while spend(None, now).is_ok() {}
        let wait = spend(Some(&kim), now).expect_err("the address is spent");
        assert!((0..20).all(|_| spend(Some(&kim), now) == Err(wait)));
        assert_eq!(spend(Some(&kim), now + wait), Ok(()));
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
