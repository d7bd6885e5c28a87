//! `/api/me`, `/api/me/transfer` and `/api/auth/transfer`: the name of a user, the setting for requests of guests,
//! and codes for another device. `people.rs` tests `/api/me/address`, `reminders.rs` `/api/me/reminders`.

use reqwest::header::{ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

use crate::server::commands::galley;
use crate::server::many_servers::Cluster;
use crate::server::request_fixtures::text;
use crate::server::share_links::link;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Desk, Person};

/// A request without a token.
pub(crate) async fn anonymous(server: &Server, path: &str, body: Value) -> Answer {
    let request = server.http.post(format!("{}{path}", server.url)).json(&body);
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let json = response.json().await.unwrap_or(Value::Null);
    Answer { status, etag: None, retry_after: None, json }
}

async fn redeem(server: &Server, code: &str) -> Answer {
    anonymous(server, "/api/auth/transfer", json!({ "code": code })).await
}

async fn a_code(server: &Server, who: &Person) -> Value {
    server.post(who, "/api/me/transfer", json!({})).await.ok(201)
}

/// A token of the host application for this user.
async fn of_host(server: &Server) -> Person {
    let token = galley(server.folder(), &["token", "--sub", "hana", "--name", "Hana"]).await.ok();
    let token = token.trim().to_owned();
    Person { id: "hana".to_owned(), name: "Hana".to_owned(), token }
}

#[tokio::test]
async fn a_corrected_name_is_in_every_list_and_in_the_token() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let renamed =
        server.call(&desk.reviewer, "PATCH", "/api/me", Some(json!({ "name": " 이하나 " })));
    let renamed = renamed.await.ok(200);
    let user = json!({ "id": desk.reviewer.id, "name": "이하나" });
    assert_eq!((&renamed["user"], &renamed["name"]), (&user, &user["name"]));
    assert_eq!((&renamed["id"], &renamed["guest_requests"]), (&user["id"], &json!(true)));
    for path in [link(&desk), "/api/share-links".to_owned()] {
        let shown = server.get(&desk.writer, &path).await.ok(200);
        let shown = shown.get("share_links").map_or(&shown, |all| &all[0]);
        assert_eq!(shown["reviewer"]["name"], "이하나", "{path}");
    }
    let new = Person { token: text(&renamed["token"]).to_owned(), ..desk.reviewer.clone() };
    let peer =
        server.claim_seat(&Desk { reviewer: new, ..desk.clone() }, "reviewer", "events=1").await;
    assert_eq!(peer.event("seat.granted").await["user"]["name"], "이하나");
    // A token from before the correction brings the old name nowhere back.
    assert_eq!(server.get(&desk.reviewer, "/api/me").await.ok(200)["name"], "이하나");
    peer.leave().await;
    server.reviewer(&desk).await.leave().await;
    assert_eq!(server.get(&desk.writer, &link(&desk)).await.ok(200)["reviewer"]["name"], "이하나");
    for bad in ["", " ", &"김".repeat(81), "a\u{202e}b"] {
        let answer =
            server.call(&desk.reviewer, "PATCH", "/api/me", Some(json!({ "name": bad }))).await;
        answer.problem(422, "invalid");
    }
    assert_eq!(server.get(&desk.reviewer, "/api/me").await.ok(200)["name"], "이하나");
}

#[tokio::test]
async fn a_name_from_the_host_application_is_changed_there() {
    let server = Server::start().await;
    let hana = of_host(&server).await;
    let rename = server.call(&hana, "PATCH", "/api/me", Some(json!({ "name": "X" }))).await;
    rename.problem(403, "name-from-host");
    server.post(&hana, "/api/me/transfer", json!({})).await.problem(403, "not-a-guest");
    assert_eq!(server.get(&hana, "/api/me").await.ok(200)["name"], "Hana");
}

#[tokio::test]
async fn an_older_cookie_is_replaced_by_one_with_the_new_name() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    server.call(&kim, "PATCH", "/api/me", Some(json!({ "name": "김민수" }))).await.ok(200);
    let url = format!("{}/api/me", server.url);
    let request = server.http.get(url).header("Cookie", format!("galley_token={}", kim.token));
    let response = request.send().await.expect("an answer");
    let cookie = response.headers()[SET_COOKIE].to_str().expect("text").to_owned();
    let token = cookie.split(['=', ';']).nth(1).expect("a token").to_owned();
    let again = Person { token, ..kim };
    assert_eq!(server.get(&again, "/api/me").await.ok(200)["name"], "김민수");
    assert_eq!(response.json::<Value>().await.expect("JSON")["name"], "김민수");
}

#[tokio::test]
async fn a_code_signs_the_same_guest_in_once_on_another_server() {
    let cluster = Cluster::start().await;
    let kim = cluster.one.guest("Kim").await;
    let made = a_code(&cluster.one, &kim).await;
    let code = text(&made["code"]);
    assert_eq!(made["url"], format!("{}/#move={code}", cluster.one.url));
    assert_eq!((code.len(), &code[4..5]), (9, "-"));
    let typed = code.to_lowercase().replace('-', " ");
    let entered = redeem(&cluster.two, &typed).await.ok(200);
    assert_eq!(entered["user"], json!({ "id": kim.id, "name": "Kim" }));
    let there = Person { token: text(&entered["token"]).to_owned(), ..kim.clone() };
    assert_eq!(cluster.two.get(&there, "/api/me").await.ok(200)["id"], kim.id);
    for server in [&cluster.one, &cluster.two] {
        redeem(server, code).await.problem(404, "transfer-code-invalid");
    }
    // The first device stays signed in.
    assert_eq!(cluster.one.get(&kim, "/api/me").await.ok(200)["id"], kim.id);
}

#[tokio::test]
async fn g17_wrong_codes_have_one_answer_and_a_rate_by_address() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let old = a_code(&server, &kim).await["code"].clone();
    let code = a_code(&server, &kim).await["code"].clone();
    for wrong in ["", "0000", "0000-0000", "____-____", text(&old)] {
        redeem(&server, wrong).await.problem(404, "transfer-code-invalid");
    }
    anonymous(&server, "/api/auth/transfer", json!({ "code": 7 })).await.problem(422, "invalid");
    let mut tries = 6;
    let refused = loop {
        tries += 1;
        let answer = redeem(&server, "0000-0000").await;
        if answer.status == 429 {
            break answer;
        }
        assert!(tries < 100, "no rate");
    };
    refused.problem(429, "too-many-requests");
    assert!((10..20).contains(&tries), "{tries}");
    // The right code waits as well, and a guest still enters.
    redeem(&server, text(&code)).await.problem(429, "too-many-requests");
    server.guest("Lee").await;
}

#[tokio::test]
async fn g14_a_page_of_another_site_signs_no_visitor_in_by_a_code() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let code = a_code(&server, &kim).await["code"].clone();
    let request = server.http.post(format!("{}/api/auth/transfer", server.url));
    let request = request.header(ORIGIN, "https://evil.example").json(&json!({ "code": code }));
    assert_eq!(request.send().await.expect("an answer").status(), 403);
    redeem(&server, text(&code)).await.ok(200);
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
