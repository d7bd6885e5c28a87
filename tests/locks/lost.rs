//! A request or an answer that is lost on its way: nobody is granted what they were not told, and
//! nothing stays behind.

use std::time::Duration;

use futures_util::future::{join, join_all};
use galley::locks::{
    Claim, Lease, LockError, LockName, Locks, LocksError, Loss, Released, Verdict, Wish,
};
use tokio::time::{Instant, timeout};

use crate::line::{SLACK, enter, turn};
use crate::people::{LONG, claim, fit, granted, kim, lee, seat, seated, until, until_free};
use crate::proxy::{End, Fate, Proxy, Way};
use crate::server::{PATIENCE, Server};

/// Longer than any single answer may take, shorter than two.
const BOUND: Duration = Duration::from_millis(2_500);
/// The fates of an answer that was given.
const LOST: [Fate; 5] =
    [Fate::CutAfter(0), Fate::CutAfter(2), Fate::Reset, Fate::Hold, Fate::Forsake(End::Server)];
/// The fates of a request that is never carried out.
const UNHEARD: [Fate; 4] =
    [Fate::CutAfter(0), Fate::CutAfter(90), Fate::Reset, Fate::Forsake(End::Server)];

/// One server whose way to Redis is bad, and another whose way is good.
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
            // Both connections are to be there before one can be lost.
            let first = seated(locks, &seat(), &kim(), LONG).await;
            locks.renew(std::slice::from_ref(&first), LONG).await.expect("an answer");
        }
        Self { server, proxy, locks, other }
    }

    /// Waits until no release of this value is owed.
    pub(crate) async fn until_paid(&self, value: &str) {
        until("the release that is owed is made", async || {
            // Nobody else asks for this one, so it is had as soon as the value may be used again.
            let asked = Claim { value: value.to_owned(), ..claim(&seat(), &kim()) };
            self.locks.claim(&asked).await.is_ok()
        })
        .await;
    }
}

/// Lets one thing be done under each of these fates, at once: some take their time.
async fn under_each(fates: &[Fate], what: impl AsyncFn(World, Fate)) {
    let under = async |fate: &Fate| what(World::start().await, *fate).await;
    join_all(fates.iter().map(under)).await;
}

#[track_caller]
fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, LocksError>) {
    assert!(matches!(answer, Err(LocksError::Unavailable(_))), "{answer:?}");
}

async fn holder(locks: &Locks, name: &LockName) -> Option<String> {
    locks.holder(name).await.expect("an answer").map(|holder| holder.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_claim_whose_answer_is_lost_is_no_grant_and_is_taken_back() {
    under_each(&LOST, async |world: World, fate| {
        let (name, began) = (seat(), Instant::now());
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
async fn g1_a_claim_that_is_lost_before_it_is_carried_out_takes_nothing() {
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

/// Claims on a way on which the claim is stuck, lets another server have the lock and give it back,
/// and then lets the claim arrive.
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
async fn g1_a_claim_that_arrives_when_it_was_given_up_and_others_came_and_went_takes_nothing() {
    // A way that swallows packets, and one that was cut, of which the far half lives on.
    let (holes, cuts) = (World::start().await, World::start().await);
    join(let_it_arrive_late(holes, false), let_it_arrive_late(cuts, true)).await;
}

/// Loses one renewal, or its answer, and sees that the next one comes in time.
async fn lose_a_renewal(world: World, is_answer: bool, fate: Fate) {
    let name = LockName::named("job:1");
    let wish = Wish::new(Lease::KeptAlive(Duration::from_secs(3)));
    let guard = world.locks.try_lock(&name, &wish).await.expect("a free lock");
    let began = Instant::now();
    if is_answer {
        world.proxy.on_answer(name.key(), fate);
    } else {
        world.proxy.on_request(name.key(), fate);
    }
    world.proxy.has_struck().await;
    world.proxy.heal();
    assert!(guard.is_held());
    let healed = Instant::now();
    // It is renewed after that, while its first lease runs.
    until("it is renewed", async || {
        let ttl: u64 = world.server.run(&format!("PTTL {name}")).await;
        let since = Duration::from_millis(3_000 - ttl);
        since < healed.elapsed() && guard.is_held()
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test]
async fn g1_a_renewal_that_is_lost_is_no_loss_and_is_made_again() {
    let both = LOST.map(|fate| (true, fate)).into_iter().chain(UNHEARD.map(|fate| (false, fate)));
    // Nobody notices that one within such a lease.
    let both = both.filter(|(_, fate)| *fate != Fate::Forsake(End::Server));
    join_all(both.map(async |(is_answer, fate)| {
        lose_a_renewal(World::start().await, is_answer, fate).await;
    }))
    .await;
}

#[tokio::test]
async fn g3_renewals_that_are_carried_out_and_never_answered_prolong_nothing() {
    let world = World::start().await;
    let (name, lease) = (LockName::named("job:1"), Duration::from_millis(1_200));
    let wish = Wish::new(Lease::KeptAlive(lease));
    let guard = world.locks.try_lock(&name, &wish).await.expect("a free lock");
    world.proxy.hold(Way::ToClient);
    let held = Instant::now();
    assert_eq!(timeout(PATIENCE, guard.lost()).await, Ok(Loss::Expired));
    assert!(held.elapsed() < lease, "{:?}", held.elapsed());
}

#[tokio::test]
async fn g3_a_lease_is_counted_from_when_it_was_asked_for_and_not_from_the_answer() {
    let world = World::start().await;
    let late = Duration::from_millis(150);
    world.proxy.delay(late);
    let name = seat();
    let began = Instant::now();
    let wish = claim(&name, &kim());
    let grant = granted(&world.locks, &wish).await;
    assert!(2 * late <= began.elapsed());
    assert!(grant.sent_at < began + late, "before Redis could have had it");
    let held = crate::people::held(&wish, &grant);
    let began = Instant::now();
    let round = world.locks.renew(std::slice::from_ref(&held), LONG).await.expect("an answer");
    assert_eq!(round.verdicts, [Verdict::Renewed]);
    assert!(2 * late <= began.elapsed() && round.sent_at < began + late);
}

#[tokio::test]
async fn g3_a_grant_whose_answer_comes_when_its_lease_is_over_is_none() {
    let world = World::start().await;
    let late = Duration::from_millis(300);
    world.proxy.delay(late);
    let wish = Wish::new(Lease::KeptAlive(2 * late)).for_at_least(LONG);
    let name = LockName::named("job:1");
    let tried = world.locks.try_lock(&name, &wish).await;
    world.proxy.delay(Duration::ZERO);
    assert!(matches!(tried, Err(LockError::Lost(Loss::Expired))), "{tried:?}");
    // Nor is it left to nobody for a minimum hold of which nothing was held.
    until_free(&world.other, &name).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_release_whose_answer_is_lost_is_made_again_and_never_frees_a_later_grant() {
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
async fn g6_a_release_that_is_lost_before_it_is_carried_out_is_still_made() {
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
async fn g5_a_turn_whose_answer_is_lost_is_found_by_the_next_look() {
    let world = World::start().await;
    let name = seat();
    let old = seated(&world.other, &name, &kim(), LONG).await;
    let next = claim(&name, &lee());
    let (waiting, _at) = enter(&world.locks, &next).await;
    world.proxy.on_answer(name.key(), Fate::Reset);
    let released = Instant::now();
    world.other.release(&name, &old.value).await.expect("an answer");
    turn(waiting).await;
    world.proxy.has_struck().await;
    assert!(released.elapsed() < SLACK, "{:?}", released.elapsed());
    assert_eq!(holder(&world.other, &name).await, Some(next.value));
}
