//! Behaviour of guards on every backend. Each test runs on both backends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use galley::locks::{
    AcquireOptions, BackOff, Claim, Claimed, Guard, HeldLock, Holder, Lease, LockError, LockName,
    Locks, Loss, Policy, Released, Takeover, Verdict, WaitPolicy,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use crate::locks::wait_queue::{SHORT, SLACK};
use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, apart, claim, granted, kim, lee, queued, refused, seat, until, until_free,
};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::stopwatch::Stopwatch;

crate::locks::on_both_backends! {
    a_busy_lock_reports_holder_age_lease_and_queue_position
    a_release_reports_whether_the_lock_was_held_and_a_drop_releases_too
    g6_a_guard_that_lost_its_lock_is_notified_and_releases_no_later_grant
    g3_the_deadline_of_a_fixed_lease_is_before_its_end
    back_off_tries_again_and_gives_up_by_number_and_by_time
    a_queue_policy_is_notified_and_times_out
    g1_of_a_thousand_tasks_one_runs_a_job_that_outlives_its_first_lease
    an_estimated_lease_outlives_its_estimate_and_learns_from_it
    a_short_job_does_not_run_again_before_its_minimum_hold
    g6_a_late_renewal_does_not_extend_a_minimum_hold
    a_live_holder_loses_the_lock_at_its_maximum_hold
    work_under_a_lock_is_dropped_when_the_lock_is_lost
    work_that_ends_after_its_lock_was_lost_is_an_error
    several_locks_are_acquired_all_or_none_and_never_deadlock
    a_drop_at_any_step_leaves_nothing
    closing_the_locks_releases_the_guards_and_notifies_them
}

fn job(what: &str) -> LockName {
    LockName::named(&format!("job:{what}"))
}

fn fixed() -> AcquireOptions {
    AcquireOptions::new(Lease::Fixed(LONG))
}

async fn taken(locks: &Locks, name: &LockName) -> Guard {
    locks.try_lock(name, &fixed()).await.expect("a free lock")
}

/// A claim that takes the lock from its holder.
async fn thief(locks: &Locks, name: &LockName) -> Claim {
    let holder = locks.holder(name).await.expect("a reply").expect("a holder");
    Claim { over: Takeover::Value(holder.value), ..claim(name, &kim()) }
}

/// Works for this long; it does not wait for an event.
async fn work(time: Duration) {
    sleep(time).await;
}

async fn a_busy_lock_reports_holder_age_lease_and_queue_position(backend: TestBackend) {
    let name = job("1");
    let options = fixed();
    let guard = backend.locks.try_lock(&name, &options).await.expect("a free lock");
    let other = backend.another().await;
    // Under any policy, `try_lock` claims once.
    let patient = fixed().with(queued(LONG));
    let Err(LockError::Busy(at)) = other.try_lock(&name, &patient).await else {
        panic!("not busy")
    };
    assert_eq!((at.position, at.holder.waiting), (1, 0));
    assert_eq!(at.holder.fence, guard.fence());
    assert_eq!((at.holder.since, at.holder.ttl <= LONG), (guard.since(), true));
    assert!(at.retry_at <= Instant::now() + LONG && guard.lease() == LONG);
    let _waiting = crate::locks::wait_queue::enter(&other, &claim(&name, &lee())).await;
    let Err(LockError::Busy(at)) = other.lock(&name, &fixed()).await else { panic!("not busy") };
    assert_eq!((at.position, at.holder.waiting), (2, 1));
}

