//! Identities: names, codes for another device, invites, and the end of a reviewer.

use std::time::Duration;

use chrono::Utc;
use galley::domain::ids::InviteId;
use galley::storage::invites::NewInvite;
use reqwest::header::{ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

use crate::server::commands::galley;
use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Answer, Desk, Person};

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// A request without a token.
async fn anonymous(server: &Server, path: &str, body: Value) -> Answer {
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

fn link(desk: &Desk) -> String {
    format!("/api/share-links/{}", desk.link)
}

async fn join(server: &Server, who: &Person, desk: &Desk, invite: &str) -> Answer {
    server.post(who, &format!("{}/join", link(desk)), json!({ "invite": invite })).await
}

async fn check(server: &Server, desk: &Desk, invite: &str) -> Answer {
    anonymous(server, &format!("{}/invite/check", link(desk)), json!({ "invite": invite })).await
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
async fn of_two_concurrent_callers_with_one_code_one_is_signed_in() {
    let cluster = Cluster::start().await;
    let kim = cluster.one.guest("Kim").await;
    for _ in 0..4 {
        let code = a_code(&cluster.one, &kim).await["code"].clone();
        let (one, two) =
            tokio::join!(redeem(&cluster.one, text(&code)), redeem(&cluster.two, text(&code)));
        let mut answers = [one.status.as_u16(), two.status.as_u16()];
        answers.sort_unstable();
        assert_eq!(answers, [200, 404]);
    }
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

#[tokio::test]
async fn a_renewed_invite_voids_the_older_one_and_keeps_the_reviewer() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let before = cluster.one.get(&desk.writer, &link(&desk)).await.ok(200);
    assert!(before["reviewer_since"].is_string() && before["invited_at"].is_string(), "{before}");
    assert_eq!(before["attempts"], json!([]));
    let path = format!("{}/invite", link(&desk));
    let renewed = cluster.one.post(&desk.writer, &path, json!({})).await.ok(200);
    let invite = text(&renewed["invite"]["token"]);
    assert_ne!(invite, desk.invite);
    assert_eq!(renewed["invite"]["url"], format!("{}/s/{}#{invite}", cluster.one.url, desk.link));
    assert_eq!(renewed["reviewer"]["id"], desk.reviewer.id);
    assert!(text(&before["invited_at"]) < text(&renewed["invited_at"]));
    for server in [&cluster.one, &cluster.two] {
        let park = server.guest("Park").await;
        join(server, &park, &desk, &desk.invite).await.problem(403, "wrong-invite");
        join(server, &park, &desk, invite).await.problem(409, "reviewer-exists");
        check(server, &desk, &desk.invite).await.problem(404, "not-found");
        let path = format!("/api/documents/{}/share-link", desk.document);
        let again = server.post(&desk.writer, &path, json!({})).await.ok(200);
        assert_eq!(again["invite"]["token"], invite);
        assert_eq!(again["invited_at"], renewed["invited_at"]);
    }
    assert!(reviewer.is_open());
}

#[tokio::test]
async fn a_visitor_checks_an_invite_without_signing_in() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let taken = check(&server, &desk, &desk.invite).await.ok(200);
    let seen = json!({ "title": "자기소개서", "writer": { "name": "Kim" }, "free": false, "yours": false });
    assert_eq!(taken, seen);
    let path = format!("{}/invite/check", link(&desk));
    for (who, yours) in
        [(&desk.writer, true), (&desk.reviewer, true), (&server.guest("Park").await, false)]
    {
        let body = json!({ "invite": desk.invite });
        assert_eq!(server.post(who, &path, body).await.ok(200)["yours"], yours);
    }
    check(&server, &desk, "x").await.problem(404, "not-found");
    check(&server, &desk, "").await.problem(404, "not-found");
    let remove =
        server.call(&desk.writer, "DELETE", &format!("{}/reviewer", link(&desk)), None).await;
    assert_eq!(remove.status, 204);
    check(&server, &desk, &desk.invite).await.problem(404, "not-found");
    let invite = format!("/api/documents/{}/share-link", desk.document);
    let invite =
        server.post(&desk.writer, &invite, json!({})).await.ok(200)["invite"]["token"].clone();
    assert_eq!(check(&server, &desk, text(&invite)).await.ok(200)["free"], true);
    server.call(&desk.writer, "DELETE", &link(&desk), None).await;
    check(&server, &desk, text(&invite)).await.problem(404, "not-found");
}

/// Goal: on either engine, the end of a reviewer reaches every server, and nothing brings the user back.
async fn a_removed_reviewer_loses_the_seat(cluster: &Cluster) {
    let desk = cluster.one.desk("성실한 사람").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let waiting = cluster.one.claim_seat(&desk, "reviewer", "events=1&wait=60").await;
    waiting.event("seat.waiting").await;
    let reviews = format!("{}/reviews", link(&desk));
    let anchor = json!({ "start": 0, "end": 3, "quote": "성실한" });
    let review = json!({ "anchor": anchor, "body": "예를 들어 주세요" });
    let review = cluster.two.post(&desk.reviewer, &reviews, review).await.ok(201);

    let path = format!("{}/reviewer", link(&desk));
    assert_eq!(cluster.one.call(&desk.writer, "DELETE", &path, None).await.status, 204);

    for peer in [&reviewer, &waiting] {
        let lost = peer.event("seat.lost").await;
        assert_eq!(lost["reason"], "revoked");
        assert_eq!(peer.closed().await, (4403, "not-your-role".to_owned()));
    }
    assert_eq!(writer.event("peer.left").await["user"]["id"], desk.reviewer.id);
    for server in [&cluster.one, &cluster.two] {
        let again = server.claim_seat(&desk, "reviewer", "events=1").await;
        assert_eq!(again.closed().await, (4403, "not-your-role".to_owned()));
        server.get(&desk.reviewer, &link(&desk)).await.problem(404, "not-found");
        server.get(&desk.reviewer, &reviews).await.problem(404, "not-found");
        join(server, &desk.reviewer, &desk, &desk.invite).await.problem(403, "wrong-invite");
    }
    cluster.two.call(&desk.writer, "DELETE", &path, None).await.problem(404, "no-reviewer");

    // The next reviewer acquires the seat, and the reviews keep their author.
    let share = format!("/api/documents/{}/share-link", desk.document);
    let share = cluster.two.post(&desk.writer, &share, json!({})).await.ok(200);
    let park = cluster.two.guest("Park").await;
    join(&cluster.two, &park, &desk, text(&share["invite"]["token"])).await.ok(200);
    let desk = Desk { reviewer: park, ..desk };
    let next = cluster.one.reviewer(&desk).await;
    let list = cluster.one.get(&desk.reviewer, &reviews).await.ok(200);
    assert_eq!(list["reviews"][0]["author"]["name"], "Lee");
    let one = format!("{reviews}/{}", text(&review["id"]));
    let edit = cluster.one.call(&desk.reviewer, "PATCH", &one, Some(json!({ "body": "x" }))).await;
    edit.problem(403, "not-author");
    cluster.one.call(&desk.reviewer, "DELETE", &one, None).await.problem(403, "not-author");
    cluster.one.post(&desk.writer, &format!("{one}/resolve"), json!({})).await.ok(200);
    assert!(next.is_open() && writer.is_open());
}

#[tokio::test]
async fn g14_a_removed_reviewer_loses_the_seat_on_every_server() {
    a_removed_reviewer_loses_the_seat(&Cluster::start().await).await;
}

#[tokio::test]
async fn g14_a_removed_reviewer_loses_the_seat_on_every_server_on_postgresql() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    a_removed_reviewer_loses_the_seat(&cluster).await;
}

