//! What the renewal actor does is counted here, where its inside can be seen. Time is paused.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;
use tokio::time::{Instant, advance};

use super::*;
use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::user::User;
use crate::locks::client::options::Rhythm;
use crate::locks::memory::Memory;
use crate::locks::name::LockName;
use crate::locks::renewal::lease::Tenant;
use crate::locks::types::{Claim, Claimed, Over, Owner};

const MANY: usize = 20_000;
const LEASE: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_secs(4);

/// Lives, and counts what it is told.
#[derive(Debug, Default)]
struct Lodger {
    renewed: AtomicUsize,
    lost: AtomicUsize,
}

impl Tenant for Lodger {
    fn lives(&self, _now: Instant) -> Lives {
        Lives::Yes
    }

    fn renewed(&self, _sent_at: Instant, _verdict: Verdict) {
        self.renewed.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self, _loss: Loss) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The actor at its work, and one tenant of everything.
struct World {
    keeper: Keeper,
    keeping: Arc<Keeping>,
    lodger: Arc<Lodger>,
    _stop: tokio_util::sync::DropGuard,
}

impl World {
    fn at_rest() -> Self {
        let (keeping, stop) = (Arc::new(Keeping::default()), CancellationToken::new());
        let keeper = Keeper::Memory(Arc::new(Memory::default()));
        Self { keeper, keeping, lodger: Arc::default(), _stop: stop.drop_guard() }
    }

    async fn at_work() -> Self {
        let (world, stop) = (Self::at_rest(), CancellationToken::new());
        let run = Arc::clone(&world.keeping).run(world.keeper.clone(), stop.clone());
        tokio_util::task::TaskTracker::new().spawn(run);
        yield_now().await;
        Self { _stop: stop.drop_guard(), ..world }
    }

    /// A lock of its own, claimed now.
    async fn held(&self, number: usize) -> Held {
        let user = User { id: UserId::generate(), name: String::new() };
        let claim = Claim {
            name: LockName::named(&format!("job:{number}")),
            value: format!("value {number}"),
            owner: Owner { user, node: NodeId::generate(), pass: None },
            floor: Fence::ZERO,
            ttl: LEASE,
            over: Over::Nobody,
        };
        let Ok(Claimed::Granted(grant)) = self.keeper.claim(&claim).await else { panic!("free") };
        let Claim { name, value, owner, .. } = claim;
        Held { name, value, owner, fence: grant.fence, since: grant.since }
    }

    async fn kept(&self, number: usize, every: Duration) -> u64 {
        let held = Arc::new(self.held(number).await);
        let tenant = Arc::<Lodger>::clone(&self.lodger);
        let rhythm = Rhythm::new(every * 3, every);
        let tenancy = Tenancy { held, rhythm, ends: None, rests_until: None, tenant };
        self.keeping.enter(tenancy, Instant::now()).expect("not closed")
    }

    fn wakes(&self) -> usize {
        self.keeping.wakes.load(Ordering::Relaxed)
    }

    fn looked_at(&self) -> usize {
        self.keeping.register().looked_at
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_that_come_at_once_wake_the_actor_once_and_are_not_walked_over() {
    let world = World::at_work().await;
    for number in 0..MANY {
        world.kept(number, EVERY).await;
        // The actor is let run after each.
        yield_now().await;
    }
    assert_eq!((world.wakes(), world.looked_at()), (1, 0));
    advance(EVERY).await;
    yield_now().await;
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), MANY);
    // Woken once for all. What is due is looked at twice: how far the round goes, and what joins.
    assert_eq!((world.wakes(), world.looked_at()), (2, 2 * MANY));
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_that_come_and_go_for_a_while_cost_what_their_rounds_cost() {
    let world = World::at_work().await;
    let mut ids = Vec::new();
    for number in 0..MANY {
        ids.push(world.kept(number, EVERY).await);
        if number % 2 == 0 {
            world.keeping.leave(ids.swap_remove(number % ids.len()));
        }
        advance(Duration::from_millis(1)).await;
        yield_now().await;
    }
    // Twenty seconds in which whoever was first may have left again, and some wakes are in vain.
    let rounds = MANY / 1_000 / 4;
    assert!(world.wakes() <= MANY / 100, "{} wakes", world.wakes());
    let renewed = world.lodger.renewed.load(Ordering::Relaxed);
    assert!(renewed <= rounds * MANY / 2, "{renewed} renewals");
    assert!(world.looked_at() <= 2 * (renewed + world.wakes()), "{} looks", world.looked_at());
}

#[tokio::test(start_paused = true)]
async fn one_of_a_short_lease_makes_its_rounds_without_a_look_at_ten_thousand_others() {
    let world = World::at_work().await;
    for number in 0..10_000 {
        world.kept(number, EVERY).await;
    }
    world.kept(10_000, Duration::from_millis(100)).await;
    yield_now().await;
    // Up to the round that takes all along.
    for _ in 0..38 {
        advance(Duration::from_millis(100)).await;
        yield_now().await;
    }
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 38);
    assert_eq!(world.looked_at(), 2 * 38);
    advance(Duration::from_millis(100)).await;
    yield_now().await;
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 39 + 10_000);
}

