//! Guards granted by a hand-over message alone. Each test runs on both backends.

use std::time::Duration;

use galley::locks::{AcquireOptions, Guard, Lease, LockName, Locks, Released};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::locks::wait_queue::SHORT;
use crate::support::backends::TestBackend;
use crate::support::fixtures::{LONG, apart, queued, until};
use crate::support::redis_server::TEST_TIMEOUT;

crate::locks::on_both_backends! {
    g5_a_notified_waiter_holds_the_lock_and_extends_its_lease_at_once
    g3_a_handed_over_lease_is_valid_longer_once_it_is_extended
    g6_extending_a_handed_over_lease_does_not_restore_a_released_lock
}

fn name() -> LockName {
    LockName::named("job:told")
}

async fn taken(locks: &Locks) -> Guard {
    locks.try_lock(&name(), &AcquireOptions::new(Lease::Renewed(LONG))).await.expect("a free lock")
}

/// A waiter for a guard, in the queue.
async fn waits(locks: &Locks, lease: Lease) -> JoinHandle<Guard> {
    let (waiter, options) = (locks.clone(), AcquireOptions::new(lease).with(queued(LONG)));
    let waits = apart(async move { waiter.lock(&name(), &options).await.expect("a grant") });
    until("they wait", async || {
        let holder = locks.holder(&name()).await.expect("a reply");
        holder.is_some_and(|holder| holder.waiting == 1)
    })
    .await;
    waits
}

async fn granted_early(waits: JoinHandle<Guard>) -> Guard {
    timeout(TEST_TIMEOUT, waits).await.expect("in time").expect("no panic")
}

async fn g5_a_notified_waiter_holds_the_lock_and_extends_its_lease_at_once(backend: TestBackend) {
    let (first, other) = (taken(&backend.locks).await, backend.another().await);
    let waits = waits(&other, Lease::Fixed(LONG)).await;
    let fence = first.fence();
    assert_eq!(first.release().await, Ok(Released::Freed));
    let guard = granted_early(waits).await;
    assert!(guard.is_held() && fence < guard.fence());
    let holder = backend.locks.holder(&name()).await.expect("a reply").expect("a holder");
    assert_eq!((holder.fence, holder.since), (guard.fence(), guard.since()));
    until("its lease is extended", async || {
        let holder = backend.locks.holder(&name()).await.expect("a reply").expect("a holder");
        LONG / 2 < holder.ttl
    })
    .await;
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

async fn g3_a_handed_over_lease_is_valid_longer_once_it_is_extended(backend: TestBackend) {
    let first = taken(&backend.locks).await;
    // Longer than a handed-over grant is valid.
    let waits = waits(&backend.locks, Lease::Fixed(Duration::from_secs(9))).await;
    first.release().await.expect("a reply");
    let guard = granted_early(waits).await;
    let lost = timeout(Duration::from_millis(5_700), guard.lost()).await;
    assert!(lost.is_err() && guard.is_held(), "{lost:?}");
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

async fn g6_extending_a_handed_over_lease_does_not_restore_a_released_lock(backend: TestBackend) {
    for _round in 0..20 {
        let first = taken(&backend.locks).await;
        let (waits, held) = (waits(&backend.locks, Lease::Renewed(SHORT)).await, first);
        held.release().await.expect("a reply");
        let guard = granted_early(waits).await;
        assert_eq!(guard.release().await, Ok(Released::Freed));
        assert_eq!(backend.locks.holder(&name()).await, Ok(None));
    }
    // Redis has executed all earlier commands when it replies to this one.
    let last = taken(&backend.locks).await;
    assert_eq!(last.release().await, Ok(Released::Freed));
    assert_eq!(backend.locks.holder(&name()).await, Ok(None));
}