#[tokio::test]
async fn a_refused_user_replaces_the_reviewer() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let (park, choi) = (cluster.two.guest("박제삼").await, cluster.two.guest("Choi").await);
    for _ in 0..2 {
        join(&cluster.two, &park, &desk, &desk.invite).await.problem(409, "reviewer-exists");
    }
    let refused = writer.event("invite.refused").await;
    assert_eq!(refused["user"], json!({ "id": park.id, "name": "박제삼" }));
    assert_eq!(refused["type"], "invite.refused");
    join(&cluster.two, &choi, &desk, "x").await.problem(403, "wrong-invite");
    let shown = cluster.one.get(&desk.writer, &link(&desk)).await.ok(200);
    assert_eq!(shown["attempts"], json!([{ "user": refused["user"], "at": refused["at"] }]));
    let of_reviewer = cluster.one.get(&desk.reviewer, &link(&desk)).await.ok(200);
    for field in ["attempts", "invited_at", "reviewer_since"] {
        assert!(of_reviewer.get(field).is_none(), "{of_reviewer}");
    }

    let path = format!("{}/reviewer", link(&desk));
    let put = async |who: &Person, user: &str| {
        cluster.one.call(who, "PUT", &path, Some(json!({ "user_id": user }))).await
    };
    for stranger in [&desk.reviewer, &park, &choi] {
        put(stranger, &park.id).await.problem(404, "not-found");
    }
    put(&desk.writer, &choi.id).await.problem(404, "not-a-partner");
    put(&desk.writer, "no such id!").await.problem(422, "invalid");
    for _ in 0..2 {
        let changed = put(&desk.writer, &park.id).await.ok(200);
        assert_eq!(changed["reviewer"]["id"], park.id);
        assert_eq!(changed["attempts"], json!([]));
    }
    assert_eq!(reviewer.closed().await, (4403, "not-your-role".to_owned()));
    let back = cluster.two.claim_seat(&desk, "reviewer", "events=1").await;
    assert_eq!(back.closed().await.0, 4403);
    // The user who was let in needs no further join.
    let next = cluster.two.reviewer(&Desk { reviewer: park, ..desk.clone() }).await;
    assert_eq!(writer.event("peer.joined").await["user"]["name"], "Lee");
    assert_eq!(writer.event("peer.joined").await["user"]["name"], "박제삼");
    join(&cluster.one, &desk.reviewer, &desk, &desk.invite).await.problem(409, "reviewer-exists");
    assert_eq!(writer.event("invite.refused").await["user"]["name"], "Lee");
    assert!(next.is_open());
}

