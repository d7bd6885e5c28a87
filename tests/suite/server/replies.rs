//! `/api/share-links/{id}/reviews/{rid}/replies`, and `/reviews` where both users talk about a text: comments of
//! the writer, remarks on the whole text, replies.

use serde_json::{Value, json};

use crate::server::reviews::{at, one};
use crate::support::galley_process::Server;

const TEXT: &str = "저는 성실한 사람입니다. 저는 책임감이 강합니다.";

/// Goal: the writer comments with the writer's seat, and suggests nothing.
#[tokio::test]
async fn the_writer_comments_with_the_own_seat_and_suggests_nothing() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let comment = json!({ "anchor": at("성실한", TEXT), "body": "이 말이 맞나요?" });
    let reviewer = server.reviewer(&desk).await;
    server.post(&desk.writer, &desk.reviews(), comment.clone()).await.problem(403, "seat-not-held");
    let writer = server.writer(&desk).await;
    let made = server.post(&desk.writer, &desk.reviews(), comment).await.ok(201);
    assert_eq!((&made["kind"], &made["author"]["name"]), (&json!("comment"), &json!("Kim")));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("review.created").await["review"], made);
    }
    let suggestion = json!({ "anchor": at("성실한", TEXT), "body": "", "suggestion": "꾸준한" });
    let refused = server.post(&desk.writer, &desk.reviews(), suggestion).await;
    refused.problem(403, "seat-not-held");
    let path = one(&desk, &made);
    for suggestion in ["꾸준한", ""] {
        let change = Some(json!({ "suggestion": suggestion }));
        let refused = server.call(&desk.writer, "PATCH", &path, change).await;
        refused.problem(403, "seat-not-held");
    }
    let change = Some(json!({ "body": "다른 말이 있을까요?", "suggestion": null }));
    let tag = Some("\"1\"");
    let changed = server.call_if(&desk.writer, "PATCH", &path, change.clone(), tag).await.ok(200);
    assert_eq!((&changed["version"], &changed["kind"]), (&json!(2), &json!("comment")));
    let stale = server.call_if(&desk.writer, "PATCH", &path, change, tag).await;
    stale.problem(412, "version-mismatch");
    let resolve = format!("{path}/resolve");
    server.post(&desk.writer, &resolve, json!({})).await.ok(200);
    let late = server.call(&desk.writer, "PATCH", &path, Some(json!({ "body": "!" }))).await;
    late.problem(409, "not-in-this-state");
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(reviewer.event("review.deleted").await["review"]["id"], made["id"]);
}

/// Goal: each user edits and deletes the own reviews only, with the own seat only.
#[tokio::test]
async fn g14_a_review_is_changed_and_deleted_by_its_author_only() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let stranger = server.guest("Park").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let comment = json!({ "anchor": at("책임감이", TEXT), "body": "?" });
    let summary = json!({ "anchor": null, "body": "좋은 글이에요" });
    for (author, other) in [(&desk.writer, &desk.reviewer), (&desk.reviewer, &desk.writer)] {
        for draft in [&comment, &summary] {
            let made = server.post(author, &desk.reviews(), draft.clone()).await.ok(201);
            let path = one(&desk, &made);
            let change = Some(json!({ "body": "mine" }));
            let edited = server.call(other, "PATCH", &path, change.clone()).await;
            edited.problem(403, "not-author");
            server.call(other, "DELETE", &path, None).await.problem(403, "not-author");
            let edited = server.call(&stranger, "PATCH", &path, change.clone()).await;
            edited.problem(404, "not-found");
            server.call(&stranger, "DELETE", &path, None).await.problem(404, "not-found");
            assert_eq!(server.get(other, &path).await.ok(200), made, "unchanged");
            server.call(author, "PATCH", &path, change).await.ok(200);
        }
    }
    let list = server.get(&desk.writer, &desk.reviews()).await.ok(200);
    let of_writer = |review: &&Value| review["author"]["id"] == json!(desk.writer.id);
    let own = list["reviews"].as_array().expect("rows").iter().find(of_writer).expect("a review");
    writer.leave().await;
    // The seat of the other user authorizes nothing.
    let path = one(&desk, own);
    let change = Some(json!({ "body": "late" }));
    let mut answer = server.call(&desk.writer, "PATCH", &path, change.clone()).await;
    while answer.status.as_u16() == 200 {
        // The release may complete a moment after the close.
        answer = server.call(&desk.writer, "PATCH", &path, change.clone()).await;
    }
    answer.problem(403, "seat-not-held");
    let refused = server.call(&desk.writer, "DELETE", &path, None).await;
    refused.problem(403, "seat-not-held");
}

