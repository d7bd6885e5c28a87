//! The webhooks of a passed turn, and of the reviews of a grant.

use crate::storage::database::{Desk, at, ratify, user};
use crate::storage::webhook_fixtures::{A, all_to_a, drain, kinds, quiet, replied};
use galley::domain::fence::Fence;
use galley::domain::seat::Role;
use galley::storage::guard::FenceGuard;
use serde_json::Value;

crate::storage::on_both_engines! {
    webhook_turns:
    the_end_of_a_grant_counts_its_reviews_and_replies
    a_passed_turn_is_one_webhook
}

/// Goal: the count is that of the fence, whether the session's server, a search or the next grant ends it.
pub(crate) async fn the_end_of_a_grant_counts_its_reviews_and_replies(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    replied(&desk, &seated, 2).await;
    let counts = async || -> Vec<(Value, Value)> {
        let delivered = drain(storage, A).await.into_iter();
        let left = delivered.filter(|(kind, _)| kind == "seat.left");
        left.map(|(_, data)| (data["role"].clone(), data["reviews"].clone())).collect()
    };
    // The next grant of the reviewer's seat ends the first one.
    let FenceGuard { seat, fence } = seated.reviewer;
    ratify(storage, seat, fence.0 + 1).await;
    assert_eq!(counts().await, [("reviewer".into(), 1.into())]);
    assert!(storage.seat_left(seat, Fence(fence.0 + 1), at(6)).await.unwrap());
    let FenceGuard { seat, fence } = seated.writer;
    assert!(storage.seat_left(seat, fence, at(7)).await.unwrap());
    assert_eq!(counts().await, [("reviewer".into(), 0.into()), ("writer".into(), 2.into())]);
}

pub(crate) async fn a_passed_turn_is_one_webhook(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    let (link, guard, kim) = (seated.link, seated.writer, user("kim"));
    storage.rename_document(seated.document, "글", at(4)).await.unwrap();
    for second in [5, 6] {
        storage.pass_turn(link, Role::Reviewer, &kim, guard, at(second)).await.unwrap();
    }
    let delivered = drain(storage, A).await;
    assert_eq!(kinds(&delivered), ["turn.changed"]);
    let data = serde_json::json!({
        "role": "reviewer", "since": at(5), "by": { "id": "kim", "name": kim.name }, "title": "글",
    });
    assert_eq!(delivered[0].1, data);
}
