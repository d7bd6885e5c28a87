//! Users, their claims, and short helpers for both.

use std::fmt::Debug;
use std::time::Duration;

use galley::domain::fence::Fence;
use galley::domain::ids::{NodeId, SessionId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::locks::{
    Claim, Claimed, Grant, HeldLock, Holder, LockError, LockName, Locks, Owner, Policy, Takeover,
    WaitOutcome, WaitPolicy, Waiter,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn owner(id: &str, name: &str) -> Owner {
    let (id, name) = (id.parse().expect("an owner's id"), name.to_owned());
    Owner { id, name, node: NodeId::generate(), pass: None }
}

pub(crate) fn kim() -> Owner {
    owner("kim", "김민수 \"👩‍👩‍👧\" \\ '|")
}

pub(crate) fn lee() -> Owner {
    owner("lee", "Lee")
}

/// A seat without an earlier claim.
pub(crate) fn seat() -> LockName {
    LockName::seat(Seat::new(ShareLinkId::generate(), Role::Writer))
}

/// A claim with a new value and a long lease, without takeover.
pub(crate) fn claim(name: &LockName, owner: &Owner) -> Claim {
    Claim {
        name: name.clone(),
        value: SessionId::generate().to_string(),
        owner: owner.clone(),
        floor: Fence::ZERO,
        ttl: LONG,
        over: Takeover::None,
    }
}

/// The data with which a holder renews a granted claim.
pub(crate) fn held(claim: &Claim, grant: &Grant) -> HeldLock {
    HeldLock {
        name: claim.name.clone(),
        value: claim.value.clone(),
        owner: claim.owner.clone(),
        fence: grant.fence,
        since: grant.since,
    }
}

pub(crate) async fn granted(locks: &Locks, claim: &Claim) -> Grant {
    match locks.claim(claim).await.expect("a reply") {
        Claimed::Granted(grant) => grant,
        Claimed::Busy(holder) => panic!("busy: {holder:?}"),
    }
}

pub(crate) async fn refused(locks: &Locks, claim: &Claim) -> Holder {
    match locks.claim(claim).await.expect("a reply") {
        Claimed::Busy(holder) => holder,
        Claimed::Granted(grant) => panic!("granted: {grant:?}"),
    }
}

/// A wait in the queue of at most `total`.
pub(crate) fn queued(total: Duration) -> Policy {
    Policy::Queue(WaitPolicy { slice: Duration::from_secs(1), total })
}

/// Waits for the grant, and ignores changes of position.
pub(crate) async fn granted_in_turn(mut waiter: Waiter) -> Result<Grant, LockError> {
    loop {
        if let WaitOutcome::Granted(grant) = waiter.next().await? {
            return Ok(grant);
        }
    }
}

/// Grants `name` to `owner` for `ttl`, and returns the lock to renew.
pub(crate) async fn seated(
    locks: &Locks,
    name: &LockName,
    owner: &Owner,
    ttl: Duration,
) -> HeldLock {
    let claim = Claim { ttl, ..claim(name, owner) };
    held(&claim, &granted(locks, &claim).await)
}

/// No tick, no grace and no lease ends within [`TEST_TIMEOUT`], so none of them causes an effect that a test awaits.
pub(crate) const NO_TICK: [(&str, &str); 4] = [
    ("SEATS__LEASE", "600s"),
    ("SEATS__RENEW_EVERY", "200s"),
    ("SEATS__CLIENT_TIMEOUT", "500s"),
    ("SEATS__RESUME_GRACE", "200s"),
];

/// Polls until the condition holds; returns when it was first true.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Instant {
    poll(Duration::from_millis(2), async || is_so().await.then(Instant::now).ok_or(what)).await
}

/// Polls until the look finds a value; a failure prints the last error of the look.
pub(crate) async fn found<T, E: Debug>(look: impl AsyncFnMut() -> Result<T, E>) -> T {
    poll(Duration::from_millis(20), look).await
}

async fn poll<T, E: Debug>(every: Duration, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let mut instead = None;
    let finding = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(other) => instead = Some(other),
            }
            // There is no event for it. The interval is short, and leaves the machine time for its work.
            sleep(every).await;
        }
    };
    // A poll after a kill spans a lease and a restart.
    let found = timeout(TEST_TIMEOUT * 3 / 2, finding).await;
    found.unwrap_or_else(|_late| panic!("not in time: {instead:?}"))
}

/// A synced client, once the seat is free.
pub(crate) async fn synced(server: &Server, desk: &Desk, role: &str, query: &str) -> Peer {
    found(async || {
        let peer = server.claim_seat(desk, role, query).await;
        if peer.becomes_synced().await { Ok(peer) } else { Err("the seat is not free") }
    })
    .await
}

/// Waits until the backend has passed its preflight: on a busy machine its first reply takes longer
/// than the time-out of a claim.
pub(crate) async fn fit(locks: &Locks) {
    until("a fit Redis", async || locks.check().await.is_ok()).await;
}

/// Waits until the lock has no holder.
pub(crate) async fn until_free(locks: &Locks, name: &LockName) -> Instant {
    until("the lock is free", async || locks.holder(name).await == Ok(None)).await
}

/// Spawns a task beside the test.
pub(crate) fn apart<T: Send + 'static>(
    what: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    TaskTracker::new().spawn(what)
}
