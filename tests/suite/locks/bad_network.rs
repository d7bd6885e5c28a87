//! Network faults between client and Redis: slow, one-way, half-open, cut inside a message.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use galley::locks::{
    AcquireOptions, Claimed, Guard, Lease, LockName, Locks, Policy, Released, Verdict, WaitPolicy,
};
use tokio::task::yield_now;
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use crate::locks::lost_replies::World;
use crate::locks::wait_queue::{QUEUE_ENTRY_TTL, SLACK, await_grant, enter};
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, refused, seat, seated, until, until_free,
};
use crate::support::proxy::{End, Fate, Proxy, Way};
use crate::support::stopwatch::Stopwatch;
use crate::support::tcp_side::Parting;

/// The client gives up a connection after this long without a reply.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How soon after the network recovers the client works again.
const SOON: Duration = Duration::from_secs(2);

async fn auto_renewed(locks: &Locks) -> Guard {
    let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
    locks.try_lock(&LockName::named("job:1"), &options).await.expect("a free lock")
}

/// Claims a lock until Redis replies.
async fn until_claims_work(locks: &Locks) -> Instant {
    until("claims work", async || locks.claim(&claim(&seat(), &kim())).await.is_ok()).await
}

#[tokio::test]
async fn g5_with_lost_messages_a_waiter_is_served_by_its_poll_within_half_a_queue_deadline() {
    let world = World::start().await;
    let name = seat();
    let old = seated(&world.other, &name, &kim(), LONG).await;
    world.proxy.lose_messages();
    let (waiting, _at) = enter(&world.locks, &claim(&name, &lee())).await;
    let released = Instant::now();
    world.other.release(&name, &old.value).await.expect("a reply");
    await_grant(waiting).await;
    let served = released.elapsed();
    assert!(QUEUE_ENTRY_TTL / 4 < served && served < QUEUE_ENTRY_TTL / 2 + SLACK, "{served:?}");
}

