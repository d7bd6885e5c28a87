//! The wait queue on every backend. Each test runs on both.

use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    Claim, Claimed, Grant, LockError, LockName, Locks, QueuePosition, Takeover, Verdict,
    WaitOutcome, Waiter,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, apart, claim, granted, granted_in_turn, held, kim, lee, refused, seat, seated, until,
};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::stopwatch::Stopwatch;

crate::locks::on_both_backends! {
    and on a cluster:
    g5_a_release_hands_the_lock_to_the_first_waiter
    g5_a_hundred_waiters_on_two_servers_are_served_in_order
    g5_no_claim_overtakes_the_wait_queue
    g5_an_expired_lease_goes_to_the_first_waiter_without_a_message
    g5_a_dead_waiter_delays_the_next_by_its_queue_deadline_at_most
    g5_a_dead_waiter_is_out_of_the_queue_after_its_deadline
    g5_a_first_waiter_that_leaves_lets_the_next_be_first
    g5_a_waiter_that_leaves_after_a_hand_over_passes_it_on
    a_wait_times_out_and_leaves_the_queue
    a_poll_that_is_dropped_retains_the_queue_position
    a_takeover_overtakes_the_wait_queue_and_leaves_it_unchanged
    held_locks_are_listed_with_their_wait_queues
}

/// Short enough to await, long enough not to expire on a busy machine before the check.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// How long a waiter without polls counts as live.
pub(crate) const QUEUE_ENTRY_TTL: Duration = Duration::from_secs(6);
/// Tolerance of an immediate effect: less than half of [`QUEUE_ENTRY_TTL`], the interval of polls (G5).
pub(crate) const SLACK: Duration = Duration::from_millis(2_500);

/// Joins the queue; returns the first reported position.
pub(crate) async fn enter(locks: &Locks, claim: &Claim) -> (Waiter, QueuePosition) {
    let mut waiting = locks.wait(claim, LONG);
    match timeout(TEST_TIMEOUT, waiting.next()).await.expect("in time") {
        Ok(WaitOutcome::Position(backend)) => (waiting, backend),
        other => panic!("{other:?}"),
    }
}

/// Waits for the grant.
pub(crate) async fn await_grant(waiting: Waiter) -> Grant {
    timeout(TEST_TIMEOUT, granted_in_turn(waiting)).await.expect("in time").expect("a grant")
}

async fn value_of_holder(locks: &Locks, name: &LockName) -> Option<String> {
    locks.holder(name).await.expect("a reply").map(|holder| holder.value)
}

async fn g5_a_release_hands_the_lock_to_the_first_waiter(backend: TestBackend) {
    let (name, other) = (seat(), backend.another().await);
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let (first, second) = (claim(&name, &lee()), claim(&name, &kim()));
    let (waiting, at) = enter(&other, &first).await;
    assert_eq!((at.position, at.holder.value.as_str()), (1, old.value.as_str()));
    assert_eq!((at.holder.waiting, &at.holder.owner), (1, &old.owner));
    let (mut next, at) = enter(&backend.locks, &second).await;
    assert_eq!((at.position, at.holder.waiting), (2, 2));

    let (released, before) = (Stopwatch::start(), Instant::now());
    backend.locks.release(&name, &old.value).await.expect("a reply");
    // The hand-over precedes the message.
    assert_eq!(value_of_holder(&backend.locks, &name).await.as_ref(), Some(&first.value));
    let grant = await_grant(waiting).await;

    assert!(released.elapsed() < SLACK, "told, not found out: {:?}", released.elapsed());
    assert!(old.fence < grant.fence && grant.sent_at >= before);
    let holder = other.holder(&name).await.expect("a reply").expect("a holder");
    assert_eq!(
        (&holder.value, &holder.owner, holder.fence),
        (&first.value, &first.owner, grant.fence)
    );
    assert!(LONG / 2 < holder.ttl, "extended");
    assert_eq!(holder.waiting, 1);
    // The other waiter's next poll finds the new holder.
    match timeout(TEST_TIMEOUT, next.next()).await.expect("in time") {
        Ok(WaitOutcome::Position(at)) => {
            assert_eq!((at.position, at.holder.value), (1, first.value));
        }
        other => panic!("{other:?}"),
    }
}

