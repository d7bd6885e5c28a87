//! Webhooks of a whole server: kills, two servers, seats, dead letters and their replay.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::server::delivery::QUICK;
use crate::server::kill_campaign::say;
use crate::server::many_servers::Cluster;
use crate::server::operation_fixtures::{Users, rows};
use crate::storage::files;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::push_service::{PushService, Response};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::{Desk, Person};
use crate::support::rng::Random;
use crate::support::webhook_receiver::{events, lanes, setting};

const LIST: &str = "/api/admin/webhooks";
/// Kills at random moments, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;

async fn server(receiver: &PushService, kinds: &[&str]) -> Server {
    let endpoints = setting(&[&format!("{}/hook", receiver.url)], kinds);
    let quick = [QUICK[0], QUICK[1], ("NOTIFY__WEBHOOKS", endpoints.as_str())];
    Server::with(&quick).await
}

/// Longer than the lease of an attempt whose server died.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let holds = async {
        while !is_so().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(3 * TEST_TIMEOUT, holds).await.unwrap_or_else(|_late| panic!("not in time: {what}"));
}

/// A review of a quote.
fn review(body: &str) -> Value {
    json!({ "anchor": { "start": 0, "end": 4, "quote": "text" }, "body": body })
}

fn reviews(desk: &Desk) -> String {
    format!("/api/share-links/{}/reviews", desk.link)
}

/// Makes a review under the reviewer's seat.
async fn reviewed(server: &Server, desk: &Desk) -> Value {
    let peer = server.reviewer(desk).await;
    let review = server.post(&desk.reviewer, &reviews(desk), review("why?")).await.ok(201);
    peer.leave().await;
    review
}

async fn list(server: &Server, admin: &Person, query: &str) -> Vec<Value> {
    rows(&server.get(admin, &format!("{LIST}{query}")).await.ok(200), "webhooks")
}

/// Goal: whenever a server is killed, every stored review has arrived once it runs again.
#[tokio::test]
async fn g7_no_webhook_is_lost_when_its_server_is_killed_twenty_times() {
    let given = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = given("GALLEY_SEED").unwrap_or_else(|| getrandom::u64().expect("random bits"));
    let kills = given("GALLEY_KILLS").map_or(KILLS, |kills| kills.try_into().unwrap());
    say(&format!("webhooks: {kills} kills from GALLEY_SEED={seed} on"));
    let mut random = Random::new(seed);
    let receiver = PushService::start().await;
    let mut server = server(&receiver, &["review.created", "seat.taken", "seat.left"]).await;
    let mut desks = Vec::new();
    for _ in 0..kills {
        let desk = server.desk("text").await;
        let _seat = server.reviewer(&desk).await;
        let mut requests = JoinSet::new();
        for number in 0..6 {
            let request = server.http.post(format!("{}{}", server.url, reviews(&desk)));
            let request = request.bearer_auth(&desk.reviewer.token);
            requests.spawn(request.json(&review(&number.to_string())).send());
        }
        // The moment of the kill, not a wait for an event.
        sleep(Duration::from_micros(random.below(60_000).try_into().unwrap())).await;
        server.kill().await;
        requests.shutdown().await;
        server.start_again().await;
        desks.push(desk);
    }
    let mut stored = HashSet::new();
    for desk in &desks {
        let page = server.get(&desk.writer, &reviews(desk)).await.ok(200);
        stored.extend(rows(&page, "reviews").iter().map(|it| it["id"].to_string()));
    }
    assert!(!stored.is_empty(), "every kill came before the first commit");
    let arrived = || -> HashSet<String> {
        let events = events(&receiver).into_iter();
        let created = events.filter(|event| event["type"] == "review.created");
        created.map(|event| event["data"]["review_id"].to_string()).collect()
    };
    eventually("every review", async || stored.is_subset(&arrived())).await;
    assert_eq!(arrived(), stored, "no webhook without its review");
    // The sessions of the killed servers have ended.
    let ended = || {
        let events = lanes(&receiver).into_values().flatten();
        let mut seats: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for event in events.filter(|event| event["data"]["fence"].is_i64()) {
            seats.entry(event["share_link_id"].to_string()).or_default().push(event);
        }
        seats
    };
    let all_left = |seats: &BTreeMap<String, Vec<Value>>| {
        seats.len() == desks.len() && seats.values().all(|events| events.len() % 2 == 0)
    };
    eventually("every seat.left", async || all_left(&ended())).await;
    for events in ended().values() {
        for pair in events.chunks(2) {
            assert_eq!(
                (&pair[0]["type"], &pair[1]["type"]),
                (&json!("seat.taken"), &json!("seat.left"))
            );
            assert_eq!(pair[0]["data"], pair[1]["data"]);
        }
    }
}

