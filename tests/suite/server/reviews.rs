//! `/api/share-links/{id}/reviews` and a review's `/accept`, `/reject`, `/resolve` and `/reopen`, beside the live
//! text. `replies.rs` tests the comments of the writer and the remarks on the whole text.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::redis_server;
use crate::support::rest_client::{Answer, Desk, time};

const TEXT: &str = "저는 성실한 사람입니다. 🙂 저는 책임감이 강합니다.";

pub(crate) fn at(quote: &str, text: &str) -> Value {
    let byte = text.find(quote).expect("the quote is in the text");
    let start = text[..byte].encode_utf16().count();
    json!({ "start": start, "end": start + quote.encode_utf16().count(), "quote": quote })
}

pub(crate) fn one(desk: &Desk, review: &Value) -> String {
    format!("{}/{}", desk.reviews(), review["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn a_review_is_created_read_changed_answered_and_deleted() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let body = json!({ "anchor": at("책임감이", TEXT), "body": "예를 들어 주세요" });
    let made = server.post(&desk.reviewer, &desk.reviews(), body).await;
    assert_eq!(made.etag.as_deref(), Some("\"1\""));
    let review = made.ok(201);
    assert_eq!(review["status"], "open");
    assert_eq!(review["author"]["name"], "Lee");
    assert_eq!(review["anchor"]["state"], "exact");
    assert_eq!(review["anchor"]["prefix"], "저는 성실한 사람입니다. 🙂 저는 ");
    assert_eq!(writer.event("review.created").await["review"], review);
    reviewer.event("review.created").await;

    let path = one(&desk, &review);
    let change = json!({ "body": "예를 하나 들어 주세요" });
    let stale =
        server.call_if(&desk.reviewer, "PATCH", &path, Some(change.clone()), Some("\"7\"")).await;
    stale.problem(412, "version-mismatch");
    let changed =
        server.call_if(&desk.reviewer, "PATCH", &path, Some(change), Some("\"1\"")).await.ok(200);
    assert_eq!(
        (&changed["version"], &changed["body"]),
        (&json!(2), &json!("예를 하나 들어 주세요"))
    );
    writer.event("review.updated").await;

    let reply = json!({ "body": "네, 추가할게요" });
    let replied = server.post(&desk.writer, &format!("{path}/replies"), reply).await.ok(201);
    assert_eq!(replied["body"], "네, 추가할게요");
    let listed = server.get(&desk.writer, &desk.reviews()).await.ok(200);
    assert_eq!(listed["reviews"][0]["replies"][0]["author"]["name"], "Kim");

    server.post(&desk.writer, &format!("{path}/resolve"), json!({})).await.ok(200);
    server
        .post(&desk.writer, &format!("{path}/resolve"), json!({}))
        .await
        .problem(409, "not-in-this-state");
    let reopened = server.post(&desk.writer, &format!("{path}/reopen"), json!({})).await.ok(200);
    assert_eq!(reopened["status"], "open");
    server.call(&desk.reviewer, "DELETE", &path, None).await.ok(204);
    assert_eq!(writer.event("review.deleted").await["review"]["id"], review["id"]);
    server.get(&desk.writer, &path).await.problem(404, "not-found");
}

/// Goal: a reader gets every review, in one response or page by page.
#[tokio::test]
async fn the_list_of_reviews_is_read_whole_or_paged_oldest_first() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let _reviewer = server.reviewer(&desk).await;
    let mut made = Vec::new();
    for body in ["first", "second", "third", "fourth", "fifth"] {
        let body = json!({ "anchor": at("책임감이", TEXT), "body": body });
        made.push(server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201));
    }
    let sort_key = |review: &Value| (time(&review["created_at"]), review["id"].to_string());
    assert!(made.is_sorted_by_key(|review| time(&review["created_at"])));
    // Of two reviews of one millisecond, the one with the lower id is first.
    made.sort_by_key(sort_key);
    let ids = |list: &[Value]| -> Vec<Value> { list.iter().map(|row| row["id"].clone()).collect() };
    let rows = |list: &Value| ids(list["reviews"].as_array().expect("rows"));
    let whole = server.get(&desk.writer, &desk.reviews()).await.ok(200);
    assert_eq!(whole["next_cursor"], Value::Null);
    assert_eq!(rows(&whole), ids(&made));

    let mut read = Vec::new();
    let mut path = format!("{}?limit=2", desk.reviews());
    loop {
        let page = server.get(&desk.writer, &path).await.ok(200);
        assert!(rows(&page).len() <= 2);
        read.extend(rows(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{}?limit=2&cursor={cursor}", desk.reviews());
    }
    assert_eq!(read, ids(&made));
    for wrong in ["limit=0", "cursor=x", "cursor="] {
        let path = format!("{}?{wrong}", desk.reviews());
        server.get(&desk.writer, &path).await.problem(422, "invalid");
    }
}

/// The ids of all pages of a list.
async fn ids_of(server: &Server, desk: &Desk, query: &str) -> Vec<Value> {
    let (mut ids, mut cursor) = (Vec::new(), Some(String::new()));
    while let Some(after) = cursor {
        let path = format!("{}?limit=1&{query}{after}", desk.reviews());
        let page = server.get(&desk.writer, &path).await.ok(200);
        ids.extend(page["reviews"].as_array().expect("rows").iter().map(|it| it["id"].clone()));
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}"));
    }
    ids
}

#[tokio::test]
async fn the_list_of_reviews_is_read_by_status_and_kind() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let _seats = (server.writer(&desk).await, server.reviewer(&desk).await);
    let create = async |anchor: Value, suggestion: Option<&str>| {
        let body = json!({ "anchor": anchor, "body": "why", "suggestion": suggestion });
        server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201)
    };
    let comment = create(at("책임감이", TEXT), None).await;
    let open = create(at("성실한", TEXT), Some("꾸준한")).await;
    let rejected = create(at("성실한", TEXT), Some("바른")).await;
    let summary = create(Value::Null, None).await;
    server
        .post(&desk.writer, &format!("{}/reject", one(&desk, &rejected)), json!({}))
        .await
        .ok(200);
    for (query, expected) in [
        ("status=rejected", vec![&rejected]),
        ("kind=comment", vec![&comment]),
        ("kind=summary&status=open", vec![&summary]),
        ("kind=suggestion&status=open", vec![&open]),
        ("kind=suggestion&status=accepted", Vec::new()),
    ] {
        let expected: Vec<_> = expected.iter().map(|review| review["id"].clone()).collect();
        assert_eq!(ids_of(&server, &desk, query).await, expected, "{query}");
    }
    for wrong in ["status=closed", "kind=typed", "status="] {
        let path = format!("{}?{wrong}", desk.reviews());
        server.get(&desk.writer, &path).await.problem(400, "malformed");
    }
}