#[tokio::test(start_paused = true)]
async fn g6_what_left_while_a_round_was_under_way_is_told_nothing_and_not_raised() {
    let world = World::at_rest();
    let (left, stays) = (world.kept(1, EVERY).await, world.kept(2, EVERY).await);
    advance(EVERY).await;
    let now = Instant::now();
    let agenda = world.keeping.register().agenda(now, false);
    let round = world.keeping.ask(&world.keeper, agenda, now);
    assert_eq!(round.len(), 2);
    // The pipeline is on its way now, and comes back.
    assert!(world.keeping.leave(left));
    world.keeping.apply(&round, &[Verdict::Renewed; 2], now);
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 1);
    // Once more, and the keeper has refused it as late (K4).
    assert!(world.keeping.leave(stays));
    world.keeping.apply(&round, &[Verdict::Lost; 2], now);
    let told = (&world.lodger.renewed, &world.lodger.lost);
    assert_eq!((told.0.load(Ordering::Relaxed), told.1.load(Ordering::Relaxed)), (1, 0));
    assert_eq!(world.keeping.register().arm(), None);
}

#[tokio::test(start_paused = true)]
async fn what_there_is_no_telling_of_is_tried_again_soon_and_without_the_others() {
    let world = World::at_rest();
    let unknown = world.kept(1, EVERY).await;
    world.kept(2, EVERY).await;
    advance(EVERY).await;
    let now = Instant::now();
    let agenda = world.keeping.register().agenda(now, false);
    let round = world.keeping.ask(&world.keeper, agenda, now);
    let is_first =
        |item: &Item| if item.id == unknown { Verdict::Unknown } else { Verdict::Renewed };
    let verdicts: Vec<_> = round.iter().map(is_first).collect();
    assert!(!world.keeping.apply(&round, &verdicts, now), "not whole");
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 1);
    let next = world.keeping.register().arm().expect("it is tried again");
    assert_eq!(next, now + EVERY / 5);
    let agenda = world.keeping.register().agenda(next, false);
    assert_eq!(agenda.iter().map(|item| item.id).collect::<Vec<_>>(), [unknown]);
}

#[tokio::test(start_paused = true)]
async fn after_a_stall_there_is_one_round_and_no_burst() {
    let world = World::at_work().await;
    world.kept(1, EVERY).await;
    yield_now().await;
    advance(EVERY * 10 + EVERY / 2).await;
    yield_now().await;
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 1);
    advance(EVERY - Duration::from_millis(1)).await;
    yield_now().await;
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 1, "a full period later");
    advance(Duration::from_millis(1)).await;
    yield_now().await;
    assert_eq!(world.lodger.renewed.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_before_the_keeper_was_away_is_renewed_as_soon_as_it_is_kept() {
    let world = World::at_rest();
    let held = Arc::new(world.held(1).await);
    let sent_at = Instant::now();
    advance(Duration::from_secs(1)).await;
    // It comes back while the grant is not in the register yet: its fence is being ratified.
    let back_at = Instant::now();
    assert!(world.keeping.register().agenda(back_at, true).is_empty());
    advance(Duration::from_secs(1)).await;
    let tenant = Arc::<Lodger>::clone(&world.lodger);
    let rhythm = Rhythm::new(LEASE, EVERY);
    let tenancy = Tenancy { held, rhythm, ends: None, rests_until: None, tenant };
    world.keeping.enter(tenancy.clone(), sent_at).expect("not closed");
    let agenda = world.keeping.register().agenda(Instant::now(), false);
    assert_eq!(agenda.len(), 1, "at once");
    // What is granted after that has been granted by the keeper as it is now.
    let late = world.keeping.enter(tenancy, Instant::now()).expect("not closed");
    world.keeping.leave(agenda[0].id);
    assert!(world.keeping.register().agenda(Instant::now(), false).is_empty());
    assert_eq!(world.keeping.register().arm(), Some(Instant::now() + EVERY));
    assert!(world.keeping.leave(late));
}
