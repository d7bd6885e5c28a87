//! Renewal in Redis: its failures, and its number of commands.

use std::time::Duration;

use galley::locks::{AcquireOptions, Lease, LockName, Locks, Loss, RenewalTiming, Verdict};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::locks::lease_holders::{Notification, RecordingHolder, registered};
use crate::locks::wait_queue::SHORT;
use crate::support::fixtures::{apart, fit, seat, until};
use crate::support::redis_server::{Server, TEST_TIMEOUT};

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    (server, locks)
}

/// Renewal pipelines, script calls and renewals in `time`.
async fn commands_in(server: &Server, time: Duration) -> (u64, u64, u64) {
    server.forget_calls().await;
    sleep(time).await;
    // At one moment: a round between two reads would count in the second one.
    server.calls_of(["script|load", "evalsha", "pexpire"]).await.into()
}

#[tokio::test]
async fn seats_and_guards_of_one_process_share_one_renewal_pipeline() {
    let (server, locks) = start().await;
    let (lease, lease_holder) = (Duration::from_millis(1_500), RecordingHolder::new());
    let (mut registration, mut guards) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let timing = RenewalTiming::new(lease, lease / 3);
        registration.push(registered(&locks, &seat(), timing, &lease_holder).await);
        let name = LockName::named(&format!("job:{number}"));
        let options = AcquireOptions::new(Lease::Renewed(lease));
        guards.push(locks.try_lock(&name, &options).await.expect("a free lock"));
        sleep(Duration::from_millis(5)).await;
    }
    sleep(lease).await;
    let (pipelines, scripts, renewals) = commands_in(&server, lease).await;
    assert!((2..=4).contains(&pipelines), "three in three thirds of a lease: {pipelines}");
    // One TTL, one call, with all locks each time.
    assert_eq!((scripts, renewals), (pipelines, pipelines * 40));
    // And on request.
    server.forget_calls().await;
    locks.renew_ahead(lease);
    until("the round is made", async || server.calls("pexpire").await == 40).await;
    assert_eq!((server.calls("script|load").await, server.calls("evalsha").await), (1, 1));
    assert!(guards.iter().all(galley::locks::Guard::is_held));
}

#[tokio::test]
async fn a_hundred_different_leases_need_no_more_tasks_and_pipelines_than_one() {
    let (server, locks) = start().await;
    let (shortest, lease_holder) = (Duration::from_millis(1_500), RecordingHolder::new());
    let registration = |lease: Duration| registered_seat(&locks, lease, &lease_holder);
    let mut all = vec![registration(shortest).await];
    sleep(shortest).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (alone, ..) = commands_in(&server, shortest * 2).await;
    for number in 1..100 {
        all.push(registration(shortest + Duration::from_millis(41) * number).await);
    }
    // The test's own connection has a task, which may end a moment later.
    let alive = || Handle::current().metrics().num_alive_tasks();
    until("there is no further task", async || alive() <= tasks).await;
    let (together, ..) = commands_in(&server, shortest * 2).await;
    // A round may fall on either edge of the counted time.
    assert!(together <= alone + 1 && alone <= together + 1, "{alone} and {together}");
    until("there is no further task", async || alive() <= tasks).await;
    let is_renewal =
        |notified: &Notification| matches!(notified, Notification::Renewed(_, Verdict::Renewed));
    assert!(lease_holder.notified().iter().all(is_renewal));
}

async fn registered_seat(
    locks: &Locks,
    lease: Duration,
    lease_holder: &std::sync::Arc<RecordingHolder>,
) -> (galley::locks::Registration, String) {
    registered(locks, &seat(), RenewalTiming::new(lease, lease / 3), lease_holder).await
}

#[tokio::test]
async fn g6_a_round_in_flight_never_restores_a_released_lock() {
    let (server, locks) = start().await;
    let lease_holder = RecordingHolder::new();
    for _ in 0..5 {
        let name = seat();
        let timing = RenewalTiming::new(Duration::from_secs(12), Duration::from_secs(4));
        let (registration, value) = registered(&locks, &name, timing, &lease_holder).await;
        server.freeze().await;
        let queried = lease_holder.queried();
        locks.renew_ahead(timing.ttl());
        until("the round is made", async || queried < lease_holder.queried()).await;
        // The renewal is in flight to a Redis that does not read.
        drop(registration);
        let (other, theirs) = (locks.clone(), name.clone());
        let released = apart(async move { other.release(&theirs, &value).await });
        server.thaw().await;
        timeout(TEST_TIMEOUT, released)
            .await
            .expect("in time")
            .expect("no panic")
            .expect("a reply");
        assert_eq!(locks.holder(&name).await, Ok(None));
        locks.renew_ahead(timing.ttl());
        sleep(SHORT).await;
        assert_eq!(locks.holder(&name).await, Ok(None));
    }
    assert_eq!(lease_holder.notified(), [], "the verdict found no entry");
}

/// Goal: after its deadline the actor still queries the lease holder, and reasserts the lock.
#[tokio::test]
async fn g1_a_holder_past_its_deadline_reasserts_as_soon_as_redis_is_back() {
    let (mut server, locks) = start().await;
    let lease_holder = RecordingHolder::new();
    let lease = Duration::from_millis(900);
    let (registration, value) = registered_seat(&locks, lease, &lease_holder).await;
    lease_holder.until_notified(1).await;
    server.stop().await;
    let (queried, notified) = (lease_holder.queried(), lease_holder.notified().len());
    sleep(lease * 2).await;
    assert!(queried < lease_holder.queried() && lease_holder.notified().len() == notified);
    server.start_again().await;
    let notified = lease_holder.until_notified(notified + 1).await;
    assert!(
        matches!(notified.last(), Some(Notification::Renewed(_, Verdict::Reasserted))),
        "{notified:?}"
    );
    assert!(!notified.contains(&Notification::Lost(Loss::Taken)));
    let name = locks.seats().await.expect("a reply");
    assert_eq!((name.len(), &name[0].1.value), (1, &value));
    assert!(registration.end());
}