/// Goal: two servers on one PostgreSQL deliver each webhook, and none of them at the same time.
#[tokio::test]
async fn g11_two_servers_deliver_each_webhook_in_order() {
    let (receiver, database) =
        (PushService::start().await, postgres_server::shared().database().await);
    let kinds = ["review.created", "seat.taken", "seat.left"];
    let endpoints = setting(&[&format!("{}/hook", receiver.url)], &kinds);
    let url = database.url();
    let cluster =
        Cluster::with(&[("DATABASE__URL", url.as_str()), ("NOTIFY__WEBHOOKS", endpoints.as_str())])
            .await;
    let mut made = Vec::new();
    for number in 0..6 {
        let server = cluster.either(number);
        let desk = server.desk("text").await;
        made.push((reviewed(server, &desk).await, desk));
    }
    receiver.has(3 * made.len()).await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(receiver.received().len(), 3 * made.len(), "a delivered webhook does not return");
    let lanes = lanes(&receiver);
    for (review, desk) in made {
        let lane = &lanes[&format!("\"{}\"", desk.document)];
        let kinds: Vec<_> = lane.iter().map(|it| it["type"].as_str().expect("a type")).collect();
        assert_eq!(kinds, ["seat.taken", "review.created", "seat.left"]);
        assert_eq!(lane[1]["data"]["review_id"], review["id"]);
        assert_eq!(lane[1]["share_link_id"], desk.link);
        assert_eq!(lane[0]["data"]["user_id"], desk.reviewer.id);
        assert_eq!(lane[0]["data"]["role"], "reviewer");
    }
}

