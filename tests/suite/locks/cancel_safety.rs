//! Cancel safety: each test drops a call after each of its steps, and checks that no trace is left.
//! Each test runs on both backends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use galley::locks::{
    AcquireOptions, BackOff, Claim, Lease, LockName, Locks, Loss, Policy, Released, Verdict,
    WaitOutcome,
};
use tokio::time::timeout;

use crate::locks::wait_queue::enter;
use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, claim, granted, granted_in_turn, held, kim, lee, queued, refused, seat, until, until_free,
};
use crate::support::redis_server::TEST_TIMEOUT;

crate::locks::on_both_backends! {
    every_acquisition_of_a_free_lock_is_cancel_safe_at_every_step
    every_acquisition_of_a_held_lock_is_cancel_safe_at_every_step
    a_claim_is_cancel_safe_at_every_step
    a_release_dropped_at_any_step_still_completes
    dropped_queries_change_nothing
}

/// More steps than any of these calls takes. A test drops an endless call, such as a wait for a
/// lock that stays held, after each of this many steps.
const STEPS_MAX: usize = 12;

/// A future that drops its inner future after this many polls.
struct Steps<F> {
    left: usize,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Steps<F> {
    /// None if the inner future did not end.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.inner.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Drops the future of `call` after each number of steps, until it ends or makes no progress;
/// checks `leaves` after each drop.
async fn dropped_at_each_step<F: Future>(
    mut call: impl FnMut(usize) -> F,
    mut leaves: impl AsyncFnMut(usize, Option<F::Output>),
) {
    for left in 0..STEPS_MAX {
        let inner = Box::pin(call(left));
        // A wait for an event that never comes has no further step.
        let dropped = timeout(Duration::from_millis(60), Steps { left, inner }).await;
        let (is_over, output) = match dropped {
            Ok(output) => (output.is_some(), output),
            Err(_nothing_more) => (true, None),
        };
        leaves(left, output).await;
        if is_over {
            return;
        }
    }
    panic!("the call takes more than STEPS_MAX steps");
}

fn job(step: usize, what: &str) -> LockName {
    LockName::named(&format!("job:{what}-{step}"))
}

fn lease_options() -> [AcquireOptions; 3] {
    let fixed = AcquireOptions::new(Lease::Fixed(LONG));
    let brief = BackOff { first: Duration::from_millis(5), ..BackOff::default() };
    [fixed.clone(), fixed.clone().with(Policy::BackOff(brief)), fixed.with(queued(LONG))]
}

/// The lock has no holder and no waiter, and a claim acquires it.
async fn is_untouched(locks: &Locks, name: &LockName) {
    until("it can be acquired", async || {
        let next = claim(name, &lee());
        let is_free = matches!(locks.claim(&next).await, Ok(galley::locks::Claimed::Granted(_)));
        if is_free {
            locks.release(name, &next.value).await.expect("a reply");
        }
        is_free
    })
    .await;
    until_free(locks, name).await;
}

async fn every_acquisition_of_a_free_lock_is_cancel_safe_at_every_step(backend: TestBackend) {
    let locks = &backend.locks;
    for (way, options) in lease_options().iter().enumerate() {
        let name = |step| job(step, &format!("free{way}"));
        dropped_at_each_step(
            async |step| drop(locks.try_lock(&name(step), options).await),
            async |step, _had| is_untouched(locks, &name(step)).await,
        )
        .await;
        dropped_at_each_step(
            async |step| drop(locks.lock(&name(step), options).await),
            async |step, _had| is_untouched(locks, &name(step)).await,
        )
        .await;
        dropped_at_each_step(
            async |step| {
                let names = [name(step), name(100 + step)];
                drop(locks.lock_all(&names, options).await);
            },
            async |step, _had| {
                is_untouched(locks, &name(step)).await;
                is_untouched(locks, &name(100 + step)).await;
            },
        )
        .await;
        dropped_at_each_step(
            async |step| {
                let work = |_fence| std::future::pending::<()>();
                drop(locks.with_lock(&name(step), options, work).await);
            },
            async |step, _had| is_untouched(locks, &name(step)).await,
        )
        .await;
    }
}

async fn every_acquisition_of_a_held_lock_is_cancel_safe_at_every_step(backend: TestBackend) {
    let locks = &backend.locks;
    let name = LockName::named("job:taken");
    let holder = locks.try_lock(&name, &lease_options()[0]).await.expect("a free lock");
    let queue_is_empty = async || {
        until("the queue is empty", async || {
            let seen = refused(locks, &claim(&name, &lee())).await;
            assert_eq!(seen.fence, holder.fence());
            seen.waiting == 0
        })
        .await;
    };
    for options in &lease_options() {
        dropped_at_each_step(
            async |_step| drop(locks.lock(&name, options).await),
            async |_step, _had| {
                queue_is_empty().await;
            },
        )
        .await;
        dropped_at_each_step(
            async |step| {
                let names = [job(step, "a"), name.clone()];
                drop(locks.lock_all(&names, options).await);
            },
            async |step, _had| {
                is_untouched(locks, &job(step, "a")).await;
                queue_is_empty().await;
            },
        )
        .await;
    }
    dropped_at_each_step(
        async |_step| drop(granted_in_turn(locks.wait(&claim(&name, &kim()), LONG)).await),
        async |_step, _had| {
            queue_is_empty().await;
        },
    )
    .await;
    assert_eq!(holder.release().await, Ok(Released::Freed));
    is_untouched(locks, &name).await;
}

async fn a_claim_is_cancel_safe_at_every_step(backend: TestBackend) {
    let locks = &backend.locks;
    let claims: Vec<Claim> = (0..STEPS_MAX).map(|_| claim(&seat(), &kim())).collect();
    dropped_at_each_step(
        async |step| locks.claim(&claims[step]).await,
        async |step, answered| {
            if let Some(answer) = answered {
                answer.expect("a reply");
                locks.release(&claims[step].name, &claims[step].value).await.expect("a reply");
            }
            is_untouched(locks, &claims[step].name).await;
        },
    )
    .await;
}

async fn a_release_dropped_at_any_step_still_completes(backend: TestBackend) {
    let locks = &backend.locks;
    let mut claims = Vec::new();
    for _ in 0..STEPS_MAX {
        let one = claim(&seat(), &kim());
        granted(locks, &one).await;
        claims.push(one);
    }
    dropped_at_each_step(
        async |step| locks.release(&claims[step].name, &claims[step].value).await,
        async |step, _had| {
            // A future without a poll has not begun.
            if step == 0 {
                locks.release(&claims[0].name, &claims[0].value).await.expect("a reply");
            }
            is_untouched(locks, &claims[step].name).await;
        },
    )
    .await;
    // Of guards, in sequence.
    let names = |step| [job(step, "given"), job(100 + step, "given")];
    let mut guards = Vec::new();
    for step in 0..STEPS_MAX {
        guards.push(locks.lock_all(&names(step), &lease_options()[0]).await.expect("free locks"));
    }
    let mut guards = guards.into_iter();
    dropped_at_each_step(
        |_step| {
            let all = guards.next().expect("guards for each step");
            async move { all.release().await }
        },
        async |step, _had| {
            for name in names(step) {
                is_untouched(locks, &name).await;
            }
        },
    )
    .await;
}

/// On one thread: with a second one the tasks may end so early that one step is missing.
#[tokio::test]
async fn a_close_dropped_at_any_step_and_repeated_releases_everything() {
    for backend in [TestBackend::memory().await, TestBackend::redis().await] {
        let mut all = Vec::new();
        for step in 0..STEPS_MAX {
            let [locks, seen] = backend.to_close().await;
            let options = AcquireOptions::new(Lease::Renewed(LONG));
            let guard = locks.try_lock(&job(step, "closed"), &options).await.expect("a free lock");
            all.push((locks, seen, guard));
        }
        dropped_at_each_step(
            async |step| all[step].0.close().await,
            async |step, _closed| {
                let (locks, seen, guard) = &all[step];
                timeout(TEST_TIMEOUT, locks.close()).await.expect("it comes to its end");
                assert_eq!(seen.holder(guard.name()).await, Ok(None));
                assert_eq!(timeout(TEST_TIMEOUT, guard.lost()).await, Ok(Loss::Closed));
                timeout(TEST_TIMEOUT, locks.stopped_renewing()).await.expect("it reports it");
            },
        )
        .await;
    }
}

async fn dropped_queries_change_nothing(backend: TestBackend) {
    let locks = &backend.locks;
    let (name, options) = (LockName::named("job:asked"), AcquireOptions::new(Lease::Renewed(LONG)));
    let guard = locks.try_lock(&name, &options).await.expect("a free lock");
    let first = claim(&name, &kim());
    let (waiting, _at) = enter(locks, &first).await;
    let waiting = tokio::sync::Mutex::new(waiting);
    let all = locks.lock_all(&[job(0, "all"), job(1, "all")], &options).await.expect("free locks");
    dropped_at_each_step(async |_| guard.lost().await, async |_, lost| assert_eq!(lost, None))
        .await;
    dropped_at_each_step(
        async |_| locks.stopped_renewing().await,
        async |_, stopped| assert_eq!(stopped, None),
    )
    .await;
    dropped_at_each_step(
        async |_step| waiting.lock().await.next().await,
        async |_step, outcome| assert!(!matches!(outcome, Some(Ok(WaitOutcome::Granted(_))))),
    )
    .await;
    for question in 0..6 {
        dropped_at_each_step(
            async |_step| match question {
                0 => drop(locks.holder(&name).await),
                1 => drop(locks.holders(std::slice::from_ref(&name)).await),
                2 => drop(locks.waiters(&name, 1).await),
                3 => drop(locks.held().await),
                4 => drop(locks.seats().await),
                _ => drop(locks.check().await),
            },
            async |_step, _said| {
                let seen = refused(locks, &claim(&name, &lee())).await;
                assert_eq!((seen.fence, seen.waiting), (guard.fence(), 1), "{question}");
                assert!(guard.is_held() && all.are_held(), "{question}");
            },
        )
        .await;
    }
    guard.release().await.expect("a reply");
    let grant = crate::locks::wait_queue::await_grant(waiting.into_inner()).await;
    // The backend renewed it, although the caller dropped the call.
    let one = [held(&first, &grant)];
    dropped_at_each_step(
        async |_step| locks.renew(&one, LONG).await,
        async |_step, round| {
            let verdicts = round.map(|round| round.expect("a reply").verdicts);
            assert!(verdicts.is_none_or(|verdicts| verdicts == [Verdict::Renewed]));
        },
    )
    .await;
    assert_eq!(refused(locks, &claim(&name, &lee())).await.value, first.value);
}
