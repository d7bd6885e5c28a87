//! `/api/documents/{id}/versions`, the history of a document: automatic versions, naming, comparing, restoring.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::server::many_servers::Cluster;
use crate::support::fixtures::found;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::{Desk, Person};

/// A pause that a test can await, and a maximum that it never reaches.
const SOON: &[(&str, &str)] = &[("HISTORY__PAUSE", "200ms"), ("HISTORY__LONGEST", "10m")];

fn all(desk: &Desk) -> String {
    format!("/api/documents/{}/versions", desk.document)
}

fn one(desk: &Desk, version: &Value) -> String {
    format!("{}/{}", all(desk), version["id"].as_str().expect("an id"))
}

async fn list(server: &Server, who: &Person, desk: &Desk) -> Vec<Value> {
    let answer = server.get(who, &all(desk)).await.ok(200);
    answer["versions"].as_array().expect("a list").clone()
}

async fn text_of(server: &Server, desk: &Desk, version: &Value) -> String {
    let version = server.get(&desk.writer, &one(desk, version)).await.ok(200);
    version["text"].as_str().expect("a text").to_owned()
}

/// The versions, once their texts are these, newest first.
async fn stored_versions(server: &Server, desk: &Desk, wanted: &[&str]) -> Vec<Value> {
    found(async || {
        let versions = list(server, &desk.writer, desk).await;
        let mut texts = Vec::new();
        for version in &versions {
            texts.push(text_of(server, desk, version).await);
        }
        if texts == wanted { Ok(versions) } else { Err(texts) }
    })
    .await
}

fn kinds(versions: &[Value]) -> Vec<&str> {
    versions.iter().map(|version| version["kind"].as_str().expect("a kind")).collect()
}

/// Goal: the first edit stores a version of the text before it, a pause stores the text, and no text is
/// stored twice.
#[tokio::test]
async fn a_pause_stores_a_version_and_the_first_edit_one_of_the_text_before_it() {
    let server = Server::with(SOON).await;
    let desk = server.desk("처음 글").await;
    assert_eq!(list(&server, &desk.writer, &desk).await, Vec::<Value>::new());
    let writer = server.writer(&desk).await;
    writer.append(" 그리고");
    writer.append(" 다음");
    let versions = stored_versions(&server, &desk, &["처음 글 그리고 다음", "처음 글"]).await;
    assert_eq!(kinds(&versions), ["pause", "seat"]);
    let newest = &versions[0];
    assert_eq!(newest["number"], 2);
    assert_eq!(newest["authors"][0]["name"], "Kim");
    assert_eq!(newest["document_id"], desk.document);
    assert_eq!(newest["characters"], 11);
    assert!(newest["label"].is_null() && newest["restored_from"].is_null());
    assert!(newest["created_at"].as_str().expect("a time").ends_with('Z'));
    // The writer undoes its edit: the same text becomes no second version.
    writer.append("!");
    writer.remove(11, 1);
    writer.append(" 끝");
    let versions = stored_versions(
        &server,
        &desk,
        &["처음 글 그리고 다음 끝", "처음 글 그리고 다음", "처음 글"],
    )
    .await;
    writer.leave().await;
    // Longer than the pause after which the server would store a version.
    sleep(Duration::from_millis(300)).await;
    assert_eq!(list(&server, &desk.writer, &desk).await, versions);
}

/// Goal: a writer that leaves before a pause leaves a version, also when the server stops.
#[tokio::test]
async fn a_writer_that_leaves_its_seat_leaves_a_version() {
    let mut server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.append("one");
    writer.saved().await;
    writer.leave().await;
    let versions = stored_versions(&server, &desk, &["one"]).await;
    assert_eq!(kinds(&versions), ["seat"]);
    let writer = server.writer(&desk).await;
    writer.append(" two");
    writer.saved().await;
    assert!(server.stop().await.success());
    server.start_again().await;
    stored_versions(&server, &desk, &["one two", "one"]).await;
    // A killed server stores no version by itself: the next writer finds the text.
    let writer = server.writer(&desk).await;
    writer.append(" three");
    writer.saved().await;
    server.kill().await;
    server.start_again().await;
    let writer = server.writer(&desk).await;
    writer.append(" four");
    let versions = stored_versions(&server, &desk, &["one two three", "one two", "one"]).await;
    assert_eq!(kinds(&versions), ["seat", "seat", "seat"]);
}

