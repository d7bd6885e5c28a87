//! Nearly valid requests: every route reports the same fault in the same way.

use serde_json::{Value, json};

use crate::support::galley_process::Server;

#[tokio::test]
async fn an_invalid_page_limit_is_rejected_alike_in_every_list() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let mut admin = desk.writer.clone();
    admin.token = server.admin_token();
    let lists = [
        (&desk.writer, "/api/documents".to_owned()),
        (&desk.writer, format!("/api/documents/{}/versions", desk.document)),
        (&desk.writer, format!("/api/share-links/{}/reviews", desk.link)),
        (&admin, "/api/admin/locks".to_owned()),
    ];
    for (who, list) in lists {
        for limit in ["0", "-1", "%2B1", "1.5", "1e2", "x", "", "%D9%A1"] {
            let answer = server.get(who, &format!("{list}?limit={limit}")).await;
            answer.problem(422, "invalid");
        }
        for limit in ["1", "100000", "99999999999999999999999"] {
            server.get(who, &format!("{list}?limit={limit}")).await.ok(200);
        }
        let twice = server.get(who, &format!("{list}?limit=1&limit=2")).await;
        twice.problem(400, "malformed");
    }
}

#[tokio::test]
async fn g12_an_array_is_not_parsed_as_an_object() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let _reviewer = server.reviewer(&desk).await;
    let entry = server.http.post(format!("{}/api/auth/guest", server.url)).json(&json!(["Kim"]));
    assert_eq!(entry.send().await.expect("an answer").status(), 422);
    for (who, method, path, body) in [
        (&desk.writer, "POST", "/api/documents".to_owned(), json!(["title", "text"])),
        (&desk.writer, "PATCH", format!("/api/documents/{}", desk.document), json!(["title"])),
        (&desk.reviewer, "POST", format!("/api/share-links/{}/join", desk.link), json!(["x"])),
        (&desk.writer, "POST", format!("/api/documents/{}/versions", desk.document), json!(["x"])),
        (&desk.reviewer, "POST", reviews.clone(), json!({ "anchor": [0, 4, "text"], "body": "x" })),
        (&desk.reviewer, "POST", reviews.clone(), json!([{ "start": 0 }, "x"])),
        (&desk.writer, "POST", "/api/documents".to_owned(), Value::Null),
        (&desk.writer, "POST", "/api/documents".to_owned(), json!("title")),
    ] {
        server.call(who, method, &path, Some(body)).await.problem(422, "invalid");
    }
    // Nested deeper than the stack of any parser, and a duplicate key.
    let raw = async |body: String| {
        let request = server.http.post(format!("{}/api/documents", server.url));
        let request = request.bearer_auth(&desk.writer.token).body(body);
        let answer = request.header("content-type", "application/json").send().await;
        answer.expect("an answer").status().as_u16()
    };
    assert_eq!(raw(format!("{{\"title\":{}", "[".repeat(1_000_000))).await, 422);
    assert_eq!(raw(format!("{{\"x\":{}", "[".repeat(1_000_000))).await, 400);
    assert_eq!(raw("{\"title\":\"a\",\"title\":\"b\"}".to_owned()).await, 422);
    assert_eq!(raw("{\"title\":\"\\ud800\"}".to_owned()).await, 400);
}

/// The server dropped an unknown field, and the detail named fields that the client had sent.
#[tokio::test]
async fn an_unknown_field_of_a_new_review_is_rejected_by_its_name() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let _reviewer = server.reviewer(&desk).await;
    let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
    for field in ["comment", "suggested"] {
        let body = json!({ "anchor": anchor, "body": "x", field: "y" });
        let refused = server.post(&desk.reviewer, &reviews, body).await;
        let detail = refused.json["detail"].to_string();
        assert!(detail.contains(&format!("{field} is not a known field")), "{detail}");
        refused.problem(422, "invalid");
    }
    let list = server.get(&desk.reviewer, &reviews).await.ok(200);
    assert_eq!(list["reviews"], json!([]));
}

#[tokio::test]
async fn a_change_of_nothing_makes_no_new_version_of_a_review() {
    let server = Server::start().await;
    let desk = server.desk("some text").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 4, "quote": "some" });
    let body = json!({ "anchor": anchor, "body": "which?" });
    let review = server.post(&desk.reviewer, &reviews, body).await.ok(201);
    let path = format!("{reviews}/{}", review["id"].as_str().expect("an id"));
    let nothing = || Some(json!({}));
    let same = server.call(&desk.reviewer, "PATCH", &path, nothing()).await;
    assert_eq!(same.etag.as_deref(), Some("\"1\""));
    assert_eq!(same.ok(200)["version"], 1);
    let stale = server.call_if(&desk.reviewer, "PATCH", &path, nothing(), Some("\"7\"")).await;
    stale.problem(412, "version-mismatch");
    let change = Some(json!({ "body": "which one?" }));
    server.call(&desk.reviewer, "PATCH", &path, change).await.ok(200);
    // The first event of the review is the one of the real change.
    assert_eq!(writer.event("review.updated").await["review"]["version"], 2);
}

#[tokio::test]
async fn the_anchor_of_an_accepted_suggestion_follows_its_text() {
    let server = Server::start().await;
    let text = "저는 성실한 사람입니다. 저는 책임감이 강합니다.";
    let desk = server.desk(text).await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let (quote, put_in) = ("성실한", "맡은 일을 끝까지 해내는");
    let anchor = json!({ "start": 3, "end": 6, "quote": quote });
    let body = json!({ "anchor": anchor, "body": "", "suggestion": put_in });
    let review = server.post(&desk.reviewer, &reviews, body).await.ok(201);
    let path = format!("{reviews}/{}", review["id"].as_str().expect("an id"));
    let accepted = server.post(&desk.writer, &format!("{path}/accept"), json!({})).await.ok(200);
    let stands = |review: &Value, start: usize| {
        let end = start + put_in.encode_utf16().count();
        let anchor = &review["anchor"];
        assert_eq!(anchor["state"], "edited", "{anchor}");
        assert_eq!((&anchor["start"], &anchor["end"]), (&json!(start), &json!(end)), "{anchor}");
        assert_eq!(anchor["quote"], quote);
    };
    stands(&accepted, 3);
    writer.reads(&text.replace(quote, put_in)).await;
    writer.insert(0, "음, ");
    writer.saved().await;
    stands(&server.get(&desk.writer, &path).await.ok(200), 6);
}