#[tokio::test]
async fn only_the_owner_changes_the_reviewer_and_the_invite() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let mallory = server.guest("Mallory").await;
    for who in [&desk.reviewer, &mallory] {
        let calls = [
            ("POST", format!("{}/invite", link(&desk)), Some(json!({}))),
            ("DELETE", format!("{}/reviewer", link(&desk)), None),
            ("PUT", format!("{}/reviewer", link(&desk)), Some(json!({ "user_id": mallory.id }))),
        ];
        for (method, path, body) in calls {
            server.call(who, method, &path, body).await.problem(404, "not-found");
        }
    }
    let shown = server.get(&desk.writer, &link(&desk)).await.ok(200);
    assert_eq!(shown["reviewer"]["id"], desk.reviewer.id);
    join(&server, &desk.reviewer, &desk, &desk.invite).await.ok(200);
}

/// Goal: the tick ends the session of a former reviewer when the message about it is lost.
#[tokio::test]
async fn g15_the_tick_finds_a_former_reviewer() {
    let cluster = Cluster::with(&[("SEATS__RENEW_EVERY", "1s"), ("SEATS__LEASE", "4s")]).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let storage = cluster.one.storage().await;
    let link = desk.link.parse().expect("an id");
    let invite = NewInvite { id: InviteId::generate(), hash: [0; 32], now: Utc::now() };
    storage.remove_reviewer(link, &invite).await.expect("removed");
    let closed = tokio::time::timeout(Duration::from_secs(20), reviewer.closed()).await;
    assert_eq!(closed.expect("a tick"), (4403, "not-your-role".to_owned()));
}