async fn a_release_reports_whether_the_lock_was_held_and_a_drop_releases_too(backend: TestBackend) {
    let name = job("1");
    let first = taken(&backend.locks, &name).await;
    let fence = first.fence();
    assert_eq!(first.release().await, Ok(Released::Freed));
    let second = taken(&backend.locks, &name).await;
    assert!(fence < second.fence());
    drop(second);
    until_free(&backend.locks, &name).await;
    // A moved guard moves the lock.
    let third = taken(&backend.locks, &name).await;
    let (began, goes) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let (saw, go) = (Arc::clone(&began), Arc::clone(&goes));
    let task = apart(async move {
        saw.store(third.is_held(), Ordering::SeqCst);
        go.notified().await;
        third.release().await
    });
    until("the task holds it", async || began.load(Ordering::SeqCst)).await;
    assert!(backend.locks.try_lock(&name, &fixed()).await.is_err(), "nothing is re-entrant");
    goes.notify_one();
    assert_eq!(task.await.expect("no panic"), Ok(Released::Freed));
}

async fn g6_a_guard_that_lost_its_lock_is_notified_and_releases_no_later_grant(
    backend: TestBackend,
) {
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(SHORT * 5));
    let guard = backend.locks.try_lock(&name, &options).await.expect("a free lock");
    let thief = thief(&backend.locks, &name).await;
    granted(&backend.locks, &thief).await;
    assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Taken));
    assert!(!guard.is_held());
    assert_eq!(guard.release().await, Ok(Released::NotHeld));
    assert_eq!(refused(&backend.locks, &claim(&name, &lee())).await.value, thief.value);
}

async fn g3_the_deadline_of_a_fixed_lease_is_before_its_end(backend: TestBackend) {
    let name = job("1");
    let began = Instant::now();
    let guard = backend
        .locks
        .try_lock(&name, &AcquireOptions::new(Lease::Fixed(SHORT)))
        .await
        .expect("free");
    assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Expired));
    let lost_after = began.elapsed();
    assert!(SHORT * 3 / 4 < lost_after, "{lost_after:?}");
    // The holder's deadline passes before another claimant can acquire the lock.
    assert!(lost_after < SHORT + SLACK);
    until_free(&backend.locks, &name).await;
    assert_eq!(guard.release().await, Ok(Released::NotHeld));
}

async fn back_off_tries_again_and_gives_up_by_number_and_by_time(backend: TestBackend) {
    let name = job("1");
    let ms = Duration::from_millis;
    let back_off = BackOff { first: ms(20), most: ms(40), retries: 3, total: LONG };
    let holder = taken(&backend.locks, &name).await;
    let began = Stopwatch::start();
    let options = fixed().with(Policy::BackOff(back_off));
    let tried = backend.locks.lock(&name, &options).await;
    let Err(LockError::WaitTimeout(Some(at))) = tried else { panic!("{tried:?}") };
    assert_eq!(at.holder.fence, holder.fence());
    // Pauses of 20, 40 and 40 ms, each between half and all of that.
    assert!(ms(50) <= began.real() && began.elapsed() < ms(100) + SLACK);
    let began = Stopwatch::start();
    let brief = BackOff { retries: u32::MAX, total: ms(200), ..back_off };
    let tried = backend.locks.lock(&name, &fixed().with(Policy::BackOff(brief))).await;
    assert!(matches!(tried, Err(LockError::WaitTimeout(_))));
    assert!(ms(150) <= began.real() && began.elapsed() < ms(200) + SLACK);
    let (locks, other) = (backend.locks.clone(), name.clone());
    let long = fixed().with(Policy::BackOff(BackOff { retries: u32::MAX, ..back_off }));
    let waits = apart(async move { locks.lock(&other, &long).await.map(|guard| guard.fence()) });
    let fence = holder.fence();
    holder.release().await.expect("a reply");
    assert!(
        fence < timeout(TEST_TIMEOUT, waits).await.expect("in time").expect("a task").expect("it")
    );
}

