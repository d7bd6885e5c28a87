//! `/api/documents` and `/api/documents/{id}`: documents over REST. `bin.rs` tests the deleted ones and
//! `/api/documents/{id}/restore`.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Person};

pub(crate) async fn make(server: &Server, who: &Person, title: &str, text: &str) -> Value {
    server.post(who, "/api/documents", json!({ "title": title, "text": text })).await.ok(201)
}

pub(crate) fn id(value: &Value) -> &str {
    value["id"].as_str().expect("an id")
}

#[tokio::test]
async fn a_document_is_created_read_renamed_and_deleted() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let text = "지원동기\r\n\r\n👩‍👩‍👧 e\u{301}";
    let made = make(&server, &kim, " 자기소개서 ", text).await;
    assert_eq!(made["title"], "자기소개서");
    assert_eq!(made["owner"], json!({ "id": kim.id, "name": kim.name }));
    // 4 syllables, 2 line breaks, a family, a space, an accented letter.
    assert_eq!(made["characters"], 9);
    let path = format!("/api/documents/{}", id(&made));
    assert_eq!(server.get(&kim, &path).await.ok(200), made);
    assert_eq!(server.text(&kim, id(&made)).await, "지원동기\n\n👩‍👩‍👧 é");
    let renamed = server.call(&kim, "PATCH", &path, Some(json!({ "title": "최종" }))).await.ok(200);
    assert_eq!((&renamed["title"], &renamed["id"]), (&json!("최종"), &made["id"]));
    assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, StatusCode::NO_CONTENT);
    server.get(&kim, &path).await.problem(404, "not-found");
    server.call(&kim, "DELETE", &path, None).await.problem(404, "not-found");
}

#[tokio::test]
async fn an_empty_document_is_a_document() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let made = server.post(&kim, "/api/documents", json!({ "title": "빈 문서" })).await.ok(201);
    assert_eq!(made["characters"], 0);
    assert_eq!(server.text(&kim, id(&made)).await, "");
}

#[tokio::test]
async fn a_user_finds_no_document_of_another_user() {
    let server = Server::start().await;
    let (kim, mallory) = (server.guest("Kim").await, server.guest("Mallory").await);
    let made = make(&server, &kim, "t", "secret").await;
    let path = format!("/api/documents/{}", id(&made));
    let link = format!("{path}/share-link");
    let rename = Some(json!({ "title": "x" }));
    for answer in [
        server.get(&mallory, &path).await,
        server.get(&mallory, &format!("{path}/text")).await,
        server.call(&mallory, "PATCH", &path, rename).await,
        server.call(&mallory, "DELETE", &path, None).await,
        server.call(&mallory, "POST", &link, None).await,
        server.get(&kim, "/api/documents/nonsense").await,
        server.get(&kim, "/api/documents/doc_00000000000000000000000000000000").await,
    ] {
        answer.problem(404, "not-found");
    }
    let listed = server.get(&mallory, "/api/documents").await.ok(200);
    assert_eq!(listed, json!({ "documents": [], "next_cursor": null }));
    assert_eq!(server.text(&kim, id(&made)).await, "secret");
}

#[tokio::test]
async fn the_list_of_documents_is_paged_newest_first() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let mut made = Vec::new();
    for number in 0..5 {
        made.push(make(&server, &kim, &format!("Nr. {number}"), "").await["id"].clone());
    }
    made.reverse();
    let mut read = Vec::new();
    let mut path = "/api/documents?limit=2".to_owned();
    loop {
        let page = server.get(&kim, &path).await.ok(200);
        let rows = page["documents"].as_array().expect("rows");
        assert!(rows.len() <= 2);
        read.extend(rows.iter().map(|row| row["id"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/documents?limit=2&cursor={cursor}");
    }
    read.sort_by_key(ToString::to_string);
    made.sort_by_key(ToString::to_string);
    assert_eq!(read, made);
    let all = server.get(&kim, "/api/documents?limit=5").await.ok(200);
    assert_eq!(all["next_cursor"], Value::Null);
    for wrong in ["limit=0", "cursor=x", "cursor="] {
        server.get(&kim, &format!("/api/documents?{wrong}")).await.problem(422, "invalid");
    }
    server.get(&kim, "/api/documents?limit=many").await.problem(422, "invalid");
}

#[tokio::test]
async fn g12_an_invalid_body_gets_a_typed_problem() {
    let server = Server::with(&[("LIMITS__BODY_BYTES", "65536")]).await;
    let kim = server.guest("Kim").await;
    let send = async |kind: &str, body: String| {
        let request = server.http.post(format!("{}/api/documents", server.url));
        let request = request.bearer_auth(&kim.token).header("content-type", kind).body(body);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let status = response.status();
        Answer { status, etag: None, retry_after: None, json: response.json().await.expect("JSON") }
    };
    let json = "application/json";
    send(json, "{".to_owned()).await.problem(400, "malformed");
    send(json, String::new()).await.problem(400, "malformed");
    send(json, "[".repeat(60_000)).await.problem(422, "invalid");
    let deep = format!(r#"{{"x":{}"#, "[".repeat(60_000));
    send(json, deep).await.problem(400, "malformed");
    send(json, "\u{0}".to_owned()).await.problem(400, "malformed");
    send(json, "{}".to_owned()).await.problem(422, "invalid");
    send(json, r#"{"title":["t"]}"#.to_owned()).await.problem(422, "invalid");
    send(json, r#"{"title":" "}"#.to_owned()).await.problem(422, "invalid");
    send(json, r#"{"title":"a\nb"}"#.to_owned()).await.problem(422, "invalid");
    send(json, format!(r#"{{"title":"{}"}}"#, "x".repeat(201))).await.problem(422, "invalid");
    send("text/plain", "{}".to_owned()).await.problem(415, "unsupported-media-type");
    let long = format!(r#"{{"title":"t","text":"{}"}}"#, "x".repeat(70_000));
    send(json, long).await.problem(413, "too-large");
}

#[tokio::test]
async fn deleting_a_document_ends_the_seats_on_it() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let link = server.get(&desk.writer, &format!("/api/share-links/{}", desk.link)).await.ok(200);
    assert_eq!(link["seats"]["writer"]["user"]["id"], json!(desk.writer.id));
    assert_eq!(link["seats"]["reviewer"]["taken"], true);
    let path = format!("/api/documents/{}", desk.document);
    let deleted = server.call(&desk.writer, "DELETE", &path, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(writer.closed().await.0, 4404);
    assert_eq!(reviewer.closed().await.0, 4404);
}
