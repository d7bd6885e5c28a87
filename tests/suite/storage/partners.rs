//! Partners.

use crate::storage::database::{Desk, at, user, within};
use galley::storage::pagination::Page;
use galley::storage::partners::Partnership;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    partners:
    g11_many_concurrent_calls_in_either_order_make_one_partnership
    g13_a_user_has_five_hundred_partners_at_most
    the_partners_of_a_user_are_listed_by_page_newest_first
    an_ended_partnership_can_be_made_again
}

async fn enter(desk: &Desk, names: &[&str]) {
    for name in names {
        desk.storage.save_user(&user(name), at(0)).await.unwrap();
    }
}

pub(crate) async fn g11_many_concurrent_calls_in_either_order_make_one_partnership(desk: Desk) {
    enter(&desk, &["kim", "lee"]).await;
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let storage = handles[number % 2].clone();
        let (one, other) = if number % 4 < 2 { ("kim", "lee") } else { ("lee", "kim") };
        tasks.spawn(async move {
            storage.make_partners(&user(one).id, &user(other).id, at(1)).await.unwrap()
        });
    }
    let outcomes = within(tasks.join_all()).await;
    let made = outcomes.iter().filter(|outcome| **outcome == Partnership::Made).count();
    let existing = outcomes.iter().filter(|outcome| **outcome == Partnership::Existing).count();
    assert_eq!((made, existing), (1, 19));
    for (one, other) in [("kim", "lee"), ("lee", "kim")] {
        let page = Page { limit: 10, before: None };
        let partners = desk.storage.partners_of(&user(one).id, &page).await.unwrap();
        assert_eq!(partners.len(), 1);
        assert_eq!((&partners[0].user, partners[0].since), (&user(other), at(1)));
    }
}

pub(crate) async fn g13_a_user_has_five_hundred_partners_at_most(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim").id);
    enter(&desk, &["kim", "lee"]).await;
    desk.location
        .stranger()
        .await
        .run(
            "INSERT INTO users (id, name, updated_at) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 499) \
             SELECT 'partner' || i, 'P', (SELECT updated_at FROM users WHERE id = 'kim') FROM n; \
             INSERT INTO partners (low_id, high_id, since) \
             SELECT 'kim', id, updated_at FROM users WHERE name = 'P'",
        )
        .await;
    // Two servers make the last one at once: one of them succeeds.
    let another = desk.another().await;
    enter(&desk, &["choi"]).await;
    let (choi, lee) = (user("choi").id, user("lee").id);
    let (one, other) = tokio::join!(
        storage.make_partners(&kim, &choi, at(2)),
        another.make_partners(&lee, &kim, at(2))
    );
    let mut outcomes = [one.unwrap(), other.unwrap()];
    outcomes.sort_by_key(|outcome| *outcome == Partnership::Full);
    assert_eq!(outcomes, [Partnership::Made, Partnership::Full]);
    // The bound rejects no partner of before, and no other user.
    let again = storage.make_partners(&user("partner7").id, &kim, at(3)).await.unwrap();
    assert_eq!(again, Partnership::Existing);
    assert_eq!(storage.make_partners(&choi, &lee, at(3)).await.unwrap(), Partnership::Made);
}

pub(crate) async fn the_partners_of_a_user_are_listed_by_page_newest_first(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim").id);
    // Ids on either side of the user's, and two of one time.
    let others = [("a", 1), ("z", 2), ("b", 3), ("y", 3), ("c", 4)];
    enter(&desk, &["kim", "a", "z", "b", "y", "c"]).await;
    for (other, second) in others {
        storage.make_partners(&kim, &user(other).id, at(second)).await.unwrap();
    }
    storage.make_partners(&user("a").id, &user("b").id, at(9)).await.unwrap();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = Page { limit: 2, before: before.take() };
        let partners = storage.partners_of(&kim, &page).await.unwrap();
        let Some(last) = partners.last() else { break };
        before = Some(last.cursor());
        seen.extend(partners.into_iter().map(|partner| partner.user.id.to_string()));
    }
    assert_eq!(seen, ["c", "y", "b", "z", "a"]);
}

pub(crate) async fn an_ended_partnership_can_be_made_again(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim").id, user("lee").id);
    enter(&desk, &["kim", "lee"]).await;
    assert!(!storage.are_partners(&kim, &lee).await.unwrap());
    assert!(!storage.remove_partners(&kim, &lee, at(1)).await.unwrap());
    storage.make_partners(&kim, &lee, at(1)).await.unwrap();
    assert!(storage.are_partners(&lee, &kim).await.unwrap());
    assert!(storage.remove_partners(&lee, &kim, at(2)).await.unwrap());
    assert!(!storage.are_partners(&kim, &lee).await.unwrap());
    assert_eq!(storage.make_partners(&lee, &kim, at(2)).await.unwrap(), Partnership::Made);
}
