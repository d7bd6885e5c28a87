//! `/api/documents/{id}/sections`: the settings of the sections of a text follow their headings.

use serde_json::{Value, json};

use crate::server::delivery::QUICK;
use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;

const FORM: &str = "자기소개서\n1. 지원동기 (500자)\n나는 글을 쓴다\n\n2. 성격\n끝";

fn path(desk: &Desk) -> String {
    format!("/api/documents/{}/sections", desk.document)
}

fn at(words: &str) -> usize {
    FORM[..FORM.find(words).expect("words of the form")].encode_utf16().count()
}

/// Goal: the owner sets them on one server, both sockets receive them on both, and a heading that moves is found
/// at its new place.
#[tokio::test]
async fn sections_are_delivered_on_two_servers_and_follow_their_headings() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk(FORM).await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    let none = cluster.two.get(&desk.reviewer, &path(&desk)).await;
    assert_eq!(
        (none.etag.clone(), none.ok(200)),
        (Some("\"0\"".to_owned()), json!({ "sections": [] }))
    );
    let body = json!({ "sections": [
        { "title": "1. 지원동기 (500자)", "limit": 700, "floor": 500, "unit": "no-spaces" },
        { "title": "성격", "at": at("성격"), "unit": "words", "line_break": 2, "question": false },
    ] });
    let first = json!([
        { "title": "1. 지원동기 (500자)", "at": at("1."), "limit": 700, "floor": 500, "unit": "no-spaces" },
        { "title": "성격", "at": at("2."), "unit": "words", "line_break": 2, "question": false },
    ]);
    let set = cluster.one.call(&desk.writer, "PUT", &path(&desk), Some(body.clone())).await;
    let tag = set.etag.clone().expect("a tag");
    assert_eq!(set.ok(200)["sections"], first);
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("sections.changed").await["sections"], first);
    }
    writer.insert(0, "2026년 ");
    writer.saved().await;
    reviewer.reads(&format!("2026년 {FORM}")).await;
    let read = cluster.two.get(&desk.reviewer, &path(&desk)).await;
    assert_eq!(read.etag.as_ref(), Some(&tag));
    let moved: Vec<_> = read.ok(200)["sections"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["at"].clone())
        .collect();
    assert_eq!(moved, [json!(at("1.") + 6), json!(at("2.") + 6)]);
    // Two tabs of the owner: the second has read an older list.
    let empty = Some(json!({ "sections": [] }));
    let put = async |tag: &str, body: &Option<Value>| {
        cluster.one.call_if(&desk.writer, "PUT", &path(&desk), body.clone(), Some(tag)).await
    };
    put("\"0\"", &empty).await.problem(412, "version-mismatch");
    assert_eq!(put(&tag, &empty).await.ok(200)["sections"], json!([]));
    put(&tag, &Some(body)).await.problem(412, "version-mismatch");
}

#[tokio::test]
async fn g15_sections_that_no_message_announced_arrive_within_a_tick() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk(FORM).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let titles = |sections: &Value| {
        let list = sections["sections"].as_array().expect("a list");
        list.iter().map(|it| it["title"].clone()).collect::<Vec<_>>()
    };
    let body = json!({ "sections": [{ "title": "지원동기", "at": at("1."), "limit": 500 }] });
    server.call(&desk.writer, "PUT", &path(&desk), Some(body)).await.ok(200);
    for peer in [&writer, &reviewer] {
        assert_eq!(titles(&peer.event("sections.changed").await), [json!("지원동기")]);
    }
    // Another process of the same database commits a change and sends no message.
    let (storage, document) = (server.storage().await, desk.document.parse().expect("an id"));
    let (version, mut sections) = storage.sections(document).await.expect("the sections");
    "성격".clone_into(&mut sections[0].title);
    storage.set_sections(document, &sections, Some(version)).await.expect("stored");
    for peer in [&writer, &reviewer] {
        assert_eq!(titles(&peer.event("sections.changed").await), [json!("성격")]);
    }
}

#[tokio::test]
async fn g14_the_owner_sets_sections_and_members_alone_read_them() {
    let server = Server::start().await;
    let desk = server.desk(FORM).await;
    let _seats = (server.writer(&desk).await, server.reviewer(&desk).await);
    let mallory = server.guest("Mallory").await;
    let body = json!({ "sections": [{ "title": "2. 성격" }] });
    for who in [&desk.reviewer, &mallory] {
        let set = server.call(who, "PUT", &path(&desk), Some(body.clone())).await;
        set.problem(404, "not-found");
    }
    server.get(&mallory, &path(&desk)).await.problem(404, "not-found");
    assert_eq!(server.get(&desk.reviewer, &path(&desk)).await.ok(200)["sections"], json!([]));
}

#[tokio::test]
async fn g12_a_section_that_is_invalid_is_a_typed_problem_and_nothing_is_stored() {
    let server = Server::start().await;
    let desk = server.desk(FORM).await;
    let put = async |sections: Value| {
        let body = json!({ "sections": sections });
        server.call(&desk.writer, "PUT", &path(&desk), Some(body)).await
    };
    for (title, at) in [("3. 없음", json!(null)), ("x", json!(9_999)), ("x", json!("AAECAw=="))] {
        put(json!([{ "title": title, "at": at }])).await.problem(422, "section-not-found");
    }
    for section in [
        json!({ "title": "2. 성격", "limit": 0 }),
        json!({ "title": "2. 성격", "limit": 5, "floor": 6 }),
        json!({ "title": "2. 성격", "line_break": 3 }),
        json!({ "title": "2. 성격", "unit": "letters" }),
        json!({ "title": "2. 성격", "at": "***" }),
        json!({ "title": "2. 성격", "at": -1 }),
        json!({ "title": "2. 성격", "color": "red" }),
        json!({ "title": "두\n줄" }),
        json!({ "at": 0 }),
    ] {
        let answer = put(json!([section])).await;
        assert_eq!(
            (answer.status, &answer.json["type"]),
            (axum::http::StatusCode::UNPROCESSABLE_ENTITY, &json!("/problems/invalid")),
            "{section}"
        );
    }
    let same = json!({ "title": "2. 성격" });
    put(json!([same, same])).await.problem(422, "invalid");
    put(Value::Array(vec![same; 101])).await.problem(422, "invalid");
    let stored = server.get(&desk.writer, &path(&desk)).await;
    assert_eq!(
        (stored.etag.clone(), stored.ok(200)),
        (Some("\"0\"".to_owned()), json!({ "sections": [] }))
    );
}

/// Goal: the host product creates a document with its limits in one call, or not at all.
#[tokio::test]
async fn a_document_is_created_with_its_sections_or_not_at_all() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let create = async |section: Value| {
        let body = json!({ "title": "자기소개서", "text": FORM.replace('\n', "\r\n"), "sections": [section] });
        server.post(&kim, "/api/documents", body).await
    };
    create(json!({ "title": "3. 없음" })).await.problem(422, "section-not-found");
    create(json!({ "title": "2. 성격", "limit": 0 })).await.problem(422, "invalid");
    let documents = server.get(&kim, "/api/documents").await.ok(200);
    assert_eq!(documents["documents"], json!([]));
    let created =
        create(json!({ "title": "2. 성격", "limit": 1_200, "unit": "euc-kr" })).await.ok(201);
    let path = format!("/api/documents/{}/sections", created["id"].as_str().expect("an id"));
    let section = json!({ "title": "2. 성격", "at": at("2."), "limit": 1_200, "unit": "euc-kr" });
    assert_eq!(server.get(&kim, &path).await.ok(200)["sections"], json!([section]));
}
