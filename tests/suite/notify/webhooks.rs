//! Webhooks against a receiver that misbehaves: order, repetition, and what one endpoint costs another.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::storage::database::{Desk, Location, Seated, at, new_reply, new_review, user};
use crate::storage::suggestions::{part, suggestion};
use crate::storage::webhook_fixtures::expire;
use galley::domain::limits::WEBHOOK_LEASE;
use galley::domain::webhook::WebhookEvent;
use galley::outgoing::Outgoing;
use galley::outgoing::destination::{Destination, HostScope};
use galley::storage::guard::Guarded;
use galley::storage::suggestions::AnchoredItem;
use galley::webhooks::limits::WEBHOOK_ATTEMPT_MAX;
use galley::webhooks::signature::WebhookSecret;
use galley::webhooks::{WebhookEndpoint, Webhooks};
use rustls::RootCertStore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::fixtures::{apart, until};
use crate::support::postgres_server;
use crate::support::push_service::{PushService, Received, Response};
use crate::support::stopwatch::Stopwatch;
use crate::support::webhook_receiver::{SECRET, event, lanes};

const EVENTS: [WebhookEvent; 2] = [WebhookEvent::ReviewCreated, WebhookEvent::ReviewReplied];

fn endpoint(receiver: &PushService) -> WebhookEndpoint {
    let url = format!("{}/hook?key=1", receiver.url);
    WebhookEndpoint {
        to: Destination::parse(&url, HostScope::Anywhere).expect("an address"),
        url,
        secret: WebhookSecret::new([SECRET.as_bytes()]),
        events: EVENTS.to_vec(),
    }
}

/// The webhooks of these receivers, not delivered yet. An attempt takes at most `limit`.
fn webhooks(desk: &Desk, receivers: &[&PushService], limit: Duration) -> Webhooks {
    let endpoints = receivers.iter().map(|receiver| endpoint(receiver)).collect();
    let outgoing = Outgoing::trusting(RootCertStore::empty(), limit);
    Webhooks::new(desk.storage.clone(), outgoing, endpoints)
}

/// Delivers until it is cancelled. An attempt takes at most `limit`.
fn deliver(desk: &Desk, receivers: &[&PushService], limit: Duration) -> CancellationToken {
    let webhooks = webhooks(desk, receivers, limit);
    let stop = CancellationToken::new();
    drop(apart(webhooks.run_deliveries(stop.clone())));
    stop
}

/// A review and two replies.
async fn talk(desk: &Desk, seated: &Seated) {
    let review = new_review(seated.link);
    desk.storage.create_review(&review, seated.reviewer).await.expect("stored");
    for body in ["one", "two"] {
        let reply = new_reply(body);
        let adding = desk.storage.add_reply(seated.link, review.id, &reply, seated.writer, at(5));
        assert!(matches!(adding.await.expect("stored"), Guarded::Done(_)));
    }
}

async fn is_empty(desk: &Desk) -> bool {
    desk.storage.measure_webhooks().await.expect("a count").pending == 0
}

#[tokio::test]
async fn the_webhooks_of_a_document_arrive_in_order_though_the_receiver_misbehaves() {
    let (desk, receiver) = (Desk::sqlite().await, PushService::start().await);
    receiver.script([
        Response::Silence,
        Response::CloseEarly,
        Response::Status(302, "Location: http://127.0.0.1:1/\r\n"),
        Response::Status(500, ""),
        Response::Status(429, "Retry-After: 1\r\n"),
        Response::EndlessBody,
        Response::Close,
        Response::EndlessHead,
        Response::SlowBody,
    ]);
    let stop = deliver(&desk, &[&receiver], Duration::from_millis(400));
    let mut documents = Vec::new();
    for _ in 0..9 {
        let seated = desk.seated().await;
        talk(&desk, &seated).await;
        documents.push(seated.document.to_string());
    }
    until("every webhook", async || is_empty(&desk).await).await;
    stop.cancel();
    let lanes = lanes(&receiver);
    for document in documents {
        let lane = &lanes[&format!("\"{document}\"")];
        let kinds: Vec<_> = lane.iter().map(|it| it["type"].as_str().expect("a type")).collect();
        assert_eq!(kinds, ["review.created", "review.replied", "review.replied"]);
        let review = &lane[0]["data"]["review_id"];
        assert!(lane.iter().all(|it| it["data"]["review_id"] == *review));
    }
    // One of the nine requests ended before the receiver had read it.
    assert_eq!(receiver.received().len(), 9 * 3 + 8);
    assert!(receiver.received().iter().all(|it| it.path == "/hook?key=1"));
}

