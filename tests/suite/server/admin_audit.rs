//! `/api/admin/audit`: who did what, in whose name, on what; and acts without a row, which do not happen.

use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::server::operation_fixtures::Users;
use crate::server::server_tokens::{call, server_token};
use crate::support::galley_process::Server;
use crate::support::rest_client::Person;

const AUDIT: &str = "/api/admin/audit";

/// Actor, user, action, target and status of each row of a query, the latest first.
async fn rows(server: &Server, admin: &Person, query: &str) -> Vec<Value> {
    let page = server.get(admin, &format!("{AUDIT}{query}")).await.ok(200);
    let row = |it: &Value| json!([it["by"], it["user"], it["action"], it["target"], it["status"]]);
    page["audit"].as_array().expect("a list").iter().map(row).collect()
}

#[tokio::test]
async fn acts_of_administrators_servers_and_users_have_a_row_and_others_none() {
    let server = Server::start().await;
    let Users { admin, kim, .. } = Users::of(&server).await;
    let desk = server.desk("text").await;
    let token = server_token(
        &server,
        "documents:read documents:write documents:delete users:delete audit:read",
    );
    let hana = [("Galley-User", "hana"), ("Galley-User-Name", "Hana"), ("X-Request-Id", "act-1")];
    let body = Some(json!({ "title": "A secret title", "text": "A secret text" }));
    let made = call(&server, &token, &hana, ("POST", "/api/documents"), body).await.ok(201);
    let document = made["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/documents/{document}");
    call(&server, &token, &hana, ("GET", &path), None).await.ok(200);
    assert_eq!(call(&server, &token, &hana, ("DELETE", &path), None).await.status, 204);
    assert_eq!(call(&server, &token, &hana, ("DELETE", &path), None).await.status, 404);
    // Refused at the gate: no act began.
    let refused = call(&server, &token, &hana, ("PUT", "/api/me/reminders"), None).await;
    assert_eq!(refused.status, 403);
    let link = format!("/api/admin/share-links/{}", desk.link);
    assert_eq!(server.call(&admin, "DELETE", &link, None).await.status, 204);
    let sessions = "/api/users/park/sessions";
    assert_eq!(call(&server, &token, &[], ("DELETE", sessions), None).await.status, 204);
    assert_eq!(server.call(&kim, "DELETE", "/api/me/sessions", None).await.status, 204);
    let backend = json!({ "kind": "server", "id": "backend" });
    let delete = "DELETE /api/documents/{id}";
    let expected = [
        json!([{ "kind": "user", "id": kim.id }, null, "DELETE /api/me/sessions", "", null]),
        json!([backend, null, "DELETE /api/users/{id}/sessions", "park", null]),
        json!([{ "kind": "admin" }, null, "DELETE /api/admin/share-links/{id}", desk.link, null]),
        json!([backend, "hana", delete, document, 404]),
        json!([backend, "hana", delete, document, null]),
        json!([backend, "hana", delete, document, null]),
        json!([backend, "hana", "POST /api/documents", "", null]),
    ];
    assert_eq!(rows(&server, &admin, "").await, expected);
    // On the user, in the user's name, of the server; the beginning of an action.
    assert_eq!(rows(&server, &admin, "?user=park").await, expected[1..2]);
    assert_eq!(rows(&server, &admin, "?user=hana").await, expected[3..]);
    assert_eq!(rows(&server, &admin, "?user=backend&action=POST").await, expected[6..]);
    assert_eq!(rows(&server, &admin, "?action=DELETE%20/api/documents").await, expected[3..6]);
    assert_eq!(rows(&server, &admin, "?action=%25").await, [Value::Null; 0]);
    let page = call(&server, &token, &[], ("GET", AUDIT), None).await.ok(200);
    let first = &page["audit"][6];
    assert_eq!((&first["request_id"], &first["peer"]), (&json!("act-1"), &json!("127.0.0.1")));
    let at = page["audit"][3]["at"].as_str().expect("a time");
    let since = rows(&server, &admin, &format!("?since={at}")).await;
    assert!(since.len() < 7 && since.len() >= 4, "{since:?}");
    assert!(!page.to_string().contains("secret"), "{page}");
}

#[tokio::test]
async fn the_audit_is_read_page_by_page_by_administrators_and_their_servers() {
    let server = Server::start().await;
    let Users { admin, kim, .. } = Users::of(&server).await;
    for number in 0..5 {
        let path = format!("/api/users/user-{number}/sessions");
        assert_eq!(server.call(&admin, "DELETE", &path, None).await.status, 204);
    }
    let mut targets = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&admin, &format!("{AUDIT}?limit=2{cursor}")).await.ok(200);
        targets.extend(
            page["audit"].as_array().expect("a list").iter().map(|it| it["target"].clone()),
        );
        // A later act moves no page.
        server.call(&admin, "DELETE", "/api/users/late/sessions", None).await;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<_> = (0..5).rev().map(|number| json!(format!("user-{number}"))).collect();
    assert_eq!(targets, expected);
    for query in [
        "cursor=",
        "cursor=x",
        "cursor=-1",
        "cursor=99999999999999999999",
        "cursor=1.5",
        "limit=0",
        "limit=x",
    ] {
        server.get(&admin, &format!("{AUDIT}?{query}")).await.problem(422, "invalid");
    }
    let long = "x".repeat(201);
    server.get(&admin, &format!("{AUDIT}?action={long}")).await.problem(422, "invalid");
    for query in ["since=yesterday", "user=kim%20lee", "user="] {
        server.get(&admin, &format!("{AUDIT}?{query}")).await.problem(400, "malformed");
    }
    server.get(&kim, AUDIT).await.problem(403, "not-admin");
    let other = server_token(&server, "users:delete");
    let refused = call(&server, &other, &[], ("GET", AUDIT), None).await;
    assert_eq!(refused.json["scope"], "audit:read");
}

/// Goal: while the database takes no row, no administrator and no server changes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g14_an_act_whose_row_cannot_be_written_does_not_happen() {
    let server = Server::start().await;
    let Users { admin, .. } = Users::of(&server).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let session = server.get(&admin, "/api/admin/sessions").await.ok(200)["sessions"][0].clone();
    let evict = format!("/api/admin/sessions/{}", session["session_id"].as_str().expect("an id"));
    let mut other = server.database().await;
    sqlx::raw_sql("DROP TABLE audit").execute(&mut other).await.expect("dropped");
    other.close().await.expect("closed");
    // An eviction needs no database of its own.
    server.call(&admin, "DELETE", &evict, None).await.problem(503, "unavailable");
    writer.append(" and more");
    writer.saved().await;
    let token = server_token(&server, "documents:delete users:delete");
    let kim = [("Galley-User", desk.writer.id.as_str())];
    let path = format!("/api/documents/{}", desk.document);
    let refused = call(&server, &token, &kim, ("DELETE", &path), None).await;
    assert_eq!(refused.status, 503, "{}", refused.json);
    server.get(&desk.writer, &path).await.ok(200);
    let refused = server.call(&desk.writer, "DELETE", "/api/me/sessions", None).await;
    assert_eq!(refused.status, 503, "{}", refused.json);
    server.get(&desk.writer, "/api/me").await.ok(200);
    assert!(writer.is_open());
}
