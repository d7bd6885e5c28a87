//! Guards in Redis: its failures, and its number of commands.

use std::time::Duration;

use futures_util::StreamExt as _;
use galley::locks::{AcquireOptions, Guard, Lease, LockError, LockName, Locks, Loss, Released};
use redis::Value;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::locks::wait_queue::SLACK;
use crate::support::fixtures::{fit, until};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    (server, locks)
}

async fn auto_renewed(locks: &Locks, number: usize, lease: Duration) -> Guard {
    let name = LockName::named(&format!("job:{number}"));
    locks.try_lock(&name, &AcquireOptions::new(Lease::Renewed(lease))).await.expect("a free lock")
}

/// Renewal rounds, script calls and renewals in `time`, read at one moment.
async fn rounds_in(server: &Server, time: Duration) -> [u64; 3] {
    server.forget_calls().await;
    sleep(time).await;
    server.calls_of(["script|load", "evalsha", "pexpire"]).await
}

#[tokio::test]
async fn a_hundred_locks_are_renewed_by_one_task_in_one_pipeline_a_round() {
    let (server, locks) = start().await;
    let lease = Duration::from_millis(4_500);
    let mut guards = vec![auto_renewed(&locks, 0, lease).await];
    let tasks = Handle::current().metrics().num_alive_tasks();
    for number in 1..100 {
        guards.push(auto_renewed(&locks, number, lease).await);
        // Claimed at different phases of a round.
        sleep(Duration::from_millis(3)).await;
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "no task for each lock");
    sleep(lease).await;
    let [rounds, scripts, renewals] = rounds_in(&server, lease).await;
    assert!((2..=6).contains(&rounds), "about three, whatever the number: {rounds}");
    assert_eq!(scripts, rounds);
    assert!(200 <= renewals);
    assert!(guards.iter().all(Guard::is_held));
    for guard in guards {
        assert_eq!(guard.release().await, Ok(Released::Freed));
    }
    assert_eq!(rounds_in(&server, lease).await, [0; 3], "nothing is held, nothing is sent");
}

#[tokio::test]
async fn a_lost_lock_is_no_longer_renewed() {
    let (server, locks) = start().await;
    let lease = Duration::from_millis(900);
    let (taken, expired) =
        (auto_renewed(&locks, 1, lease).await, auto_renewed(&locks, 2, lease).await);
    let _: u64 = server.run(&format!("DEL {}", taken.name())).await;
    let _: Value = server.run(&format!("SET {} intruder PX 60000", taken.name())).await;
    assert_eq!(timeout(TEST_TIMEOUT, taken.lost()).await, Ok(Loss::Taken));
    server.freeze().await;
    assert_eq!(timeout(TEST_TIMEOUT, expired.lost()).await, Ok(Loss::Expired));
    server.thaw().await;
    until("all locks are released", async || locks.holder(expired.name()).await == Ok(None)).await;
    assert_eq!(rounds_in(&server, lease).await, [0; 3]);
    let left: String = server.run(&format!("GET {}", taken.name())).await;
    assert_eq!(left, "intruder");
}

#[tokio::test]
async fn locks_of_different_leases_retain_their_renewal_intervals() {
    let (server, locks) = start().await;
    let leases = [2_400, 3_600, 6_000, 60_000].map(Duration::from_millis);
    let mut guards = Vec::new();
    for (number, lease) in leases.into_iter().enumerate() {
        guards.push(auto_renewed(&locks, number, lease).await);
    }
    let renewed = renewals_until(&server, &guards, |counts| counts[2] == 3).await;
    assert!(guards.iter().all(Guard::is_held));
    // A due lock takes along the locks due before its next renewal, and no others.
    let [short, middle, long, longest] = renewed[..] else { panic!("{renewed:?}") };
    assert!(long < short && middle <= short && long <= middle, "{renewed:?}");
    assert_eq!(longest, 0, "not due for twenty seconds");
}

