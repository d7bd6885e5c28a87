//! `/api/review-requests` and what follows it: races, decisions, the bounds of requests, their locks and their
//! cost.

use std::time::Duration;

use futures_util::future::join_all;
use galley::locks::{AcquireOptions, Lease, LockName, Locks};
use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::server::request_fixtures::{
    a_person, decide, partners, request_review, send_request, text,
};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_monitor::Monitor;
use crate::support::rest_client::{Answer, Person};

/// Pairs that ask each other, those that do so at the same moment, and one in how many goes on to accept.
const PAIRS: usize = 200;
const AT_ONCE: usize = 20;
const ONE_ACCEPTS_IN: usize = 8;

async fn requests(server: &Server, who: &Person, query: &str) -> Vec<Value> {
    let list = server.get(who, &format!("/api/review-requests{query}")).await.ok(200);
    list["requests"].as_array().expect("requests").clone()
}

/// Two users ask each other at the same moment. In some pairs, the second one accepts the request of
/// the first.
async fn race(servers: &[&Server], pair: usize) {
    let (one, other) = (servers[pair % servers.len()], servers[(pair + 1) % servers.len()]);
    let (kim, lee) = tokio::join!(a_person(one, "Kim"), a_person(other, "Lee"));
    let (sent, answered) =
        tokio::join!(request_review(one, &kim, &lee.id), request_review(other, &lee, &kim.id));
    let ((first, second), (winner, loser), at) = if sent.status == 201 {
        ((sent, answered), (&kim, &lee), other)
    } else {
        ((answered, sent), (&lee, &kim), one)
    };
    let created = first.ok(201);
    let id = second.json["id"].clone();
    second.problem(409, "request-already-received");
    assert_eq!(id, created["id"]);
    if !pair.is_multiple_of(ONE_ACCEPTS_IN) {
        return;
    }
    for (who, direction) in [(winner, "sent"), (loser, "received")] {
        let pending = requests(at, who, "?state=pending").await;
        assert_eq!(pending, std::slice::from_ref(&created), "one pending request");
        assert_eq!(requests(at, who, &format!("?direction={direction}")).await.len(), 1);
    }
    let accepted = decide(at, loser, &id, "accept").await.ok(200);
    assert_eq!(accepted["partner"]["id"], winner.id);
    assert_eq!(accepted["request"]["state"], "accepted");
    assert_eq!(partners(one, winner).await, std::slice::from_ref(&loser.id));
    assert_eq!(partners(other, loser).await, std::slice::from_ref(&winner.id));
    assert_eq!(requests(at, winner, "").await.len(), 1);
}

