//! Browsers that receive pushes: their users, and the bound of each.

use chrono::DateTime;
use chrono::Utc;
use galley::domain::ids::PushSubscriptionId;
use galley::push::PUSH_SUBSCRIPTIONS_MAX;
use galley::push::store;
use galley::push::store::{PushAddress, PushLanguage};
use tokio::task::JoinSet;

use crate::storage::database::{Desk, at, user, within};

crate::storage::on_both_engines! {
    push_subscriptions:
    a_subscription_is_stored_as_it_is
    an_endpoint_belongs_to_the_user_who_registered_it_last
    the_same_browser_registers_again_under_its_id
    a_subscription_is_deleted_by_its_user_only
    g13_the_oldest_browser_makes_room_for_a_new_one
    g13_concurrent_registrations_keep_to_the_bound
}

fn address(name: &str) -> PushAddress {
    PushAddress {
        endpoint: format!("https://push.example/{name}"),
        p256dh: [4; 65],
        auth: [7; 16],
        lang: None,
        expires_at: None,
    }
}

async fn put(desk: &Desk, name: &str, endpoint: &str, now: DateTime<Utc>) -> PushSubscriptionId {
    let (user, address) = (user(name), address(endpoint));
    store::put_push_subscription(&desk.storage, &user, &address, 10, now).await.unwrap().id
}

async fn endpoints(desk: &Desk, name: &str) -> Vec<String> {
    let all = store::push_subscriptions_of(&desk.storage, &user(name).id).await.unwrap();
    all.into_iter().map(|it| it.address.endpoint.rsplit('/').next().unwrap().to_owned()).collect()
}

pub(crate) async fn a_subscription_is_stored_as_it_is(desk: Desk) {
    let whole = PushAddress {
        lang: Some(PushLanguage::Korean),
        expires_at: Some(at(99)),
        p256dh: std::array::from_fn(|n| u8::try_from(n).unwrap()),
        ..address("한글?q=1")
    };
    let stored =
        store::put_push_subscription(&desk.storage, &user("kim"), &whole, 10, at(5)).await.unwrap();
    assert!(stored.is_new);
    let found = store::push_subscriptions_of(&desk.storage, &user("kim").id).await.unwrap();
    assert_eq!((found.len(), found[0].id, found[0].created_at), (1, stored.id, at(5)));
    assert_eq!(found[0].address, whole);
    assert!(!format!("{found:?}").contains("push.example"), "a log shows no endpoint");
}

pub(crate) async fn an_endpoint_belongs_to_the_user_who_registered_it_last(desk: Desk) {
    let kims = put(&desk, "kim", "browser", at(1)).await;
    let (lee, shared) = (user("lee"), address("browser"));
    let stored =
        store::put_push_subscription(&desk.storage, &lee, &shared, 10, at(2)).await.unwrap();
    assert!(!stored.is_new);
    assert_ne!(stored.id, kims, "the former user knows the old id");
    assert_eq!(stored.created_at, at(2));
    assert_eq!(endpoints(&desk, "kim").await, [""; 0]);
    assert_eq!(endpoints(&desk, "lee").await, ["browser"]);
    assert!(!store::delete_push_subscription(&desk.storage, &user("kim").id, kims).await.unwrap());
}

pub(crate) async fn the_same_browser_registers_again_under_its_id(desk: Desk) {
    let first = put(&desk, "kim", "browser", at(1)).await;
    let renewed = PushAddress { auth: [8; 16], ..address("browser") };
    let again = store::put_push_subscription(&desk.storage, &user("kim"), &renewed, 10, at(2))
        .await
        .unwrap();
    assert_eq!((again.id, again.created_at, again.is_new), (first, at(1), false));
    let found = store::push_subscriptions_of(&desk.storage, &user("kim").id).await.unwrap();
    assert_eq!((found.len(), found[0].address.auth), (1, [8; 16]));
}

pub(crate) async fn a_subscription_is_deleted_by_its_user_only(desk: Desk) {
    let id = put(&desk, "kim", "browser", at(1)).await;
    put(&desk, "lee", "other", at(1)).await;
    assert!(!store::delete_push_subscription(&desk.storage, &user("lee").id, id).await.unwrap());
    assert!(store::delete_push_subscription(&desk.storage, &user("kim").id, id).await.unwrap());
    assert!(!store::delete_push_subscription(&desk.storage, &user("kim").id, id).await.unwrap());
    assert_eq!(endpoints(&desk, "lee").await, ["other"]);
}

pub(crate) async fn g13_the_oldest_browser_makes_room_for_a_new_one(desk: Desk) {
    for number in 0..12 {
        put(&desk, "kim", &number.to_string(), at(number)).await;
    }
    put(&desk, "lee", "other", at(0)).await;
    let expected: Vec<_> = (2..12).map(|number| number.to_string()).collect();
    assert_eq!(endpoints(&desk, "kim").await, expected);
    // The clock was set back: the new one stays all the same.
    put(&desk, "kim", "late", at(1)).await;
    let left = endpoints(&desk, "kim").await;
    assert!(left.len() == 10 && left.contains(&"late".to_owned()), "{left:?}");
    assert_eq!(endpoints(&desk, "lee").await, ["other"]);
}

pub(crate) async fn g13_concurrent_registrations_keep_to_the_bound(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..40 {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move {
            // Two other users fight over one browser meanwhile.
            let (name, endpoint) = match number % 4 {
                0 => (["lee", "park"][number / 4 % 2], "shared".to_owned()),
                _ => ("kim", number.to_string()),
            };
            let address = address(&endpoint);
            let stored =
                store::put_push_subscription(&storage, &user(name), &address, 10, at(1)).await;
            stored.unwrap();
        });
    }
    within(tasks.join_all()).await;
    let most = usize::try_from(PUSH_SUBSCRIPTIONS_MAX).unwrap();
    assert_eq!(endpoints(&desk, "kim").await.len(), most);
    let others = [endpoints(&desk, "lee").await, endpoints(&desk, "park").await].concat();
    assert_eq!(others, ["shared"]);
}
