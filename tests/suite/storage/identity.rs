//! Names, codes for another device, invites, and the reviewer's end.

use crate::storage::database::{Desk, at, floor, new_invite, new_review, user, within};
use crate::storage::reviews::review_of;
use chrono::TimeDelta;
use galley::domain::fence::Fence;
use galley::domain::ids::{SessionId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::invites::{Removed, ReplacedReviewer};
use galley::storage::links::Joined;
use galley::storage::seats::Ratified;
use galley::transfer::store;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    identity:
    a_name_that_a_guest_corrects_replaces_every_earlier_one
    a_code_is_taken_once_by_one_of_many_concurrent_callers
    a_new_code_replaces_the_old_one_and_an_expired_code_has_no_user
    g13_expired_codes_are_deleted
    a_renewed_invite_voids_the_older_ones_and_keeps_the_reviewer
    g2_the_removal_of_a_reviewer_rejects_every_later_write_and_claim
    g2_of_a_replaced_reviewer_only_the_new_one_is_ratified
    g13_a_link_stores_the_last_twenty_refused_users_once_each
}

pub(crate) async fn a_name_that_a_guest_corrects_replaces_every_earlier_one(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    let named = |name: &str| galley::domain::user::User { name: name.to_owned(), ..kim.clone() };
    let name = async || storage.profile_of(&kim.id).await.unwrap().map(|(name, _)| name);
    assert_eq!(name().await, None);
    storage.rename_user(&named("김민수"), at(5)).await.unwrap();
    assert_eq!(name().await.as_deref(), Some("김민수"));
    // The clock of this server is behind: the guest's latest request counts all the same.
    storage.rename_user(&named("김민서"), at(4)).await.unwrap();
    assert_eq!(name().await.as_deref(), Some("김민서"));
    // A token from before the correction does not bring the old name back.
    storage.save_user(&named("KIM"), at(4)).await.unwrap();
    let document = desk.document_of(&kim, at(9)).await;
    assert_eq!(document.owner.name, "김민서");
}

pub(crate) async fn a_code_is_taken_once_by_one_of_many_concurrent_callers(desk: Desk) {
    let kim = user("kim");
    store::put_transfer(&desk.storage, &kim, [1; 32], at(0), at(900)).await.unwrap();
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move { store::take_transfer(&storage, [1; 32], at(1)).await.unwrap() });
    }
    let taken: Vec<_> = within(tasks.join_all()).await.into_iter().flatten().collect();
    assert_eq!(taken, [kim]);
    assert_eq!(store::take_transfer(&desk.storage, [1; 32], at(2)).await.unwrap(), None);
}

pub(crate) async fn a_new_code_replaces_the_old_one_and_an_expired_code_has_no_user(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    store::put_transfer(storage, &kim, [1; 32], at(0), at(900)).await.unwrap();
    store::put_transfer(storage, &kim, [2; 32], at(1), at(901)).await.unwrap();
    assert_eq!(store::take_transfer(storage, [1; 32], at(2)).await.unwrap(), None);
    assert_eq!(store::take_transfer(storage, [2; 32], at(901)).await.unwrap(), None);
    assert_eq!(
        store::take_transfer(storage, [2; 32], at(2)).await.unwrap(),
        None,
        "the try took it"
    );
    store::put_transfer(storage, &kim, [3; 32], at(3), at(903)).await.unwrap();
    let just_before = at(903) - TimeDelta::milliseconds(1);
    assert_eq!(store::take_transfer(storage, [3; 32], just_before).await.unwrap(), Some(kim));
}

pub(crate) async fn g13_expired_codes_are_deleted(desk: Desk) {
    for number in 0..5_u8 {
        let guest = user(&format!("guest{number}"));
        store::put_transfer(&desk.storage, &guest, [number; 32], at(0), at(900)).await.unwrap();
    }
    store::put_transfer(&desk.storage, &user("kim"), [9; 32], at(900), at(1_800)).await.unwrap();
    // An expired code that is still stored would be taken at an earlier time.
    for number in 0..5_u8 {
        assert_eq!(store::take_transfer(&desk.storage, [number; 32], at(0)).await.unwrap(), None);
    }
    assert_eq!(
        store::take_transfer(&desk.storage, [9; 32], at(901)).await.unwrap(),
        Some(user("kim"))
    );
}

