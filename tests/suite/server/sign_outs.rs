//! `/api/me/sessions`, `/api/users/{id}/sessions` and the end of a token by `/api/auth/leave`: tokens that are
//! refused before their end, on every server, and the sockets that end with them.

use std::sync::Arc;

use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::auth::signed;
use crate::server::many_servers::Cluster;
use crate::server::me::anonymous;
use crate::server::operation_fixtures::Users;
use crate::server::server_tokens::{call, server_token};
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::Peer;

const EVERYWHERE: &str = "/api/me/sessions";

async fn sign_out_everywhere(server: &Server, who: &Person) {
    let left = server.call(who, "DELETE", EVERYWHERE, None).await;
    assert_eq!(left.status, 204, "{}", left.json);
}

async fn is_refused(server: &Server, who: &Person) -> bool {
    server.get(who, "/api/me").await.status == 401
}

fn revoked() -> (u16, String) {
    (4401, "revoked".to_owned())
}

/// Goal: from the answer on the server refuses each earlier token of the user, within a tick every other
/// server, and their sockets end; a later token and other users go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g14_a_sign_out_everywhere_ends_tokens_and_sockets_on_every_server() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (signed(one, "kim", "Kim", 60), signed(one, "lee", "Lee", 60));
    let desk = one.desk_of(kim.clone(), lee.clone(), "text").await;
    let other = two.desk_of(kim.clone(), lee.clone(), "text").await;
    let (here, reviewer) = (one.writer(&desk).await, two.reviewer(&desk).await);
    let there = two.writer(&other).await;
    // It waits for the seat that its other tab holds.
    let waiting = two.claim_seat(&desk, "writer", "events=1&wait=300").await;
    waiting.event("seat.waiting").await;
    sign_out_everywhere(one, &kim).await;
    assert!(is_refused(one, &kim).await);
    assert_eq!(here.closed().await, revoked());
    assert_eq!(there.closed().await, revoked());
    assert_eq!(waiting.closed().await, revoked());
    until("the other server refuses the token", async || is_refused(two, &kim).await).await;
    let late = Peer::connect(&two.url, &desk.link, "writer", &kim.token, "events=1").await;
    assert_eq!(late.closed().await, (4401, "token-not-valid".to_owned()));
    assert!(reviewer.is_open() && !is_refused(two, &lee).await);
    // Issued after the sign-out.
    let again = signed(one, "kim", "Kim", -5);
    assert!(!is_refused(one, &again).await && !is_refused(two, &again).await);
    let desk = Desk { writer: again, ..desk };
    two.writer(&desk).await;
}

/// Goal: a server that starts has read the revocations before its first request, and an outage of the database
/// forgets none.
#[tokio::test]
async fn g14_a_revoked_token_is_refused_after_a_restart() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut server = Server::in_folder(Arc::clone(&folder), &[]).await;
    let (kim, lee) = (signed(&server, "kim", "Kim", 60), server.guest("Lee").await);
    sign_out_everywhere(&server, &kim).await;
    assert_eq!(server.post(&lee, "/api/auth/leave", json!({})).await.status, 204);
    server.kill().await;
    server.start_again().await;
    assert!(is_refused(&server, &kim).await && is_refused(&server, &lee).await);
}

/// Goal: a token that another server revoked a moment ago makes no new one here, whichever server has read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g14_a_revoked_token_gets_no_new_one() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (signed(one, "kim", "Kim", 60), one.guest("Lee").await);
    let code = one.post(&lee, "/api/me/transfer", json!({})).await.ok(201)["code"].clone();
    sign_out_everywhere(one, &kim).await;
    sign_out_everywhere(one, &lee).await;
    two.post(&kim, "/api/auth/session", json!({})).await.problem(401, "unauthenticated");
    let renamed = two.call(&lee, "PATCH", "/api/me", Some(json!({ "name": "Eve" })));
    renamed.await.problem(401, "unauthenticated");
    two.post(&lee, "/api/me/transfer", json!({})).await.problem(401, "unauthenticated");
    let redeemed = anonymous(two, "/api/auth/transfer", json!({ "code": code })).await;
    redeemed.problem(404, "transfer-code-invalid");
}

