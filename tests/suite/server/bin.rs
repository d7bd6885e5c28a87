//! The bin, which is `/api/documents?deleted=true` and `/api/documents/{id}/restore`: a deleted document is
//! absent until its owner restores it or a server purges it.

use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::server::many_servers::Cluster;
use crate::server::postgres;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::Peer;

async fn delete(server: &Server, who: &Person, document: &str) {
    let path = format!("/api/documents/{document}");
    assert_eq!(server.call(who, "DELETE", &path, None).await.status, 204);
}

async fn restore(server: &Server, who: &Person, document: &str) -> Value {
    server.post(who, &format!("/api/documents/{document}/restore"), json!({})).await.ok(200)
}

async fn bin(server: &Server, who: &Person) -> Vec<Value> {
    let list = server.get(who, "/api/documents?deleted=true").await.ok(200);
    list["documents"].as_array().expect("rows").clone()
}

/// Deletes on one server, and checks sockets and REST on both; then restores on the other.
async fn a_deletion_and_restoration(one: &Server, two: &Server) {
    let desk = one.desk("나는 글을 쓴다").await;
    let (writer, reviewer) = (one.writer(&desk).await, two.reviewer(&desk).await);
    let waiter = two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let review = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 2, "quote": "나는" });
    let body = json!({ "anchor": anchor, "body": "왜?" });
    two.post(&desk.reviewer, &review, body).await.ok(201);
    let versions = format!("/api/documents/{}/versions", desk.document);
    one.post(&desk.writer, &versions, json!({ "label": "첫 글" })).await.ok(201);
    let link = format!("/api/share-links/{}", desk.link);
    let before = one.get(&desk.writer, &format!("/api/documents/{}", desk.document)).await.ok(200);
    let rows = |list: &Value, name: &str| list[name].as_array().expect("rows").len();
    let versions_before = rows(&one.get(&desk.writer, &versions).await.ok(200), "versions");

    delete(one, &desk.writer, &desk.document).await;

    let mut deleted = Value::Null;
    for peer in [&writer, &reviewer] {
        let lost = peer.event("seat.lost").await;
        assert_eq!(lost["reason"], "deleted");
        assert_eq!(lost["by"], json!({ "id": desk.writer.id, "name": desk.writer.name }));
        deleted = json!({ "by": lost["by"], "at": lost["at"] });
    }
    // A waiter that the release of the seat wakes first is refused, without an event.
    for peer in [&writer, &reviewer, &waiter] {
        assert_eq!(peer.closed().await, (4404, "deleted".to_owned()));
    }
    for server in [one, two] {
        is_absent(server, &desk, &deleted).await;
    }

    let restored = restore(two, &desk.writer, &desk.document).await;
    assert_eq!(restored, before);
    assert_eq!(bin(one, &desk.writer).await, Vec::<Value>::new());
    for server in [one, two] {
        assert_eq!(server.text(&desk.writer, &desk.document).await, "나는 글을 쓴다");
        let seen = server.get(&desk.reviewer, &link).await.ok(200);
        assert_eq!(seen["reviewer"]["id"], desk.reviewer.id);
        assert_eq!(rows(&server.get(&desk.reviewer, &review).await.ok(200), "reviews"), 1);
        let now = rows(&server.get(&desk.writer, &versions).await.ok(200), "versions");
        assert!(versions_before <= now);
    }
    // A second restoration finds the document outside the bin.
    assert_eq!(restore(one, &desk.writer, &desk.document).await["id"], before["id"]);
    let (writer, reviewer) = (two.writer(&desk).await, one.reviewer(&desk).await);
    writer.append("!");
    writer.saved().await;
    reviewer.reads("나는 글을 쓴다!").await;
}

