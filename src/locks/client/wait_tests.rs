//! Acceptance of hand-over messages. Paused time tests the deadline to the millisecond.

use tokio::time::advance;

use super::*;
use crate::name::LockName;
use crate::types::{Owner, Released, Takeover};

const SOME_TIME: chrono::DateTime<chrono::Utc> = chrono::DateTime::UNIX_EPOCH;
const LEASE: Duration = Duration::from_secs(60);
/// How long a hand-over right after a poll is valid.
const TRUSTED: Duration = Duration::from_millis(6_000 - 750);

fn claim(value: &str) -> Claim {
    Claim {
        name: LockName::named("job:1"),
        value: value.to_owned(),
        owner: Owner::unknown(),
        floor: Fence::ZERO,
        ttl: LEASE,
        over: Takeover::None,
    }
}

/// A held lock and a waiter in its queue.
async fn queued() -> (Locks, Waiter) {
    let locks = Locks::memory();
    locks.claim(&claim("holder")).await.expect("a reply");
    let mut waiter = locks.wait(&claim("waiter"), LEASE);
    assert!(matches!(waiter.next().await, Ok(WaitOutcome::Position(_))));
    (locks, waiter)
}

async fn release(locks: &Locks) {
    let released = locks.release(&LockName::named("job:1"), "holder").await;
    assert_eq!(released, Ok(Released::Freed));
}

#[tokio::test(start_paused = true)]
async fn g3_the_deadline_of_a_hand_over_is_counted_from_the_last_poll() {
    let (locks, waiter) = queued().await;
    let polled_at = Instant::now();
    advance(Duration::from_secs(2)).await;
    release(&locks).await;
    let early = waiter.granted_early().await.expect("a grant");
    assert_eq!(early.until, Some(polled_at + TRUSTED));
    assert_eq!(early.grant.sent_at, Instant::now());
    let holder = locks.holder(&LockName::named("job:1")).await.expect("a reply").expect("one");
    assert_eq!(holder.fence, early.grant.fence);
    assert!(early.until.expect("short") < Instant::now() + holder.ttl, "before it can end");
}

#[tokio::test(start_paused = true)]
async fn g3_a_late_hand_over_message_triggers_a_poll() {
    let (locks, waiter) = queued().await;
    let handover =
        Handover { fence: waiter.seen.expect("a holder").next(0, Fence::ZERO), since: SOME_TIME };
    release(&locks).await;
    // The waiter does not await its next event meanwhile.
    advance(TRUSTED - Duration::from_millis(1)).await;
    assert!(waiter.accept_handover(handover).is_some());
    advance(Duration::from_millis(1)).await;
    assert!(waiter.accept_handover(handover).is_none());
    let early = waiter.granted_early().await.expect("a grant");
    assert_eq!(early.until, None, "it polled");
}

#[tokio::test(start_paused = true)]
async fn g2_a_message_of_an_older_hand_over_is_rejected() {
    let (locks, waiter) = queued().await;
    let seen = waiter.seen.expect("a holder");
    for fence in [Fence(seen.0 - 1), seen] {
        let handover = Handover { fence, since: SOME_TIME };
        assert!(waiter.accept_handover(handover).is_none(), "{fence:?}");
        locks.0.backend.waiter_registry().wake("waiter", handover);
    }
    // It polls, finds that it is not first, and waits on.
    let mut early = Box::pin(waiter.granted_early());
    assert!(futures_util::poll!(&mut early).is_pending());
    release(&locks).await;
    assert!(early.await.expect("a grant").grant.fence > seen);
}

#[tokio::test(start_paused = true)]
async fn g5_a_waiter_that_leaves_after_the_message_passes_the_hand_over_on() {
    let (locks, waiter) = queued().await;
    let other = locks.wait(&claim("other"), LEASE);
    let mut other = Box::pin(other.granted_early());
    assert!(futures_util::poll!(&mut other).is_pending());
    release(&locks).await;
    drop(waiter);
    let early = other.await.expect("a grant");
    let holder = locks.holder(&LockName::named("job:1")).await.expect("a reply").expect("one");
    assert_eq!((holder.value.as_str(), holder.fence), ("other", early.grant.fence));
}