async fn a_queue_policy_is_notified_and_times_out(backend: TestBackend) {
    let name = job("1");
    let holder = taken(&backend.locks, &name).await;
    let wait_policy = WaitPolicy { slice: SHORT / 3, total: SHORT };
    let impatient = fixed().with(Policy::Queue(wait_policy));
    let began = Stopwatch::start();
    let tried = backend.locks.lock(&name, &impatient).await;
    assert!(matches!(tried, Err(LockError::WaitTimeout(Some(_)))), "{tried:?}");
    assert!(SHORT <= began.real() && began.elapsed() < SHORT + SLACK);
    until("it has left the queue", async || {
        refused(&backend.locks, &claim(&name, &lee())).await.waiting == 0
    })
    .await;
    let (locks, other) = (backend.another().await, name.clone());
    let waits = apart(async move { locks.lock(&other, &fixed().with(queued(LONG))).await });
    until("it waits", async || refused(&backend.locks, &claim(&name, &lee())).await.waiting == 1)
        .await;
    let released = Stopwatch::start();
    holder.release().await.expect("a reply");
    let guard =
        timeout(TEST_TIMEOUT, waits).await.expect("in time").expect("no panic").expect("it");
    assert!(released.elapsed() < SLACK && guard.is_held());
}

/// One of a thousand tasks: counts itself while it holds the lock.
async fn compete(locks: Locks, name: LockName, ran: Arc<AtomicUsize>, done: Arc<AtomicBool>) {
    // A busy machine delays the renewals of this process by a second.
    let ttl = Duration::from_secs(3);
    let options = AcquireOptions::new(Lease::Renewed(ttl));
    let mut pause = interval(ttl / 4);
    while !done.load(Ordering::SeqCst) {
        let guard = match locks.try_lock(&name, &options).await {
            Ok(guard) => guard,
            // Or, with a thousand claimants, a reply after the deadline or the time-out of the call.
            Err(
                LockError::Busy(_) | LockError::Lost(Loss::Expired) | LockError::Unavailable(_),
            ) => {
                pause.tick().await;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        if done.load(Ordering::SeqCst) {
            return;
        }
        assert_eq!(ran.fetch_add(1, Ordering::SeqCst), 0, "another task runs");
        work(ttl * 3 / 2).await;
        assert!(guard.is_held(), "renewed");
        done.store(true, Ordering::SeqCst);
    }
}

async fn g1_of_a_thousand_tasks_one_runs_a_job_that_outlives_its_first_lease(backend: TestBackend) {
    let (name, other) = (job("1"), backend.another().await);
    let (ran, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut race = JoinSet::new();
    for at in 0..1_000 {
        let locks = if at % 2 == 0 { backend.locks.clone() } else { other.clone() };
        race.spawn(compete(locks, name.clone(), Arc::clone(&ran), Arc::clone(&done)));
    }
    timeout(TEST_TIMEOUT, race.join_all()).await.expect("in time");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

async fn an_estimated_lease_outlives_its_estimate_and_learns_from_it(backend: TestBackend) {
    let name = job("1");
    let estimated = AcquireOptions::new(Lease::Estimated(SHORT));
    let guard = backend.locks.try_lock(&name, &estimated).await.expect("a free lock");
    assert_eq!(guard.lease(), SHORT * 3 / 2);
    work(SHORT * 4).await;
    assert!(guard.is_held(), "renewed each half of the estimate");
    guard.release().await.expect("a reply");
    let learnt = AcquireOptions::new(Lease::Learnt(LONG));
    for _ in 0..5 {
        let guard = backend.locks.try_lock(&name, &learnt).await.expect("a free lock");
        guard.release().await.expect("a reply");
    }
    // One hold of six took four times as long, and only one of twenty may exceed the estimate.
    let guard = backend.locks.try_lock(&name, &learnt).await.expect("a free lock");
    assert!(SHORT * 6 <= guard.lease() && guard.lease() < LONG);
    let other = LockName::named("other:1");
    assert_eq!(backend.locks.try_lock(&other, &learnt).await.expect("free").lease(), LONG * 3 / 2);
}

async fn a_short_job_does_not_run_again_before_its_minimum_hold(backend: TestBackend) {
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(LONG)).for_at_least(SHORT);
    for is_dropped in [false, true] {
        let began = Stopwatch::start();
        let guard = backend.locks.try_lock(&name, &options).await.expect("a free lock");
        let fence = guard.fence();
        if is_dropped {
            drop(guard);
        } else {
            assert_eq!(guard.release().await, Ok(Released::Freed));
        }
        let waits = backend.locks.lock(&name, &fixed().with(queued(LONG))).await.expect("a grant");
        assert!(SHORT <= began.real() && began.elapsed() < SHORT + SLACK);
        assert!(fence < waits.fence());
        waits.release().await.expect("a reply");
    }
}

async fn g6_a_late_renewal_does_not_extend_a_minimum_hold(backend: TestBackend) {
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(LONG)).for_at_least(SHORT * 4);
    let guard = backend.locks.try_lock(&name, &options).await.expect("a free lock");
    let holder = backend.locks.holder(&name).await.expect("a reply").expect("a holder");
    let Holder { value, owner, fence, since, .. } = holder;
    let late = HeldLock { name: name.clone(), value, owner: owner.clone(), fence, since };
    assert_eq!(guard.release().await, Ok(Released::Freed));
    let round = backend.locks.renew(&[late], LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Lost]);
    let rests =
        backend.locks.holder(&name).await.expect("a reply").expect("the minimum hold applies");
    assert!(rests.ttl <= SHORT * 4 && rests.owner == owner);
}

async fn a_live_holder_loses_the_lock_at_its_maximum_hold(backend: TestBackend) {
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(SHORT * 4)).for_at_most(SHORT * 2);
    let began = Stopwatch::start();
    let guard = backend.locks.try_lock(&name, &options).await.expect("a free lock");
    let next = backend.locks.lock(&name, &fixed().with(queued(LONG))).await.expect("a grant");
    assert!(SHORT * 2 <= began.real() && began.elapsed() < SHORT * 2 + SLACK);
    assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::HeldTooLong));
    assert_eq!(guard.release().await, Ok(Released::NotHeld));
    assert!(next.is_held());
}

