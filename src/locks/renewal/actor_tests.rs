//! Counts the operations of the renewal actor, which only a unit test can read. Time is paused.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;
use tokio::time::{Instant, advance};

use super::*;
use crate::client::options::RenewalTiming;
use crate::memory::Memory;
use crate::name::LockName;
use crate::renewal::lease::LeaseHolder;
use crate::types::{Claim, Claimed, Owner, Takeover};
use galley_domain::fence::Fence;

const MANY: usize = 20_000;
const LEASE: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_secs(4);

/// Always renewable; counts its notifications.
#[derive(Debug, Default)]
struct CountingHolder {
    renewed: AtomicUsize,
    lost: AtomicUsize,
}

impl LeaseHolder for CountingHolder {
    fn lives(&self, _now: Instant) -> Renewable {
        Renewable::Yes
    }

    fn renewed(&self, _sent_at: Instant, _verdict: Verdict) {
        self.renewed.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self, _loss: Loss) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The renewal actor, and one lease holder of all locks.
struct World {
    backend: Backend,
    renewal: Arc<RenewalActor>,
    holder: Arc<CountingHolder>,
    _stop: tokio_util::sync::DropGuard,
}

impl World {
    fn at_rest() -> Self {
        let (renewal, stop) = (Arc::new(RenewalActor::default()), CancellationToken::new());
        let backend = Backend::Memory(Arc::new(Memory::default()));
        Self { backend, renewal, holder: Arc::default(), _stop: stop.drop_guard() }
    }

    async fn at_work() -> Self {
        let (world, stop) = (Self::at_rest(), CancellationToken::new());
        let run = Arc::clone(&world.renewal).run(world.backend.clone(), stop.clone());
        #[expect(clippy::disallowed_methods, reason = "a test")]
        tokio_util::task::TaskTracker::new().spawn(run);
        yield_now().await;
        Self { _stop: stop.drop_guard(), ..world }
    }

    /// A new lock, claimed now.
    async fn held(&self, number: usize) -> HeldLock {
        let claim = Claim {
            name: LockName::named(&format!("job:{number}")),
            value: format!("value {number}"),
            owner: Owner::unknown(),
            floor: Fence::ZERO,
            ttl: LEASE,
            over: Takeover::None,
        };
        let Ok(Claimed::Granted(grant)) = self.backend.claim(&claim).await else { panic!("free") };
        let Claim { name, value, owner, .. } = claim;
        HeldLock { name, value, owner, fence: grant.fence, since: grant.since }
    }

    async fn register(&self, number: usize, every: Duration) -> u64 {
        let held = Arc::new(self.held(number).await);
        let lease_holder = Arc::<CountingHolder>::clone(&self.holder);
        let timing = RenewalTiming::new(every * 3, every);
        let entry = LeaseEntry { held, timing, ends: None, rests_until: None, lease_holder };
        self.renewal.enter(entry, Instant::now()).expect("not closed")
    }

    fn wakes(&self) -> usize {
        self.renewal.wakes.load(Ordering::Relaxed)
    }