async fn g5_a_hundred_waiters_on_two_servers_are_served_in_order(backend: TestBackend) {
    let (name, other) = (seat(), backend.another().await);
    let mut holder = seated(&backend.locks, &name, &kim(), LONG).await.value;
    let mut line = Vec::new();
    for at in 0..100 {
        let locks = if at % 2 == 0 { backend.locks.clone() } else { other.clone() };
        let claim = claim(&name, &lee());
        let (waiting, backend) = enter(&locks, &claim).await;
        assert_eq!((backend.position, backend.holder.waiting), (at + 1, at + 1));
        line.push((claim.value, locks, waiting));
    }
    // All of them wait at the same time, and each releases the lock after its grant.
    let (values, mut race) =
        (line.iter().map(|it| it.0.clone()).collect::<Vec<_>>(), JoinSet::new());
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    for (value, locks, waiting) in line {
        let (name, sender) = (name.clone(), sender.clone());
        race.spawn(async move {
            let grant = await_grant(waiting).await;
            sender.send((value.clone(), grant.fence)).expect("a listener");
            locks.release(&name, &value).await.expect("a reply");
        });
    }
    let mut last = Fence::ZERO;
    let began = Stopwatch::start();
    backend.locks.release(&name, &holder).await.expect("a reply");
    for expected in values {
        let (value, fence) =
            timeout(TEST_TIMEOUT, served.recv()).await.expect("in time").expect("one");
        assert_eq!(value, expected);
        assert!(last < fence);
        (holder, last) = (value, fence);
    }
    race.join_all().await;
    assert!(began.elapsed() < QUEUE_ENTRY_TTL, "{:?}", began.elapsed());
    until("the last has released", async || {
        value_of_holder(&backend.locks, &name).await.is_none_or(|value| value != holder)
    })
    .await;
}

async fn g5_no_claim_overtakes_the_wait_queue(backend: TestBackend) {
    let name = seat();
    for _round in 0..5 {
        seated(&backend.locks, &name, &kim(), SHORT).await;
        let first = claim(&name, &lee());
        let (waiting, _at) = enter(&backend.locks, &first).await;
        let grant = apart(await_grant(waiting));
        // Many claims at the moment when the lease ends.
        let mut winner = None;
        until("the lease ends", async || {
            let barging = Claim {
                over: Takeover::SameOwner,
                ..claim(&name, &crate::support::fixtures::owner("x", "X"))
            };
            match backend.locks.claim(&barging).await.expect("a reply") {
                Claimed::Granted(grant) => panic!("overtook the queue: {grant:?}"),
                Claimed::Busy(holder) => winner = Some(holder.value),
            }
            winner.as_ref() == Some(&first.value)
        })
        .await;
        grant.await.expect("no panic");
        backend.locks.release(&name, &first.value).await.expect("a reply");
    }
}

async fn g5_an_expired_lease_goes_to_the_first_waiter_without_a_message(backend: TestBackend) {
    let name = seat();
    let began = Stopwatch::start();
    seated(&backend.locks, &name, &kim(), SHORT).await;
    let (waiting, at) = enter(&backend.locks, &claim(&name, &lee())).await;
    assert!(at.retry_at <= Instant::now() + SHORT + Duration::from_millis(50));
    await_grant(waiting).await;
    assert!(SHORT - Duration::from_millis(1) <= began.real() && began.elapsed() < SHORT + SLACK);
}

async fn g5_a_dead_waiter_delays_the_next_by_its_queue_deadline_at_most(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let (dead, _at) = enter(&backend.locks, &claim(&name, &kim())).await;
    // Its process is dead: no drop leaves the queue.
    std::mem::forget(dead);
    let died = Stopwatch::start();
    let (waiting, at) = enter(&backend.locks, &claim(&name, &lee())).await;
    assert_eq!(at.position, 2);
    backend.locks.release(&name, &old.value).await.expect("a reply");
    await_grant(waiting).await;
    assert!(died.elapsed() < QUEUE_ENTRY_TTL + SLACK, "{:?}", died.elapsed());
}

async fn g5_a_dead_waiter_is_out_of_the_queue_after_its_deadline(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let (dead, _at) = enter(&backend.locks, &claim(&name, &kim())).await;
    std::mem::forget(dead);
    let died = Stopwatch::start();
    let (mut waiting, _at) = enter(&backend.locks, &claim(&name, &lee())).await;
    let moved = timeout(TEST_TIMEOUT, waiting.next()).await.expect("in time");
    let Ok(WaitOutcome::Position(at)) = moved else { panic!("{moved:?}") };
    assert_eq!((at.position, at.holder.waiting), (1, 1));
    assert!(died.elapsed() < QUEUE_ENTRY_TTL * 3 / 2 + SLACK, "{:?}", died.elapsed());
    backend.locks.release(&name, &old.value).await.expect("a reply");
    let released = Stopwatch::start();
    await_grant(waiting).await;
    assert!(released.elapsed() < SLACK);
}

async fn g5_a_first_waiter_that_leaves_lets_the_next_be_first(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let (first, _at) = enter(&backend.locks, &claim(&name, &lee())).await;
    let second = claim(&name, &kim());
    let (waiting, _at) = enter(&backend.locks, &second).await;
    drop(first);
    until("the queue is shorter", async || {
        refused(&backend.locks, &claim(&name, &lee())).await.waiting == 1
    })
    .await;
    backend.locks.release(&name, &old.value).await.expect("a reply");
    assert_eq!(value_of_holder(&backend.locks, &name).await, Some(second.value));
    await_grant(waiting).await;
}

