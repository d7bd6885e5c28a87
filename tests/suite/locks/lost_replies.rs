//! Lost requests and replies: no claim without a reply is a grant, and no key stays behind.

use std::time::Duration;

use futures_util::future::{join, join_all};
use galley::locks::{
    AcquireOptions, Claim, Lease, LockError, LockName, Locks, LocksError, Loss, Released, Verdict,
};
use tokio::time::{Instant, timeout};

use crate::locks::wait_queue::{SLACK, await_grant, enter};
use crate::support::fixtures::{
    LONG, claim, fit, granted, kim, lee, seat, seated, until, until_free,
};
use crate::support::proxy::{End, Fate, Proxy, Way};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

/// Longer than any single reply may take, shorter than two.
const BOUND: Duration = Duration::from_millis(2_500);
/// Fates of a reply that Redis sent.
const LOST: [Fate; 5] =
    [Fate::CutAfter(0), Fate::CutAfter(2), Fate::Reset, Fate::Hold, Fate::Forsake(End::Server)];
/// Fates of a request that Redis never executes.
const UNHEARD: [Fate; 4] =
    [Fate::CutAfter(0), Fate::CutAfter(90), Fate::Reset, Fate::Forsake(End::Server)];

/// One server with a faulty connection to Redis, and another with a good one.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) locks: Locks,
    pub(crate) other: Locks,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = Server::start().await;
        let proxy = Proxy::to(&server).await;
        let locks = Locks::connect(&proxy.url()).await.expect("a good address");
        let other = Locks::connect(&server.url()).await.expect("a good address");
        for locks in [&locks, &other] {
            fit(locks).await;
            // Both connections must exist before the proxy can cut one.
            let first = seated(locks, &seat(), &kim(), LONG).await;
            locks.renew(std::slice::from_ref(&first), LONG).await.expect("a reply");
        }
        Self { server, proxy, locks, other }
    }

    /// Waits until no release of this value is pending.
    pub(crate) async fn until_paid(&self, value: &str) {
        until("the pending release is retried", async || {
            // No other test claims this lock, so a claim succeeds as soon as the value may be used
            // again.
            let other_claim = Claim { value: value.to_owned(), ..claim(&seat(), &kim()) };
            self.locks.claim(&other_claim).await.is_ok()
        })
        .await;
    }
}

/// Runs one operation under each of these fates, concurrently: some take their time.
async fn under_each(fates: &[Fate], what: impl AsyncFn(World, Fate)) {
    let under = async |fate: &Fate| what(World::start().await, *fate).await;
    join_all(fates.iter().map(under)).await;
}

#[track_caller]
fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, LocksError>) {
    assert!(matches!(answer, Err(LocksError::Unavailable(_))), "{answer:?}");
}

