//! `/api/users/{id}`, `DELETE /api/me`, `/api/user-deletions/{receipt}`, the exports of a user, and
//! `…/membership`: nothing names a deleted user, and the documents of others stay.

use serde_json::{Value, json};

use crate::server::delivery::QUICK;
use crate::server::offer_fixtures::{Fleet, offer};
use crate::server::person_fixtures::{Whole, admin, done, in_bytes, in_dump};
use crate::server::request_fixtures::text;
use crate::server::set_back::waits_for_a_lock;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Person;
use crate::support::webhook_receiver::setting;

/// An endpoint without a server: its webhooks stay in the outbox.
fn outbox() -> String {
    let kinds = ["review.created", "turn.changed", "seat.taken", "seat.left", "request.accepted"];
    setting(&["http://127.0.0.1:9/hook"], &kinds)
}

/// The lines of an export.
async fn exported(server: &Server, who: &Person, path: &str) -> Vec<Value> {
    let request = server.http.get(format!("{}{path}", server.url)).bearer_auth(&who.token);
    let body = request.send().await.expect("an answer").text().await.expect("text");
    body.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Deletes a user of one server, whose other server has a socket of the user.
async fn a_deletion(one: &Server, two: &Server, with_reviews: bool) -> Whole {
    let whole = Whole::on(one).await;
    let query = if with_reviews { "?reviews=delete" } else { "" };
    let receipt = whole.delete(one, query).await;
    // Two at once have one receipt, or say why not.
    assert_eq!(whole.delete(two, query).await, receipt);
    let otherwise = if with_reviews { "?reviews=keep" } else { "?reviews=delete" };
    let path = format!("/api/users/{}{otherwise}", whole.kim.id);
    let again = one.call(&admin(one), "DELETE", &path, None).await;
    assert!([202, 409].contains(&again.status.as_u16()), "it runs, or is done: {}", again.status);
    for peer in &whole.peers {
        let (code, _) = peer.closed().await;
        assert!([4401, 4403, 4404].contains(&code), "{code}");
    }
    let receipt = done(two, &receipt).await;
    assert_eq!(receipt["left"], json!({ "documents": 0, "share_links": 0 }));
    let done_of = &receipt["done"];
    assert_eq!((&done_of["documents"], done_of["share_links"].as_u64()), (&json!(2), Some(1)));
    until("no deletion", async || one.get(&whole.kim, "/api/me").await.status == 200).await;
    whole.is_nameless(two, with_reviews).await;
    let left = offer(one, &whole.other.writer, &whole.park_offer).await;
    assert_eq!(left["remaining"], 2, "the place of the user is free");
    let link = format!("/api/share-links/{}", whole.other.link);
    assert_eq!(one.get(&whole.other.writer, &link).await.ok(200)["reviewer"], Value::Null);
    one.get(&whole.own.reviewer, &format!("/api/share-links/{}", whole.own.link))
        .await
        .problem(404, "not-found");
    whole
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_user_is_in_no_byte_of_the_file() {
    let endpoints = outbox();
    let server = Server::with(&[QUICK[0], QUICK[1], ("NOTIFY__WEBHOOKS", &endpoints)]).await;
    for with_reviews in [false, true] {
        let whole = a_deletion(&server, &server, with_reviews).await;
        let found = in_bytes(server.folder(), &whole.needles(with_reviews));
        assert_eq!(found, Vec::new(), "with reviews: {with_reviews}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_user_is_in_no_row_of_postgresql() {
    let endpoints = outbox();
    let fleet = Fleet::with(2, &[QUICK[0], QUICK[1], ("NOTIFY__WEBHOOKS", &endpoints)]).await;
    for with_reviews in [false, true] {
        let whole = a_deletion(fleet.server(0), fleet.server(1), with_reviews).await;
        let database = fleet.database.as_ref().expect("a database");
        let found = in_dump(&database.dump(), &whole.needles(with_reviews));
        assert_eq!(found, Vec::<String>::new(), "with reviews: {with_reviews}");
    }
}

/// Goal: a row of the audit that commits while a deletion ends has lost the id of the user, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_waits_for_an_audit_row_that_is_being_written() {
    let fleet = Fleet::with(1, &QUICK).await;
    let (server, database) = (fleet.server(0), fleet.database.as_ref().expect("a database"));
    let whole = Whole::on(server).await;
    let mut writer = postgres_server::stranger(&database.url()).await;
    let mut watcher = postgres_server::stranger(&database.url()).await;
    sqlx::raw_sql("BEGIN").execute(&mut writer).await.expect("a transaction");
    let row = "INSERT INTO audit (at, actor_kind, action, target, status, request_id, peer) \
               VALUES (now(), 'admin', 'user.export', $1, 200, '', '')";
    sqlx::query(row).bind(&whole.kim.id).execute(&mut writer).await.expect("a row");
    let receipt = whole.delete(server, "?reviews=delete").await;
    until("the deletion waits", async || waits_for_a_lock(&mut watcher).await).await;
    sqlx::raw_sql("COMMIT").execute(&mut writer).await.expect("stored");
    done(server, &receipt).await;
    assert_eq!(in_dump(&database.dump(), &whole.needles(true)), Vec::<String>::new());
}

/// Goal: the tokens of a user are refused while the deletion runs, and a later sign-in begins anew.
#[tokio::test]
async fn a_user_deletes_the_own_account_and_is_refused_until_it_is_done() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text here").await;
    let begun = server.call(&desk.writer, "DELETE", "/api/me", None).await.ok(202);
    let refused = server.get(&desk.writer, "/api/documents").await;
    if refused.status == 401 {
        refused.problem(401, "user-deleted");
    }
    done(&server, text(&begun["id"])).await;
    until("a new user", async || server.get(&desk.writer, "/api/documents").await.status == 200)
        .await;
    let list = server.get(&desk.writer, "/api/documents").await.ok(200);
    assert_eq!(list["documents"], json!([]));
    server
        .call(&desk.writer, "DELETE", "/api/me?reviews=all", None)
        .await
        .problem(400, "malformed");
    let admin = admin(&server);
    server.call(&desk.writer, "DELETE", "/api/users/kim", None).await.problem(403, "not-admin");
    server.call(&admin, "DELETE", "/api/users/del_1", None).await.problem(404, "not-found");
    let unknown = format!("/api/user-deletions/dlt_{}", "0".repeat(32));
    server.get(&desk.writer, &unknown).await.problem(404, "not-found");
    // A user without a row has a receipt, too.
    let begun = server.call(&admin, "DELETE", "/api/users/nobody", None).await.ok(202);
    done(&server, text(&begun["id"])).await;
}

#[tokio::test]
async fn a_reviewer_leaves_a_link_and_returns_by_a_new_invite_alone() {
    let server = Server::start().await;
    let desk = server.desk("text here").await;
    let peer = server.reviewer(&desk).await;
    let path = format!("/api/share-links/{}/membership", desk.link);
    server.call(&desk.writer, "DELETE", &path, None).await.problem(403, "not-the-reviewer");
    assert_eq!(server.call(&desk.reviewer, "DELETE", &path, None).await.status, 204);
    assert_eq!(peer.closed().await.0, 4403);
    server.call(&desk.reviewer, "DELETE", &path, None).await.problem(404, "not-found");
    let join = format!("/api/share-links/{}/join", desk.link);
    let old = json!({ "invite": desk.invite });
    server.post(&desk.reviewer, &join, old).await.problem(403, "wrong-invite");
    let share = format!("/api/documents/{}/share-link", desk.document);
    let new = server.post(&desk.writer, &share, json!({})).await.ok(200);
    let new = json!({ "invite": new["invite"]["token"] });
    server.post(&desk.reviewer, &join, new).await.ok(200);
}

/// Goal: an export has a line of each kind with the user's texts, of each page, and is whole.
#[tokio::test]
async fn an_export_has_all_rows_and_texts_of_a_user() {
    let server = Server::start().await;
    let whole = Whole::on(&server).await;
    let body = json!({ "title": "many", "text": "x" });
    for _ in 0..60 {
        let desk = server.post(&whole.kim, "/api/documents", body.clone()).await.ok(201);
        let share = format!("/api/documents/{}/share-link", text(&desk["id"]));
        server.post(&whole.kim, &share, json!({})).await.ok(201);
    }
    let own = exported(&server, &whole.kim, "/api/me/export").await;
    let path = format!("/api/users/{}/export", whole.kim.id);
    assert_eq!(exported(&server, &admin(&server), &path).await, own);
    let of = |kind: &str| own.iter().filter(|line| line["type"] == kind).count();
    for (kind, count) in [
        ("user", 1),
        ("handle", 1),
        ("share_link", 62),
        ("review", 1),
        ("reply", 1),
        ("review_request", 2),
        ("review_offer", 1),
        ("review_claim", 1),
        ("partner", 1),
        ("push_subscription", 1),
        ("refused_invite", 1),
        ("document", 62),
        ("end", 1),
    ] {
        assert_eq!(of(kind), count, "{kind}");
    }
    let last = own.last().expect("an end");
    assert_eq!(last["lines"], own.len() - 1);
    let [name, mark, remark] = &whole.marks;
    let has = |kind: &str, field: &str, value: &str| {
        own.iter().any(|line| line["type"] == kind && line[field] == value)
    };
    assert!(has("user", "name", name) && has("review", "body", remark));
    assert!(has("document", "text", &format!("text {mark}")) && has("version", "label", mark));
    // A reader who leaves takes no place.
    for _ in 0..8 {
        let request = server.http.get(format!("{}/api/me/export", server.url));
        drop(request.bearer_auth(&whole.kim.token).send().await.expect("an answer"));
    }
    until("a place", async || {
        let request = server.http.get(format!("{}/api/me/export", server.url));
        request
            .bearer_auth(&whole.kim.token)
            .send()
            .await
            .is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    server.get(&whole.kim, &path).await.problem(403, "not-admin");
}
