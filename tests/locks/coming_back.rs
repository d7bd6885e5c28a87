//! Coming back to a lock by the secret it was given with, wherever it is kept. `main.rs` runs each
//! of these on both keepers.

use std::time::Duration;

use galley::locks::{Claim, LockName, Locks, Over, Owner, Pass, Verdict};

use crate::line::{enter, turn};
use crate::people::{LONG, claim, granted, held, kim, lee, owner, refused, seat, until_free};
use crate::place::Place;

/// Short enough to wait for, long enough not to end on a busy machine before it is looked at.
const SHORT: Duration = Duration::from_millis(300);

/// A claim that leaves the hash of `secret` with the lock.
fn leaving(secret: &str, name: &LockName, owner: &Owner) -> Claim {
    let owner = Owner { pass: Some(Pass::of(secret)), ..owner.clone() };
    claim(name, &owner)
}

/// The claim of who comes back with a secret, and leaves another.
fn with(secret: &str, name: &LockName, owner: &Owner) -> Claim {
    Claim { over: Over::Pass(Pass::of(secret)), ..leaving("the next one", name, owner) }
}

async fn is_refused(locks: &Locks, claim: &Claim, holder: &Claim) {
    assert_eq!(refused(locks, claim).await.value, holder.value);
}

pub(crate) async fn who_held_it_comes_back_with_its_secret_and_nobody_else(place: Place) {
    let (name, other) = (seat(), place.another().await);
    let old = leaving("one", &name, &kim());
    let first = granted(&place.locks, &old).await;
    let namesake = owner("kim-2", &kim().user.name);
    for stranger in [with("two", &name, &kim()), with("one", &name, &lee())] {
        is_refused(&other, &stranger, &old).await;
    }
    is_refused(&other, &with("one", &name, &namesake), &old).await;
    is_refused(&other, &with("", &name, &kim()), &old).await;

    let back = with("one", &name, &kim());
    let grant = granted(&other, &back).await;

    assert!(first.fence < grant.fence);
    let replaced = grant.replaced.clone().expect("somebody lost it");
    assert_eq!((replaced.value, replaced.fence), (old.value.clone(), first.fence));
    let held = [held(&old, &first), held(&back, &grant)];
    let round = place.locks.renew(&held, LONG).await.expect("an answer");
    assert_eq!(round.verdicts, [Verdict::Lost, Verdict::Renewed]);
    // It is good for once; the new one opens.
    is_refused(&other, &with("one", &name, &kim()), &back).await;
    granted(&place.locks, &with("the next one", &name, &kim())).await;
}

pub(crate) async fn without_a_pass_nobody_comes_back(place: Place) {
    let name = seat();
    let old = claim(&name, &kim());
    granted(&place.locks, &old).await;
    is_refused(&place.locks, &with("", &name, &kim()), &old).await;
    // That of an earlier grant is not kept with a later one that has none.
    let taken = Claim { over: Over::SameUser, ..leaving("one", &name, &kim()) };
    granted(&place.locks, &taken).await;
    let bare = Claim { over: Over::SameUser, ..claim(&name, &kim()) };
    granted(&place.locks, &bare).await;
    is_refused(&place.locks, &with("one", &name, &kim()), &bare).await;
    assert_eq!(refused(&place.locks, &claim(&name, &lee())).await.owner.pass, None);
}

pub(crate) async fn what_was_released_or_handed_on_is_not_come_back_to(place: Place) {
    let name = seat();
    let first = leaving("one", &name, &kim());
    granted(&place.locks, &first).await;
    let second = leaving("two", &name, &kim());
    let (waiting, _at) = enter(&place.locks, &second).await;
    place.locks.release(&name, &first.value).await.expect("an answer");
    // It is the second's from here on, though they do not know it yet.
    is_refused(&place.locks, &with("one", &name, &kim()), &second).await;
    turn(waiting).await;
    is_refused(&place.locks, &with("one", &name, &kim()), &second).await;
    // Who was handed it may come back like anybody.
    granted(&place.locks, &with("two", &name, &kim())).await;
    // To what is free everybody comes, secret or not.
    let free = seat();
    assert_eq!(granted(&place.locks, &with("one", &free, &kim())).await.replaced, None);
}

pub(crate) async fn g5_who_comes_back_goes_before_the_line_and_leaves_it_as_it_is(place: Place) {
    let name = seat();
    let old = leaving("one", &name, &kim());
    granted(&place.locks, &old).await;
    let (waiting, at) = enter(&place.locks, &claim(&name, &kim())).await;
    assert_eq!(at.holder.value, old.value);
    let back = with("one", &name, &kim());
    let grant = granted(&place.locks, &back).await;
    assert_eq!(grant.replaced.as_ref().map(|holder| holder.waiting), Some(1));
    assert_eq!(refused(&place.locks, &claim(&name, &kim())).await.waiting, 1);
    place.locks.release(&name, &back.value).await.expect("an answer");
    assert!(grant.fence < turn(waiting).await.fence);
}

pub(crate) async fn a_lock_that_was_put_back_is_come_back_to(place: Place) {
    let name = seat();
    let late = Claim { ttl: SHORT, ..leaving("one", &name, &kim()) };
    let late_held = held(&late, &granted(&place.locks, &late).await);
    until_free(&place.locks, &name).await;
    let round = place.locks.renew(std::slice::from_ref(&late_held), LONG).await;
    assert_eq!(round.expect("an answer").verdicts, [Verdict::Reasserted]);
    is_refused(&place.locks, &with("two", &name, &kim()), &late).await;
    granted(&place.locks, &with("one", &name, &kim())).await;
}