/// Goal: a remark on the whole text has no place, whatever happens to the text.
#[tokio::test]
async fn a_remark_on_the_whole_text_has_no_anchor_and_is_never_orphaned() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let remark = json!({ "anchor": null, "body": "구성이 좋아요.\r\n다만 조금 길어요." });
    let made = server.post(&desk.reviewer, &desk.reviews(), remark.clone()).await.ok(201);
    assert_eq!((&made["kind"], &made["anchor"]), (&json!("summary"), &Value::Null));
    assert_eq!(made["body"], "구성이 좋아요.\n다만 조금 길어요.");
    assert_eq!(made["suggestion"], Value::Null);
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("review.created").await["review"], made);
    }
    let path = one(&desk, &made);
    let comment = json!({ "anchor": at("성실한", TEXT), "body": "?" });
    server.post(&desk.reviewer, &desk.reviews(), comment).await.ok(201);
    writer.remove(0, u32::try_from(TEXT.encode_utf16().count()).expect("short"));
    reviewer.reads("").await;
    let list = server.get(&desk.writer, &desk.reviews()).await.ok(200);
    assert_eq!(list["reviews"][0], made);
    assert_eq!(list["reviews"][1]["anchor"]["state"], "orphaned");
    assert_eq!(server.get(&desk.reviewer, &path).await.ok(200), made);

    for action in ["accept", "reject"] {
        let refused = server.post(&desk.writer, &format!("{path}/{action}"), json!({})).await;
        refused.problem(409, "not-in-this-state");
    }
    let suggestion = Some(json!({ "suggestion": "다시 쓰세요" }));
    let refused = server.call(&desk.reviewer, "PATCH", &path, suggestion).await;
    refused.problem(422, "invalid");
    let reply = json!({ "body": "고맙습니다" });
    server.post(&desk.writer, &format!("{path}/replies"), reply).await.ok(201);
    let resolved = server.post(&desk.writer, &format!("{path}/resolve"), json!({})).await.ok(200);
    assert_eq!((&resolved["status"], &resolved["anchor"]), (&json!("resolved"), &Value::Null));
    server.call(&desk.reviewer, "DELETE", &path, None).await.ok(204);
}

/// Goal: an invalid remark stores nothing, and a link takes twenty.
#[tokio::test]
async fn g13_a_link_takes_a_bounded_number_of_remarks_on_the_whole_text() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let _reviewer = server.reviewer(&desk).await;
    let create = async |body: Value| server.post(&desk.reviewer, &desk.reviews(), body).await;
    let invalid = [
        json!({ "anchor": null }),
        json!({ "anchor": null, "body": " \n" }),
        json!({ "anchor": null, "body": "\u{7}" }),
        json!({ "anchor": null, "body": "가".repeat(16 * 1024) }),
        json!({ "anchor": null, "body": "x", "suggestion": "y" }),
        json!({ "anchor": null, "body": "", "suggestion": "y" }),
    ];
    for body in invalid {
        create(body).await.problem(422, "invalid");
    }
    for body in [json!({ "body": "x" }), json!({ "anchor": false, "body": "x" })] {
        assert_eq!(create(body).await.status.as_u16(), 422);
    }
    let mut last = Value::Null;
    for number in 0..20 {
        last = create(json!({ "anchor": null, "body": number.to_string() })).await.ok(201);
    }
    create(json!({ "anchor": null, "body": "x" })).await.problem(409, "too-many");
    create(json!({ "anchor": at("성실한", TEXT), "body": "x" })).await.ok(201);
    let list = server.get(&desk.writer, &desk.reviews()).await.ok(200);
    assert_eq!(list["reviews"].as_array().map(Vec::len), Some(21));
    server.call(&desk.reviewer, "DELETE", &one(&desk, &last), None).await.ok(204);
    create(json!({ "anchor": null, "body": "x" })).await.ok(201);
}

