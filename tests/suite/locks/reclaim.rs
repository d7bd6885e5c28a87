//! Reclaim of a lock by its secret, on both backends. Each test runs on both.

use std::time::Duration;

use galley::locks::{Claim, LockName, Locks, Owner, ReclaimToken, Takeover, Verdict};

use crate::locks::wait_queue::{await_grant, enter};
use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, owner, refused, seat, until_free,
};

crate::locks::on_both_backends! {
    only_the_previous_holder_reclaims_with_its_secret
    without_a_reclaim_token_no_claim_reclaims
    a_released_or_handed_over_lock_cannot_be_reclaimed
    g5_a_reclaim_overtakes_the_wait_queue_and_leaves_it_unchanged
    a_reasserted_lock_can_be_reclaimed
}

/// Short enough to await, long enough not to expire on a busy machine before the check.
const SHORT: Duration = Duration::from_millis(300);

/// A claim that stores the hash of `secret` with the lock.
fn leaving(secret: &str, name: &LockName, owner: &Owner) -> Claim {
    let owner = Owner { pass: Some(ReclaimToken::of(secret)), ..owner.clone() };
    claim(name, &owner)
}

/// A claim that presents one secret and stores another.
fn with(secret: &str, name: &LockName, owner: &Owner) -> Claim {
    Claim {
        over: Takeover::ReclaimToken(ReclaimToken::of(secret)),
        ..leaving("the next one", name, owner)
    }
}

async fn is_refused(locks: &Locks, claim: &Claim, holder: &Claim) {
    assert_eq!(refused(locks, claim).await.value, holder.value);
}

async fn only_the_previous_holder_reclaims_with_its_secret(backend: TestBackend) {
    let (name, other) = (seat(), backend.another().await);
    let old = leaving("one", &name, &kim());
    let first = granted(&backend.locks, &old).await;
    let namesake = owner("kim-2", &kim().name);
    for stranger in [with("two", &name, &kim()), with("one", &name, &lee())] {
        is_refused(&other, &stranger, &old).await;
    }
    is_refused(&other, &with("one", &name, &namesake), &old).await;
    is_refused(&other, &with("", &name, &kim()), &old).await;

    let back = with("one", &name, &kim());
    let grant = granted(&other, &back).await;

    assert!(first.fence < grant.fence);
    let replaced = grant.replaced.clone().expect("a loss");
    assert_eq!((replaced.value, replaced.fence), (old.value.clone(), first.fence));
    let held = [held(&old, &first), held(&back, &grant)];
    let round = backend.locks.renew(&held, LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Lost, Verdict::Renewed]);
    // A secret works once; the new one reclaims.
    is_refused(&other, &with("one", &name, &kim()), &back).await;
    granted(&backend.locks, &with("the next one", &name, &kim())).await;
}

async fn without_a_reclaim_token_no_claim_reclaims(backend: TestBackend) {
    let name = seat();
    let old = claim(&name, &kim());
    granted(&backend.locks, &old).await;
    is_refused(&backend.locks, &with("", &name, &kim()), &old).await;
    // A later grant without a token drops the token of the earlier one.
    let taken = Claim { over: Takeover::SameOwner, ..leaving("one", &name, &kim()) };
    granted(&backend.locks, &taken).await;
    let bare = Claim { over: Takeover::SameOwner, ..claim(&name, &kim()) };
    granted(&backend.locks, &bare).await;
    is_refused(&backend.locks, &with("one", &name, &kim()), &bare).await;
    assert_eq!(refused(&backend.locks, &claim(&name, &lee())).await.owner.pass, None);
}

async fn a_released_or_handed_over_lock_cannot_be_reclaimed(backend: TestBackend) {
    let name = seat();
    let first = leaving("one", &name, &kim());
    granted(&backend.locks, &first).await;
    let second = leaving("two", &name, &kim());
    let (waiting, _at) = enter(&backend.locks, &second).await;
    backend.locks.release(&name, &first.value).await.expect("a reply");
    // The second session holds the lock from here on; it has not yet received the hand-over.
    is_refused(&backend.locks, &with("one", &name, &kim()), &second).await;
    await_grant(waiting).await;
    is_refused(&backend.locks, &with("one", &name, &kim()), &second).await;
    // A waiter that received a hand-over may reclaim its lock too.
    granted(&backend.locks, &with("two", &name, &kim())).await;
    // A free lock goes to any claimant, with or without a secret.
    let free = seat();
    assert_eq!(granted(&backend.locks, &with("one", &free, &kim())).await.replaced, None);
}

async fn g5_a_reclaim_overtakes_the_wait_queue_and_leaves_it_unchanged(backend: TestBackend) {
    let name = seat();
    let old = leaving("one", &name, &kim());
    granted(&backend.locks, &old).await;
    let (waiting, at) = enter(&backend.locks, &claim(&name, &kim())).await;
    assert_eq!(at.holder.value, old.value);
    let back = with("one", &name, &kim());
    let grant = granted(&backend.locks, &back).await;
    assert_eq!(grant.replaced.as_ref().map(|holder| holder.waiting), Some(1));
    assert_eq!(refused(&backend.locks, &claim(&name, &kim())).await.waiting, 1);
    backend.locks.release(&name, &back.value).await.expect("a reply");
    assert!(grant.fence < await_grant(waiting).await.fence);
}

async fn a_reasserted_lock_can_be_reclaimed(backend: TestBackend) {
    let name = seat();
    let late = Claim { ttl: SHORT, ..leaving("one", &name, &kim()) };
    let late_held = held(&late, &granted(&backend.locks, &late).await);
    until_free(&backend.locks, &name).await;
    let round = backend.locks.renew(std::slice::from_ref(&late_held), LONG).await;
    assert_eq!(round.expect("a reply").verdicts, [Verdict::Reasserted]);
    is_refused(&backend.locks, &with("two", &name, &kim()), &late).await;
    granted(&backend.locks, &with("one", &name, &kim())).await;
}
