//! Promises about time, to the millisecond: with paused time, and so in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    AcquireOptions, BackOff, Claimed, Guard, Lease, LockError, LockName, Locks, Loss, Policy,
    Released, Verdict, WaitOutcome, WaitPolicy,
};
use tokio::time::{Instant, advance, sleep};

use crate::support::fixtures::{
    apart, claim, granted, granted_in_turn, held, kim, lee, owner, queued, refused, seat, seated,
};

const LEASE: Duration = Duration::from_secs(12);
const HOUR: Duration = Duration::from_secs(60 * 60);
const MS: Duration = Duration::from_millis(1);

fn name() -> LockName {
    LockName::named("job:1")
}

fn fixed() -> AcquireOptions {
    AcquireOptions::new(Lease::Fixed(LEASE))
}

async fn taken(locks: &Locks, options: &AcquireOptions) -> Guard {
    locks.try_lock(&name(), options).await.expect("a free lock")
}

#[tokio::test(start_paused = true)]
async fn g1_under_paused_time_a_lock_renewed_for_a_day_has_one_holder() {
    let locks = Locks::memory();
    let guard = taken(&locks, &AcquireOptions::new(Lease::Renewed(LEASE))).await;
    let ends = Instant::now() + 24 * HOUR;
    while Instant::now() < ends {
        // At every phase of a round.
        sleep(Duration::from_millis(97_003)).await;
        assert!(guard.is_held());
        let Err(LockError::Busy(at)) = locks.try_lock(&name(), &fixed()).await else {
            panic!("two holders")
        };
        assert_eq!(at.holder.fence, guard.fence());
        assert!(LEASE * 2 / 3 <= at.holder.ttl, "renewed each third: {:?}", at.holder.ttl);
    }
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test(start_paused = true)]
async fn g2_under_paused_time_the_fence_rises_after_any_time_without_a_holder() {
    let locks = Locks::memory();
    let mut last = Fence::ZERO;
    for pause in [Duration::ZERO, LEASE - MS, LEASE, HOUR, 25 * HOUR] {
        // Once released, and once expired.
        for held_for in [MS, LEASE] {
            let guard = taken(&locks, &fixed()).await;
            assert!(last < guard.fence(), "{last} then {}", guard.fence());
            last = guard.fence();
            advance(held_for).await;
            assert_eq!(guard.is_held(), held_for < LEASE);
            drop(guard);
            advance(pause).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g3_under_paused_time_a_holder_stops_an_eighth_before_the_next_can_begin() {
    let locks = Locks::memory();
    let began = Instant::now();
    let guard = taken(&locks, &fixed()).await;
    advance(LEASE * 7 / 8 - MS).await;
    assert!(guard.is_held());
    assert_eq!(guard.lost().await, Loss::Expired);
    assert_eq!((began.elapsed(), guard.is_held()), (LEASE * 7 / 8, false));
    // The guard reports the loss itself. The backend would hold the lock to the end; no release
    // happens here.
    let value = locks.holder(&name()).await.expect("a reply").expect("held still").value;
    let contender = claim(&name(), &lee());
    std::mem::forget(guard);
    let free_at = loop {
        match locks.claim(&contender).await.expect("a reply") {
            Claimed::Granted(_) => break began.elapsed(),
            Claimed::Busy(holder) => assert_eq!(holder.value, value),
        }
        advance(MS).await;
    };
    assert!(LEASE * 7 / 8 <= free_at && free_at <= LEASE, "{free_at:?}");
}

#[tokio::test(start_paused = true)]
async fn g4_under_paused_time_a_lock_is_free_on_release_or_on_expiry() {
    let locks = Locks::memory();
    for is_dropped in [false, true] {
        let guard = taken(&locks, &AcquireOptions::new(Lease::Renewed(LEASE))).await;
        if is_dropped {
            drop(guard);
        } else {
            assert_eq!(guard.release().await, Ok(Released::Freed));
        }
        assert_eq!(locks.holder(&name()).await, Ok(None), "no time went by");
    }
    let dead = seated(&locks, &name(), &kim(), LEASE).await;
    advance(LEASE - MS).await;
    assert_eq!(refused(&locks, &claim(&name(), &lee())).await.value, dead.value);
    advance(MS).await;
    granted(&locks, &claim(&name(), &lee())).await;
}

#[tokio::test(start_paused = true)]
async fn g5_under_paused_time_three_hundred_waiters_are_each_served_at_the_release() {
    let locks = Locks::memory();
    let first = taken(&locks, &fixed()).await;
    let served = Arc::new(AtomicUsize::new(0));
    let mut waiting = Vec::new();
    for position in 0..300 {
        let (other, served) = (locks.clone(), Arc::clone(&served));
        let options = fixed().with(queued(HOUR));
        waiting.push(apart(async move {
            let guard = other.lock(&name(), &options).await.expect("a grant");
            assert_eq!(served.fetch_add(1, Ordering::SeqCst), position, "out of order");
            drop(guard);
        }));
        while refused(&locks, &claim(&name(), &lee())).await.waiting == position {
            tokio::task::yield_now().await;
        }
    }
    let began = Instant::now();
    drop(first);
    for one in waiting {
        one.await.expect("no panic");
    }
    assert_eq!((served.load(Ordering::SeqCst), began.elapsed()), (300, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn g6_under_paused_time_no_late_renewal_restores_a_released_lock() {
    let locks = Locks::memory();
    for (released_after, late) in [(Duration::ZERO, MS), (LEASE / 2, LEASE), (LEASE, HOUR)] {
        let one = claim(&seat(), &kim());
        let one = held(&one, &granted(&locks, &one).await);
        advance(released_after).await;
        locks.release(&one.name, &one.value).await.expect("a reply");
        advance(late).await;
        let round = locks.renew(std::slice::from_ref(&one), LEASE).await.expect("a reply");
        assert_eq!(round.verdicts, [Verdict::Lost]);
        assert_eq!(locks.holder(&one.name).await, Ok(None));
        // A second release does not free the next holder's lock.
        let next = seated(&locks, &one.name, &lee(), LEASE).await;
        assert_eq!(locks.release(&one.name, &one.value).await, Ok(Released::NotHeld));
        assert_eq!(refused(&locks, &claim(&one.name, &kim())).await.value, next.value);
    }
}

#[tokio::test(start_paused = true)]
async fn minimum_and_maximum_hold_apply_to_the_millisecond() {
    let locks = Locks::memory();
    let (least, most) = (LEASE / 3, LEASE * 5);
    let began = Instant::now();
    taken(&locks, &AcquireOptions::new(Lease::Renewed(LEASE)).for_at_least(least))
        .await
        .release()
        .await
        .expect("a reply");
    let mut next = locks.wait(&claim(&name(), &lee()), HOUR);
    assert!(matches!(next.next().await, Ok(WaitOutcome::Position(_))), "the minimum hold applies");
    granted_in_turn(next).await.expect("a grant");
    let took = began.elapsed();
    // A waiter polls two milliseconds after the known end.
    assert!(least <= took && took <= least + 2 * MS, "{took:?}");

    let locks = Locks::memory();
    let began = Instant::now();
    let guard = taken(&locks, &AcquireOptions::new(Lease::Renewed(LEASE)).for_at_most(most)).await;
    sleep(most - MS).await;
    assert!(guard.is_held());
    assert_eq!((guard.lost().await, began.elapsed()), (Loss::HeldTooLong, most));
}

#[tokio::test(start_paused = true)]
async fn the_learnt_estimate_is_the_95th_percentile_of_earlier_holds() {
    let locks = Locks::memory();
    let learnt = AcquireOptions::new(Lease::Learnt(HOUR / 2));
    // Of a hundred holds of 1 to 100 s, 95 took no longer than 95 s.
    for seconds in 1..=100 {
        let guard = taken(&locks, &learnt).await;
        sleep(Duration::from_secs(seconds)).await;
        assert!(guard.is_held(), "renewed, for any estimate");
        guard.release().await.expect("a reply");
    }
    assert_eq!(taken(&locks, &learnt).await.lease(), Duration::from_secs(95) * 3 / 2);
}

#[tokio::test(start_paused = true)]
async fn each_policy_times_out_to_the_millisecond() {
    let locks = Locks::memory();
    let _holder = taken(&locks, &AcquireOptions::new(Lease::Renewed(LEASE))).await;
    let began = Instant::now();
    assert!(matches!(locks.lock(&name(), &fixed()).await, Err(LockError::Busy(_))));
    assert_eq!(began.elapsed(), Duration::ZERO);

    let total = LEASE * 3;
    let options = fixed().with(Policy::Queue(WaitPolicy { slice: MS * 700, total }));
    let tried = locks.lock(&name(), &options).await;
    assert!(matches!(tried, Err(LockError::WaitTimeout(Some(_)))), "{tried:?}");
    let took = began.elapsed();
    assert!(total <= took && took <= total + MS, "{took:?}");

    // The default pauses: 100, 200 and 400 ms, each between half and all of that. Simultaneous
    // claimants do not retry together.
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let began = Instant::now();
        assert!(locks.lock(&name(), &fixed().backing_off()).await.is_err());
        let took = began.elapsed();
        assert!(MS * 350 <= took && took <= MS * 703, "{took:?}");
        seen.insert(took);
    }
    assert!(1 < seen.len(), "{seen:?}");
    let began = Instant::now();
    let long = BackOff { retries: u32::MAX, ..BackOff::default() };
    assert!(locks.lock(&name(), &fixed().with(Policy::BackOff(long))).await.is_err());
    let took = began.elapsed();
    assert!(long.total - long.most <= took && took <= long.total, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_waiter_is_skipped_within_its_queue_deadline() {
    let locks = Locks::memory();
    let held_seat = seated(&locks, &name(), &kim(), HOUR).await;
    let mut dead = locks.wait(&claim(&name(), &owner("dead", "")), HOUR);
    assert!(matches!(dead.next().await, Ok(WaitOutcome::Position(_))));
    let died = Instant::now();
    std::mem::forget(dead);
    let waits = apart(granted_in_turn(locks.wait(&claim(&name(), &lee()), HOUR)));
    while locks.holder(&name()).await.expect("a reply").expect("held").waiting < 2 {
        tokio::task::yield_now().await;
    }
    locks.release(&name(), &held_seat.value).await.expect("a reply");
    waits.await.expect("no panic").expect("a grant");
    let took = died.elapsed();
    assert!(took <= Duration::from_millis(6_300), "{took:?}");
}