async fn g5_a_waiter_that_leaves_after_a_hand_over_passes_it_on(backend: TestBackend) {
    let (name, other) = (seat(), backend.another().await);
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let first = claim(&name, &lee());
    let (gone, _at) = enter(&other, &first).await;
    let (waiting, _at) = enter(&backend.locks, &claim(&name, &kim())).await;
    backend.locks.release(&name, &old.value).await.expect("a reply");
    assert_eq!(value_of_holder(&backend.locks, &name).await, Some(first.value));
    // The waiter holds the lock and never received the message.
    drop(gone);
    let left = Stopwatch::start();
    await_grant(waiting).await;
    assert!(left.elapsed() < SLACK, "{:?}", left.elapsed());
}

async fn a_wait_times_out_and_leaves_the_queue(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let mut waiting = backend.locks.wait(&claim(&name, &lee()), SHORT);
    let began = Stopwatch::start();
    assert!(matches!(waiting.next().await, Ok(WaitOutcome::Position(_))));
    let Err(LockError::WaitTimeout(Some(at))) = waiting.next().await else { panic!("no time-out") };
    assert_eq!((at.position, at.holder.value.as_str()), (1, old.value.as_str()));
    assert!(SHORT <= began.real() && began.elapsed() < SHORT + SLACK);
    until("the queue is empty", async || {
        backend.locks.holder(&name).await.expect("a reply").expect("a holder").waiting == 0
    })
    .await;
    assert!(matches!(waiting.next().await, Err(LockError::WaitTimeout(_))), "and stays so");
    // A wait of zero still polls once.
    let impatient =
        granted_in_turn(backend.locks.wait(&claim(&name, &lee()), Duration::ZERO)).await;
    assert!(matches!(impatient, Err(LockError::WaitTimeout(Some(_)))), "{impatient:?}");
    let free = granted_in_turn(backend.locks.wait(&claim(&seat(), &lee()), Duration::ZERO)).await;
    assert!(free.is_ok());
}

async fn a_poll_that_is_dropped_retains_the_queue_position(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let first = claim(&name, &lee());
    let mut waiting = backend.locks.wait(&first, LONG);
    // Dropped before the first reply, and several times later.
    for millis in [0, 0, 1, 0, 5, 0, 20] {
        let _ = timeout(Duration::from_millis(millis), waiting.next()).await;
    }
    until("it is in the queue", async || {
        let _ = timeout(Duration::from_millis(1), waiting.next()).await;
        refused(&backend.locks, &claim(&name, &kim())).await.waiting == 1
    })
    .await;
    let (_second, at) = enter(&backend.locks, &claim(&name, &kim())).await;
    assert_eq!(at.position, 2);
    backend.locks.release(&name, &old.value).await.expect("a reply");
    let grant = await_grant(waiting).await;
    let round = backend.locks.renew(&[held(&first, &grant)], LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Renewed]);
}

async fn a_takeover_overtakes_the_wait_queue_and_leaves_it_unchanged(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let (waiting, _at) = enter(&backend.locks, &claim(&name, &lee())).await;
    let over = Claim { over: Takeover::Value(old.value.clone()), ..claim(&name, &kim()) };
    let grant = granted(&backend.locks, &over).await;
    let replaced = grant.replaced.expect("a loss");
    assert_eq!((replaced.value, replaced.waiting), (old.value, 1));
    assert_eq!(refused(&backend.locks, &claim(&name, &kim())).await.waiting, 1);
    backend.locks.release(&name, &over.value).await.expect("a reply");
    assert!(grant.fence < await_grant(waiting).await.fence);
}

async fn held_locks_are_listed_with_their_wait_queues(backend: TestBackend) {
    let (one, other) = (seat(), LockName::named("export:2"));
    seated(&backend.locks, &one, &kim(), LONG).await;
    seated(&backend.locks, &other, &lee(), LONG).await;
    let (_waiting, _at) = enter(&backend.locks, &claim(&other, &kim())).await;
    let mut held = backend.locks.held().await.expect("a reply");
    // Other tests share the Cluster.
    held.retain(|(name, _)| [&one, &other].contains(&name));
    held.sort_by_key(|(name, _)| name.clone());
    let listed: Vec<_> = held.iter().map(|(name, by)| (name.class(), by.waiting)).collect();
    assert_eq!(listed, [("export", 1), ("seat", 0)]);
    assert_eq!((&held[0].0, &held[1].0), (&other, &one));
    let mut seats = backend.locks.seats().await.expect("a reply");
    seats.retain(|(seat, _)| Some(*seat) == one.as_seat());
    assert_eq!(seats.len(), 1);
    // The waiters in order, up to the requested number.
    let another = backend.another().await;
    let (_second, _at) = enter(&another, &claim(&other, &lee())).await;
    let behind = another.waiters(&other, 20).await.expect("a reply");
    let names: Vec<_> = behind.iter().map(|waiting| waiting.owner.name.clone()).collect();
    assert_eq!(names, [kim().name, lee().name]);
    assert!(behind[0].since < behind[1].since && behind[0].owner.node != behind[1].owner.node);
    assert_eq!(backend.locks.waiters(&other, 1).await.expect("a reply").len(), 1);
    assert_eq!(backend.locks.waiters(&one, 20).await, Ok(Vec::new()));
}