async fn work_under_a_lock_is_dropped_when_the_lock_is_lost(backend: TestBackend) {
    struct Says(Arc<AtomicBool>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(SHORT * 5));
    let done = backend.locks.with_lock(&name, &options, async |fence| fence).await.expect("done");
    until_free(&backend.locks, &name).await;

    let (locks, other) = (backend.locks.clone(), name.clone());
    let ended = Arc::new(AtomicBool::new(false));
    let says = Says(Arc::clone(&ended));
    let works = apart(async move {
        let work = |_fence| async move {
            let _says = says;
            std::future::pending::<()>().await;
        };
        locks.with_lock(&other, &options, work).await
    });
    until("it works", async || backend.locks.holder(&name).await.expect("a reply").is_some()).await;
    let thief = thief(&backend.locks, &name).await;
    assert!(done < granted(&backend.locks, &thief).await.fence);
    let lost = timeout(TEST_TIMEOUT, works).await.expect("in time").expect("no panic");
    assert_eq!(lost, Err(LockError::Lost(Loss::Taken)));
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(refused(&backend.locks, &claim(&name, &lee())).await.value, thief.value);
}

async fn work_that_ends_after_its_lock_was_lost_is_an_error(backend: TestBackend) {
    let name = job("1");
    let options = AcquireOptions::new(Lease::Renewed(LONG));
    // So fast that no renewal detects it in between.
    let work = async |fence| {
        let thief = thief(&backend.locks, &name).await;
        assert!(fence < granted(&backend.locks, &thief).await.fence);
    };
    let done = backend.locks.with_lock(&name, &options, work).await;
    assert_eq!(done, Err(LockError::Lost(Loss::Taken)));
    assert_eq!(refused(&backend.locks, &claim(&name, &lee())).await.owner.id, kim().id);
}

