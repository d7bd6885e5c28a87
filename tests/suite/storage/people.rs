//! Handles and personal links.

use crate::storage::database::{Desk, at, user, within};
use chrono::TimeDelta;
use galley::domain::handle::Handle;
use galley::domain::ids::PersonalLinkId;
use galley::domain::user::User;
use galley::partners::store::people;
use galley::partners::store::people::{HandleSet, NewPersonalLink, UserKey};
use galley::storage::Storage;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    people:
    g11_of_many_users_who_choose_one_handle_one_gets_it
    a_changed_handle_is_reserved_for_its_user
    g17_changes_of_a_handle_reserve_few_names
    concurrent_first_reads_return_one_personal_link
    a_renewed_personal_link_voids_the_older_one
    a_user_is_found_by_exactly_what_a_caller_knows
}

fn handle(text: &str) -> Handle {
    text.parse().unwrap()
}

fn new_link(byte: u8) -> NewPersonalLink {
    NewPersonalLink { id: PersonalLinkId::generate(), hash: [byte; 32] }
}

async fn found(storage: &Storage, key: UserKey) -> Option<User> {
    people::find_user(storage, &key).await.unwrap()
}

pub(crate) async fn g11_of_many_users_who_choose_one_handle_one_gets_it(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for number in 0..8_u8 {
            let storage = handles[usize::from(number) % 2].clone();
            tasks.spawn(async move {
                let who = user(&format!("user{round}_{number}"));
                let (handle, link) =
                    (handle(&format!("글쓴이{round}")), new_link(round * 8 + number));
                let set =
                    people::set_handle(&storage, &who, Some(&handle), &link, at(1)).await.unwrap();
                (who, set)
            });
        }
        let outcomes = within(tasks.join_all()).await;
        let (got, missed): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|(_, set)| matches!(set, HandleSet::Done(_)));
        assert_eq!((got.len(), missed.len()), (1, 7));
        let key = UserKey::Handle(handle(&format!("글쓴이{round}")));
        assert_eq!(found(&desk.storage, key).await.as_ref(), Some(&got[0].0));
    }
}

/// Sets the handle of a user on a day.
async fn set(desk: &Desk, who: &User, text: Option<&str>, day: i64) -> HandleSet {
    let (handle, link) = (text.map(handle), new_link(who.id.as_str().as_bytes()[0]));
    let now = at(1) + TimeDelta::days(day);
    people::set_handle(&desk.storage, who, handle.as_ref(), &link, now).await.unwrap()
}

pub(crate) async fn a_changed_handle_is_reserved_for_its_user(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim"), user("lee"));
    for _ in 0..2 {
        let HandleSet::Done(address) = set(&desk, &kim, Some("kim"), 0).await else {
            panic!("taken")
        };
        assert_eq!(address.handle, Some(handle("kim")));
    }
    assert_eq!(set(&desk, &lee, Some("kim"), 0).await, HandleSet::Taken);
    let HandleSet::Done(changed) = set(&desk, &kim, Some("kim_2"), 0).await else {
        panic!("taken")
    };
    assert_eq!(changed.handle, Some(handle("kim_2")));
    // The former handle finds no user, and no other user gets it for thirty days.
    assert_eq!(found(storage, UserKey::Handle(handle("kim"))).await, None);
    assert_eq!(set(&desk, &lee, Some("kim"), 30).await, HandleSet::Taken);
    // Its user gets it back, and the thirty days begin again with the next change.
    assert!(matches!(set(&desk, &kim, Some("kim"), 30).await, HandleSet::Done(_)));
    let HandleSet::Done(removed) = set(&desk, &kim, None, 30).await else { panic!("taken") };
    // The personal link of the first call stays.
    assert_eq!((removed.handle, removed.link), (None, changed.link));
    assert_eq!(found(storage, UserKey::Link([b'k'; 32])).await, Some(kim));
    assert_eq!(set(&desk, &lee, Some("kim"), 60).await, HandleSet::Taken);
    assert!(matches!(set(&desk, &lee, Some("kim"), 61).await, HandleSet::Done(_)));
    assert_eq!(found(storage, UserKey::Handle(handle("kim"))).await, Some(lee));
}

pub(crate) async fn g17_changes_of_a_handle_reserve_few_names(desk: Desk) {
    let (kim, lee) = (user("kim"), user("lee"));
    for day in 0..8 {
        let name = format!("name_{day}");
        assert!(matches!(set(&desk, &kim, Some(&name), day).await, HandleSet::Done(_)));
    }
    for day in 0..8 {
        let is_taken = set(&desk, &lee, Some(&format!("name_{day}")), 8).await == HandleSet::Taken;
        // The handle in force and the last three before it.
        assert_eq!(is_taken, 4 <= day, "{day}");
    }
}

pub(crate) async fn concurrent_first_reads_return_one_personal_link(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..10_u8 {
        let storage = handles[usize::from(number) % 2].clone();
        tasks.spawn(async move {
            let link = new_link(number);
            people::find_or_create_address(&storage, &user("kim"), &link, at(1)).await.unwrap()
        });
    }
    let addresses = within(tasks.join_all()).await;
    assert!(addresses.iter().all(|address| *address == addresses[0]), "{addresses:?}");
}

pub(crate) async fn a_renewed_personal_link_voids_the_older_one(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    let first = people::find_or_create_address(storage, &kim, &new_link(1), at(1)).await.unwrap();
    let renewed = people::renew_personal_link(storage, &kim, &new_link(2), at(2)).await.unwrap();
    assert_ne!(first.link, renewed.link);
    assert_eq!(found(storage, UserKey::Link([1; 32])).await, None);
    assert_eq!(found(storage, UserKey::Link([2; 32])).await, Some(kim.clone()));
    let read = people::find_or_create_address(storage, &kim, &new_link(3), at(3)).await.unwrap();
    assert_eq!(read, renewed);
}

pub(crate) async fn a_user_is_found_by_exactly_what_a_caller_knows(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    people::set_handle(storage, &kim, Some(&handle("하나둘")), &new_link(1), at(1)).await.unwrap();
    assert_eq!(found(storage, UserKey::Id(kim.id.clone())).await, Some(kim.clone()));
    assert_eq!(found(storage, UserKey::Handle(handle("하나둘"))).await, Some(kim));
    for key in [
        UserKey::Id(user("ki").id),
        UserKey::Handle(handle("하나")),
        UserKey::Handle(handle("하나둘셋")),
        UserKey::Handle(handle("__")),
        UserKey::Link([0; 32]),
    ] {
        assert_eq!(found(storage, key).await, None);
    }
}
