//! `/api/documents/by-external-id/{external_id}` and `PUT /api/documents/{id}/text`: the documents of a host
//! application, and the webhooks about them.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::documents::{id, make};
use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::push_service::PushService;
use crate::support::rest_client::{Answer, Desk, Person};
use crate::support::webhook_receiver::{events, setting};

const ESSAY: &str = "/api/documents/by-external-id/essay:2026.11-1";

async fn put(server: &Server, who: &Person, path: &str, body: Value) -> Answer {
    server.call(who, "PUT", path, Some(body)).await
}

fn text_path(document: &str) -> String {
    format!("/api/documents/{document}/text")
}

#[tokio::test]
async fn an_external_id_names_one_document_of_its_owner() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let body = json!({ "title": "자기소개서", "text": "지원동기" });
    let made = put(&server, &kim, ESSAY, body).await.ok(201);
    assert_eq!((&made["external_id"], &made["characters"]), (&json!("essay:2026.11-1"), &json!(4)));
    let path = format!("/api/documents/{}", id(&made));
    // Idempotent, whatever the second body has.
    let again = put(&server, &kim, ESSAY, json!({ "title": "other" })).await.ok(200);
    assert_eq!(again, server.get(&kim, &path).await.ok(200));
    assert_eq!(again, made);
    let listed = server.get(&kim, "/api/documents").await.ok(200);
    assert_eq!(listed["documents"], json!([made]));
    // Another owner has ids of their own, and a document without one says so.
    assert_ne!(id(&put(&server, &lee, ESSAY, json!({ "title": "t" })).await.ok(201)), id(&made));
    assert_eq!(make(&server, &kim, "t", "").await["external_id"], Value::Null);
    let same = json!({ "title": "t", "external_id": "essay:2026.11-1" });
    server.post(&kim, "/api/documents", same).await.problem(409, "external-id-taken");
    let own = json!({ "title": "t", "external_id": "b" });
    assert_eq!(server.post(&kim, "/api/documents", own).await.ok(201)["external_id"], "b");
    // In the bin the id is in use; for ever deleted it is free.
    server.call(&kim, "DELETE", &path, None).await.ok(204);
    put(&server, &kim, ESSAY, json!({ "title": "t" })).await.problem(409, "in-bin");
    server.call(&kim, "DELETE", &format!("{path}?permanent=true"), None).await.ok(204);
    put(&server, &kim, ESSAY, json!({ "title": "t" })).await.ok(201);
    let long = format!("/api/documents/by-external-id/{}", "a".repeat(129));
    for path in
        [&long, "/api/documents/by-external-id/a%20b", "/api/documents/by-external-id/%ED%95%9C"]
    {
        put(&server, &kim, path, json!({ "title": "t" })).await.problem(422, "invalid");
    }
    let other = json!({ "title": "t", "external_id": "c" });
    put(&server, &kim, ESSAY, other).await.problem(422, "invalid");
}

#[tokio::test]
async fn calls_at_once_make_one_document_on_two_servers() {
    let cluster = Cluster::start().await;
    let kim = cluster.one.guest("Kim").await;
    let body = json!({ "title": "t", "text": "지원동기" });
    let calls = (0..12).map(|call| {
        let server = if call % 2 == 0 { &cluster.one } else { &cluster.two };
        put(server, &kim, ESSAY, body.clone())
    });
    let answers = join_all(calls).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    let found = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((made, found), (1, 11));
    assert!(answers.iter().all(|answer| answer.json["id"] == answers[0].json["id"]));
}

#[tokio::test]
async fn a_text_is_replaced_by_its_words_and_both_texts_are_versions() {
    let server = Server::start().await;
    let desk = server.desk("저는 물류를 배웠습니다.").await;
    let reviewer = server.reviewer(&desk).await;
    let anchor = json!({ "start": 7, "end": 13, "quote": "배웠습니다." });
    let review = json!({ "anchor": anchor, "body": "왜?" });
    let review = server.post(&desk.reviewer, &desk.reviews(), review).await.ok(201);
    let path = text_path(&desk.document);
    let tag = server.get(&desk.writer, &path).await.etag.expect("a tag");
    let replace = async |text: &str, tag: Option<&str>| {
        server.call_if(&desk.writer, "PUT", &path, Some(json!({ "text": text })), tag).await
    };
    let answer = replace("저는 유통을 오래 배웠습니다.", Some(&tag)).await;
    let new_tag = answer.etag.clone().expect("a tag");
    assert_eq!(answer.ok(200)["characters"], 16);
    reviewer.reads("저는 유통을 오래 배웠습니다.").await;
    assert_eq!(server.get(&desk.writer, &path).await.etag.as_ref(), Some(&new_tag));
    let found = format!("{}/{}", desk.reviews(), id(&review));
    let anchor = &server.get(&desk.reviewer, &found).await.ok(200)["anchor"];
    assert_eq!((&anchor["state"], &anchor["start"]), (&json!("exact"), &json!(10)), "{anchor}");
    let versions = format!("/api/documents/{}/versions", desk.document);
    let versions = server.get(&desk.writer, &versions).await.ok(200);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2), "{versions}");
    // An old tag changes nothing, the same text neither.
    replace("x", Some(&tag)).await.problem(412, "version-mismatch");
    replace("x", Some("W/\"1\"")).await.problem(412, "version-mismatch");
    assert_eq!(
        replace("저는 유통을 오래 배웠습니다.", Some("*")).await.etag.as_ref(),
        Some(&new_tag)
    );
    // The reviewer may not, a stranger finds nothing.
    for who in [&desk.reviewer, &server.guest("Mallory").await] {
        put(&server, who, &path, json!({ "text": "x" })).await.problem(404, "not-found");
    }
    // Text from a client is cleaned, and an empty text is one.
    replace("e\u{301}\r\n끝", None).await.ok(200);
    reviewer.reads("é\n끝").await;
    replace("", None).await.ok(200);
    reviewer.reads("").await;
    put(&server, &desk.writer, &path, json!({ "words": "x" })).await.problem(422, "invalid");
}