#[tokio::test]
async fn g2_reviewing_and_deciding_need_the_seat_at_that_moment() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let stranger = server.guest("Park").await;
    let draft = json!({ "anchor": at("성실한", TEXT), "body": "?", "suggestion": "꾸준한" });
    let create = async |who| server.post(who, &desk.reviews(), draft.clone()).await;
    create(&desk.reviewer).await.problem(403, "seat-not-held");
    let reviewer = server.reviewer(&desk).await;
    create(&desk.writer).await.problem(403, "seat-not-held");
    create(&stranger).await.problem(404, "not-found");
    let review = create(&desk.reviewer).await.ok(201);
    let path = one(&desk, &review);
    for action in ["accept", "reject", "resolve", "reopen"] {
        let answer = server.post(&desk.writer, &format!("{path}/{action}"), json!({})).await;
        answer.problem(403, "seat-not-held");
    }
    let writer = server.writer(&desk).await;
    reviewer.leave().await;
    assert_eq!(writer.event("peer.left").await["role"], "reviewer");
    let edit = json!({ "body": "!" });
    let answer = server.call(&desk.reviewer, "PATCH", &path, Some(edit)).await;
    answer.problem(403, "seat-not-held");
    let reply = json!({ "body": "?" });
    server
        .post(&desk.reviewer, &format!("{path}/replies"), reply.clone())
        .await
        .problem(403, "seat-not-held");
    server.post(&desk.writer, &format!("{path}/replies"), reply).await.ok(201);
}