/// Whether the document is absent for every user; its members also read the deletion.
async fn is_absent(server: &Server, desk: &Desk, deleted: &Value) {
    let document = format!("/api/documents/{}", desk.document);
    let link = format!("/api/share-links/{}", desk.link);
    let mallory = server.guest("Mallory").await;
    let version = "ver_00000000000000000000000000000000";
    let review = "rev_00000000000000000000000000000000";
    let calls = [
        ("GET", document.clone(), None),
        ("DELETE", document.clone(), None),
        ("PATCH", document.clone(), Some(json!({ "title": "x" }))),
        ("GET", format!("{document}/text"), None),
        ("GET", format!("{document}/versions"), None),
        ("POST", format!("{document}/versions"), Some(json!({ "label": "x" }))),
        ("GET", format!("{document}/versions/{version}"), None),
        ("GET", format!("{document}/versions/{version}/diff"), None),
        ("POST", format!("{document}/versions/{version}/restore"), Some(json!({}))),
        ("POST", format!("{document}/share-link"), Some(json!({}))),
        ("GET", link.clone(), None),
        ("DELETE", link.clone(), None),
        ("POST", format!("{link}/join"), Some(json!({ "invite": desk.invite }))),
        ("GET", format!("{link}/reviews"), None),
        ("GET", format!("{link}/reviews/{review}"), None),
        ("POST", format!("{link}/reviews/{review}/resolve"), Some(json!({}))),
    ];
    for (method, path, body) in calls {
        for who in [&desk.writer, &desk.reviewer, &mallory] {
            let answer = server.call(who, method, &path, body.clone()).await;
            let is_member = who.id != mallory.id;
            let named = &answer.json["deleted"];
            let is_same = named["by"] == deleted["by"] && named["at"] == deleted["at"];
            assert!(named.is_null() || is_same, "{method} {path}: {}", answer.json);
            assert!(is_member || named.is_null(), "{method} {path}: {}", answer.json);
            if [&document, &link].contains(&&path) && is_member {
                assert!(named["purge_at"].is_string(), "{method} {path}: {}", answer.json);
            }
            answer.problem(404, "not-found");
        }
    }
    for who in [&desk.writer, &desk.reviewer] {
        let documents = server.get(who, "/api/documents").await.ok(200);
        assert_eq!(documents["documents"], json!([]));
        let links = server.get(who, "/api/share-links").await.ok(200);
        assert_eq!(links["share_links"], json!([]));
    }
    let rows = bin(server, &desk.writer).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["id"], &rows[0]["deleted_at"]), (&json!(desk.document), &deleted["at"]));
    assert!(bin(server, &desk.reviewer).await.is_empty());
    for role in ["writer", "reviewer"] {
        let refused = server.claim_seat(desk, role, "events=1").await;
        assert_eq!(refused.closed().await, (4404, "deleted".to_owned()), "{role}");
    }
    let stranger = Desk { writer: mallory.clone(), ..desk.clone() };
    let refused = server.claim_seat(&stranger, "writer", "events=1").await;
    assert_eq!(refused.closed().await, (4404, "no-such-link".to_owned()));
    for call in ["restore", "?permanent=true"] {
        for who in [&desk.reviewer, &mallory] {
            let answer = if call == "restore" {
                server.post(who, &format!("{document}/restore"), json!({})).await
            } else {
                server.call(who, "DELETE", &format!("{document}{call}"), None).await
            };
            answer.problem(404, "not-found");
        }
    }
}