async fn races(servers: &[&Server]) {
    for first in (0..PAIRS).step_by(AT_ONCE) {
        join_all((first..first + AT_ONCE).map(|pair| race(servers, pair))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_two_users_who_request_each_other_at_once_have_one_pending_request() {
    races(&[&Server::start().await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_two_users_who_request_each_other_at_once_on_three_servers_have_one_pending_request() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    let third = cluster.one.beside().await;
    races(&[&cluster.one, &cluster.two, &third]).await;
}

/// Goal: of an acceptance, a refusal and a withdrawal on two servers one happens, and each caller knows which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_of_an_acceptance_a_refusal_and_a_withdrawal_at_once_one_happens() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    for _ in 0..20 {
        let (kim, lee) = tokio::join!(a_person(one, "Kim"), a_person(two, "Lee"));
        let id = request_review(one, &kim, &lee.id).await.ok(201)["id"].clone();
        let answers = tokio::join!(
            decide(one, &lee, &id, "accept"),
            decide(two, &lee, &id, "decline"),
            decide(two, &kim, &id, "withdraw"),
        );
        let answers = [answers.0, answers.1, answers.2];
        let path = format!("/api/review-requests/{}", text(&id));
        let state = one.get(&kim, &path).await.ok(200)["state"].clone();
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(done, 1, "{answers:?}");
        for answer in answers.into_iter().filter(|answer| answer.status != 200) {
            assert_eq!(answer.json["state"], state);
            answer.problem(409, "request-not-pending");
        }
        let is_accepted = state == "accepted";
        assert_eq!(partners(two, &kim).await.len(), usize::from(is_accepted));
    }
}

#[tokio::test]
async fn a_request_is_its_two_users_and_each_decision_has_one_of_them() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    let park = a_person(&server, "Park").await;
    let body = json!({ "to": lee.id, "as": "reviewer", "message": " 제가 봐 드릴게요 " });
    let request = send_request(&server, &kim, body).await.ok(201);
    let id = &request["id"];
    assert_eq!(request["from"], json!({ "id": kim.id, "name": "Kim" }));
    assert_eq!(request["to"], json!({ "id": lee.id, "name": "Lee" }));
    assert_eq!(
        (&request["as"], &request["message"]),
        (&json!("reviewer"), &json!("제가 봐 드릴게요"))
    );
    for empty in ["document_id", "title", "decided_at"] {
        assert_eq!(request[empty], Value::Null);
    }
    let path = format!("/api/review-requests/{}", text(id));
    for who in [&kim, &lee] {
        assert_eq!(server.get(who, &path).await.ok(200), request);
    }
    request_review(&server, &kim, &lee.id).await.problem(409, "request-already-sent");
    server.get(&park, &path).await.problem(404, "not-found");
    for what in ["accept", "decline", "withdraw"] {
        decide(&server, &park, id, what).await.problem(404, "not-found");
        decide(&server, &park, &json!("req_0"), what).await.problem(404, "not-found");
    }
    decide(&server, &kim, id, "accept").await.problem(403, "not-the-receiver");
    decide(&server, &kim, id, "decline").await.problem(403, "not-the-receiver");
    decide(&server, &lee, id, "withdraw").await.problem(403, "not-the-sender");
    assert_eq!(server.get(&lee, &path).await.ok(200), request);

    let declined = decide(&server, &lee, id, "decline").await.ok(200);
    assert_eq!(declined["state"], "declined");
    assert!(declined["decided_at"].is_string());
    assert_eq!(decide(&server, &lee, id, "decline").await.ok(200), declined);
    let late = decide(&server, &lee, id, "accept").await;
    assert_eq!(late.json["state"], "declined");
    late.problem(409, "request-not-pending");

    // The next one is withdrawn, and the last one accepted.
    let id = request_review(&server, &lee, &kim.id).await.ok(201)["id"].clone();
    assert_eq!(decide(&server, &lee, &id, "withdraw").await.ok(200)["state"], "withdrawn");
    let id = request_review(&server, &lee, &kim.id).await.ok(201)["id"].clone();
    let accepted = decide(&server, &kim, &id, "accept").await.ok(200);
    assert_eq!((&accepted["share_link_id"], &accepted["share_link"]), (&Value::Null, &Value::Null));
    assert_eq!(decide(&server, &kim, &id, "accept").await.ok(200), accepted);
    for (from, to) in [(&kim, &lee), (&lee, &kim)] {
        request_review(&server, from, &to.id).await.problem(409, "already-partners");
    }

    // Either user ends the partnership, once.
    let path = format!("/api/partners/{}", kim.id);
    assert_eq!(server.call(&lee, "DELETE", &path, None).await.status, 204);
    server.call(&lee, "DELETE", &path, None).await.problem(404, "not-found");
    assert_eq!(partners(&server, &kim).await, Vec::<String>::new());
}

#[tokio::test]
async fn g12_an_invalid_request_has_a_typed_problem_and_is_not_stored() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    let body = json!({ "title": "t", "text": "text" });
    let of_lee = server.post(&lee, "/api/documents", body.clone()).await.ok(201)["id"].clone();
    let own = server.post(&kim, "/api/documents", body).await.ok(201)["id"].clone();
    let to = &lee.id;
    for (body, status, name) in [
        (json!({ "to": "usr_0", "as": "writer" }), 404, "unknown-user"),
        (json!({ "to": "no such id!", "as": "writer" }), 404, "unknown-user"),
        (json!({ "to": "", "as": "writer" }), 404, "unknown-user"),
        (json!({ "to": kim.id, "as": "writer" }), 422, "own-self"),
        (json!({ "to": to, "as": "admin" }), 422, "invalid"),
        (json!({ "to": to }), 422, "invalid"),
        (json!({ "as": "writer" }), 422, "invalid"),
        (json!({ "to": 7, "as": "writer" }), 422, "invalid"),
        (json!([to, "writer"]), 422, "invalid"),
        (json!({ "to": to, "as": "writer", "message": "글".repeat(1_001) }), 422, "invalid"),
        (json!({ "to": to, "as": "writer", "message": "x".repeat(20_000) }), 413, "too-large"),
        (json!({ "to": to, "as": "reviewer", "document_id": own }), 422, "invalid"),
        (json!({ "to": to, "as": "writer", "document_id": of_lee }), 404, "not-found"),
        (json!({ "to": to, "as": "writer", "document_id": "x" }), 422, "invalid"),
    ] {
        let answer = server.post(&kim, "/api/review-requests", body.clone()).await;
        assert_eq!(answer.json["type"], format!("/problems/{name}"), "{body}: {}", answer.json);
        assert_eq!(answer.status, status, "{body}");
    }
    for query in ["?state=open", "?direction=both", "?limit=0", "?cursor=x"] {
        let answer = server.get(&kim, &format!("/api/review-requests{query}")).await;
        answer.problem(422, "invalid");
    }
    let list = server.get(&kim, "/api/review-requests").await.ok(200);
    assert_eq!(list, json!({ "requests": [], "next_cursor": null }));
    server.call(&kim, "DELETE", "/api/partners/x", None).await.problem(404, "not-found");
    // The longest message fits, also with each character escaped.
    let message = "😀".repeat(1_000);
    let escaped = message.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    let body = format!("{{\"to\":\"{to}\",\"as\":\"writer\",\"message\":\"{escaped}\"}}");
    let request = server.http.post(format!("{}/api/review-requests", server.url));
    let request = request.bearer_auth(&kim.token).header("content-type", "application/json");
    let response = request.body(body).send().await.expect("an answer");
    assert_eq!(response.status(), 201);
    assert_eq!(response.json::<Value>().await.expect("JSON")["message"], message);
}

#[tokio::test]
async fn g13_requests_of_a_user_and_of_a_pair_are_bounded() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    for _ in 0..3 {
        let id = request_review(&server, &kim, &lee.id).await.ok(201)["id"].clone();
        decide(&server, &lee, &id, "decline").await.ok(200);
    }
    let refused = request_review(&server, &kim, &lee.id).await;
    let wait = refused.retry_after;
    refused.problem(429, "request-limit");
    assert!(wait.is_some_and(|wait| 80_000 < wait && wait <= 86_400), "{wait:?}");
    // The receiver may still ask.
    let id = request_review(&server, &lee, &kim.id).await.ok(201)["id"].clone();
    decide(&server, &kim, &id, "decline").await.ok(200);
    let sender = a_person(&server, "Park").await;
    for _ in 0..20 {
        let other = a_person(&server, "Other").await;
        request_review(&server, &sender, &other.id).await.ok(201);
    }
    let refused = request_review(&server, &sender, &kim.id).await;
    assert_eq!(refused.retry_after, None);
    refused.problem(429, "request-limit");
    let page = server.get(&sender, "/api/review-requests?limit=15").await.ok(200);
    let cursor = text(&page["next_cursor"]);
    let next = format!("/api/review-requests?limit=15&cursor={cursor}");
    let next = server.get(&sender, &next).await.ok(200);
    assert_eq!(next["requests"].as_array().map(Vec::len), Some(5));
    assert_eq!(next["next_cursor"], Value::Null);
}

