//! The outbox under the typed suggestions of one document, and the room that other documents have.

use std::collections::BTreeMap;

use crate::storage::database::{Desk, Seated, at, new_review, user};
use crate::storage::suggestions::{part, send, stored, suggest, suggestion, withdrawal};
use crate::storage::webhook_fixtures::{
    A, all_to_a, claim, drain, kinds, quiet, replied, rows, set, target, wake,
};
use chrono::{DateTime, SubsecRound as _, Utc};
use galley::domain::ids::ReviewId;
use galley::domain::limits::WEBHOOK_TYPED_DELAY;
use galley::domain::webhook::WebhookEvent;
use galley::storage::pagination::Page;
use galley::storage::suggestions::{AnchoredItem, ItemOutcome};

crate::storage::on_both_engines! {
    webhook_floods:
    a_suggestion_that_is_taken_back_at_once_is_no_event
    a_suggestion_that_is_typed_on_is_one_event_after_two_seconds
    g17_a_document_that_floods_the_outbox_leaves_the_others_their_room
}

async fn typed(desk: &Desk, seated: Seated) -> (ReviewId, i64) {
    let made = stored(suggest(desk, seated, &suggestion(vec![part(1, "옛", "새")])).await);
    (made.id, made.version)
}

/// Goal: the receiver hears nothing of a suggestion that its author took back before the first attempt, and the
/// next webhook of the document does not wait for it.
pub(crate) async fn a_suggestion_that_is_taken_back_at_once_is_no_event(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    let [(first, version), (second, _), (third, third_version)] =
        [typed(&desk, seated).await, typed(&desk, seated).await, typed(&desk, seated).await];
    assert_eq!(rows(storage, None).await, 3);
    let withdrawn = send(&desk, seated, "lee", withdrawal(first, version)).await;
    assert!(matches!(withdrawn, ItemOutcome::Deleted(..)), "{withdrawn:?}");
    storage.delete_review(seated.link, second, None, seated.reviewer).await.unwrap();
    assert_eq!(rows(storage, None).await, 1);
    wake(&desk).await;
    let claimed = claim(storage, A).await.remove(0);
    assert!(claimed.data.contains(&third.to_string()), "{claimed:?}");
    // An attempt has begun: the receiver may have read it.
    send(&desk, seated, "lee", withdrawal(third, third_version)).await;
    assert_eq!(rows(storage, None).await, 1);
    assert!(storage.webhook_delivered(&claimed.claim).await.unwrap());
}

/// The next attempt of the only webhook.
async fn next_at(desk: &Desk) -> DateTime<Utc> {
    let found = desk.storage.webhooks(None, &Page { limit: 9, before: None }).await.unwrap();
    let [webhook] = found.as_slice() else { panic!("{found:?}") };
    webhook.next_at.expect("the first of its lane")
}

pub(crate) async fn a_suggestion_that_is_typed_on_is_one_event_after_two_seconds(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    let mut new = suggestion(vec![part(1, "옛", "새")]);
    let before = Utc::now().trunc_subsecs(3); // SQLite stores milliseconds.
    let mut version = stored(suggest(&desk, seated, &new).await).version;
    for text in ["새 ", "새 말", "새 말이"] {
        new.version = Some(version);
        new.parts = vec![part(1, "옛", text)];
        version = stored(suggest(&desk, seated, &new).await).version;
    }
    assert_eq!((version, rows(storage, None).await), (4, 1));
    assert!(before + WEBHOOK_TYPED_DELAY <= next_at(&desk).await);
    wake(&desk).await;
    assert_eq!(kinds(&drain(storage, A).await), ["review.created"]);
    // A webhook before it in the lane does not shorten its wait.
    storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    let head = claim(storage, A).await.remove(0);
    typed(&desk, seated).await;
    // It is not settled within this test.
    let postgres = "UPDATE webhooks SET give_up_at = give_up_at + interval '1 hour'";
    set(&desk, "UPDATE webhooks SET give_up_at = give_up_at + 3600000", postgres).await;
    let before = Utc::now().trunc_subsecs(3); // SQLite stores milliseconds.
    assert!(storage.webhook_delivered(&head.claim).await.unwrap());
    assert!(before + WEBHOOK_TYPED_DELAY <= next_at(&desk).await);
}

/// Goal: the document fills its own part of the endpoint's share, and what is dropped is counted for it. So many
/// endpoints make a share of 199 rows, and a document's part of 3.
pub(crate) async fn g17_a_document_that_floods_the_outbox_leaves_the_others_their_room(desk: Desk) {
    const FLOOD: u64 = 250;
    let storage = &desk.storage;
    let others = (0..500).map(|number| target(&number.to_string(), &[]));
    let all = others.chain([target(A, WebhookEvent::ALL)]);
    storage.set_webhooks(all.collect());
    let (noisy, honest) = (quiet(&desk).await, quiet(&desk).await);
    drop(storage.take_dropped_webhooks());
    let items: Vec<_> =
        (0..FLOOD).map(|_| AnchoredItem::Put(suggestion(vec![part(1, "옛", "새")]))).collect();
    for items in items.chunks(50) {
        let author = user("lee");
        let suggesting = storage.suggest(noisy.link, &author, items, None, noisy.reviewer, at(4));
        suggesting.await.unwrap();
    }
    assert_eq!(rows(storage, None).await, 1, "half of the document's part");
    replied(&desk, &noisy, 5).await;
    assert_eq!(rows(storage, None).await, 3, "the other half");
    storage.create_review(&new_review(honest.link), honest.reviewer).await.unwrap();
    assert_eq!(rows(storage, None).await, 4);
    let dropped = storage.take_dropped_webhooks();
    assert_eq!(dropped, BTreeMap::from([(Some(noisy.document), FLOOD - 1 + 4)]));
    assert_eq!(storage.take_dropped_webhooks(), BTreeMap::new());
}