/// Goal: an author edits and deletes the own replies, and no other user does.
#[tokio::test]
async fn an_author_edits_and_deletes_the_own_replies() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let comment = json!({ "anchor": at("성실한", TEXT), "body": "?" });
    let review = server.post(&desk.reviewer, &desk.reviews(), comment).await.ok(201);
    let path = one(&desk, &review);
    let post = async |who, body: &str| {
        server.post(who, &format!("{path}/replies"), json!({ "body": body })).await.ok(201)
    };
    let first = post(&desk.writer, "네, 맞아요").await;
    let second = post(&desk.reviewer, "고마워요").await;
    assert_eq!(first["edited_at"], Value::Null);
    let reply = format!("{path}/replies/{}", first["id"].as_str().expect("an id"));
    for peer in [&writer, &reviewer] {
        // A socket that misses a change of a review receives the last one only.
        while peer.event("review.updated").await["review"]["replies"][1]["id"] != second["id"] {}
    }

    let edit = async |who, path: &str, body: &str, tag| {
        server.call_if(who, "PATCH", path, Some(json!({ "body": body })), tag).await
    };
    let stale = edit(&desk.writer, &reply, "맞습니다", Some("\"1\"")).await;
    stale.problem(412, "version-mismatch");
    let edited = edit(&desk.writer, &reply, "네,\r\n맞습니다", Some("\"3\"")).await;
    assert_eq!(edited.etag.as_deref(), Some("\"4\""));
    let edited = edited.ok(200);
    assert_eq!(edited["replies"][0]["body"], "네,\n맞습니다");
    assert!(edited["replies"][0]["edited_at"].is_string());
    assert_eq!(edited["replies"][0]["created_at"], first["created_at"]);
    assert_eq!(edited["replies"][1]["id"], second["id"]);
    assert_eq!(edited["changed_by"], json!(desk.writer.id));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("review.updated").await["review"], edited);
    }
    let same = edit(&desk.writer, &reply, "네,\n맞습니다", None).await.ok(200);
    assert_eq!(same, edited, "an equal text changes nothing");
    edit(&desk.writer, &reply, "네,\n맞습니다", Some("\"3\""))
        .await
        .problem(412, "version-mismatch");

    for body in [json!({}), json!({ "body": 7 })] {
        let answer = server.call(&desk.writer, "PATCH", &reply, Some(body)).await;
        assert_eq!(answer.status.as_u16(), 422);
    }
    for body in ["", " \n", "\u{7}", &"가".repeat(16 * 1024)] {
        edit(&desk.writer, &reply, body, None).await.problem(422, "invalid");
    }
    let stranger = server.guest("Park").await;
    edit(&desk.reviewer, &reply, "!", None).await.problem(403, "not-author");
    edit(&stranger, &reply, "!", None).await.problem(404, "not-found");
    let delete = async |who, path: &str, tag| server.call_if(who, "DELETE", path, None, tag).await;
    delete(&desk.reviewer, &reply, None).await.problem(403, "not-author");
    delete(&stranger, &reply, None).await.problem(404, "not-found");

    // A decided review keeps its words; a reply is no part of them.
    server.post(&desk.writer, &format!("{path}/resolve"), json!({})).await.ok(200);
    delete(&desk.writer, &reply, Some("\"4\"")).await.problem(412, "version-mismatch");
    let left = delete(&desk.writer, &reply, Some("\"5\"")).await;
    assert_eq!(left.etag.as_deref(), Some("\"6\""));
    let left = left.ok(200);
    assert_eq!(left["replies"].as_array().map(Vec::len), Some(1));
    assert_eq!(left["replies"][0]["id"], second["id"]);
    delete(&desk.writer, &reply, None).await.problem(404, "not-found");
    edit(&desk.writer, &reply, "!", None).await.problem(404, "not-found");
}

/// Goal: a reply is found under its own review and link only, and needs the seat.
#[tokio::test]
async fn g14_a_reply_is_changed_under_its_own_review_with_the_seat_only() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let other = server.desk_of(desk.writer.clone(), desk.reviewer.clone(), TEXT).await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let (_second, _third) = (server.writer(&other).await, server.reviewer(&other).await);
    let comment = json!({ "anchor": at("성실한", TEXT), "body": "?" });
    let mut paths = Vec::new();
    for desk in [&desk, &desk, &other] {
        let review = server.post(&desk.reviewer, &desk.reviews(), comment.clone()).await.ok(201);
        paths.push(one(desk, &review));
    }
    let replies = format!("{}/replies", paths[0]);
    let reply = server.post(&desk.writer, &replies, json!({ "body": "!" })).await.ok(201);
    let id = reply["id"].as_str().expect("an id");
    let body = Some(json!({ "body": "?" }));
    let foreign = paths[0].replace(&desk.link, &other.link);
    for path in [&paths[1], &paths[2], &foreign] {
        for (method, body) in [("PATCH", body.clone()), ("DELETE", None)] {
            let path = format!("{path}/replies/{id}");
            server.call(&desk.writer, method, &path, body).await.problem(404, "not-found");
        }
    }
    let reply = format!("{replies}/{id}");
    writer.leave().await;
    let mut answer = server.call(&desk.writer, "PATCH", &reply, body.clone()).await;
    while answer.status.as_u16() == 200 {
        // The release may complete a moment after the close. An equal text needs the seat, too.
        answer = server.call(&desk.writer, "PATCH", &reply, body.clone()).await;
    }
    answer.problem(403, "seat-not-held");
    server.call(&desk.writer, "DELETE", &reply, None).await.problem(403, "seat-not-held");
}