#[tokio::test]
async fn a_sign_out_ends_one_token_and_no_other_of_the_user() {
    let server = Server::start().await;
    let lee = server.guest("Lee").await;
    let (one, other) = (signed(&server, "kim", "Kim", 60), signed(&server, "kim", "Kim", 30));
    let desk = server.desk_of(one.clone(), lee, "text").await;
    let writer = server.writer(&desk).await;
    assert_eq!(server.post(&other, "/api/auth/leave", json!({})).await.status, 204);
    assert!(is_refused(&server, &other).await && !is_refused(&server, &one).await);
    assert!(writer.is_open());
    assert_eq!(server.post(&one, "/api/auth/leave", json!({})).await.status, 204);
    assert_eq!(writer.closed().await, revoked());
    let again = signed(&server, "kim", "Kim", 0);
    server.get(&again, "/api/me").await.ok(200);
}

/// Goal: a renewed socket belongs to its new token.
#[tokio::test]
async fn a_socket_with_a_new_token_outlives_the_old_one() {
    let server = Server::start().await;
    let lee = server.guest("Lee").await;
    let (old, new) = (signed(&server, "kim", "Kim", 60), signed(&server, "kim", "Kim", 30));
    let desk = server.desk_of(old.clone(), lee, "text").await;
    let writer = server.writer(&desk).await;
    writer.send(galley::yjs::protocol::token(&new.token));
    writer.append(" and more");
    writer.saved().await;
    assert_eq!(server.post(&old, "/api/auth/leave", json!({})).await.status, 204);
    writer.append(" and more");
    writer.saved().await;
    assert!(writer.is_open());
    assert_eq!(server.post(&new, "/api/auth/leave", json!({})).await.status, 204);
    assert_eq!(writer.closed().await, revoked());
}

#[tokio::test]
async fn administrators_and_servers_sign_a_user_out_and_a_server() {
    let server = Server::start().await;
    let Users { admin, .. } = Users::of(&server).await;
    let token = server_token(&server, "users:delete documents:read");
    let of = |id: &str| format!("/api/users/{id}/sessions");
    for by in [&admin.token, &token] {
        let kim = server.guest("Kim").await;
        server.get(&kim, "/api/me").await.ok(200);
        assert_eq!(call(&server, by, &[], ("DELETE", &of(&kim.id)), None).await.status, 204);
        assert!(is_refused(&server, &kim).await);
    }
    let kim = server.guest("Kim").await;
    server.call(&kim, "DELETE", &of("lee"), None).await.problem(403, "not-admin");
    server.call(&admin, "DELETE", &of("no%20id"), None).await.problem(404, "not-found");
    // The `sub` of a server token: a leaked one ends.
    assert_eq!(call(&server, &token, &[], ("DELETE", &of("backend")), None).await.status, 204);
    let refused = call(&server, &token, &[], ("DELETE", &of("backend")), None).await;
    assert_eq!((refused.status.as_u16(), refused.etag.as_deref()), (401, Some("revoked")));
}

#[tokio::test]
async fn a_sign_out_everywhere_by_cookie_needs_the_origin_and_removes_the_cookie() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let leave = async |origin: Option<&str>| {
        let request = server.http.delete(format!("{}{EVERYWHERE}", server.url));
        let request = request.header(COOKIE, format!("galley_token={}", kim.token));
        let request = match origin {
            Some(origin) => request.header(ORIGIN, origin),
            None => request,
        };
        request.send().await.expect("an answer")
    };
    assert_eq!(leave(Some("https://evil.example")).await.status(), 403);
    assert_eq!(leave(None).await.status(), 403);
    assert!(!is_refused(&server, &kim).await);
    let left = leave(Some(&server.url)).await;
    assert_eq!(left.status(), 204);
    let removed = left.headers()[SET_COOKIE].to_str().expect("text").to_owned();
    assert!(removed.starts_with("galley_token=;") && removed.contains("Max-Age=0"), "{removed}");
    let entry = server.http.get(format!("{}/api/auth", server.url));
    let entry = entry.header(COOKIE, format!("galley_token={}", kim.token)).send().await;
    let entry: Value = entry.expect("an answer").json().await.expect("JSON");
    assert_eq!(entry["user"], Value::Null);
}