pub(crate) async fn a_renewed_invite_voids_the_older_ones_and_keeps_the_reviewer(desk: Desk) {
    let (storage, lee) = (&desk.storage, user("lee"));
    let made = desk.link(desk.document().await).await;
    let before = storage.invite_state(made.id).await.unwrap().unwrap();
    assert_eq!((before.invite, before.invited_at), (None, made.created_at));
    assert_eq!(before.reviewer_since, None);
    storage.join_link(made.id, &lee, at(2)).await.unwrap();

    let invite = new_invite([8; 32], at(5));
    assert!(storage.renew_invite(made.id, &invite).await.unwrap());

    let link = storage.link(made.id).await.unwrap().unwrap();
    assert_eq!((link.invite_hash, link.reviewer), ([8; 32], Some(lee)));
    let after = storage.invite_state(made.id).await.unwrap().unwrap();
    assert_eq!((after.invite, after.invited_at), (Some(invite.id), at(5)));
    assert_eq!(after.reviewer_since, Some(at(2)));
    storage.revoke_link(made.id, at(6)).await.unwrap();
    assert!(!storage.renew_invite(made.id, &invite).await.unwrap());
    assert!(!storage.renew_invite(ShareLinkId::generate(), &invite).await.unwrap());
    assert_eq!(storage.invite_state(made.id).await.unwrap(), None);
}

pub(crate) async fn g2_the_removal_of_a_reviewer_rejects_every_later_write_and_claim(desk: Desk) {
    let (storage, lee) = (&desk.storage, user("lee"));
    let link = desk.link(desk.document().await).await.id;
    let invite = new_invite([8; 32], at(5));
    assert_eq!(storage.remove_reviewer(link, &invite).await.unwrap(), Removed::NoReviewer);
    storage.join_link(link, &lee, at(2)).await.unwrap();
    let seat = Seat::new(link, Role::Reviewer);
    let claim = async |fence: u64, who: &str| {
        let who = user(who).id;
        storage.ratify(seat, Fence(fence), SessionId::generate(), &who, at(3)).await.unwrap()
    };
    assert_eq!(claim(10, "lee").await, Ratified::Accepted);
    let guard = FenceGuard { seat, fence: Fence(10) };
    let review = new_review(link);
    assert!(matches!(storage.create_review(&review, guard).await.unwrap(), Guarded::Done(_)));

    assert_eq!(storage.remove_reviewer(link, &invite).await.unwrap(), Removed::Done(lee.id));

    let refused = storage.create_review(&new_review(link), guard).await.unwrap();
    assert_eq!(refused, Guarded::Fenced);
    let refused = storage.delete_review(link, review.id, None, guard).await.unwrap();
    assert!(matches!(refused, Guarded::Fenced));
    assert_eq!(floor(storage, seat).await, Fence(11));
    assert_eq!(claim(12, "lee").await, Ratified::NotTheReviewer);
    assert_eq!(floor(storage, seat).await, Fence(11));
    let stored = storage.link(link).await.unwrap().unwrap();
    assert_eq!((stored.reviewer, stored.invite_hash), (None, [8; 32]));
    // The review stays its author's.
    let stored = review_of(storage, link, review.id).await.unwrap();
    assert_eq!(stored.author.id, review.author.id);
    // The former reviewer joins again only with the new invite, and claims above the old fence.
    storage.join_link(link, &user("lee"), at(7)).await.unwrap();
    assert_eq!(claim(11, "lee").await, Ratified::Refused { last: Fence(11) });
    assert_eq!(claim(12, "lee").await, Ratified::Accepted);
    let gone = storage.remove_reviewer(ShareLinkId::generate(), &invite).await.unwrap();
    assert_eq!(gone, Removed::Gone);
}

