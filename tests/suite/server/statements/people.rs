//! Requests, partners, addresses, browsers and settings of reminders.

use serde_json::{Value, json};

use crate::server::reminder_fixtures::browser;
use crate::server::statements::{Counted, id_of, pair, requested, send_request};
use crate::support::galley_process::Server;
use crate::support::push_service::{Browser, PushService};
use crate::support::rest_client::Person;

async fn decide(server: &Server, who: &Person, id: &str, decision: &str) {
    let path = format!("/api/review-requests/{id}/{decision}");
    server.post(who, &path, json!({})).await.ok(200);
}

/// Two partners.
async fn partners(server: &Server) -> (Person, Person) {
    let (kim, lee, id) = requested(server).await;
    decide(server, &lee, &id, "accept").await;
    (kim, lee)
}

/// A user with three requests, two of which are sent.
async fn busy(server: &Server) -> Person {
    let (kim, lee, _) = requested(server).await;
    let (park, choi) = pair(server).await;
    send_request(server, &kim, &choi).await;
    server.get(&kim, "/api/me/address").await.ok(200);
    send_request(server, &park, &kim).await;
    drop(lee);
    kim
}

/// A user with a personal link.
async fn reachable(server: &Server) -> Person {
    let (_, lee) = pair(server).await;
    lee
}

async fn guest(server: &Server) -> Person {
    server.guest("Kim").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_partners_cost_a_fixed_number_of_statements_and_commands() {
    let (mut counted, service) = (Counted::start().await, PushService::start().await);
    let make = async |server: &Server, (kim, lee): (Person, Person)| {
        send_request(server, &kim, &lee).await;
    };
    counted.measure("a request", pair, make).await;
    let watched = async |server: &Server| {
        let (kim, lee) = pair(server).await;
        (kim, browser(server, &lee, &service).await, lee)
    };
    let pushed = async |server: &Server, (kim, _browser, lee): (Person, Browser, Person)| {
        let before = service.received().len();
        send_request(server, &kim, &lee).await;
        service.has(before + 1).await;
    };
    counted.measure("a request with its push", watched, pushed).await;
    for (what, decision) in [("an acceptance", "accept"), ("a refusal", "decline")] {
        let run = async |server: &Server, (_, lee, id): (Person, Person, String)| {
            decide(server, &lee, &id, decision).await;
        };
        counted.measure(what, requested, run).await;
    }
    let withdraw = async |server: &Server, (kim, _, id): (Person, Person, String)| {
        decide(server, &kim, &id, "withdraw").await;
    };
    counted.measure("a withdrawal", requested, withdraw).await;
    let show = async |server: &Server, (kim, _, id): (Person, Person, String)| {
        server.get(&kim, &format!("/api/review-requests/{id}")).await.ok(200);
    };
    counted.measure("one request", requested, show).await;
    counted.measure_get("a page of requests", "/api/review-requests?limit=2", busy).await;
    let part = async |server: &Server, (kim, lee): (Person, Person)| {
        let path = format!("/api/partners/{}", lee.id);
        assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, 204);
    };
    let partner = async |server: &Server| partners(server).await.0;
    counted.measure_get("a page of partners", "/api/partners", partner).await;
    counted.measure("the end of a partnership", partners, part).await;
    // The last statement of a request and of an acceptance reads the browsers of the other user. The pair's
    // lock is acquired by one command, and released by another.
    counted.cost(&[
        ("a request", 9, 2),
        ("a request with its push", 9, 2),
        ("an acceptance", 9, 2),
        ("a refusal", 5, 0),
        ("a withdrawal", 5, 0),
        ("one request", 1, 0),
        ("a page of requests", 1, 0),
        ("a page of partners", 1, 0),
        ("the end of a partnership", 7, 0),
    ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_cost_a_fixed_number_of_statements_and_commands() {
    let mut counted = Counted::start().await;
    const ADDRESS: &str = "/api/me/address";
    counted.measure_get("the first personal link", ADDRESS, guest).await;
    counted.measure_get("a personal link", ADDRESS, reachable).await;
    let renew = async |server: &Server, kim: Person| {
        server.post(&kim, "/api/me/address/renew", json!({})).await.ok(200);
    };
    counted.measure("a new personal link", reachable, renew).await;
    let set_handle = async |server: &Server, kim: &Person| {
        let handle: String = kim.id.chars().filter(char::is_ascii_alphanumeric).take(30).collect();
        let body = Some(json!({ "handle": handle }));
        server.call(kim, "PUT", ADDRESS, body).await.ok(200)
    };
    let set = async |server: &Server, kim: Person| {
        set_handle(server, &kim).await;
    };
    counted.measure("a handle", reachable, set).await;
    let found = async |server: &Server, key: fn(&Value) -> String| {
        let (kim, lee) = pair(server).await;
        (kim, key(&set_handle(server, &lee).await))
    };
    let find = async |server: &Server, (kim, to): (Person, String)| {
        server.post(&kim, "/api/people/find", json!({ "to": to })).await.ok(200);
    };
    let handle = |address: &Value| format!("@{}", address["handle"].as_str().expect("a handle"));
    let token = |address: &Value| address["link"]["token"].as_str().expect("a token").to_owned();
    let by_handle = async |server: &Server| found(server, handle).await;
    counted.measure("a user by the handle", by_handle, find).await;
    let by_link = async |server: &Server| found(server, token).await;
    counted.measure("a user by the personal link", by_link, find).await;
    counted.cost(&[
        ("the first personal link", 6, 0),
        ("a personal link", 1, 0),
        ("a new personal link", 5, 0),
        ("a handle", 9, 0),
        ("a user by the handle", 1, 0),
        ("a user by the personal link", 1, 0),
    ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browsers_and_settings_cost_a_fixed_number_of_statements_and_commands() {
    let (mut counted, service) = (Counted::start().await, PushService::start().await);
    const BROWSERS: &str = "/api/push-subscriptions";
    let subscribe = async |server: &Server, kim: Person| {
        browser(server, &kim, &service).await;
    };
    counted.measure("a new browser", guest, subscribe).await;
    let subscribed = async |server: &Server| {
        let (kim, body) = (guest(server).await, Browser::new().subscription(&service));
        let id = id_of(&server.post(&kim, BROWSERS, body).await.ok(201));
        (kim, id)
    };
    let with_browser = async |server: &Server| subscribed(server).await.0;
    counted.measure_get("the browsers", BROWSERS, with_browser).await;
    let unsubscribe = async |server: &Server, (kim, id): (Person, String)| {
        let path = format!("{BROWSERS}/{id}");
        assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, 204);
    };
    counted.measure("the end of a browser", subscribed, unsubscribe).await;
    const REMINDERS: &str = "/api/me/reminders";
    counted.measure_get("the settings of reminders", REMINDERS, guest).await;
    let change = async |server: &Server, kim: Person| {
        let quiet = json!({ "from": "22:00", "to": "07:00" });
        let body = json!({
            "review_unanswered": true, "seat_free": false, "request_unanswered": true,
            "quiet": quiet, "time_zone": "Asia/Seoul",
        });
        server.call(&kim, "PUT", REMINDERS, Some(body)).await.ok(200);
    };
    counted.measure("new settings of reminders", guest, change).await;
    counted.cost(&[
        ("a new browser", 7, 0),
        ("the browsers", 1, 0),
        ("the end of a browser", 3, 0),
        ("the settings of reminders", 1, 0),
        ("new settings of reminders", 4, 0),
    ]);
}