/// The number of renewals of each lock, by Redis's count, once a condition holds.
async fn renewals_until(
    server: &Server,
    guards: &[Guard],
    is_so: impl Fn(&[usize]) -> bool,
) -> Vec<usize> {
    let _: Value = server.run("CONFIG SET notify-keyspace-events Kg").await;
    let client = redis::Client::open(server.url()).expect("an address");
    let mut subscriber = client.get_async_pubsub().await.expect("a connection");
    subscriber.psubscribe("__keyspace@0__:lock:job:*").await.expect("a subscription");
    let mut messages = subscriber.on_message();
    let mut counts = vec![0; guards.len()];
    while !is_so(&counts) {
        let message = timeout(TEST_TIMEOUT, messages.next()).await.expect("in time").expect("one");
        let of = |guard: &Guard| message.get_channel_name().ends_with(guard.name().key());
        let at = guards.iter().position(of).expect("one of them");
        counts[at] += 1;
    }
    counts
}

#[tokio::test]
async fn g3_a_guard_that_cannot_be_renewed_is_lost_before_its_key_can_expire() {
    let (server, locks) = start().await;
    let lease = Duration::from_millis(1_200);
    let guard = auto_renewed(&locks, 1, lease).await;
    sleep(lease).await;
    server.freeze().await;
    let frozen = Stopwatch::start();
    assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Expired));
    assert!(frozen.elapsed() < lease, "{:?}", frozen.elapsed());
    server.thaw().await;
    // The guard releases the lock, which Redis may still store.
    let name = guard.name().clone();
    until("it is free", async || locks.holder(&name).await == Ok(None)).await;
}

#[tokio::test]
async fn g6_a_failed_renewal_round_loses_no_lock() {
    let (server, locks) = start().await;
    let lease = Duration::from_millis(4_500);
    let guard = auto_renewed(&locks, 1, lease).await;
    for _ in 0..3 {
        // Each outage takes a third of the lease.
        server.freeze().await;
        sleep(lease / 3).await;
        server.thaw().await;
        sleep(lease / 2).await;
        assert!(guard.is_held());
    }
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test]
async fn g1_guards_survive_an_empty_redis_restart() {
    let (mut server, locks) = start().await;
    let lease = Duration::from_secs(6);
    let mut guards = Vec::new();
    for number in 0..20 {
        guards.push(auto_renewed(&locks, number, lease).await);
    }
    server.stop().await;
    server.start_again().await;
    let back = Stopwatch::start();
    for guard in &guards {
        until("it is back", async || {
            let holder = locks.holder(guard.name()).await.ok().flatten();
            holder.is_some_and(|holder| holder.fence == guard.fence())
        })
        .await;
    }
    // Not in the next regular round, but at the reconnect.
    assert!(back.elapsed() < SLACK + Duration::from_millis(500), "{:?}", back.elapsed());
    assert!(guards.iter().all(Guard::is_held));
}

#[tokio::test]
async fn g6_a_release_among_renewals_is_never_undone() {
    let (server, locks) = start().await;
    let lease = Duration::from_millis(60);
    // Rounds follow each other without a pause, so releases fall into them.
    for number in 0..300_u64 {
        let name = LockName::named(&format!("job:{number}"));
        let guard = match locks.try_lock(&name, &AcquireOptions::new(Lease::Renewed(lease))).await {
            Ok(guard) => guard,
            // The machine is too busy for such a short lease.
            Err(LockError::Lost(Loss::Expired)) => continue,
            Err(error) => panic!("{error}"),
        };
        sleep(Duration::from_micros(211 * (number % 100))).await;
        if guard.is_held() {
            let released = guard.release().await.expect("a reply");
            let exists: u64 = server.run(&format!("EXISTS {name}")).await;
            assert!(exists == 0, "{released:?}");
        }
    }
    sleep(lease * 2).await;
    let held = locks.held().await.expect("a reply");
    assert!(held.is_empty(), "{held:?}");
}