    fn entries_read(&self) -> usize {
        self.renewal.register().entries_read
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_simultaneous_locks_wake_the_actor_once_without_a_scan() {
    let world = World::at_work().await;
    for number in 0..MANY {
        world.register(number, EVERY).await;
        // The actor runs after each registration.
        yield_now().await;
    }
    assert_eq!((world.wakes(), world.entries_read()), (1, 0));
    advance(EVERY).await;
    yield_now().await;
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), MANY);
    // One wake-up for all. The actor reads each due entry twice: for the horizon and for the round.
    assert_eq!((world.wakes(), world.entries_read()), (2, 2 * MANY));
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_changing_locks_cost_only_their_renewal_rounds() {
    let world = World::at_work().await;
    let mut ids = Vec::new();
    for number in 0..MANY {
        ids.push(world.register(number, EVERY).await);
        if number % 2 == 0 {
            world.renewal.leave(ids.swap_remove(number % ids.len()));
        }
        advance(Duration::from_millis(1)).await;
        yield_now().await;
    }
    // Twenty seconds. The first due lock may have left meanwhile, so some wake-ups find nothing
    // due.
    let rounds = MANY / 1_000 / 4;
    assert!(world.wakes() <= MANY / 100, "{} wakes", world.wakes());
    let renewed = world.holder.renewed.load(Ordering::Relaxed);
    assert!(renewed <= rounds * MANY / 2, "{renewed} renewals");
    assert!(
        world.entries_read() <= 2 * (renewed + world.wakes()),
        "{} looks",
        world.entries_read()
    );
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_is_renewed_without_reading_ten_thousand_other_entries() {
    let world = World::at_work().await;
    for number in 0..10_000 {
        world.register(number, EVERY).await;
    }
    world.register(10_000, Duration::from_millis(100)).await;
    yield_now().await;
    // Up to the round that includes all locks.
    for _ in 0..38 {
        advance(Duration::from_millis(100)).await;
        yield_now().await;
    }
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 38);
    assert_eq!(world.entries_read(), 2 * 38);
    advance(Duration::from_millis(100)).await;
    yield_now().await;
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 39 + 10_000);
}

#[tokio::test(start_paused = true)]
async fn g6_an_entry_removed_during_a_round_gets_no_verdict_and_is_not_restored() {
    let world = World::at_rest();
    let (left, stays) = (world.register(1, EVERY).await, world.register(2, EVERY).await);
    advance(EVERY).await;
    let now = Instant::now();
    let items = world.renewal.register().due_locks(now, false);
    let round = world.renewal.query_holders(&world.backend, items, now);
    assert_eq!(round.len(), 2);
    // The pipeline is in flight now, and its reply arrives.
    assert!(world.renewal.leave(left));
    world.renewal.apply(&round, &[Verdict::Renewed; 2], now);
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 1);
    // Once more: the backend rejected the late renewal (K4).
    assert!(world.renewal.leave(stays));
    world.renewal.apply(&round, &[Verdict::Lost; 2], now);
    let counts = (&world.holder.renewed, &world.holder.lost);
    assert_eq!((counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed)), (1, 0));
    assert_eq!(world.renewal.register().next_wake(), None);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_verdict_is_retried_soon_and_alone() {
    let world = World::at_rest();
    let unknown = world.register(1, EVERY).await;
    world.register(2, EVERY).await;
    advance(EVERY).await;
    let now = Instant::now();
    let items = world.renewal.register().due_locks(now, false);
    let round = world.renewal.query_holders(&world.backend, items, now);
    let is_first =
        |item: &DueLock| if item.id == unknown { Verdict::Unknown } else { Verdict::Renewed };
    let verdicts: Vec<_> = round.iter().map(is_first).collect();
    assert!(!world.renewal.apply(&round, &verdicts, now), "not whole");
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 1);
    let next = world.renewal.register().next_wake().expect("a retry is due");
    assert_eq!(next, now + EVERY / 5);
    let items = world.renewal.register().due_locks(next, false);
    assert_eq!(items.iter().map(|item| item.id).collect::<Vec<_>>(), [unknown]);
}

#[tokio::test(start_paused = true)]
async fn after_a_stall_the_actor_runs_one_round_and_no_burst() {
    let world = World::at_work().await;
    world.register(1, EVERY).await;
    yield_now().await;
    advance(EVERY * 10 + EVERY / 2).await;
    yield_now().await;
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 1);
    advance(EVERY - Duration::from_millis(1)).await;
    yield_now().await;
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 1, "a full period later");
    advance(Duration::from_millis(1)).await;
    yield_now().await;
    assert_eq!(world.holder.renewed.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_grant_from_before_a_redis_outage_is_renewed_when_registered() {
    let world = World::at_rest();
    let held = Arc::new(world.held(1).await);
    let sent_at = Instant::now();
    advance(Duration::from_secs(1)).await;
    // The backend comes back before the grant is registered: its fence is being ratified.
    let back_at = Instant::now();
    assert!(world.renewal.register().due_locks(back_at, true).is_empty());
    advance(Duration::from_secs(1)).await;
    let lease_holder = Arc::<CountingHolder>::clone(&world.holder);
    let timing = RenewalTiming::new(LEASE, EVERY);
    let entry = LeaseEntry { held, timing, ends: None, rests_until: None, lease_holder };
    world.renewal.enter(entry.clone(), sent_at).expect("not closed");
    let items = world.renewal.register().due_locks(Instant::now(), false);
    assert_eq!(items.len(), 1, "at once");
    // A later grant comes from the backend in its present state.
    let late = world.renewal.enter(entry, Instant::now()).expect("not closed");
    world.renewal.leave(items[0].id);
    assert!(world.renewal.register().due_locks(Instant::now(), false).is_empty());
    assert_eq!(world.renewal.register().next_wake(), Some(Instant::now() + EVERY));
    assert!(world.renewal.leave(late));
}