#[tokio::test]
async fn g5_without_messages_a_guard_is_acquired_by_a_poll_at_the_requested_interval() {
    /// At the default interval of three seconds these polls take a minute, too long for a test. At
    /// the requested interval they take two seconds.
    const LOOKS: u64 = 25;
    let world = World::start().await;
    let name = LockName::named("job:2");
    let old = seated(&world.other, &name, &kim(), LONG).await;
    world.proxy.lose_messages();
    world.server.forget_calls().await;
    let slice = Duration::from_millis(80);
    let options = AcquireOptions::new(Lease::Fixed(LONG))
        .with(Policy::Queue(WaitPolicy { slice, total: LONG }));
    let looks = async {
        until("it polls", async || LOOKS <= world.server.calls("evalsha").await).await;
        world.other.release(&name, &old.value).await.expect("a reply");
    };
    let (guard, ()) = join(world.locks.lock(&name, &options), looks).await;
    let guard = guard.expect("a grant");
    assert!(old.fence < guard.fence() && guard.is_held());
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_half_open_connection_to_a_gone_server_is_dropped_after_a_silence() {
    let world = World::start().await;
    let guard = auto_renewed(&world.locks).await;
    let held = seated(&world.locks, &seat(), &kim(), LONG).await;
    world.proxy.forsake_all(End::Server);
    let forsaken = Instant::now();
    let held = std::slice::from_ref(&held);
    let renewed = until("it is renewed", async || {
        let round = world.locks.renew(held, LONG).await;
        round.is_ok_and(|round| round.verdicts == [Verdict::Renewed])
    });
    let (claimed, renewed) = join(until_claims_work(&world.locks), renewed).await;
    for noticed in [claimed - forsaken, renewed - forsaken] {
        assert!(noticed < SILENCE_MAX + SOON, "{noticed:?}");
    }
    assert!(guard.is_held());
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test]
async fn g1_a_half_open_connection_of_a_gone_client_blocks_no_claim() {
    let world = World::start().await;
    let guard = auto_renewed(&world.locks).await;
    let before: String = world.server.run("CLIENT LIST").await;
    world.proxy.forsake_all(End::Client);
    let forsaken = Instant::now();
    let claimed = until_claims_work(&world.locks).await;
    assert!(claimed - forsaken < SOON, "{:?}", claimed - forsaken);
    // The client had Redis kill the old connection that could still carry claims.
    let id = |line: &str| line.split(' ').next().expect("an id").to_owned();
    let called = |line: &&str| line.contains(" cmd=evalsha");
    let stale: Vec<_> = before.lines().filter(called).map(id).collect();
    let after: String = world.server.run("CLIENT LIST").await;
    let left = after.lines().map(id).filter(|id| stale.contains(id)).count();
    // The renewals of this server, and both connections of the other.
    assert!(left < stale.len(), "{before}\n{after}");
    assert!(guard.is_held());
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

/// Drops all packets of one direction until the client gives up its connections.
async fn fall_into_a_hole(way: Way) {
    let world = World::start().await;
    let guard = auto_renewed(&world.locks).await;
    let (name, held) = (seat(), seated(&world.locks, &seat(), &kim(), LONG).await);
    world.proxy.hold(way);
    let began = Instant::now();
    let mut failed = Vec::new();
    while began.elapsed() < SILENCE_MAX {
        let options = claim(&name, &kim());
        assert!(world.locks.claim(&options).await.is_err());
        failed.push(options.value);
    }
    assert!(guard.is_held());
    world.proxy.heal();
    let healed = Instant::now();
    let claimed = until_claims_work(&world.locks).await;
    assert!(claimed - healed < SOON, "{:?}", claimed - healed);
    join_all(failed.iter().map(|value| world.until_paid(value))).await;
    assert_eq!(world.other.holder(&name).await, Ok(None));
    assert_eq!(refused(&world.other, &claim(&held.name, &lee())).await.value, held.value);
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_packet_loss_in_either_direction_is_an_outage_without_leftovers() {
    join_all([Way::ToServer, Way::ToClient].map(fall_into_a_hole)).await;
}

/// The delay of each direction: one exchange takes more than half of its time-out.
const LATE: Duration = Duration::from_millis(400);

#[tokio::test]
async fn all_operations_work_under_high_latency() {
    let world = World::start().await;
    world.proxy.delay(LATE);
    let (name, began) = (seat(), Instant::now());
    let old = seated(&world.other, &name, &kim(), LONG).await;
    let waited = async {
        let next = claim(&name, &lee());
        let (waiting, at) = enter(&world.locks, &next).await;
        assert_eq!((at.position, &at.holder.value), (1, &old.value));
        world.other.release(&name, &old.value).await.expect("a reply");
        let released = Stopwatch::start();
        let grant = await_grant(waiting).await;
        assert!(old.fence < grant.fence);
        assert!(released.elapsed() < 3 * LATE + SLACK, "told: {:?}", released.elapsed());
        let next = [held(&next, &grant)];
        let round = world.locks.renew(&next, LONG).await.expect("a reply");
        assert_eq!(round.verdicts, [Verdict::Renewed]);
    };
    let guarded = async {
        let guard = auto_renewed(&world.locks).await;
        assert!(guard.is_held());
        assert_eq!(guard.release().await, Ok(Released::Freed));
    };
    join(waited, guarded).await;
    assert!(7 * LATE <= began.elapsed(), "it was late: {:?}", began.elapsed());
}

#[tokio::test]
async fn connections_open_under_high_latency() {
    let world = World::start().await;
    let guard = auto_renewed(&world.locks).await;
    world.proxy.delay(LATE);
    world.proxy.end_all(Parting::Reset);
    let cut = Instant::now();
    until_claims_work(&world.locks).await;
    assert!(8 * LATE <= cut.elapsed() && guard.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_claim_cut_after_any_number_of_its_bytes_never_makes_two_holders_nor_a_leak() {
    const WORKERS: usize = 32;
    let world = World::start().await;
    // As long as all that follow: ids have one length.
    let measured = seat();
    world.proxy.on_request(measured.key(), Fate::CutAfter(usize::MAX));
    assert!(world.locks.claim(&claim(&measured, &kim())).await.is_err());
    let sent = world.proxy.lengths().0;
    let measured = seat();
    until_claims_work(&world.locks).await;
    world.proxy.on_answer(measured.key(), Fate::CutAfter(usize::MAX));
    let _cut = world.locks.claim(&claim(&measured, &kim())).await;
    world.proxy.has_struck().await;
    let answered = world.proxy.lengths().1;
    assert!(400 < sent && 40 < answered, "{sent} {answered}");

    let workers = (0..WORKERS).map(async |worker| {
        // A separate proxy: a cut affects all its connections.
        let proxy = Proxy::to(&world.server).await;
        let locks = Locks::connect(&proxy.url()).await.expect("a good address");
        for cut in (worker..=sent + answered).step_by(WORKERS) {
            cut_after(&world, &proxy, &locks, cut, sent).await;
        }
    });
    join_all(workers).await;
}

/// Claims with a cut after `cut` bytes of the exchange, and lets another server claim after that.
async fn cut_after(world: &World, proxy: &Proxy, locks: &Locks, cut: usize, sent: usize) {
    let name = seat();
    until("it is connected", async || locks.holder(&name).await.is_ok()).await;
    let options = claim(&name, &kim());
    match cut.checked_sub(sent) {
        None => proxy.on_request(name.key(), Fate::CutAfter(cut)),
        Some(cut) => proxy.on_answer(name.key(), Fate::CutAfter(cut)),
    }
    let claimed = locks.claim(&options).await;
    proxy.has_struck().await;
    match claimed {
        // Only a complete reply is a grant.
        Ok(Claimed::Granted(_)) => {
            assert_eq!(refused(&world.other, &claim(&name, &lee())).await.value, options.value);
        }
        Ok(Claimed::Busy(holder)) => panic!("{cut}: {holder:?}"),
        Err(_) => {
            let next = claim(&name, &lee());
            until("it is released", async || {
                let claimed = world.other.claim(&next).await;
                matches!(claimed, Ok(Claimed::Granted(_)))
            })
            .await;
            // A pending release never frees another holder's lock. A busy machine may lose one
            // reply.
            until("the next claimant holds it", async || {
                let claimed = world.other.claim(&claim(&name, &kim())).await;
                matches!(claimed, Ok(Claimed::Busy(holder)) if holder.value == next.value)
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_repeated_connection_resets_never_make_two_holders() {
    let world = World::start().await;
    let (name, inside) = (seat(), AtomicBool::new(false));
    let over = CancellationToken::new();
    let hold_once = async |locks: &Locks| {
        let options = claim(&name, &kim());
        let Ok(Claimed::Granted(_)) = locks.claim(&options).await else { return 0 };
        assert!(!inside.swap(true, SeqCst), "two holders");
        yield_now().await;
        inside.store(false, SeqCst);
        // Without a reply the release stays pending.
        usize::from(locks.release(&name, &options.value).await.is_ok())
    };
    let hold_often = async |locks| {
        let mut holds = 0;
        while !over.is_cancelled() {
            holds += hold_once(locks).await;
        }
        holds
    };
    let resets = async {
        let mut tick = interval(Duration::from_millis(150));
        for _ in 0..15 {
            tick.tick().await;
            world.proxy.end_all(Parting::Reset);
        }
        over.cancel();
    };
    let (one, other, ()) = join3(hold_often(&world.locks), hold_often(&world.other), resets).await;
    assert!(0 < one && 0 < other, "{one} {other}");
    until_free(&world.other, &name).await;
    granted(&world.other, &claim(&name, &lee())).await;
}