async fn admin_locks(server: &Server) -> Value {
    let url = format!("{}/api/admin/locks?class=request", server.url);
    let request = server.http.get(url).bearer_auth(server.admin_token());
    request.send().await.expect("an answer").json().await.expect("JSON")
}

/// Goal: a request waits for the lock of its pair, gives up with a typed time-out, and both are visible by class.
#[tokio::test]
async fn the_lock_of_a_pair_is_listed_measured_and_alarmed_by_its_class() {
    let cluster = Cluster::start().await;
    let server = &cluster.one;
    let (kim, lee) = (a_person(server, "Kim").await, a_person(server, "Lee").await);
    let other = Locks::connect(&cluster.redis.url()).await.expect("a good address");
    let name = LockName::pair("request", &lee.id, &kim.id);
    let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(30)));
    let guard = other.try_lock(&name, &options).await.expect("a free lock");
    let body = json!({ "to": lee.id, "as": "writer" });
    let waits = (0..21).map(|_| server.post(&kim, "/api/review-requests", body.clone()));
    for refused in join_all(waits).await {
        assert_eq!(refused.retry_after, Some(2));
        refused.problem(503, "lock-wait-timeout");
    }
    let said = admin_locks(server).await;
    assert_eq!(
        (&said["classes"][0]["class"], &said["classes"][0]["held"]),
        (&json!("request"), &json!(1))
    );
    assert_eq!(said["locks"][0]["name"], name.what());
    let alarms = said["alarms"].as_array().expect("alarms");
    assert!(alarms.iter().any(|alarm| alarm["class"] == "request"), "{said}");
    let tried = |outcome: &str| {
        format!("galley_lock_acquisitions_total{{class=\"request\",outcome=\"{outcome}\"}}")
    };
    server.has(&tried("timeout"), 21).await;
    // Another pair does not wait for this one.
    let park = a_person(server, "Park").await;
    request_review(server, &kim, &park.id).await.ok(201);
    server.has(&tried("granted"), 1).await;
    server.has("galley_lock_hold_seconds_count{class=\"request\"}", 1).await;
    guard.release().await.expect("a reply");
    send_request(server, &kim, body).await.ok(201);
    server.has(&tried("granted"), 2).await;
    assert_eq!(admin_locks(server).await["locks"], json!([]));
    other.close().await;
}