/// Goal: a takeover ends one grant and begins the next, in this order.
#[tokio::test]
async fn a_takeover_is_the_end_of_one_grant_and_the_begin_of_another() {
    let receiver = PushService::start().await;
    let server = server(&receiver, &["seat.taken", "seat.left"]).await;
    let desk = server.desk("text").await;
    let first = server.writer(&desk).await;
    let second = server.seated(&desk, "writer", "events=1&takeover=1").await;
    first.closed().await;
    second.leave().await;
    receiver.has(4).await;
    let lanes = lanes(&receiver);
    let lane = lanes.values().next().expect("a document");
    let kinds: Vec<_> = lane.iter().map(|it| it["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["seat.taken", "seat.left", "seat.taken", "seat.left"]);
    let fence = |index: usize| lane[index]["data"]["fence"].as_i64().expect("a fence");
    assert!(fence(0) == fence(1) && fence(1) < fence(2) && fence(2) == fence(3));
}

/// Goal: an administrator lists dead webhooks and replays them; no other user does.
#[tokio::test]
async fn g14_an_administrator_replays_dead_webhooks() {
    let receiver = PushService::start().await;
    receiver.respond(Response::Status(503, ""));
    let server = server(&receiver, &["review.created"]).await;
    let admin = Users::of(&server).await.admin;
    let (one, two) = (server.desk("text").await, server.desk("text").await);
    let kim = &one.writer;
    for desk in [&one, &two] {
        reviewed(&server, desk).await;
    }
    until("both attempts", async || {
        let found = list(&server, &admin, "?state=pending").await;
        found.len() == 2 && found.iter().all(|it| it["last_error"].is_string())
    })
    .await;
    let url = format!("sqlite://{}/data/galley.db", server.folder().display());
    let mut database = files::stranger(&url).await;
    let over = "UPDATE webhooks SET give_up_at = 1, next_at = 1";
    sqlx::raw_sql(over).execute(&mut database).await.expect("changed");
    until("dead ones", async || list(&server, &admin, "?state=dead").await.len() == 2).await;
    let dead = list(&server, &admin, "").await;
    for webhook in &dead {
        assert_eq!(webhook["type"], "review.created");
        assert_eq!(webhook["url"], format!("{}/hook", receiver.url));
        assert_eq!((&webhook["state"], &webhook["next_at"]), (&json!("dead"), &Value::Null));
        assert_eq!(webhook["last_error"], "status 503");
    }
    let page = server.get(&admin, &format!("{LIST}?limit=1")).await.ok(200);
    let next = page["next_cursor"].as_str().expect("a cursor");
    assert_eq!(list(&server, &admin, &format!("?cursor={next}")).await, [dead[1].clone()]);

    let one = format!("{LIST}/{}/replay", dead[0]["id"].as_str().expect("an id"));
    let all = format!("{LIST}/replay");
    server.get(kim, LIST).await.problem(403, "not-admin");
    for path in [&one, &all] {
        server.post(kim, path, json!({})).await.problem(403, "not-admin");
    }
    server.get(&admin, &format!("{LIST}?state=done")).await.problem(422, "invalid");
    let unknown = format!("{LIST}/whk_{}/replay", "0".repeat(32));
    server.post(&admin, &unknown, json!({})).await.problem(404, "not-found");
    assert_eq!(list(&server, &admin, "?state=dead").await.len(), 2);

    receiver.respond(Response::Status(201, ""));
    assert_eq!(server.post(&admin, &one, json!({})).await.ok(200)["id"], dead[0]["id"]);
    until("the first", async || list(&server, &admin, "").await.len() == 1).await;
    assert_eq!(server.post(&admin, &all, json!({})).await.ok(200), json!({ "replayed": 1 }));
    until("the second", async || list(&server, &admin, "").await.is_empty()).await;
    assert_eq!(server.post(&admin, &all, json!({})).await.ok(200), json!({ "replayed": 0 }));
    server.post(&admin, &one, json!({})).await.problem(404, "not-found");
    let metrics = server.http.get(format!("{}/metrics", server.url)).send().await.expect("sent");
    let metrics = metrics.text().await.expect("text");
    assert!(metrics.contains("galley_webhook_total{outcome=\"delivered\"} 2"), "{metrics}");
    assert!(metrics.contains("galley_webhook_total{outcome=\"dead\"} 2"));
    let shown: HashSet<_> = events(&receiver).iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(shown.len(), 2, "an id is the same in each attempt");
}

/// Goal: an accepted request and an export are events, too.
#[tokio::test]
async fn an_accepted_request_is_one_webhook_without_a_document() {
    let receiver = PushService::start().await;
    let server = server(&receiver, &["request.accepted"]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let address = server.get(&lee, "/api/me/address").await.ok(200);
    let body = json!({ "to": address["link"]["token"], "as": "writer" });
    let request = server.post(&kim, "/api/review-requests", body).await.ok(201);
    let path = format!("/api/review-requests/{}/accept", request["id"].as_str().expect("an id"));
    for _ in 0..2 {
        server.post(&lee, &path, json!({})).await.ok(200);
    }
    receiver.has(1).await;
    sleep(Duration::from_millis(200)).await;
    let events = events(&receiver);
    assert_eq!(events.len(), 1, "the repeated acceptance is no event");
    let data = json!({
        "request_id": request["id"], "from_id": kim.id, "to_id": lee.id, "as": "writer",
    });
    assert_eq!((&events[0]["data"], &events[0]["document_id"]), (&data, &Value::Null));
}