/// Goal: all webhooks of an endpoint that left the settings end in one round of the upkeep, not one each.
#[tokio::test]
async fn the_webhooks_of_a_removed_endpoint_end_together() {
    let (desk, removed) = (Desk::sqlite().await, PushService::start().await);
    removed.script(std::iter::repeat_n(Response::Status(503, ""), 100));
    let stop = deliver(&desk, &[&removed], Duration::from_secs(10));
    let seated = desk.seated().await;
    talk(&desk, &seated).await;
    removed.has(1).await;
    stop.cancel();
    expire(&desk).await;
    let stop = deliver(&desk, &[&PushService::start().await], Duration::from_secs(10));
    until("three dead webhooks", async || {
        let count = desk.storage.measure_webhooks().await.expect("a count");
        (count.pending, count.dead) == (0, 3)
    })
    .await;
    stop.cancel();
}

/// Goal: a claim whose answer took longer than the lease exceeds an attempt delivers in the rest of its lease, and
/// does not wait for the next claim.
#[tokio::test]
async fn a_claim_whose_answer_came_late_is_attempted_within_its_lease() {
    let (desk, receiver) = (Desk::postgres().await, PushService::start().await);
    let webhooks = webhooks(&desk, &[&receiver], Duration::from_secs(10));
    let seated = desk.seated().await;
    let review = new_review(seated.link);
    desk.storage.create_review(&review, seated.reviewer).await.expect("stored");
    // The poll for due webhooks reads; the claim, whose lease begins with its transaction, waits.
    let Location::Server(database) = &desk.location else { panic!("PostgreSQL") };
    let mut other = postgres_server::stranger(&database.url()).await;
    let lock = "BEGIN; LOCK TABLE webhooks IN SHARE MODE";
    sqlx::raw_sql(lock).execute(&mut other).await.expect("locked");
    let stop = CancellationToken::new();
    drop(apart(webhooks.run_deliveries(stop.clone())));
    // The time of the freeze, not a wait for an event.
    sleep(WEBHOOK_LEASE - WEBHOOK_ATTEMPT_MAX + Duration::from_millis(300)).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("free");
    let freed = Stopwatch::start();
    receiver.has(1).await;
    assert!(freed.elapsed() < WEBHOOK_ATTEMPT_MAX, "{:?}", freed.elapsed());
    stop.cancel();
}

/// Goal: an endpoint that never answers delays no other one.
#[tokio::test]
async fn g16_a_silent_endpoint_delays_no_other() {
    let (desk, silent) = (Desk::sqlite().await, PushService::start().await);
    let receiver = PushService::start().await;
    silent.script(std::iter::repeat_n(Response::Silence, 100));
    let stop = deliver(&desk, &[&silent, &receiver], Duration::from_secs(10));
    let began = Stopwatch::start();
    for _ in 0..3 {
        let seated = desk.seated().await;
        talk(&desk, &seated).await;
    }
    receiver.has(9).await;
    assert!(began.elapsed() < Duration::from_secs(10));
    stop.cancel();
    for (to, count) in [(&receiver, 9), (&silent, 3)] {
        assert_eq!(to.received().iter().map(event).count(), count);
    }
}

/// Goal: documents whose webhooks hang delay another document of the endpoint by less than half of an attempt, in
/// their first attempts and in repeated ones.
#[tokio::test]
async fn g16_thirty_documents_that_hang_delay_no_other_document() {
    const LIMIT: Duration = Duration::from_secs(5);
    let (desk, receiver) = (Desk::sqlite().await, PushService::start().await);
    let stop = deliver(&desk, &[&receiver], LIMIT);
    let healthy = desk.seated().await;
    for _ in 0..30 {
        let seated = desk.seated().await;
        receiver.silence(seated.document.to_string());
        desk.storage
            .create_review(&new_review(seated.link), seated.reviewer)
            .await
            .expect("stored");
    }
    let began = Instant::now();
    let mut delays = Vec::new();
    // The first attempts end after the limit, and the repeated ones follow.
    while began.elapsed() < 2 * LIMIT {
        let review = new_review(healthy.link);
        let (id, sent) = (review.id.to_string(), Instant::now());
        desk.storage.create_review(&review, healthy.reviewer).await.expect("stored");
        let has_id = |it: &Received| String::from_utf8_lossy(&it.body).contains(&id);
        let arrived = || receiver.received().iter().any(has_id);
        until("the webhook of the healthy document", async || arrived()).await;
        delays.push(sent.elapsed());
        sleep(Duration::from_millis(25)).await;
    }
    stop.cancel();
    let longest = delays.iter().max().expect("a delay");
    assert!(*longest < LIMIT / 2, "{longest:?} of {}", delays.len());
}