pub(crate) async fn g2_of_a_replaced_reviewer_only_the_new_one_is_ratified(desk: Desk) {
    let (storage, lee, park) = (&desk.storage, user("lee"), user("park"));
    let link = desk.link(desk.document().await).await.id;
    let seat = Seat::new(link, Role::Reviewer);
    storage.join_link(link, &lee, at(2)).await.unwrap();
    let none = storage.replace_reviewer(link, &park.id, at(3)).await.unwrap();
    assert_eq!(none, ReplacedReviewer::NotAPartner);
    let refused = storage.join_link(link, &park, at(3)).await.unwrap();
    assert!(matches!(refused, Joined::ReviewerExists { is_noted: true, .. }));
    let claim = async |fence: u64, who: &str| {
        let who = user(who).id;
        storage.ratify(seat, Fence(fence), SessionId::generate(), &who, at(3)).await.unwrap()
    };
    assert_eq!(claim(10, "lee").await, Ratified::Accepted);
    assert_eq!(claim(11, "park").await, Ratified::NotTheReviewer);

    let replaced = storage.replace_reviewer(link, &park.id, at(4)).await.unwrap();

    assert_eq!(replaced, ReplacedReviewer::Done(Some(lee.id)));
    let guard = FenceGuard { seat, fence: Fence(10) };
    assert_eq!(storage.create_review(&new_review(link), guard).await.unwrap(), Guarded::Fenced);
    assert_eq!(claim(12, "lee").await, Ratified::NotTheReviewer);
    assert_eq!(claim(13, "park").await, Ratified::Accepted);
    let after = storage.invite_state(link).await.unwrap().unwrap();
    assert_eq!((after.reviewer_since, after.attempts), (Some(at(4)), Vec::new()));
    // A repeated request changes nothing: the reply to the first may be lost.
    let again = storage.replace_reviewer(link, &park.id, at(5)).await.unwrap();
    assert_eq!(again, ReplacedReviewer::Done(None));
    assert_eq!(floor(storage, seat).await, Fence(13));
    let gone = storage.replace_reviewer(ShareLinkId::generate(), &park.id, at(5)).await.unwrap();
    assert_eq!(gone, ReplacedReviewer::Gone);
}

pub(crate) async fn g13_a_link_stores_the_last_twenty_refused_users_once_each(desk: Desk) {
    let storage = &desk.storage;
    let link = desk.link(desk.document().await).await.id;
    storage.join_link(link, &user("lee"), at(2)).await.unwrap();
    let attempts = async || storage.invite_state(link).await.unwrap().unwrap().attempts;
    let tries = async |who: &str, second: i64| match storage
        .join_link(link, &user(who), at(second))
        .await
        .unwrap()
    {
        Joined::ReviewerExists { is_noted, .. } => is_noted,
        other => panic!("{other:?}"),
    };
    for number in 0..25 {
        assert!(tries(&format!("guest{number}"), 100 + number).await);
    }
    let ids: Vec<_> = attempts().await.into_iter().map(|attempt| attempt.user.id).collect();
    let last: Vec<_> = (5..25).rev().map(|number| user(&format!("guest{number}")).id).collect();
    assert_eq!(ids, last);
    // Within a minute an attempt counts once, later again.
    assert!(!tries("guest10", 150).await);
    assert!(tries("guest10", 200).await);
    let first = attempts().await.remove(0);
    assert_eq!((first.user, first.at), (user("guest10"), at(200)));
    assert_eq!(attempts().await.len(), 20);
    // A refused user who becomes the reviewer is refused no more.
    storage.remove_reviewer(link, &new_invite([8; 32], at(300))).await.unwrap();
    let joined = storage.join_link(link, &user("guest10"), at(301)).await.unwrap();
    assert!(matches!(joined, Joined::Reviewer(_)));
    assert_eq!(attempts().await.len(), 19);
}
