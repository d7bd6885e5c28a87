//! Webhooks of a whole server: kills, two servers, seats, dead letters, and their replay by
//! `/api/admin/webhooks`.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::server::delivery::QUICK;
use crate::server::exports::download;
use crate::server::kill_campaign::{planned, say};
use crate::server::many_servers::Cluster;
use crate::server::offer_fixtures::Fleet;
use crate::server::operation_fixtures::{Users, rows};
use crate::storage::files;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::push_service::{PushService, Received, Response};
use crate::support::raw_socket::{connect, head, upgrade};
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

/// Three servers with Redis and PostgreSQL.
async fn fleet(receiver: &PushService, kinds: &[&str]) -> Fleet {
    let endpoints = setting(&[&format!("{}/hook", receiver.url)], kinds);
    Fleet::with(3, &[QUICK[0], QUICK[1], ("NOTIFY__WEBHOOKS", endpoints.as_str())]).await
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

/// Makes a review under the reviewer's seat.
async fn reviewed(server: &Server, desk: &Desk) -> Value {
    let peer = server.reviewer(desk).await;
    let review = server.post(&desk.reviewer, &desk.reviews(), review("why?")).await.ok(201);
    peer.leave().await;
    review
}

async fn list(server: &Server, admin: &Person, query: &str) -> Vec<Value> {
    rows(&server.get(admin, &format!("{LIST}{query}")).await.ok(200), "webhooks")
}

/// Reviews at servers of which one after another is killed at a random moment, and runs again. Half of the
/// requests of a round reach another server, if there is one. It delivers meanwhile.
async fn reviews_among_kills(
    servers: &mut [Server],
    (kills, mut random): (usize, Random),
) -> Vec<Desk> {
    let mut desks = Vec::new();
    for round in 0..kills {
        let victim = round % servers.len();
        let desk = servers[victim].desk("text").await;
        let _seat = servers[victim].reviewer(&desk).await;
        let mut requests = JoinSet::new();
        for number in 0..6 {
            let server = &servers[(victim + number % 2) % servers.len()];
            let request = server.http.post(format!("{}{}", server.url, desk.reviews()));
            let request = request.bearer_auth(&desk.reviewer.token);
            requests.spawn(request.json(&review(&number.to_string())).send());
        }
        // Half of the kills follow a commit, also on a slow machine.
        if round % 2 == 0 {
            requests.join_next().await.expect("a request").expect("joined").expect("an answer");
        }
        // The moment of the kill, not a wait for an event.
        sleep(Duration::from_micros(random.below(60_000).try_into().unwrap())).await;
        servers[victim].kill().await;
        requests.shutdown().await;
        servers[victim].start_again().await;
        desks.push(desk);
    }
    desks
}

/// Holds that every stored review arrives, and the begin and the end of every seat.
async fn all_arrive(server: &Server, receiver: &PushService, desks: &[Desk]) {
    let stored = async || {
        let mut stored = HashSet::new();
        for desk in desks {
            let page = server.get(&desk.writer, &desk.reviews()).await.ok(200);
            stored.extend(rows(&page, "reviews").iter().map(|it| it["id"].to_string()));
        }
        stored
    };
    let arrived = || -> HashSet<String> {
        let events = events(receiver).into_iter();
        let created = events.filter(|event| event["type"] == "review.created");
        created.map(|event| event["data"]["review_id"].to_string()).collect()
    };
    // A request whose client was dropped runs to its end, so the reviews are read again.
    let agree = async || stored().await == arrived();
    eventually("a webhook of each stored review, and of no other", agree).await;
    assert!(!arrived().is_empty(), "every kill came before the first commit");
    // The sessions of the killed servers have ended.
    let ended = || {
        let events = lanes(receiver).into_values().flatten();
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
    let mut reviews = 0;
    for events in ended().values() {
        for pair in events.chunks(2) {
            assert_eq!(
                (&pair[0]["type"], &pair[1]["type"]),
                (&json!("seat.taken"), &json!("seat.left"))
            );
            let (taken, mut left) = (&pair[0]["data"], pair[1]["data"].clone());
            reviews += left["reviews"].take().as_u64().expect("a number");
            left.as_object_mut().expect("an object").remove("reviews");
            assert_eq!(*taken, left);
        }
    }
    assert_eq!(usize::try_from(reviews), Ok(arrived().len()), "each review counts to its grant");
    let attempts = receiver.received().len();
    let delivered: usize = lanes(receiver).values().map(Vec::len).sum();
    say(&format!("webhooks: {delivered} arrived in {attempts} attempts"));
}

/// Goal: whenever a server is killed, every stored review has arrived once it runs again.
#[tokio::test]
async fn g7_no_webhook_is_lost_when_its_server_is_killed_twenty_times() {
    let plan = planned("webhooks of one server", KILLS);
    let receiver = PushService::start().await;
    let mut server = server(&receiver, &["review.created", "seat.taken", "seat.left"]).await;
    let desks = reviews_among_kills(std::slice::from_mut(&mut server), plan).await;
    all_arrive(&server, &receiver, &desks).await;
}

/// Goal: the same with three servers on Redis and PostgreSQL, killed in turn while the others deliver.
#[tokio::test]
async fn g7_no_webhook_is_lost_when_three_servers_are_killed_in_turn() {
    let plan = planned("webhooks of three servers", KILLS);
    let receiver = PushService::start().await;
    let kinds = ["review.created", "seat.taken", "seat.left"];
    let mut fleet = fleet(&receiver, &kinds).await;
    let desks = reviews_among_kills(&mut fleet.servers, plan).await;
    all_arrive(fleet.server(0), &receiver, &desks).await;
}

/// Goal: on three servers, thirty documents whose webhooks hang delay another one by less than a second. A
/// stall of the machine delays one webhook in twelve, full slots delay most of them.
#[tokio::test]
async fn g16_thirty_documents_that_hang_on_three_servers_delay_no_other_document() {
    let receiver = PushService::start().await;
    let fleet = fleet(&receiver, &["review.created"]).await;
    for number in 0..30 {
        let server = fleet.server(number % 3);
        let desk = server.desk("text").await;
        receiver.silence(desk.document.clone());
        reviewed(server, &desk).await;
    }
    let desk = fleet.server(0).desk("text").await;
    let _seat = fleet.server(0).reviewer(&desk).await;
    let path = desk.reviews();
    let mut took = Vec::new();
    for number in 0..12 {
        let request = fleet.server(number % 3).post(&desk.reviewer, &path, review("why?"));
        let review = request.await.ok(201);
        let stored = Instant::now();
        let id = review["id"].as_str().expect("an id");
        let has_id = |it: &Received| String::from_utf8_lossy(&it.body).contains(id);
        let arrived = || receiver.received().iter().any(has_id);
        until("the webhook of the healthy document", async || arrived()).await;
        took.push(stored.elapsed());
        sleep(Duration::from_millis(200)).await;
    }
    let late = took.iter().filter(|took| Duration::from_secs(1) <= **took).count();
    assert!(late <= 2, "{took:?}");
}

/// Both members reply at once at all servers, and the receiver fails in the middle.
async fn replies_arrive_in_the_order_of_their_commits(servers: &[Server], receiver: &PushService) {
    const REPLIES: usize = 24;
    let server = |number: usize| &servers[number % servers.len()];
    let desk = server(0).desk("text").await;
    let _seats = (server(0).writer(&desk).await, server(1).reviewer(&desk).await);
    let made = server(0).post(&desk.reviewer, &desk.reviews(), review("why?")).await.ok(201);
    let path = format!("{}/{}", desk.reviews(), made["id"].as_str().expect("an id"));
    receiver.script([Response::Status(201, ""), Response::Status(503, ""), Response::Close]);
    let replies = join_all((0..REPLIES).map(async |number| {
        let who = if number % 2 == 0 { &desk.writer } else { &desk.reviewer };
        let (path, body) = (format!("{path}/replies"), json!({ "body": number.to_string() }));
        server(number / 2).call_patiently(who, "POST", &path, Some(body)).await.ok(201)
    }));
    let sent: Vec<_> = replies.await.iter().map(|reply| reply["id"].clone()).collect();
    let arrived = || -> Vec<Value> {
        let events = lanes(receiver).remove(&json!(desk.document).to_string()).unwrap_or_default();
        let replied = events.iter().filter(|event| event["type"] == "review.replied");
        replied.map(|event| event["data"]["reply_id"].clone()).collect()
    };
    eventually("every reply", async || arrived().len() == REPLIES).await;
    let stored = server(0).get(&desk.writer, &path).await.ok(200);
    // Each reply raises the version of its review, and the server lists them by it.
    let stored: Vec<_> = rows(&stored, "replies").iter().map(|reply| reply["id"].clone()).collect();
    assert_eq!(arrived(), stored);
    let sorted = |ids: &[Value]| ids.iter().map(Value::to_string).collect::<HashSet<_>>();
    assert_eq!(sorted(&sent), sorted(&stored));
    assert!(REPLIES + 2 <= receiver.received().len(), "two attempts failed");
}

#[tokio::test]
async fn replies_arrive_in_the_order_of_their_commits_on_one_server() {
    let receiver = PushService::start().await;
    let server = server(&receiver, &["review.replied"]).await;
    replies_arrive_in_the_order_of_their_commits(&[server], &receiver).await;
}

#[tokio::test]
async fn replies_arrive_in_the_order_of_their_commits_on_three_servers() {
    let receiver = PushService::start().await;
    let fleet = fleet(&receiver, &["review.replied"]).await;
    replies_arrive_in_the_order_of_their_commits(&fleet.servers, &receiver).await;
}

/// Goal: a refused request leaves no row: the outbox has the events of the accepted ones only.
#[tokio::test]
async fn g10_a_refused_request_leaves_no_webhook() {
    let receiver = PushService::start().await;
    // Every row stays in the outbox.
    receiver.respond(Response::Status(503, ""));
    let kinds = ["review.created", "review.decided", "review.replied", "document.exported"];
    let server = server(&receiver, &kinds).await;
    let admin = Users::of(&server).await.admin;
    let desk = server.desk("text").await;
    let stranger = server.guest("Park").await;
    let (kim, lee, all) = (&desk.writer, &desk.reviewer, desk.reviews());
    server.post(lee, &all, review("?")).await.problem(403, "seat-not-held");
    let _seats = (server.writer(&desk).await, server.reviewer(&desk).await);
    let wrong = json!({ "anchor": { "start": 0, "end": 4, "quote": "tent" }, "body": "?" });
    server.post(lee, &all, wrong).await.problem(422, "anchor-mismatch");
    server.post(lee, &all, review("")).await.problem(422, "invalid");
    server.post(&stranger, &all, review("?")).await.problem(404, "not-found");
    let made = server.post(lee, &all, review("?")).await.ok(201);
    let path = format!("{all}/{}", made["id"].as_str().expect("an id"));
    let (replies, resolve) = (format!("{path}/replies"), format!("{path}/resolve"));
    let unknown = format!("{all}/rev_{}/replies", "0".repeat(32));
    server.post(kim, &replies, json!({ "body": "" })).await.problem(422, "invalid");
    server.post(kim, &unknown, json!({ "body": "!" })).await.problem(404, "not-found");
    server.post(kim, &replies, json!({ "body": "!" })).await.ok(201);
    server.post(lee, &resolve, json!({})).await.problem(403, "seat-not-held");
    let old = server.call_if(kim, "POST", &resolve, Some(json!({})), Some("\"1\"")).await;
    old.problem(412, "version-mismatch");
    server.post(kim, &resolve, json!({})).await.ok(200);
    for _again in 0..2 {
        server.post(kim, &resolve, json!({})).await.problem(409, "not-in-this-state");
    }
    let export = format!("/api/share-links/{}/export?format=doc", desk.link);
    server.get(kim, &export).await.problem(422, "unknown-format");
    let found = list(&server, &admin, "").await;
    let mut found: Vec<_> = found.iter().map(|row| row["type"].as_str().expect("a type")).collect();
    found.sort_unstable();
    assert_eq!(found, ["review.created", "review.decided", "review.replied"]);
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
    // A delivered webhook does not return.
    receiver.has_only(3 * made.len()).await;
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

/// Goal: an accepted request is an event, too.
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
    // The repeated acceptance is no event.
    receiver.has_only(1).await;
    let events = events(&receiver);
    let data = json!({
        "request_id": request["id"], "from_id": kim.id, "to_id": lee.id, "as": "writer",
    });
    assert_eq!((&events[0]["data"], &events[0]["document_id"]), (&data, &Value::Null));
}

/// Goal: a stored file is one event, however many callers it has.
#[tokio::test]
async fn an_export_is_one_webhook() {
    let receiver = PushService::start().await;
    let server = server(&receiver, &["document.exported"]).await;
    let desk = server.desk("text").await;
    for who in [&desk.writer, &desk.reviewer] {
        assert_eq!(download(&server, who, &desk, "format=docx&reviews=0").await.status, 200);
    }
    let file = download(&server, &desk.writer, &desk, "format=txt").await;
    assert_eq!(file.status, 200);
    receiver.has(2).await;
    let events = events(&receiver);
    let formats: Vec<_> = events.iter().map(|event| &event["data"]["format"]).collect();
    assert_eq!(formats, ["docx", "txt"]);
    assert!(events.iter().all(|event| event["document_id"] == desk.document));
}

/// The trace of a request leaves with its webhooks, also from a task that outlives the request.
#[tokio::test]
async fn a_webhook_has_the_traceparent_of_its_request() {
    let receiver = PushService::start().await;
    let server = server(&receiver, &["review.replied", "seat.taken", "document.exported"]).await;
    let desk = server.desk("text").await;
    let trace = |id: char| format!("00-{}-b7ad6b7169203331-01", id.to_string().repeat(32));
    let mut socket = connect(&server).await;
    let header = format!("traceparent: {}\r\n", trace('a'));
    let head = head(&mut socket, &upgrade(&desk, "reviewer", "events=1", &header)).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    receiver.has(1).await;
    let review = server.post(&desk.reviewer, &desk.reviews(), review("why?")).await.ok(201);
    let replies = format!("{}/{}/replies", desk.reviews(), review["id"].as_str().expect("an id"));
    let send = async |method: &str, path: &str, trace: &str| {
        let method = method.parse().expect("a method");
        let request = server.http.request(method, format!("{}{path}", server.url));
        let request = request.bearer_auth(&desk.reviewer.token).header("traceparent", trace);
        let request = request.json(&json!({ "body": "because" })).send();
        assert!(request.await.expect("an answer").status().is_success());
    };
    send("POST", &replies, &trace('b')).await;
    send("POST", &replies, &trace('B')).await;
    let export = format!("/api/share-links/{}/export?format=txt", desk.link);
    send("GET", &export, &trace('c')).await;
    let mut found = BTreeMap::new();
    for received in receiver.has(4).await {
        let kind = received.header("galley-event").expect("a kind").to_owned();
        let trace = received.header("traceparent").map(str::to_owned);
        found.entry(kind).or_insert_with(HashSet::new).insert(trace);
    }
    let only = |trace| HashSet::from([Some(trace)]);
    assert_eq!(found["review.replied"], HashSet::from([Some(trace('b')), None]), "{found:?}");
    assert_eq!(found["seat.taken"], only(trace('a')), "{found:?}");
    assert_eq!(found["document.exported"], only(trace('c')), "{found:?}");
}