/// Goal: continuous typing still stores a version at intervals.
#[tokio::test]
async fn continuous_typing_stores_a_version_at_intervals() {
    let settings = [("HISTORY__PAUSE", "1s"), ("HISTORY__LONGEST", "1500ms")];
    let server = Server::with(&settings).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    let started = Instant::now();
    while list(&server, &desk.writer, &desk).await.len() < 2 {
        assert!(started.elapsed() < TEST_TIMEOUT, "no version was stored");
        writer.append("x");
        sleep(Duration::from_millis(30)).await;
    }
    assert!(Duration::from_millis(1_500) <= started.elapsed());
}

#[tokio::test]
async fn an_accepted_suggestion_has_a_version_before_and_one_after() {
    let server = Server::start().await;
    let desk = server.desk("나는 글을 쓴다").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let suggest = async |quote: &str, suggestion: &str| {
        let end = quote.encode_utf16().count();
        let body = json!({ "anchor": { "start": 0, "end": end, "quote": quote },
                           "suggestion": suggestion });
        let review = server.post(&desk.reviewer, &path, body).await.ok(201);
        format!("{path}/{}", review["id"].as_str().expect("an id"))
    };
    let review = suggest("나는", "저는").await;
    server.post(&desk.writer, &format!("{review}/accept"), json!({})).await.ok(200);
    let versions = stored_versions(&server, &desk, &["저는 글을 쓴다", "나는 글을 쓴다"]).await;
    assert_eq!(kinds(&versions), ["decision", "pause"]);
    let names: Vec<_> =
        versions[0]["authors"].as_array().expect("people").iter().map(|who| &who["name"]).collect();
    assert_eq!(names, ["Kim", "Lee"]);
    // A rejection leaves the text, which is a version already.
    let review = suggest("저는", "전").await;
    server.post(&desk.writer, &format!("{review}/reject"), json!({})).await.ok(200);
    assert_eq!(list(&server, &desk.writer, &desk).await, versions);
    // The next rejection stores the text that was typed since.
    let review = suggest("저는", "전").await;
    writer.append("!");
    writer.saved().await;
    server.post(&desk.writer, &format!("{review}/reject"), json!({})).await.ok(200);
    let texts = ["저는 글을 쓴다!", "저는 글을 쓴다", "나는 글을 쓴다"];
    let versions = stored_versions(&server, &desk, &texts).await;
    assert_eq!(kinds(&versions), ["decision", "decision", "pause"]);
}