#[tokio::test]
async fn a_plain_text_replaces_a_text() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let made = make(&server, &kim, "t", "one").await;
    let send = async |kind: &str, body: &'static [u8]| {
        let request =
            server.http.request(Method::PUT, format!("{}{}", server.url, text_path(id(&made))));
        let request = request.bearer_auth(&kim.token).header("content-type", kind);
        request.body(body).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(send("text/plain; charset=utf-8", "둘".as_bytes()).await, 200);
    assert_eq!(server.text(&kim, id(&made)).await, "둘");
    assert_eq!(send("text/plain", b"\xFF").await, 400);
    assert_eq!(send("application/xml", b"x").await, 415);
    assert_eq!(server.text(&kim, id(&made)).await, "둘");
}

/// Goal: the host never outranks the seat, on whichever server it is.
#[tokio::test]
async fn g2_a_text_under_a_held_seat_is_replaced_only_on_demand() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("하나 둘").await;
    let path = text_path(&desk.document);
    let writer = cluster.one.writer(&desk).await;
    let replace = async |path: &str, text: &str| {
        put(&cluster.two, &desk.writer, path, json!({ "text": text })).await
    };
    replace(&path, "셋").await.problem(409, "seat-held");
    let open = format!("{path}?while_open=true");
    replace(&open, "하나 셋 둘").await.ok(200);
    writer.reads("하나 셋 둘").await;
    // The writer goes on under the same fence.
    writer.append("!");
    writer.saved().await;
    writer.leave().await;
    replaced_when_free(&cluster.two, &desk, &path).await;
    assert_eq!(cluster.one.text(&desk.writer, &desk.document).await, "끝");
    let writer = cluster.one.writer(&desk).await;
    writer.reads("끝").await;
    writer.append("!");
    writer.saved().await;
}

async fn replaced_when_free(server: &Server, desk: &Desk, path: &str) {
    crate::support::fixtures::until("the seat is free", async || {
        let answer = put(server, &desk.writer, path, json!({ "text": "끝" })).await;
        answer.status == 200
    })
    .await;
}

/// Goal: each event about a document has its title and its external id, and no text.
#[tokio::test]
async fn each_change_of_a_document_has_a_webhook() {
    const KINDS: [&str; 5] =
        ["document.created", "link.joined", "version.created", "link.left", "document.deleted"];
    let receiver = PushService::start().await;
    let endpoints = setting(&[&format!("{}/hook", receiver.url)], &KINDS);
    let server = Server::with(&[("NOTIFY__WEBHOOKS", endpoints.as_str())]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let made = put(&server, &kim, ESSAY, json!({ "title": "글", "text": "비밀" })).await.ok(201);
    let document = format!("/api/documents/{}", id(&made));
    let link = server.post(&kim, &format!("{document}/share-link"), json!({})).await.ok(201);
    let link_path = format!("/api/share-links/{}", id(&link));
    let join = json!({ "invite": link["invite"]["token"] });
    for _ in 0..2 {
        server.post(&lee, &format!("{link_path}/join"), join.clone()).await.ok(200);
    }
    let label = json!({ "label": "이름" });
    server.post(&kim, &format!("{document}/versions"), label).await.ok(201);
    server.call(&kim, "DELETE", &format!("{link_path}/reviewer"), None).await;
    server.call(&kim, "DELETE", &document, None).await.ok(204);
    server.call(&kim, "DELETE", &format!("{document}?permanent=true"), None).await.ok(204);
    receiver.has_only(6).await;
    let events = events(&receiver);
    let kinds: Vec<_> =
        events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds[..5], KINDS);
    assert_eq!(kinds[5], "document.deleted");
    for event in &events {
        assert_eq!(event["document_id"], made["id"], "{event}");
        assert_eq!(event["external_id"], "essay:2026.11-1", "{event}");
        assert_eq!(event["data"]["title"], "글", "{event}");
        let text = event.to_string();
        assert!(!text.contains("비밀") && !text.contains("이름"), "{text}");
    }
    let data: Vec<_> = events.iter().map(|event| &event["data"]).collect();
    assert_eq!(data[0]["owner_id"], kim.id);
    assert_eq!((&data[1]["user_id"], &events[1]["share_link_id"]), (&json!(lee.id), &link["id"]));
    assert_eq!((&data[2]["kind"], &data[2]["author_ids"]), (&json!("named"), &json!([kim.id])));
    assert_eq!((&data[3]["user_id"], &data[3]["reason"]), (&json!(lee.id), &json!("removed")));
    assert_eq!([&data[4]["permanent"], &data[5]["permanent"]], [false, true]);
}
