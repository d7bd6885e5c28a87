//! Behaviour of locks on every backend. Each test runs on both.

use std::time::Duration;

use galley::domain::fence::Fence;
use galley::domain::ids::ShareLinkId;
use galley::domain::seat::{Role, Seat};
use galley::locks::{Claim, Claimed, LockName, LocksError, Released, Takeover, Verdict};
use tokio::task::JoinSet;

use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, owner, refused, seat, seated, until_free,
};
use crate::support::stopwatch::Stopwatch;

crate::locks::on_both_backends! {
    and on a cluster:
    a_held_lock_reports_holder_grant_time_and_remaining_lease
    a_repeated_claim_is_the_same_grant_with_a_fresh_lease
    g6_a_release_never_frees_a_later_grant
    g2_the_fence_rises_through_release_expiry_and_takeover
    g2_the_fence_rises_above_what_the_database_ratified
    g2_a_fence_that_the_database_rejected_is_minted_again_above_its_floor
    a_takeover_by_value_requires_the_named_holder
    a_takeover_by_user_requires_the_same_user
    each_renewal_has_its_verdict_by_position
    g6_a_late_renewal_does_not_restore_a_released_lock
    g6_a_lock_released_after_its_expiry_is_not_reasserted
    g6_a_lock_with_another_holder_in_between_is_not_reasserted
    a_late_holder_reasserts_its_lock_without_another_holder_in_between
    g1_of_a_hundred_claimants_on_two_servers_one_wins
    g4_a_lease_without_renewal_expires_at_its_end_and_never_before
    holders_are_listed_by_position_and_seats_contain_seats_only
    a_released_value_is_spent
}

/// Short enough to await, long enough not to expire on a busy machine before the check.
const SHORT: Duration = Duration::from_millis(300);

async fn a_held_lock_reports_holder_grant_time_and_remaining_lease(backend: TestBackend) {
    let name = seat();
    assert_eq!(backend.locks.holder(&name).await, Ok(None));
    let first = claim(&name, &kim());
    let grant = granted(&backend.locks, &first).await;
    assert_eq!(grant.replaced, None);

    let holder = refused(&backend.locks, &claim(&name, &lee())).await;

    assert_eq!(holder.value, first.value);
    assert_eq!(holder.owner, first.owner);
    assert_eq!((holder.fence, holder.since), (grant.fence, grant.since));
    assert!(LONG - SHORT < holder.ttl && holder.ttl <= LONG, "{:?}", holder.ttl);
    let holder_found = backend.locks.holder(&name).await.expect("a reply").expect("a holder");
    assert_eq!(
        (holder_found.value, holder_found.owner, holder_found.fence),
        (first.value, first.owner, grant.fence)
    );
}

async fn a_repeated_claim_is_the_same_grant_with_a_fresh_lease(backend: TestBackend) {
    let name = seat();
    let short = Claim { ttl: SHORT, ..claim(&name, &kim()) };
    let first = granted(&backend.locks, &short).await;
    let again = granted(&backend.locks, &Claim { ttl: LONG, ..short.clone() }).await;
    assert_eq!((again.fence, again.since, again.replaced), (first.fence, first.since, None));
    let holder = backend.locks.holder(&name).await.expect("a reply").expect("a holder");
    assert!(SHORT < holder.ttl);
}

async fn g6_a_release_never_frees_a_later_grant(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), SHORT).await;
    until_free(&backend.locks, &name).await;
    let new = seated(&backend.locks, &name, &lee(), LONG).await;

    assert_eq!(backend.locks.release(&name, &old.value).await, Ok(Released::NotHeld));

    let holder = backend.locks.holder(&name).await.expect("a reply").expect("a holder");
    assert_eq!(holder.value, new.value);
    assert_eq!(backend.locks.release(&name, &new.value).await, Ok(Released::Freed));
    assert_eq!(backend.locks.release(&name, &new.value).await, Ok(Released::NotHeld));
    assert_eq!(backend.locks.holder(&name).await, Ok(None));
}

async fn g2_the_fence_rises_through_release_expiry_and_takeover(backend: TestBackend) {
    let name = seat();
    let mut last = Fence::ZERO;
    let mut rises = |fence: Fence| {
        assert!(last < fence, "{last} then {fence}");
        last = fence;
    };
    let released = seated(&backend.locks, &name, &kim(), LONG).await;
    rises(released.fence);
    backend.locks.release(&name, &released.value).await.expect("a reply");
    rises(seated(&backend.locks, &name, &kim(), SHORT).await.fence);
    until_free(&backend.locks, &name).await;
    rises(seated(&backend.locks, &name, &kim(), LONG).await.fence);
    let over = Claim { over: Takeover::SameOwner, ..claim(&name, &kim()) };
    rises(granted(&backend.locks, &over).await.fence);
}