#[tokio::test]
async fn g15_a_deletion_ends_the_sockets_of_both_servers_and_a_restoration_brings_all_back() {
    let cluster = Cluster::start().await;
    a_deletion_and_restoration(&cluster.one, &cluster.two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g15_the_same_on_postgresql() {
    let (cluster, _name) = postgres::Cluster::start_named(postgres_server::shared()).await;
    a_deletion_and_restoration(&cluster.one, &cluster.two).await;
}

/// A deletion by a server that died before its message.
#[tokio::test]
async fn g15_the_tick_finds_a_deletion_that_no_message_announced() {
    let settings = [("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "500ms")];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let document = desk.document.parse().expect("an id");
    let now = chrono::Utc::now();
    assert!(server.storage().await.bin_document(document, now).await.expect("stored"));
    for peer in [&writer, &reviewer] {
        let lost = peer.event("seat.lost").await;
        assert_eq!((&lost["reason"], &lost["by"]["name"]), (&json!("deleted"), &json!("Kim")));
        assert_eq!(peer.closed().await, (4404, "deleted".to_owned()));
    }
}

/// The database rejects an edit before the server knows of the deletion.
#[tokio::test]
async fn g10_an_edit_after_a_deletion_is_never_called_saved() {
    // No tick runs within this test.
    let settings = [
        ("SEATS__LEASE", "600s"),
        ("SEATS__RENEW_EVERY", "200s"),
        ("SEATS__CLIENT_TIMEOUT", "500s"),
    ];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let document = desk.document.parse().expect("an id");
    let storage = server.storage().await;
    assert!(storage.bin_document(document, chrono::Utc::now()).await.expect("stored"));
    let saved_to = writer.is_saved_to();

    writer.append(" late");

    let lost = writer.event("seat.lost").await;
    assert_eq!((&lost["reason"], &lost["by"]["name"]), (&json!("deleted"), &json!("Kim")));
    assert_eq!(writer.closed().await, (4404, "deleted".to_owned()));
    assert_eq!(writer.is_saved_to(), saved_to);
    restore(&server, &desk.writer, &desk.document).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "text");
    assert_eq!(server.writer(&desk).await.text(), "text");
}

async fn type_digits(writer: &Peer) {
    for number in 0..10 {
        writer.append(&number.to_string());
        sleep(Duration::from_millis(5)).await;
    }
}

/// Edits, claims, deletions and restorations at the same moment, on two servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_racing_edits_are_saved_and_stored_or_neither() {
    let cluster = Cluster::start().await;
    for round in 0..8 {
        let desk = cluster.one.desk("").await;
        let writer = cluster.two.writer(&desk).await;
        let typing = type_digits(&writer);
        let deleting = async {
            sleep(Duration::from_millis(3 * round)).await;
            delete(&cluster.one, &desk.writer, &desk.document).await;
        };
        let claiming = cluster.one.claim_seat(&desk, "reviewer", "events=1");
        let ((), (), claim) = tokio::join!(typing, deleting, claiming);
        assert_eq!(writer.closed().await, (4404, "deleted".to_owned()));
        assert_eq!(claim.closed().await, (4404, "deleted".to_owned()));
        let saved = writer.is_saved_to();
        restore(&cluster.two, &desk.writer, &desk.document).await;
        let text = cluster.one.text(&desk.writer, &desk.document).await;
        assert!("0123456789".starts_with(&text), "{text}");
        let stored = u32::try_from(text.len()).expect("short");
        assert!(saved <= stored, "saved to {saved} of {text}");
    }
}

#[tokio::test]
async fn of_concurrent_deletions_and_restorations_each_user_sees_one_state() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let path = format!("/api/documents/{}", desk.document);
    for _ in 0..10 {
        let again = format!("{path}/restore");
        let (deleted, restored, _seat) = tokio::join!(
            cluster.one.call(&desk.writer, "DELETE", &path, None),
            cluster.two.post(&desk.writer, &again, json!({})),
            cluster.two.claim_seat(&desk, "writer", "events=1"),
        );
        assert!([204, 404].contains(&deleted.status.as_u16()), "{}", deleted.json);
        assert!([200, 404].contains(&restored.status.as_u16()), "{}", restored.json);
        let is_live = cluster.one.get(&desk.writer, &path).await.status == 200;
        assert_eq!(bin(&cluster.two, &desk.writer).await.is_empty(), is_live);
        restore(&cluster.one, &desk.writer, &desk.document).await;
        assert_eq!(cluster.two.text(&desk.writer, &desk.document).await, "text");
    }
}

#[tokio::test]
async fn a_document_is_deleted_for_ever_from_the_bin_only() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let path = format!("/api/documents/{}", desk.document);
    let for_ever = format!("{path}?permanent=true");
    server.call(&desk.writer, "DELETE", &for_ever, None).await.problem(404, "not-found");
    assert_eq!(server.text(&desk.writer, &desk.document).await, "text");
    delete(&server, &desk.writer, &desk.document).await;
    let answer = server.call(&desk.writer, "DELETE", &for_ever, None).await;
    assert_eq!(answer.status, 204);
    assert!(bin(&server, &desk.writer).await.is_empty());
    let gone = server.get(&desk.writer, &path).await;
    assert_eq!(gone.json["deleted"], Value::Null);
    gone.problem(404, "not-found");
    let again = format!("{path}/restore");
    server.post(&desk.writer, &again, json!({})).await.problem(404, "not-found");
    let refused = server.claim_seat(&desk, "writer", "events=1").await;
    assert_eq!(refused.closed().await, (4404, "no-such-link".to_owned()));
    for wrong in ["?permanent=perhaps", "?permanent="] {
        let answer = server.call(&desk.writer, "DELETE", &format!("{path}{wrong}"), None).await;
        assert!(answer.status.is_client_error());
    }
    let wrong = server.get(&desk.writer, "/api/documents?deleted=perhaps").await;
    assert!(wrong.status.is_client_error());
}

