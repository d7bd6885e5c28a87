//! Endpoints of tests of the outbox, and their deliveries.

use std::time::Duration;

use crate::storage::database::{Desk, Location, Seated, at, new_reply, new_review};
use galley::domain::webhook::{WebhookEvent, WebhookState};
use galley::storage::Storage;
use galley::storage::guard::Guarded;
use galley::storage::hooks::WebhookTarget;
use galley::storage::pagination::Page;
use galley::storage::webhook_claims::{ClaimSize, ClaimedWebhook};
use serde_json::Value;

pub(crate) const A: &str = "endpoint-a";
pub(crate) const B: &str = "endpoint-b";
pub(crate) const SOON: Duration = Duration::ZERO;

pub(crate) fn target(endpoint: &str, events: &[WebhookEvent]) -> WebhookTarget {
    let url = format!("https://app.example/{endpoint}");
    WebhookTarget { endpoint: endpoint.to_owned(), url, events: events.to_vec() }
}

pub(crate) fn all_to_a(storage: &Storage) {
    storage.set_webhooks(vec![target(A, WebhookEvent::ALL)]);
}

pub(crate) async fn claim(storage: &Storage, endpoint: &str) -> Vec<ClaimedWebhook> {
    storage.claim_webhooks(endpoint, ClaimSize { first: 100, repeated: 100 }).await.unwrap()
}

/// Delivers all that is due, one after another. Returns the kinds.
pub(crate) async fn drain(storage: &Storage, endpoint: &str) -> Vec<(String, Value)> {
    let mut delivered = Vec::new();
    loop {
        let claimed = claim(storage, endpoint).await;
        if claimed.is_empty() {
            return delivered;
        }
        for webhook in claimed {
            assert!(storage.webhook_delivered(&webhook.claim).await.unwrap());
            delivered.push((webhook.kind, serde_json::from_str(&webhook.data).unwrap()));
        }
    }
}

pub(crate) fn kinds(delivered: &[(String, Value)]) -> Vec<&str> {
    delivered.iter().map(|(kind, _)| kind.as_str()).collect()
}

pub(crate) async fn rows(storage: &Storage, state: Option<WebhookState>) -> usize {
    storage.webhooks(state, &Page { limit: 256, before: None }).await.unwrap().len()
}

/// A desk whose seats are in the outbox no more.
pub(crate) async fn quiet(desk: &Desk) -> Seated {
    let seated = desk.seated().await;
    drain(&desk.storage, A).await;
    seated
}

pub(crate) async fn replied(desk: &Desk, seated: &Seated, times: usize) {
    let review = new_review(seated.link);
    desk.storage.create_review(&review, seated.reviewer).await.unwrap();
    for number in 0..times {
        let reply = new_reply(&number.to_string());
        let done = desk.storage.add_reply(seated.link, review.id, &reply, seated.writer, at(5));
        assert!(matches!(done.await.unwrap(), Guarded::Done(_)));
    }
}

pub(crate) async fn set(desk: &Desk, sqlite: &'static str, postgres: &'static str) {
    let sql = if matches!(desk.location, Location::Folder(_)) { sqlite } else { postgres };
    desk.location.stranger().await.run(sql).await;
}

/// The time of all attempts is over.
pub(crate) async fn expire(desk: &Desk) {
    let postgres = "UPDATE webhooks SET give_up_at = to_timestamp(1)";
    set(desk, "UPDATE webhooks SET give_up_at = 1", postgres).await;
}

/// Every lease and every pause is over.
pub(crate) async fn wake(desk: &Desk) {
    let postgres = "UPDATE webhooks SET next_at = to_timestamp(1) WHERE next_at IS NOT NULL";
    set(desk, "UPDATE webhooks SET next_at = 1 WHERE next_at IS NOT NULL", postgres).await;
}