async fn holder(locks: &Locks, name: &LockName) -> Option<String> {
    locks.holder(name).await.expect("a reply").map(|holder| holder.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_claim_with_a_lost_reply_is_no_grant_and_is_released() {
    under_each(&LOST, async |world: World, fate| {
        let (name, began) = (seat(), Stopwatch::start());
        let failed = claim(&name, &kim());
        world.proxy.on_answer(name.key(), fate);
        is_unavailable(&world.locks.claim(&failed).await);
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        world.proxy.has_struck().await;
        world.proxy.heal();
        until_free(&world.other, &name).await;
        let next = seated(&world.other, &name, &lee(), LONG).await;
        world.until_paid(&failed.value).await;
        assert_eq!(holder(&world.other, &name).await, Some(next.value));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_claim_lost_before_its_execution_acquires_nothing() {
    under_each(&UNHEARD, async |world: World, fate| {
        let name = seat();
        let failed = claim(&name, &kim());
        world.proxy.on_request(name.key(), fate);
        is_unavailable(&world.locks.claim(&failed).await);
        world.proxy.has_struck().await;
        let next = seated(&world.other, &name, &lee(), LONG).await;
        world.until_paid(&failed.value).await;
        assert_eq!(holder(&world.other, &name).await, Some(next.value));
    })
    .await;
}

/// Claims through a proxy that holds the claim, lets another server acquire and release the lock,
/// and then delivers the claim.
async fn let_it_arrive_late(world: World, is_cut: bool) {
    let name = seat();
    let zombie = claim(&name, &kim());
    world.proxy.on_request(name.key(), Fate::Hold);
    let cut = async {
        world.proxy.has_struck().await;
        if is_cut {
            world.proxy.forsake_all(End::Client);
        }
    };
    let (claimed, ()) = join(world.locks.claim(&zombie), cut).await;
    is_unavailable(&claimed);
    world.until_paid(&zombie.value).await;
    let next = seated(&world.other, &name, &lee(), LONG).await;
    assert_eq!(world.other.release(&name, &next.value).await, Ok(Released::Freed));

    world.proxy.heal();
    world.proxy.was_late().await;
    let mut free_for = 0;
    until("it is free and stays so", async || {
        let is_free = holder(&world.other, &name).await.is_none();
        free_for = if is_free { free_for + 1 } else { 0 };
        free_for == 20
    })
    .await;
    let left: Vec<String> = world.server.run(&format!("KEYS *{}*", &name.key()[16..])).await;
    assert_eq!(left, [name.key().replace("lock:", "grant:")]);
}

#[tokio::test]
async fn g1_a_claim_delivered_after_its_release_and_later_grants_acquires_nothing() {
    // One proxy swallows packets; one was cut, and its far half stays open.
    let (holes, cuts) = (World::start().await, World::start().await);
    join(let_it_arrive_late(holes, false), let_it_arrive_late(cuts, true)).await;
}

/// Loses one renewal or its reply, and checks that the next one arrives in time.
async fn lose_a_renewal(world: World, is_answer: bool, fate: Fate) {
    let (name, lease) = (LockName::named("job:1"), Duration::from_secs(6));
    let options = AcquireOptions::new(Lease::Renewed(lease));
    let guard = world.locks.try_lock(&name, &options).await.expect("a free lock");
    let began = Stopwatch::start();
    if is_answer {
        world.proxy.on_answer(name.key(), fate);
    } else {
        world.proxy.on_request(name.key(), fate);
    }
    world.proxy.has_struck().await;
    world.proxy.heal();
    assert!(guard.is_held());
    let healed = Instant::now();
    // The next renewal arrives while the first lease runs.
    until("it is renewed", async || {
        let ttl: u64 = world.server.run(&format!("PTTL {name}")).await;
        let since = lease.saturating_sub(Duration::from_millis(ttl));
        since < healed.elapsed() && guard.is_held()
    })
    .await;
    assert!(began.elapsed() < lease, "{:?}", began.elapsed());
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test]
async fn g1_a_lost_renewal_is_retried_and_loses_no_lock() {
    let both = LOST.map(|fate| (true, fate)).into_iter().chain(UNHEARD.map(|fate| (false, fate)));
    // No client detects that fate within such a lease.
    let both = both.filter(|(_, fate)| *fate != Fate::Forsake(End::Server));
    join_all(both.map(async |(is_answer, fate)| {
        lose_a_renewal(World::start().await, is_answer, fate).await;
    }))
    .await;
}

#[tokio::test]
async fn g3_renewals_without_a_reply_extend_no_deadline() {
    let world = World::start().await;
    let (name, lease) = (LockName::named("job:1"), Duration::from_millis(1_200));
    let options = AcquireOptions::new(Lease::Renewed(lease));
    let guard = world.locks.try_lock(&name, &options).await.expect("a free lock");
    world.proxy.hold(Way::ToClient);
    let held = Stopwatch::start();
    assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Expired));
    assert!(held.elapsed() < lease, "{:?}", held.elapsed());
}

#[tokio::test]
async fn g3_a_lease_is_counted_from_the_request_and_not_from_the_reply() {
    let world = World::start().await;
    let late = Duration::from_millis(150);
    world.proxy.delay(late);
    let name = seat();
    let began = Instant::now();
    let options = claim(&name, &kim());
    let grant = granted(&world.locks, &options).await;
    assert!(2 * late <= began.elapsed());
    assert!(grant.sent_at < began + late, "before Redis could have had it");
    let held = crate::support::fixtures::held(&options, &grant);
    let began = Instant::now();
    let round = world.locks.renew(std::slice::from_ref(&held), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Renewed]);
    assert!(2 * late <= began.elapsed() && round.sent_at < began + late);
}

#[tokio::test]
async fn g3_a_grant_whose_reply_arrives_after_its_deadline_is_rejected() {
    let world = World::start().await;
    let late = Duration::from_millis(300);
    world.proxy.delay(late);
    let options = AcquireOptions::new(Lease::Renewed(2 * late)).for_at_least(LONG);
    let name = LockName::named("job:1");
    let tried = world.locks.try_lock(&name, &options).await;
    world.proxy.delay(Duration::ZERO);
    assert!(matches!(tried, Err(LockError::Lost(Loss::Expired))), "{tried:?}");
    // The release applies no minimum hold: the guard held nothing.
    until_free(&world.other, &name).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_release_with_a_lost_reply_is_retried_and_never_frees_a_later_grant() {
    under_each(&LOST, async |world: World, fate| {
        let name = seat();
        let old = seated(&world.locks, &name, &kim(), LONG).await;
        world.proxy.on_answer(name.key(), fate);
        is_unavailable(&world.locks.release(&name, &old.value).await);
        world.proxy.has_struck().await;
        let next = seated(&world.other, &name, &lee(), LONG).await;
        world.proxy.heal();
        world.until_paid(&old.value).await;
        assert_eq!(holder(&world.other, &name).await, Some(next.value));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_release_lost_before_its_execution_is_retried() {
    under_each(&UNHEARD, async |world: World, fate| {
        let name = seat();
        let old = seated(&world.locks, &name, &kim(), LONG).await;
        world.proxy.on_request(name.key(), fate);
        is_unavailable(&world.locks.release(&name, &old.value).await);
        world.proxy.has_struck().await;
        assert_eq!(holder(&world.other, &name).await, Some(old.value));
        until_free(&world.other, &name).await;
        seated(&world.other, &name, &lee(), LONG).await;
    })
    .await;
}

#[tokio::test]
async fn g5_a_hand_over_with_a_lost_reply_is_found_by_the_next_poll() {
    let world = World::start().await;
    let name = seat();
    let old = seated(&world.other, &name, &kim(), LONG).await;
    let next = claim(&name, &lee());
    let (waiting, _at) = enter(&world.locks, &next).await;
    world.proxy.on_answer(name.key(), Fate::Reset);
    let released = Stopwatch::start();
    world.other.release(&name, &old.value).await.expect("a reply");
    await_grant(waiting).await;
    world.proxy.has_struck().await;
    assert!(released.elapsed() < SLACK, "{:?}", released.elapsed());
    assert_eq!(holder(&world.other, &name).await, Some(next.value));
}
