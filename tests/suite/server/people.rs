//! How users find each other, the bounds of requests, their locks and their cost.

use std::time::Duration;

use futures_util::future::join_all;
use galley::locks::{AcquireOptions, Lease, LockName, Locks};
use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::server::partners::{a_person, decide, request_review, send_request, text};
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Person};

async fn find(server: &Server, who: &Person, to: &str) -> Answer {
    server.post(who, "/api/people/find", json!({ "to": to })).await
}

async fn set_handle(server: &Server, who: &Person, handle: Value) -> Answer {
    server.call(who, "PUT", "/api/me/address", Some(json!({ "handle": handle }))).await
}

#[tokio::test]
async fn a_user_is_found_by_the_exact_handle_or_the_personal_link() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (one.guest("Kim").await, two.guest("Lee").await);
    // A guest who has done nothing yet is unknown.
    request_review(one, &kim, &lee.id).await.problem(404, "unknown-user");
    let address = two.get(&lee, "/api/me/address").await.ok(200);
    let token = text(&address["link"]["token"]);
    assert_eq!((&address["handle"], token.len()), (&Value::Null, 43));
    assert_eq!(address["link"]["url"], format!("{}/#ask={token}", two.url));
    let again = one.get(&lee, "/api/me/address").await.ok(200);
    assert_eq!(again["link"]["token"], token);

    let named = set_handle(two, &lee, json!("이하나_LEE")).await.ok(200);
    assert_eq!((&named["handle"], &named["link"]), (&json!("이하나_lee"), &address["link"]));
    set_handle(one, &kim, json!("이하나_lee")).await.problem(409, "handle-taken");
    for to in ["@이하나_lee", "@이하나_Lee", token] {
        let found = find(one, &kim, to).await.ok(200);
        assert_eq!(found, json!({ "user": { "id": lee.id, "name": "Lee" } }));
    }
    let nearly = format!("{}x", &token[..42]);
    for to in ["이하나_lee", "@이하나", "@", "", &lee.id, "Lee", &nearly, &"@x".repeat(1_000)]
    {
        find(one, &kim, to).await.problem(404, "unknown-user");
    }
    for bad in ["a", "", "@lee", "l e", "ㅋㅋ", &"a".repeat(31)] {
        set_handle(one, &kim, json!(bad)).await.problem(422, "invalid-handle");
    }
    let without = one.call(&kim, "PUT", "/api/me/address", Some(json!({}))).await;
    without.problem(422, "invalid");
    assert_eq!(one.get(&kim, "/api/me/address").await.ok(200)["handle"], Value::Null);

    // A renewal voids the older token on every server, and null the handle.
    let renewed = one.post(&lee, "/api/me/address/renew", json!({})).await.ok(200);
    assert_ne!(renewed["link"]["token"], token);
    assert_eq!(renewed["handle"], "이하나_lee");
    find(two, &kim, token).await.problem(404, "unknown-user");
    request_review(two, &kim, token).await.problem(404, "unknown-user");
    assert_eq!(set_handle(one, &lee, Value::Null).await.ok(200)["handle"], Value::Null);
    find(two, &kim, "@이하나_lee").await.problem(404, "unknown-user");
    let request = request_review(two, &kim, text(&renewed["link"]["token"])).await.ok(201);
    assert_eq!(request["to"]["id"], lee.id);
}

#[tokio::test]
async fn g17_a_user_names_thirty_people_in_a_minute() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    for _ in 0..30 {
        find(&server, &kim, "@no_such_user").await.problem(404, "unknown-user");
    }
    let mut tries = 0;
    while find(&server, &kim, "@no_such_user").await.status == 404 {
        tries += 1;
        assert!(tries < 30, "no rate");
    }
    let body = json!({ "to": lee.id, "as": "writer" });
    let answer = server.post(&kim, "/api/review-requests", body).await;
    // A slow machine admits the next name meanwhile.
    let is_refused = answer.status == 429 && answer.retry_after.is_some();
    assert!(is_refused || answer.status == 201, "{answer:?}");
    find(&server, &lee, "@no_such_user").await.problem(404, "unknown-user");
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
        (json!({ "to": to, "as": "writer", "message": "a\u{0}b" }), 422, "invalid"),
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
    // The first call of each script loads it.
    let first = request_review(server, &kim, &park.id).await.ok(201)["id"].clone();
    let counted = async |what: &str, answer: Answer, scripts: u64| {
        answer.ok(if what == "request" { 201 } else { 200 });
        assert_eq!(cluster.redis.calls("evalsha").await, scripts, "{what}");
        assert_eq!(cluster.redis.calls("eval").await, 0, "{what}");
        cluster.redis.forget_calls().await;
    };
    cluster.redis.forget_calls().await;
    counted("request", request_review(server, &lee, &kim.id).await, 2).await;
    let list = server.get(&kim, "/api/review-requests?direction=received").await;
    let id = list.json["requests"][0]["id"].clone();
    counted("list", list, 0).await;
    counted("accept", decide(server, &kim, &id, "accept").await, 2).await;
    counted("decline", decide(server, &park, &first, "decline").await, 0).await;
    let last = request_review(server, &lee, &park.id).await.ok(201)["id"].clone();
    cluster.redis.forget_calls().await;
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

/// Goal: a user who takes no requests of guests gets none; the name of a guest changes apart from it.
#[tokio::test]
async fn a_user_refuses_the_requests_of_guests() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let me = async |body: Value| server.call(&kim, "PATCH", "/api/me", Some(body)).await.ok(200);
    assert_eq!(server.get(&kim, "/api/me").await.ok(200)["guest_requests"], true);
    let changed = me(json!({ "guest_requests": false })).await;
    assert_eq!(changed, json!({ "id": kim.id, "name": "Kim", "guest_requests": false }));
    let body = json!({ "to": kim.id, "as": "writer" });
    let refused = server.post(&lee, "/api/review-requests", body.clone()).await;
    refused.problem(403, "no-guest-requests");
    assert_eq!(me(json!({ "name": "Kim B" })).await["user"]["name"], "Kim B");
    assert_eq!(
        server.get(&kim, "/api/me").await.ok(200),
        json!({
            "id": kim.id, "name": "Kim B", "guest_requests": false,
        })
    );
    me(json!({ "guest_requests": true })).await;
    server.post(&lee, "/api/review-requests", body).await.ok(201);
}