/// Goal: until a release arrives, the lock service names a session of this server that has ended. The
/// server rejects REST requests of its user, although the database has its fence.
#[tokio::test]
async fn g2_a_session_that_ended_here_holds_no_seat_though_the_locks_name_it() {
    let redis = redis_server::Server::start().await;
    let (url, shared) = (redis.url(), ("DATABASE__SHARED_SQLITE", "true"));
    let server = Server::with(&[("LOCKS__URL", url.as_str()), shared]).await;
    let desk = server.desk(TEXT).await;
    let reviewer = server.reviewer(&desk).await;
    let draft = json!({ "anchor": at("성실한", TEXT), "body": "?" });
    server.post(&desk.reviewer, &desk.reviews(), draft.clone()).await.ok(201);
    let mut dumps = Vec::new();
    for kind in ["lock", "grant"] {
        let key = format!("share-link:{kind}:{}:reviewer", desk.link);
        let dump: Vec<u8> = redis.run(&format!("DUMP {key}")).await;
        dumps.push((key, dump));
    }
    reviewer.leave().await;
    until("the seat is released", async || {
        redis.run::<usize>(&format!("EXISTS {}", dumps[0].0)).await == 0
    })
    .await;
    let mut connection = redis.connection().await;
    for (key, dump) in dumps {
        let mut restore = redis::cmd("RESTORE");
        restore.arg(key).arg(600_000).arg(dump).arg("REPLACE");
        let _: redis::Value = restore.query_async(&mut connection).await.expect("restored");
    }
    let link = server.get(&desk.writer, &format!("/api/share-links/{}", desk.link)).await.ok(200);
    assert_eq!(link["seats"]["reviewer"]["taken"], true, "the locks name the session");

    let refused = server.post(&desk.reviewer, &desk.reviews(), draft).await;
    refused.problem(403, "seat-not-held");
}

#[tokio::test]
async fn g9_a_quote_that_does_not_match_the_text_is_rejected() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let _reviewer = server.reviewer(&desk).await;
    let emoji = at("🙂", TEXT);
    let start = emoji["start"].as_u64().expect("a number");
    let anchors = [
        json!({ "start": 0, "end": 2, "quote": "나는" }),
        json!({ "start": 0, "end": 0, "quote": "" }),
        json!({ "start": 5, "end": 2, "quote": "저는" }),
        json!({ "start": 0, "end": 4_000_000_000_u32, "quote": "저는" }),
        json!({ "start": start, "end": start + 1, "quote": "\u{fffd}" }),
    ];
    for anchor in anchors {
        let body = json!({ "anchor": anchor, "body": "?" });
        let answer = server.post(&desk.reviewer, &desk.reviews(), body).await;
        answer.problem(422, "anchor-mismatch");
    }
    for body in [json!({}), json!({ "anchor": emoji, "body": " " }), json!({ "anchor": 3 })] {
        let answer = server.post(&desk.reviewer, &desk.reviews(), body).await;
        assert_eq!(answer.status.as_u16(), 422, "{}", answer.json);
    }
}

/// Goal: an accepted suggestion replaces its quote once, reaches both replicas, and is stored.
#[tokio::test]
async fn an_accepted_suggestion_reaches_every_replica_once() {
    let mut server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let body = json!({ "anchor": at("책임감이 강합니다", TEXT), "body": "",
                       "suggestion": "맡은 일을 끝까지 합니다 👍" });
    let review = server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201);
    // The text changes before the writer decides.
    writer.insert(0, "안녕하세요. ");
    let accept = format!("{}/accept", one(&desk, &review));
    let accepted = server.post(&desk.writer, &accept, json!({})).await.ok(200);
    assert_eq!(accepted["status"], "accepted");
    let expected =
        format!("안녕하세요. {}", TEXT.replace("책임감이 강합니다", "맡은 일을 끝까지 합니다 👍"));
    writer.reads(&expected).await;
    reviewer.reads(&expected).await;
    let again = server.post(&desk.writer, &accept, json!({})).await;
    again.problem(409, "not-in-this-state");
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, expected);
}