async fn g2_the_fence_rises_above_what_the_database_ratified(backend: TestBackend) {
    let name = seat();
    let floor = Fence(9_000_000_000_000_000 / 2);
    let high = Claim { floor, ..claim(&name, &kim()) };
    let grant = granted(&backend.locks, &high).await;
    assert_eq!(grant.fence, Fence(floor.0 + 1));
    backend.locks.release(&name, &high.value).await.expect("a reply");
    // The backend's clock is a century behind now; the last fence still counts.
    let next = granted(&backend.locks, &claim(&name, &lee())).await;
    assert!(grant.fence < next.fence);
}

/// A claim with a floor at its own fence receives a new fence above the floor, and holds the lock
/// throughout.
async fn g2_a_fence_that_the_database_rejected_is_minted_again_above_its_floor(
    backend: TestBackend,
) {
    let name = seat();
    let first = claim(&name, &kim());
    let refused_at = granted(&backend.locks, &first).await.fence;
    let floor = Fence(refused_at.0 + 1_000_000_000);
    let again = Claim { floor, ..first.clone() };
    let minted = granted(&backend.locks, &again).await;
    assert!(floor < minted.fence);
    assert!(minted.replaced.is_none());
    assert_eq!(granted(&backend.locks, &again).await.fence, minted.fence, "and then it stays");
    let holder = backend.locks.holder(&name).await.expect("a reply").expect("held");
    assert_eq!((holder.value, holder.fence), (first.value, minted.fence));
}

async fn a_takeover_by_value_requires_the_named_holder(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let from_another = Claim { over: Takeover::Value("ses_other".into()), ..claim(&name, &lee()) };
    assert_eq!(refused(&backend.locks, &from_another).await.value, old.value);

    let from_kim = Claim { over: Takeover::Value(old.value.clone()), ..claim(&name, &lee()) };
    let grant = granted(&backend.locks, &from_kim).await;

    let replaced = grant.replaced.clone().expect("a loss");
    assert_eq!((replaced.value, replaced.owner), (old.value.clone(), old.owner.clone()));
    assert_eq!(replaced.fence, old.fence);
    assert!(old.fence < grant.fence);
    let round = backend.locks.renew(&[old, held(&from_kim, &grant)], LONG).await;
    assert_eq!(round.expect("a reply").verdicts, [Verdict::Lost, Verdict::Renewed]);
    // The same request is too late against the next holder.
    assert_eq!(
        refused(&backend.locks, &Claim { value: "ses_late".into(), ..from_kim.clone() })
            .await
            .value,
        from_kim.value
    );
}

async fn a_takeover_by_user_requires_the_same_user(backend: TestBackend) {
    let name = seat();
    let old = seated(&backend.locks, &name, &kim(), LONG).await;
    let by_lee = Claim { over: Takeover::SameOwner, ..claim(&name, &lee()) };
    assert_eq!(refused(&backend.locks, &by_lee).await.value, old.value);
    // Another user with the same name.
    let by_namesake = Claim { owner: owner("kim-2", &kim().name), ..by_lee };
    assert_eq!(refused(&backend.locks, &by_namesake).await.value, old.value);

    let by_kim = Claim { over: Takeover::SameOwner, ..claim(&name, &kim()) };
    let grant = granted(&backend.locks, &by_kim).await;

    assert_eq!(grant.replaced.expect("a loss").value, old.value);
    let none = Claim { over: Takeover::SameOwner, ..claim(&seat(), &kim()) };
    assert_eq!(granted(&backend.locks, &none).await.replaced, None);
}

async fn each_renewal_has_its_verdict_by_position(backend: TestBackend) {
    // More locks than two calls of the script carry, with a call boundary among the lost ones.
    let mut all = Vec::new();
    for at in 0..601 {
        let name = seat();
        all.push(seated(&backend.locks, &name, &kim(), LONG).await);
        if at % 7 == 3 || (245..255).contains(&at) {
            let taken = Claim { over: Takeover::SameOwner, ..claim(&name, &kim()) };
            granted(&backend.locks, &taken).await;
        }
    }
    let round = backend.locks.renew(&all, LONG * 2).await.expect("a reply");
    let wanted = (0..601).map(|at| match at % 7 == 3 || (245..255).contains(&at) {
        true => Verdict::Lost,
        false => Verdict::Renewed,
    });
    assert_eq!(round.verdicts, wanted.collect::<Vec<_>>());
    let names: Vec<_> = all.iter().map(|held| held.name.clone()).collect();
    let holders = backend.locks.holders(&names).await.expect("a reply");
    for ((holder, verdict), held) in holders.iter().zip(&round.verdicts).zip(&all) {
        let holder = holder.as_ref().expect("a holder");
        let is_longer = LONG < holder.ttl;
        assert_eq!(is_longer, *verdict == Verdict::Renewed);
        assert_eq!(holder.value == held.value, *verdict == Verdict::Renewed);
    }
}

async fn g6_a_late_renewal_does_not_restore_a_released_lock(backend: TestBackend) {
    let name = seat();
    let held = seated(&backend.locks, &name, &kim(), LONG).await;
    backend.locks.release(&name, &held.value).await.expect("a reply");
    let round = backend.locks.renew(std::slice::from_ref(&held), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Lost]);
    assert_eq!(backend.locks.holder(&name).await, Ok(None));
}