async fn several_locks_are_acquired_all_or_none_and_never_deadlock(backend: TestBackend) {
    let names = ["c", "a", "b", "a"].map(job);
    let held = taken(&backend.locks, &job("c")).await;
    assert!(matches!(backend.locks.lock_all(&names, &fixed()).await, Err(LockError::Busy(_))));
    for name in ["a", "b"].map(job) {
        until_free(&backend.locks, &name).await;
    }
    held.release().await.expect("a reply");
    let all = backend.locks.lock_all(&names, &fixed()).await.expect("all are free");
    let held = backend.locks.held().await.expect("a reply").into_iter().map(|(name, _by)| name);
    assert_eq!(held.collect::<BTreeSet<_>>(), BTreeSet::from(["a", "b", "c"].map(job)));
    assert_eq!(all.release().await, Ok(Released::Freed));
    // A minimum hold needs all locks of the set.
    let (held, patient) = (taken(&backend.locks, &job("c")).await, fixed().for_at_least(LONG));
    assert!(matches!(backend.locks.lock_all(&names, &patient).await, Err(LockError::Busy(_))));
    let patient = patient.with(queued(LONG));
    let waits = until("it waits for the last", async || {
        refused(&backend.locks, &claim(held.name(), &lee())).await.waiting == 1
    });
    tokio::select! {
        all = backend.locks.lock_all(&names, &patient) => panic!("{all:?}"),
        _at = waits => {}
    }
    for name in ["a", "b"].map(job) {
        until_free(&backend.locks, &name).await;
    }
    held.release().await.expect("a reply");
    // Many claimants of overlapping sets, each in its own order.
    let mut race = JoinSet::new();
    for at in 0..30 {
        let locks = backend.locks.clone();
        let mut mine = ["a", "b", "c"].map(job).to_vec();
        mine.rotate_left(at % 3);
        mine.truncate(2);
        race.spawn(async move {
            let all = locks.lock_all(&mine, &fixed().with(queued(LONG))).await.expect("a grant");
            assert!(all.are_held());
        });
    }
    timeout(TEST_TIMEOUT, race.join_all()).await.expect("every wait ends");
}

async fn a_drop_at_any_step_leaves_nothing(backend: TestBackend) {
    let lease_options = [
        fixed(),
        fixed().with(Policy::BackOff(BackOff { first: SHORT / 20, ..BackOff::default() })),
        fixed().with(queued(LONG)),
    ];
    let held = taken(&backend.locks, &job("busy")).await;
    for round in 0..60_u32 {
        for options in &lease_options {
            let some = Duration::from_micros(u64::from(round) * 25);
            let names = [job("free"), job("busy")];
            let _ = timeout(some, backend.locks.lock(&names[0], options)).await;
            let _ = timeout(some, backend.locks.lock(&names[1], options)).await;
            let _ = timeout(some, backend.locks.lock_all(&names, options)).await;
            let work = |_fence| work(LONG);
            let _ = timeout(some, backend.locks.with_lock(&names[0], options, work)).await;
        }
    }
    until("the queue is empty", async || {
        refused(&backend.locks, &claim(held.name(), &lee())).await.waiting == 0
    })
    .await;
    let fence = held.fence();
    held.release().await.expect("a reply");
    for name in ["free", "busy"] {
        until("it is free", async || {
            let claim = claim(&job(name), &kim());
            let Ok(Claimed::Granted(grant)) = backend.locks.claim(&claim).await else {
                return false;
            };
            backend.locks.release(&claim.name, &claim.value).await.expect("a reply");
            name == "free" || fence < grant.fence
        })
        .await;
    }
    let left = backend.locks.held().await.expect("a reply");
    assert!(left.is_empty(), "{left:?}");
}

async fn closing_the_locks_releases_the_guards_and_notifies_them(backend: TestBackend) {
    let other = backend.another().await;
    let guards = [seat(), job("1"), job("2")];
    let mut held = Vec::new();
    for name in &guards {
        held.push(
            backend
                .locks
                .try_lock(name, &AcquireOptions::new(Lease::Renewed(LONG)))
                .await
                .expect("free"),
        );
    }
    backend.locks.close().await;
    for guard in &held {
        assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Closed));
        assert_eq!(other.holder(guard.name()).await, Ok(None));
    }
    assert!(backend.locks.try_lock(&job("3"), &fixed()).await.is_err());
}