/// Goal: the first repeated attempt follows after a second, varied by a quarter, and does not wait for the tick.
#[tokio::test]
async fn a_failed_webhook_is_repeated_after_its_pause() {
    const DOCUMENTS: usize = 8;
    let (desk, receiver) = (Desk::sqlite().await, PushService::start().await);
    receiver.script(std::iter::repeat_n(Response::Status(503, ""), DOCUMENTS));
    let stop = deliver(&desk, &[&receiver], Duration::from_secs(10));
    for _ in 0..DOCUMENTS {
        let seated = desk.seated().await;
        let review = new_review(seated.link);
        desk.storage.create_review(&review, seated.reviewer).await.expect("stored");
    }
    let received = receiver.has(2 * DOCUMENTS).await;
    stop.cancel();
    let mut attempts = BTreeMap::<_, Vec<_>>::new();
    for it in &received {
        attempts.entry(event(it)["id"].to_string()).or_default().push(it.at);
    }
    // On a busy machine a repeated attempt takes the failure of a document whose first attempt comes later.
    let pause_of = |at: &Vec<Instant>| Some(at.get(1)?.duration_since(at[0]));
    let mut pauses: Vec<_> = attempts.values().filter_map(pause_of).collect();
    pauses.sort_unstable();
    assert!(pauses[0] >= Duration::from_millis(750), "{pauses:?}");
    assert!(pauses[pauses.len() / 2] < Duration::from_millis(1_500), "{pauses:?}");
}

/// Goal: a document whose suggestions flood the outbox, and whose receiver hangs, delays no webhook of another one.
#[tokio::test]
async fn g16_a_flood_of_suggestions_delays_no_other_document() {
    let (desk, receiver) = (Desk::sqlite().await, PushService::start().await);
    let (noisy, honest) = (desk.seated().await, desk.seated().await);
    receiver.silence(noisy.document.to_string());
    let stop = deliver(&desk, &[&receiver], Duration::from_secs(1));
    let author = user("lee");
    for _ in 0..8 {
        let new = || AnchoredItem::Put(suggestion(vec![part(1, "옛", "새")]));
        let items: Vec<_> = (0..100).map(|_| new()).collect();
        let (link, guard) = (noisy.link, noisy.reviewer);
        desk.storage.suggest(link, &author, &items, None, guard, at(4)).await.expect("stored");
        let review = new_review(honest.link);
        let (id, sent) = (review.id.to_string(), Instant::now());
        desk.storage.create_review(&review, honest.reviewer).await.expect("stored");
        let has_id = |it: &Received| String::from_utf8_lossy(&it.body).contains(&id);
        until("the honest webhook", async || receiver.received().iter().any(has_id)).await;
        assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
    }
    stop.cancel();
    let dropped = desk.storage.take_dropped_webhooks();
    assert!(dropped.keys().all(|document| *document == Some(noisy.document)), "{dropped:?}");
}

/// Goal: a commit of this server wakes its deliverer; no tick is needed.
#[tokio::test]
async fn a_new_webhook_does_not_wait_for_the_tick() {
    let (desk, receiver) = (Desk::sqlite().await, PushService::start().await);
    let stop = deliver(&desk, &[&receiver], Duration::from_secs(10));
    let seated = desk.seated().await;
    let mut delays = Vec::new();
    for number in 1..=8 {
        let began = Instant::now();
        let review = new_review(seated.link);
        desk.storage.create_review(&review, seated.reviewer).await.expect("stored");
        let arrived = receiver.has(number).await[number - 1].at;
        delays.push(arrived.saturating_duration_since(began));
    }
    stop.cancel();
    delays.sort_unstable();
    // Eight waits for a tick of two seconds would have a median of one.
    assert!(delays[3] < Duration::from_millis(900), "{delays:?}");
}