/// Goal: an anchor reports how exact it is, and a suggestion whose quote is gone cannot be accepted.
#[tokio::test]
async fn g9_an_anchor_follows_its_text_or_reports_that_it_is_orphaned() {
    let server = Server::start().await;
    let text = "One plain sentence. Another plain sentence that stays.";
    let desk = server.desk(text).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let suggest = json!({ "anchor": at("One plain", text), "body": "", "suggestion": "A" });
    let gone = server.post(&desk.reviewer, &desk.reviews(), suggest).await.ok(201);
    let stays = json!({ "anchor": at("Another plain sentence", text), "body": "good" });
    let stays = server.post(&desk.reviewer, &desk.reviews(), stays).await.ok(201);
    writer.remove(0, 20);
    reviewer.reads(&writer.text()).await;
    let read = async |review| server.get(&desk.writer, &one(&desk, review)).await.ok(200);
    assert_eq!(read(&gone).await["anchor"]["state"], "orphaned");
    assert_eq!(read(&gone).await["anchor"]["quote"], "One plain");
    let moved = read(&stays).await;
    assert_eq!(moved["anchor"]["state"], "exact");
    assert_eq!((&moved["anchor"]["start"], &moved["anchor"]["end"]), (&json!(0), &json!(22)));
    let accept = format!("{}/accept", one(&desk, &gone));
    server.post(&desk.writer, &accept, json!({})).await.problem(409, "anchor-moved");
    // The writer cuts and pastes all text: the positions are gone, the quote is not.
    writer.remove(0, u32::try_from(writer.text().encode_utf16().count()).expect("short"));
    writer.append("Pasted. Another plain sentence that stays.");
    writer.saved().await;
    // A read stores no guess.
    for _ in 0..3 {
        let pasted = read(&stays).await;
        assert_eq!(pasted["anchor"]["state"], "moved");
        assert_eq!(pasted["anchor"]["start"], 8);
    }
}

/// The statuses and problems of responses, in order.
fn outcomes(answers: &[Answer]) -> Vec<(u16, String)> {
    let kind = |answer: &Answer| answer.json["type"].as_str().unwrap_or_default().to_owned();
    let mut outcomes: Vec<_> = answers.iter().map(|a| (a.status.as_u16(), kind(a))).collect();
    outcomes.sort();
    outcomes
}

/// Goal: a request without a version that loses a race gets the response of a later request. The server
/// applies the suggestion once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_without_a_version_is_answered_by_the_state_of_the_review() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let late = (409, "/problems/not-in-this-state".to_owned());
    let mut text = "text".to_owned();
    for _ in 0..12 {
        let body = json!({ "anchor": at("text", &text), "body": "", "suggestion": "text!" });
        let review = server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201);
        let path = one(&desk, &review);
        let act = async |action: &str| {
            server.post(&desk.writer, &format!("{path}/{action}"), json!({})).await
        };
        let resolved = join_all((0..4).map(|_| act("resolve"))).await;
        assert_eq!(
            outcomes(&resolved)[..],
            [vec![(200, String::new())], vec![late.clone(); 3]].concat()
        );
        let reopened = join_all((0..4).map(|_| act("reopen"))).await;
        assert_eq!(
            outcomes(&reopened)[..],
            [vec![(200, String::new())], vec![late.clone(); 3]].concat()
        );
        let words = json!({ "body": "anew" });
        let replies = format!("{path}/replies");
        let (edited, replied, resolved) = tokio::join!(
            server.call(&desk.reviewer, "PATCH", &path, Some(words.clone())),
            server.post(&desk.writer, &replies, words),
            act("resolve"),
        );
        let edited = outcomes(&[edited]).remove(0);
        assert!(edited == (200, String::new()) || edited == late, "{edited:?}");
        replied.ok(201);
        resolved.ok(200);
        act("reopen").await.ok(200);
        let accepted = join_all((0..2).map(|_| act("accept"))).await;
        assert_eq!(outcomes(&accepted), [(200, String::new()), late.clone()]);
        text.insert(4, '!');
        writer.reads(&text).await;
    }
}

/// Goal: a request that names a version is rejected if that is not the last one.
#[tokio::test]
async fn a_decision_with_an_old_version_is_rejected() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (_writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let body = json!({ "anchor": at("성실한", TEXT), "body": "", "suggestion": "꾸준한" });
    let review = server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201);
    let path = one(&desk, &review);
    server.post(&desk.writer, &format!("{path}/replies"), json!({ "body": "?" })).await.ok(201);
    for action in ["accept", "reject", "resolve"] {
        let path = format!("{path}/{action}");
        let stale = server.call_if(&desk.writer, "POST", &path, Some(json!({})), Some("\"1\""));
        stale.await.problem(412, "version-mismatch");
    }
    let accept = format!("{path}/accept");
    server.call_if(&desk.writer, "POST", &accept, Some(json!({})), Some("\"2\"")).await.ok(200);
}