#[tokio::test]
async fn the_owner_names_a_version_and_both_may_read_it() {
    let server = Server::start().await;
    let desk = server.desk("제출할 글").await;
    let stranger = server.guest("Park").await;
    let body = json!({ "label": " 제출본 " });
    let named = server.post(&desk.writer, &all(&desk), body.clone()).await.ok(201);
    assert_eq!((&named["kind"], &named["label"]), (&json!("named"), &json!("제출본")));
    assert_eq!(named["number"], 1);
    server.post(&desk.reviewer, &all(&desk), body.clone()).await.problem(403, "not-the-writer");
    server.post(&stranger, &all(&desk), body).await.problem(404, "not-found");
    for label in ["", " ", "a\nb", &"가".repeat(101)] {
        let body = json!({ "label": label });
        server.post(&desk.writer, &all(&desk), body).await.problem(422, "invalid");
    }
    assert_eq!(list(&server, &desk.reviewer, &desk).await, std::slice::from_ref(&named));
    let path = one(&desk, &named);
    assert_eq!(server.get(&desk.reviewer, &path).await.ok(200)["text"], "제출할 글");
    for path in [all(&desk), path.clone(), format!("{path}/diff")] {
        server.get(&stranger, &path).await.problem(404, "not-found");
    }
    // The same text under another label: two labels, two versions.
    server.post(&desk.writer, &all(&desk), json!({ "label": "둘째" })).await.ok(201);
    let page = server.get(&desk.writer, &format!("{}?limit=1", all(&desk))).await.ok(200);
    assert_eq!(page["versions"][0]["label"], "둘째");
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let next = format!("{}?limit=1&cursor={cursor}", all(&desk));
    let page = server.get(&desk.writer, &next).await.ok(200);
    assert_eq!(page["versions"], json!([named]));
    assert!(page["next_cursor"].is_null());
    for query in ["limit=0", "cursor=x"] {
        let answer = server.get(&desk.writer, &format!("{}?{query}", all(&desk))).await;
        answer.problem(422, "invalid");
    }
    let missing = format!("{}/ver_{}", all(&desk), "0".repeat(32));
    for path in [missing.clone(), format!("{missing}/diff"), format!("{}/nonsense", all(&desk))] {
        server.get(&desk.writer, &path).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_difference_goes_by_words_from_the_older_to_the_newer() {
    let server = Server::start().await;
    let desk = server.desk("학교는 멀다. I walk.").await;
    let name = async |label: &str| {
        server.post(&desk.writer, &all(&desk), json!({ "label": label })).await.ok(201)
    };
    let first = name("first").await;
    let writer = server.writer(&desk).await;
    writer.remove(2, 1);
    writer.insert(2, "가");
    writer.append(" Every day 🙂.");
    writer.saved().await;
    let expected = json!([
        { "op": "delete", "text": "학교는" },
        { "op": "insert", "text": "학교가" },
        { "op": "equal", "text": " 멀다. I walk." },
        { "op": "insert", "text": " Every day 🙂." },
    ]);
    let path = format!("{}/diff", one(&desk, &first));
    let now = server.get(&desk.reviewer, &path).await.ok(200);
    assert_eq!((&now["from"], &now["to"]), (&first["id"], &json!("current")));
    assert_eq!(now["segments"], expected);
    let second = name("second").await;
    let id = |version: &Value| version["id"].as_str().expect("an id").to_owned();
    for (path, against) in [(one(&desk, &first), id(&second)), (one(&desk, &second), id(&first))] {
        let path = format!("{path}/diff?against={against}");
        let both = server.get(&desk.writer, &path).await.ok(200);
        assert_eq!((&both["from"], &both["to"]), (&first["id"], &second["id"]));
        assert_eq!(both["segments"], expected);
    }
    let wrong = format!("{}/diff?against=yesterday", one(&desk, &first));
    server.get(&desk.writer, &wrong).await.problem(404, "not-found");
}

/// Goal: a restored version reaches every replica, its anchors stay valid, and a second restore undoes it.
#[tokio::test]
async fn a_restored_version_reaches_every_replica_and_a_second_restore_undoes_it() {
    let mut server = Server::start().await;
    let text = "One sentence that stays. Another that goes.";
    let desk = server.desk(text).await;
    let first = server.post(&desk.writer, &all(&desk), json!({ "label": "v" })).await.ok(201);
    let restore = |version: &Value| format!("{}/restore", one(&desk, version));
    server.post(&desk.writer, &restore(&first), json!({})).await.problem(403, "seat-not-held");
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 4, "end": 12, "quote": "sentence" });
    let body = json!({ "anchor": anchor, "body": "?" });
    let review = server.post(&desk.reviewer, &reviews, body).await.ok(201);
    writer.remove(24, 19);
    writer.insert(0, "새 글. ");
    let changed = "새 글. One sentence that stays.";
    reviewer.reads(changed).await;
    server.post(&desk.reviewer, &restore(&first), json!({})).await.problem(403, "seat-not-held");
    let restored = server.post(&desk.writer, &restore(&first), json!({})).await.ok(201);
    assert_eq!((&restored["kind"], &restored["restored_from"]), (&json!("restore"), &json!(1)));
    writer.reads(text).await;
    reviewer.reads(text).await;
    let path = format!("{reviews}/{}", review["id"].as_str().expect("an id"));
    let anchor = &server.get(&desk.writer, &path).await.ok(200)["anchor"];
    assert_eq!((&anchor["state"], &anchor["start"]), (&json!("exact"), &json!(4)));
    let versions = stored_versions(&server, &desk, &[text, changed, text]).await;
    assert_eq!(kinds(&versions), ["restore", "pause", "named"]);
    // The text equals that version already.
    let again = server.post(&desk.writer, &restore(&first), json!({})).await.ok(200);
    assert_eq!(again["id"], first["id"]);
    server.post(&desk.writer, &restore(&versions[1]), json!({})).await.ok(201);
    writer.reads(changed).await;
    reviewer.reads(changed).await;
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, changed);
    stored_versions(&server, &desk, &[changed, text, changed, text]).await;
}

