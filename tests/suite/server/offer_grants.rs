//! The grants of claimants, with the services of several servers in this process.

use std::time::Duration;

use chrono::Utc;
use galley::domain::ids::{OfferId, UserId};
use galley::domain::user::User;
use galley::locks::{AcquireOptions, Guard, Lease, LockName, Locks};
use galley::offers::error::OfferError;
use galley::offers::offer::OfferClaim;
use galley::offers::{OfferTerms, Offers};
use galley::storage::Storage;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::server::kill_campaign::say;
use crate::support::fixtures::{apart, until};
use crate::support::postgres_server;
use crate::support::redis_server::{self, TEST_TIMEOUT};

/// The services of servers that share a database and their locks.
struct Servers {
    offers: Vec<Offers>,
    locks: Vec<Locks>,
}

impl Servers {
    async fn open(database: &str, locks: Vec<Locks>) -> Self {
        let mut offers = Vec::new();
        for locks in &locks {
            let storage = Storage::open(database).await.expect("a database");
            offers.push(Offers::new(storage, locks.clone()));
        }
        Self { offers, locks }
    }

    async fn an_offer(&self, capacity: u32) -> OfferId {
        let terms = OfferTerms { title: "an offer", capacity, message: None };
        let offer = self.offers[0].create(&a_user(), terms, Utc::now()).await;
        offer.expect("an offer").id
    }

    /// Acquires the lock of an offer.
    async fn hold(&self, offer: OfferId) -> Guard {
        let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
        let held = self.locks[0].try_lock(&lock_of(offer), &options).await;
        held.expect("a free lock")
    }

    /// Sends a claim to one of the servers.
    fn claim(&self, index: usize, offer: OfferId) -> Claiming {
        let offers = self.offers[index % self.offers.len()].clone();
        apart(async move {
            let grant = offers.await_grant(&a_user(), offer, None).await?;
            offers.claim(grant, Utc::now()).await
        })
    }

    async fn has_queued(&self, offer: OfferId, expected: usize) {
        until(&format!("{expected} claims in the queue"), async || {
            let holder = self.locks[0].holder(&lock_of(offer)).await.expect("a reply");
            holder.expect("the test holds it").waiting == expected
        })
        .await;
    }
}

/// A claim in flight.
type Claiming = JoinHandle<Result<OfferClaim, OfferError>>;

/// Waits, and again after each time-out of its wait, until the offer ends.
async fn wait_on(offers: Offers, offer: OfferId) -> OfferError {
    loop {
        let error = offers.await_grant(&a_user(), offer, None).await.err();
        let error = error.expect("the test holds the lock");
        if !matches!(error, OfferError::LockWaitTimeout) {
            return error;
        }
    }
}

fn a_user() -> User {
    User { id: UserId::generate(), name: "Kim".to_owned() }
}

fn lock_of(offer: OfferId) -> LockName {
    LockName::named(&format!("offer:{offer}"))
}

async fn outcome(claiming: Claiming) -> Result<OfferClaim, OfferError> {
    timeout(TEST_TIMEOUT, claiming).await.expect("an answer in time").expect("no panic")
}

/// Twelve claims arrive one after another; two of them leave the queue. The next five take the places.
async fn slots_go_in_order_of_arrival(servers: &Servers) {
    let offer = servers.an_offer(5).await;
    let held = servers.hold(offer).await;
    let mut claims = Vec::new();
    for index in 0..12 {
        claims.push(servers.claim(index, offer));
        servers.has_queued(offer, index + 1).await;
    }
    for leaving in [0, 3] {
        claims[leaving].abort();
    }
    servers.has_queued(offer, 10).await;
    held.release().await.expect("a reply");
    let mut numbers = Vec::new();
    for (index, claim) in
        claims.into_iter().enumerate().filter(|(index, _)| ![0, 3].contains(index))
    {
        match outcome(claim).await {
            Ok(claim) => numbers.push((index, claim.number)),
            Err(OfferError::SoldOut) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(numbers, [(1, 1), (2, 2), (4, 3), (5, 4), (6, 5)]);
}

async fn in_memory(folder: &TempDir) -> Servers {
    let database = format!("sqlite://{}/galley.db", folder.path().display());
    Servers::open(&database, vec![Locks::memory()]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_slots_go_in_order_of_arrival_in_memory() {
    let folder = TempDir::new().expect("a folder");
    slots_go_in_order_of_arrival(&in_memory(&folder).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_slots_go_in_order_of_arrival_on_three_servers_with_redis() {
    let redis = redis_server::Server::start().await;
    let database = postgres_server::shared().database().await;
    let mut locks = Vec::new();
    for _server in 0..3 {
        locks.push(Locks::connect(&redis.url()).await.expect("an address"));
    }
    slots_go_in_order_of_arrival(&Servers::open(&database.url(), locks).await).await;
}

/// Goal: the wait queue of an offer has a bound, and a claim beyond it is answered at once. A close
/// answers all waiting claims without the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_the_wait_queue_of_an_offer_has_a_bound_and_a_close_answers_it_without_the_lock() {
    const QUEUE: usize = 1_000;
    let folder = TempDir::new().expect("a folder");
    let servers = in_memory(&folder).await;
    let owner = a_user();
    let terms = OfferTerms { title: "an offer", capacity: 5, message: None };
    let offer = servers.offers[0].create(&owner, terms, Utc::now()).await.expect("an offer").id;
    let held = servers.hold(offer).await;
    let began = Instant::now();
    let offers = servers.offers.iter().cycle().take(QUEUE);
    let waits: Vec<_> = offers.map(|offers| apart(wait_on(offers.clone(), offer))).collect();
    servers.has_queued(offer, QUEUE).await;
    let beyond = outcome(servers.claim(0, offer)).await;
    assert!(matches!(beyond, Err(OfferError::LockWaitTimeout)), "{beyond:?}");
    servers.offers[0].close(&owner.id, offer, Utc::now()).await.expect("closed");
    for wait in waits {
        let end = timeout(TEST_TIMEOUT, wait).await.expect("in time").expect("no panic");
        assert!(matches!(end, OfferError::OfferClosed), "{end:?}");
    }
    say(&format!("{QUEUE} claims waited and left in {:?}", began.elapsed()));
    assert!(held.is_held());
    servers.has_queued(offer, 0).await;
}

/// Goal: a user has four claims in flight at a server, and the next is refused at once.
#[tokio::test]
async fn g17_a_user_has_four_claims_in_flight() {
    let folder = TempDir::new().expect("a folder");
    let servers = in_memory(&folder).await;
    let offer = servers.an_offer(5).await;
    let held = servers.hold(offer).await;
    let lee = a_user();
    let claim = || {
        let (offers, lee) = (servers.offers[0].clone(), lee.clone());
        apart(async move {
            let grant = offers.await_grant(&lee, offer, None).await?;
            offers.claim(grant, Utc::now()).await
        })
    };
    let waiting: Vec<_> = (0..4).map(|_| claim()).collect();
    servers.has_queued(offer, 4).await;
    let fifth = outcome(claim()).await;
    assert!(matches!(fifth, Err(OfferError::TooManyAtOnce { .. })), "{fifth:?}");
    held.release().await.expect("a reply");
    let (mut made, mut refused) = (Vec::new(), Vec::new());
    for claim in waiting {
        match outcome(claim).await {
            Ok(claim) => made.push(claim.id),
            Err(OfferError::AlreadyClaimed(id)) => refused.push(id),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(made.len(), 1, "one of them took a place");
    assert_eq!(refused, [made[0]; 3]);
}
