//! People who claim locks, and short ways to let them.

use std::time::Duration;

use galley::domain::fence::Fence;
use galley::domain::ids::{NodeId, SessionId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::locks::{Claim, Claimed, Grant, Held, Holder, LockName, Locks, Over, Owner};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};
use tokio_util::task::TaskTracker;

use crate::server::PATIENCE;

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn owner(id: &str, name: &str) -> Owner {
    let user = User { id: id.parse().expect("a user id"), name: name.to_owned() };
    Owner { user, node: NodeId::generate(), pass: None }
}

pub(crate) fn kim() -> Owner {
    owner("kim", "김민수 \"👩‍👩‍👧\" \\ '|")
}

pub(crate) fn lee() -> Owner {
    owner("lee", "Lee")
}

/// A seat that nobody has claimed yet.
pub(crate) fn seat() -> LockName {
    LockName::seat(Seat::new(ShareLinkId::generate(), Role::Writer))
}

/// A claim with a value of its own, for a long time, from nobody.
pub(crate) fn claim(name: &LockName, owner: &Owner) -> Claim {
    Claim {
        name: name.clone(),
        value: SessionId::generate().to_string(),
        owner: owner.clone(),
        floor: Fence::ZERO,
        ttl: LONG,
        over: Over::Nobody,
    }
}

/// What the holder of a granted claim has in its hands.
pub(crate) fn held(claim: &Claim, grant: &Grant) -> Held {
    Held {
        name: claim.name.clone(),
        value: claim.value.clone(),
        owner: claim.owner.clone(),
        fence: grant.fence,
        since: grant.since,
    }
}

pub(crate) async fn granted(locks: &Locks, claim: &Claim) -> Grant {
    match locks.claim(claim).await.expect("an answer") {
        Claimed::Granted(grant) => grant,
        Claimed::Busy(holder) => panic!("busy: {holder:?}"),
    }
}

pub(crate) async fn refused(locks: &Locks, claim: &Claim) -> Holder {
    match locks.claim(claim).await.expect("an answer") {
        Claimed::Busy(holder) => holder,
        Claimed::Granted(grant) => panic!("granted: {grant:?}"),
    }
}

/// Grants `name` to `owner` for `ttl`, and gives what the holder has then.
pub(crate) async fn seated(locks: &Locks, name: &LockName, owner: &Owner, ttl: Duration) -> Held {
    let claim = Claim { ttl, ..claim(name, owner) };
    held(&claim, &granted(locks, &claim).await)
}

/// Asks until the answer is the wanted one; gives when that was first seen.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Instant {
    // There is no event for it. Asked often, without keeping the machine from what is waited for.
    let mut tick = interval(Duration::from_millis(2));
    let asked = async {
        while !is_so().await {
            tick.tick().await;
        }
    };
    timeout(PATIENCE, asked).await.unwrap_or_else(|_late| panic!("not in time: {what}"));
    Instant::now()
}

/// Waits until what keeps the locks has been met, and may be trusted: on a busy machine its first
/// answer takes longer than is waited for one.
pub(crate) async fn fit(locks: &Locks) {
    until("a fit Redis", async || locks.check().await.is_ok()).await;
}

/// Waits until nobody has the lock.
pub(crate) async fn until_free(locks: &Locks, name: &LockName) -> Instant {
    until("the lock comes free", async || locks.holder(name).await == Ok(None)).await
}

/// Lets something happen beside the test.
pub(crate) fn apart<T: Send + 'static>(
    what: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    TaskTracker::new().spawn(what)
}
