//! Acceptance of hand-over messages. Paused time tests the deadline to the millisecond.

use tokio::time::advance;

use super::*;
use crate::locks::name::LockName;
use crate::locks::types::{Owner, Released, Takeover};

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
async fn in_line() -> (Locks, Waiter) {
    let locks = Locks::memory();
    locks.claim(&claim("holder")).await.expect("a reply");
    let mut waiting = locks.wait(&claim("waiter"), LEASE);
    assert!(matches!(waiting.next().await, Ok(WaitOutcome::Position(_))));
    (locks, waiting)
}

async fn release(locks: &Locks) {
    let released = locks.release(&LockName::named("job:1"), "holder").await;
    assert_eq!(released, Ok(Released::Freed));
}

#[tokio::test(start_paused = true)]
async fn g3_the_deadline_of_a_hand_over_is_counted_from_the_last_poll() {
    let (locks, waiting) = in_line().await;
    let looked_at = Instant::now();
    advance(Duration::from_secs(2)).await;
    release(&locks).await;
    let had = waiting.granted_early().await.expect("a grant");
    assert_eq!(had.until, Some(looked_at + TRUSTED));
    assert_eq!(had.grant.sent_at, Instant::now());
    let holder = locks.holder(&LockName::named("job:1")).await.expect("a reply").expect("one");
    assert_eq!(holder.fence, had.grant.fence);
    assert!(had.until.expect("short") < Instant::now() + holder.ttl, "before it can end");
}

#[tokio::test(start_paused = true)]
async fn g3_a_late_hand_over_message_triggers_a_poll() {
    let (locks, waiting) = in_line().await;
    let turn =
        Handover { fence: waiting.seen.expect("a holder").next(0, Fence::ZERO), since: SOME_TIME };
    release(&locks).await;
    // The waiter does not await its next event meanwhile.
    advance(TRUSTED - Duration::from_millis(1)).await;
    assert!(waiting.accept_handover(turn).is_some());
    advance(Duration::from_millis(1)).await;
    assert!(waiting.accept_handover(turn).is_none());
    let had = waiting.granted_early().await.expect("a grant");
    assert_eq!(had.until, None, "it polled");
}

#[tokio::test(start_paused = true)]
async fn g2_a_message_of_an_older_hand_over_is_rejected() {
    let (locks, waiting) = in_line().await;
    let seen = waiting.seen.expect("a holder");
    for fence in [Fence(seen.0 - 1), seen] {
        let turn = Handover { fence, since: SOME_TIME };
        assert!(waiting.accept_handover(turn).is_none(), "{fence:?}");
        locks.0.backend.waiter_registry().wake("waiter", turn);
    }
    // It polls, finds that it is not first, and waits on.
    let mut had = Box::pin(waiting.granted_early());
    assert!(futures_util::poll!(&mut had).is_pending());
    release(&locks).await;
    assert!(had.await.expect("a grant").grant.fence > seen);
}

#[tokio::test(start_paused = true)]
async fn g5_a_waiter_that_leaves_after_the_message_passes_the_hand_over_on() {
    let (locks, waiting) = in_line().await;
    let other = locks.wait(&claim("other"), LEASE);
    let mut other = Box::pin(other.granted_early());
    assert!(futures_util::poll!(&mut other).is_pending());
    release(&locks).await;
    drop(waiting);
    let had = other.await.expect("a grant");
    let holder = locks.holder(&LockName::named("job:1")).await.expect("a reply").expect("one");
    assert_eq!((holder.value.as_str(), holder.fence), ("other", had.grant.fence));
}