/// Goal: a request and an acceptance cost one claim and one release; a refusal costs none.
#[tokio::test]
async fn a_request_is_two_scripts_and_a_refusal_none() {
    let cluster = Cluster::with(&[
        ("SEATS__LEASE", "60s"),
        ("SEATS__RENEW_EVERY", "20s"),
        ("SEATS__CLIENT_TIMEOUT", "50s"),
    ])
    .await;
    let server = &cluster.one;
    let (kim, lee) = (a_person(server, "Kim").await, a_person(server, "Lee").await);
    let park = a_person(server, "Park").await;
    let monitor = Monitor::of(&cluster.redis).await;
    let of_requests = async || monitor.scripts(&cluster.redis, "lock:request:").await;
    // The first call of each script loads it.
    let first = request_review(server, &kim, &park.id).await.ok(201)["id"].clone();
    let counted = async |what: &str, answer: Answer, scripts: usize| {
        answer.ok(if what == "request" { 201 } else { 200 });
        assert_eq!(of_requests().await.len(), scripts, "{what}");
        monitor.forget();
    };
    of_requests().await;
    monitor.forget();
    counted("request", request_review(server, &lee, &kim.id).await, 2).await;
    let list = server.get(&kim, "/api/review-requests?direction=received").await;
    let id = list.json["requests"][0]["id"].clone();
    counted("list", list, 0).await;
    counted("accept", decide(server, &kim, &id, "accept").await, 2).await;
    counted("decline", decide(server, &park, &first, "decline").await, 0).await;
    let last = request_review(server, &lee, &park.id).await.ok(201)["id"].clone();
    of_requests().await;
    monitor.forget();
    counted("withdraw", decide(server, &lee, &last, "withdraw").await, 0).await;
}

/// Goal: guests of one address take a few requests and handles a day; the answer names the setting, and a
/// failed attempt costs none.
#[tokio::test]
async fn g17_guests_of_one_address_have_daily_limits() {
    let settings = [
        ("LIMITS__GUEST_REQUESTS_PER_ADDRESS", "2"),
        ("LIMITS__GUEST_HANDLES_PER_ADDRESS", "1"),
        ("LIMITS__GUEST_CLAIMS_PER_ADDRESS", "1"),
        ("LIMITS__GUEST_REQUESTS_PENDING", "1"),
    ];
    let server = Server::with(&settings).await;
    let (kim, lee, park) =
        (server.guest("Kim").await, server.guest("Lee").await, server.guest("Park").await);
    let handle = async |who: &Person, handle: &str| {
        server.call(who, "PUT", "/api/me/address", Some(json!({ "handle": handle }))).await
    };
    handle(&kim, "Admin").await.problem(409, "handle-taken");
    handle(&kim, "victim").await.ok(200);
    let refused = handle(&lee, "another").await;
    assert!(refused.json["detail"].as_str().is_some_and(|it| it.contains("guest_handles")));
    assert!(refused.retry_after.is_some_and(|seconds| 3_600 < seconds));
    refused.problem(429, "guest-limit");

    let request = async |from: &Person, to: &str| {
        server.post(from, "/api/review-requests", json!({ "to": to, "as": "writer" })).await
    };
    request(&lee, "@unknown_here").await.problem(404, "unknown-user");
    request(&lee, "@victim").await.ok(201);
    let full = request(&park, "@victim").await;
    assert!(full.json["detail"].as_str().is_some_and(|it| it.contains("guest_requests_pending")));
    full.problem(429, "guest-limit");
    let path = "/api/review-requests/decline-all";
    assert_eq!(server.post(&kim, path, json!({})).await.ok(200), json!({ "declined": 1 }));
    request(&park, "@victim").await.ok(201);
    let spent = request(&lee, "@victim").await;
    assert!(spent.json["detail"].as_str().is_some_and(|it| it.contains("per_address")));
    spent.problem(429, "guest-limit");

    let offer = json!({ "title": "t", "capacity": 5 });
    let offer = server.post(&kim, "/api/review-offers", offer).await.ok(201);
    let claims = format!("/api/review-offers/{}/claims", text(&offer["id"]));
    server.post(&lee, &claims, json!({})).await.ok(201);
    server.post(&park, &claims, json!({})).await.problem(429, "guest-limit");
}