/// Goal: the rules of the seat apply on a server without its socket; one server records the pauses.
#[tokio::test]
async fn two_servers_record_one_history_and_either_restores_for_the_holder_of_the_seat() {
    let cluster = Cluster::with(SOON).await;
    let desk = cluster.one.desk("").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    writer.append("첫 문장.");
    stored_versions(&cluster.two, &desk, &["첫 문장."]).await;
    writer.append(" 둘째 문장.");
    reviewer.reads("첫 문장. 둘째 문장.").await;
    let versions = stored_versions(&cluster.two, &desk, &["첫 문장. 둘째 문장.", "첫 문장."]).await;
    assert_eq!(kinds(&versions), ["pause", "pause"]);
    let restore = format!("{}/restore", one(&desk, &versions[1]));
    let refused = cluster.one.post(&desk.reviewer, &restore, json!({})).await;
    refused.problem(403, "seat-not-held");
    // The request goes to the server without the writer's socket. An edit that this server has not yet
    // received would stay in the text behind the restoration.
    writer.append(" 셋째.");
    reviewer.reads("첫 문장. 둘째 문장. 셋째.").await;
    cluster.two.post(&desk.writer, &restore, json!({})).await.ok(201);
    writer.reads("첫 문장.").await;
    reviewer.reads("첫 문장.").await;
    writer.append(" 계속.");
    reviewer.reads("첫 문장. 계속.").await;
    for server in [&cluster.one, &cluster.two] {
        assert_eq!(server.text(&desk.writer, &desk.document).await, "첫 문장. 계속.");
    }
    writer.leave().await;
    let started = Instant::now();
    loop {
        let answer = cluster.two.post(&desk.writer, &restore, json!({})).await;
        if answer.status.as_u16() == 403 {
            return answer.problem(403, "seat-not-held");
        }
        assert!(started.elapsed() < TEST_TIMEOUT, "the seat was never released");
    }
}

/// Goal: the same with PostgreSQL, a killed server included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_in_postgresql_are_stored_restored_and_recovered_after_kill_9() {
    let postgres = postgres_server::shared();
    let database = postgres.url(&postgres.empty().await);
    let mut settings = vec![("DATABASE__URL", database.as_str())];
    settings.extend_from_slice(SOON);
    let mut server = Server::with(&settings).await;
    let desk = server.desk("처음 글").await;
    let writer = server.writer(&desk).await;
    writer.append(" 다음");
    let versions = stored_versions(&server, &desk, &["처음 글 다음", "처음 글"]).await;
    let restore = format!("{}/restore", one(&desk, &versions[1]));
    server.post(&desk.writer, &restore, json!({})).await.ok(201);
    writer.reads("처음 글").await;
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "처음 글");
    let versions = stored_versions(&server, &desk, &["처음 글", "처음 글 다음", "처음 글"]).await;
    assert_eq!(kinds(&versions), ["restore", "pause", "seat"]);
}