#[tokio::test]
async fn g13_a_server_purges_documents_whose_retention_is_over() {
    let server = Server::with(&[("LIMITS__BIN_RETENTION", "2s")]).await;
    let (desk, live) = (server.desk("text").await, server.desk("lives").await);
    delete(&server, &desk.writer, &desk.document).await;
    let rows = bin(&server, &desk.writer).await;
    let time = |value: &Value| {
        let text = value.as_str().expect("a time");
        text.parse::<chrono::DateTime<chrono::Utc>>().expect("a time")
    };
    let retention = time(&rows[0]["purge_at"]) - time(&rows[0]["deleted_at"]);
    assert_eq!(retention, chrono::TimeDelta::seconds(2));
    until("the bin is purged", async || bin(&server, &desk.writer).await.is_empty()).await;
    assert!(time(&rows[0]["purge_at"]) <= chrono::Utc::now());
    assert_eq!(server.text(&live.writer, &live.document).await, "lives");
}

#[tokio::test]
async fn a_retention_of_zero_deletes_at_once() {
    let server = Server::with(&[("LIMITS__BIN_RETENTION", "0s")]).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    delete(&server, &desk.writer, &desk.document).await;
    for peer in [&writer, &reviewer] {
        let lost = peer.event("seat.lost").await;
        assert_eq!((&lost["reason"], &lost["by"]["name"]), (&json!("deleted"), &json!("Kim")));
        assert_eq!(peer.closed().await, (4404, "deleted".to_owned()));
    }
    assert!(bin(&server, &desk.writer).await.is_empty());
    let path = format!("/api/documents/{}", desk.document);
    server.get(&desk.writer, &path).await.problem(404, "not-found");
    let again = format!("{path}/restore");
    server.post(&desk.writer, &again, json!({})).await.problem(404, "not-found");
}

#[tokio::test]
async fn g13_a_bin_has_a_bound_and_the_quota_counts_documents_outside_it() {
    let server = Server::with(&[("LIMITS__USER_DOCUMENTS", "1")]).await;
    let kim = server.guest("Kim").await;
    let mut ids = Vec::new();
    for number in 0..102 {
        let body = json!({ "title": number.to_string() });
        let made = server.post(&kim, "/api/documents", body).await.ok(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        delete(&server, &kim, &id).await;
        ids.push(id);
    }
    let list = server.get(&kim, "/api/documents?deleted=true&limit=100").await.ok(200);
    assert_eq!(list["next_cursor"], Value::Null);
    assert_eq!(list["retention_seconds"], 30 * 24 * 3_600);
    let rows = list["documents"].as_array().expect("rows");
    let listed: Vec<_> = rows.iter().map(|row| row["id"].as_str().expect("an id")).collect();
    let newest: Vec<_> = ids.iter().skip(2).rev().map(String::as_str).collect();
    assert_eq!(listed, newest);
    // One document outside the bin is the quota of this server.
    restore(&server, &kim, &ids[50]).await;
    let path = format!("/api/documents/{}/restore", ids[51]);
    server.post(&kim, &path, json!({})).await.problem(409, "quota-spent");
    delete(&server, &kim, &ids[50]).await;
    restore(&server, &kim, &ids[51]).await;
}