async fn g6_a_lock_released_after_its_expiry_is_not_reasserted(backend: TestBackend) {
    let name = seat();
    let held = seated(&backend.locks, &name, &kim(), SHORT).await;
    until_free(&backend.locks, &name).await;
    assert_eq!(backend.locks.release(&name, &held.value).await, Ok(Released::NotHeld));
    let round = backend.locks.renew(std::slice::from_ref(&held), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Lost]);
}

async fn g6_a_lock_with_another_holder_in_between_is_not_reasserted(backend: TestBackend) {
    let name = seat();
    let late = seated(&backend.locks, &name, &kim(), SHORT).await;
    until_free(&backend.locks, &name).await;
    let other = seated(&backend.locks, &name, &lee(), LONG).await;
    let late = std::slice::from_ref(&late);
    assert_eq!(backend.locks.renew(late, LONG).await.expect("a reply").verdicts, [Verdict::Lost]);
    backend.locks.release(&name, &other.value).await.expect("a reply");
    assert_eq!(backend.locks.renew(late, LONG).await.expect("a reply").verdicts, [Verdict::Lost]);
    assert_eq!(backend.locks.holder(&name).await, Ok(None));
}

async fn a_late_holder_reasserts_its_lock_without_another_holder_in_between(backend: TestBackend) {
    let name = seat();
    let late = seated(&backend.locks, &name, &kim(), SHORT).await;
    until_free(&backend.locks, &name).await;
    let round = backend.locks.renew(std::slice::from_ref(&late), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Reasserted]);
    let holder = backend.locks.holder(&name).await.expect("a reply").expect("a holder");
    assert_eq!((holder.value, holder.owner, holder.fence), (late.value, late.owner, late.fence));
    assert_eq!(holder.since, late.since);
}

async fn g1_of_a_hundred_claimants_on_two_servers_one_wins(backend: TestBackend) {
    let other = backend.another().await;
    for _round in 0..20 {
        let name = seat();
        let mut race = JoinSet::new();
        for at in 0..100 {
            let locks = if at % 2 == 0 { backend.locks.clone() } else { other.clone() };
            let claim = claim(&name, &kim());
            race.spawn(async move { (locks.claim(&claim).await, claim.value) });
        }
        let answers = race.join_all().await;
        let (mut winners, mut named) = (Vec::new(), Vec::new());
        for (claimed, value) in answers {
            match claimed.expect("a reply") {
                Claimed::Granted(_) => winners.push(value),
                Claimed::Busy(holder) => named.push(holder.value),
            }
        }
        assert_eq!(winners.len(), 1);
        assert!(named.iter().all(|holder| *holder == winners[0]));
    }
}

async fn g4_a_lease_without_renewal_expires_at_its_end_and_never_before(backend: TestBackend) {
    let names: Vec<_> = (0..20).map(|_| seat()).collect();
    let before = Stopwatch::start();
    for name in &names {
        seated(&backend.locks, name, &kim(), SHORT).await;
    }
    for name in &names {
        until_free(&backend.locks, name).await;
        // A millisecond, because the backend rounds to whole ones.
        assert!(SHORT - Duration::from_millis(1) <= before.real());
        granted(&backend.locks, &claim(name, &lee())).await;
    }
    assert!(before.elapsed() < SHORT * 10);
}

async fn holders_are_listed_by_position_and_seats_contain_seats_only(backend: TestBackend) {
    let link = ShareLinkId::generate();
    let (writer, reviewer) = (Seat::new(link, Role::Writer), Seat::new(link, Role::Reviewer));
    let names = [LockName::named("export:1"), LockName::seat(writer), LockName::seat(reviewer)];
    assert_eq!(backend.locks.holders(&names).await, Ok(vec![None, None, None]));
    assert_eq!(backend.locks.holders(&[]).await, Ok(vec![]));
    let job = seated(&backend.locks, &names[0], &lee(), LONG).await;
    let seat = seated(&backend.locks, &names[2], &kim(), LONG).await;

    let values: Vec<_> = backend.locks.holders(&names).await.expect("a reply");
    let values: Vec<_> = values.into_iter().map(|holder| holder.map(|it| it.value)).collect();

    assert_eq!(values, [Some(job.value), None, Some(seat.value.clone())]);
    let mut seats = backend.locks.seats().await.expect("a reply");
    // Other tests share the Cluster.
    seats.retain(|(seat, _holder)| seat.link == reviewer.link);
    let [(found, holder)] = seats.as_slice() else { panic!("{seats:?}") };
    assert_eq!((*found, &holder.value, &holder.owner), (reviewer, &seat.value, &seat.owner));
}

async fn a_released_value_is_spent(backend: TestBackend) {
    let name = seat();
    let one = claim(&name, &kim());
    granted(&backend.locks, &one).await;
    backend.locks.release(&name, &one.value).await.expect("a reply");
    let again = backend.locks.claim(&one).await;
    assert!(matches!(again, Err(LocksError::Unavailable(_))), "{again:?}");
    assert_eq!(backend.locks.holder(&name).await, Ok(None));
    granted(&backend.locks, &claim(&name, &kim())).await;
}
