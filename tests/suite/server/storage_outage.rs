//! Storage that rejects writes for a while: locked by another program, stopped, or full. A room retains
//! edits up to a limit and rejects the rest; all of them are stored when storage returns.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::Connection;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Duration, sleep};

use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// The bound of a room's pending edits, in bytes.
const UNSAVED_MAX: usize = 4 * 1024 * 1024;
/// The places of the queue of all rooms, and the most updates that the persister takes out of it at once.
const QUEUE_MAX: usize = 16_384;
const ONE_GROUP: usize = 4_096;
/// A pasted page: some of them reach the bound of a room's pending edits.
const PASTE: usize = 48 * 1024;

/// Status and body of `/readyz`.
async fn readiness(server: &Server) -> (u16, Value) {
    let answer = server.http.get(format!("{}/readyz", server.url)).send().await;
    let answer = answer.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

/// Waits until `/readyz` has that status; returns the body.
async fn becomes(server: &Server, status: u16) -> Value {
    found(async || {
        let (current, answer) = readiness(server).await;
        if current == status { Ok(answer) } else { Err(answer) }
    })
    .await
}

/// Waits for an event `problem` of that name.
async fn problem(peer: &Peer, name: &str) -> Value {
    let wanted = format!("/problems/{name}");
    let find = peer.until(name, |state| {
        let index = state.events.iter().position(|event| event["type"] == wanted)?;
        Some(state.events.remove(index))
    });
    find.await
}

/// Holds that `document.saved` names no later clock, for longer than its broadcast may be delayed: it
/// comes twice a second during typing.
pub(crate) async fn stays_saved_to(writer: &Peer, clock: u32) {
    sleep(Duration::from_millis(600)).await;
    assert_eq!(writer.is_saved_to(), clock);
}

/// Types more than may be pending, a page at a time; the room rejects the rest.
async fn fill(writer: &Peer) -> String {
    let mut text = String::new();
    while text.len() < UNSAVED_MAX + 4 * PASTE {
        let page = format!("{:06}", text.len()).repeat(PASTE / 6);
        writer.append(&page);
        text.push_str(&page);
    }
    problem(writer, "not-saved").await;
    problem(writer, "unsaved-full").await;
    assert_eq!(writer.event("denied").await["reason"], "not-stored");
    // An edit that builds on a rejected one is rejected too.
    writer.append("the end");
    problem(writer, "unsaved-full").await;
    text.push_str("the end");
    text
}

/// Holds that every edit of that time is stored, once, without a further keystroke.
async fn is_all_stored(server: &Server, desk: &Desk, writer: &Peer, text: &str) {
    writer.saved().await;
    assert!(writer.is_open());
    becomes(server, 200).await;
    let stored = server.text(&desk.writer, &desk.document).await;
    assert!(stored == text, "{} of {} characters are stored", stored.len(), text.len());
    let newcomer = server.reviewer(desk).await;
    assert!(newcomer.text() == text);
}

/// Goal: another program locks SQLite. The room retains edits, then rejects them, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_edits_beyond_the_limit_while_sqlite_is_locked_are_refused_and_then_stored() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    let mut other = server.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    let text = fill(&writer).await;
    let answer = becomes(&server, 503).await;
    assert_eq!(answer["down"], json!(["storage"]));
    assert!(answer["remedy"].as_str().expect("text").contains("cannot be stored"), "{answer}");
    assert_eq!(writer.is_saved_to(), 0);
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    other.close().await.expect("closed");
    is_all_stored(&server, &desk, &writer, &text).await;
}

/// Goal: an edit rejected because the queue of all rooms was full is stored later, although its own
/// room has no pending edit and its writer types no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_an_edit_rejected_by_the_full_queue_of_all_rooms_is_requested_again() {
    let server = Server::with(&[("LIMITS__MESSAGE_BURST", "1000000")]).await;
    let (crowd, desk) = (server.desk("").await, server.desk("").await);
    let (loud, quiet) = (server.writer(&crowd).await, server.writer(&desk).await);
    let mut other = server.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    // A room whose commits fail pauses no socket (decision 71), so each of these edits takes a place.
    loud.append("x");
    problem(&loud, "not-saved").await;
    for _ in 0..QUEUE_MAX + ONE_GROUP {
        loud.append("x");
    }
    problem(&loud, "unsaved-full").await;
    quiet.append("one sentence");
    problem(&quiet, "unsaved-full").await;
    assert_eq!(quiet.event("denied").await["reason"], "not-stored");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    other.close().await.expect("closed");
    is_all_stored(&server, &desk, &quiet, "one sentence").await;
}

/// Goal: a single paste above the bound of pending edits is not rejected for ever.
#[tokio::test]
async fn g7_one_edit_above_the_bound_of_pending_edits_is_accepted_when_none_is_pending() {
    let server = Server::with(&[
        ("LIMITS__MESSAGE_BYTES", "16777216"),
        ("LIMITS__DOCUMENT_BYTES", "16777216"),
    ])
    .await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    let text = "text ".repeat(UNSAVED_MAX / 5 + PASTE);
    writer.append(&text);
    is_all_stored(&server, &desk, &writer, &text).await;
}

/// Goal: the same with a stopped PostgreSQL, and of the version that fell due in that time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_edits_beyond_the_limit_while_postgresql_is_stopped_are_refused_and_then_stored() {
    let postgres = postgres_server::Server::careless();
    let database = postgres.url(&postgres.empty().await);
    let server = Server::with(&[("DATABASE__URL", &database), ("HISTORY__PAUSE", "2s")]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.append("before ");
    writer.saved().await;
    postgres.stop();
    // A pause in which no edit is pending and the database cannot be read.
    sleep(Duration::from_secs(3)).await;
    let text = format!("before {}", fill(&writer).await);
    assert_eq!(becomes(&server, 503).await["down"], json!(["storage"]));
    assert_eq!(writer.is_saved_to(), 7, "no more than \"before \"");
    postgres.start_again().await;
    is_all_stored(&server, &desk, &writer, &text).await;
    let path = format!("/api/documents/{}/versions", desk.document);
    until("both versions", async || {
        let list = server.get(&desk.writer, &path).await.ok(200);
        let versions = list["versions"].as_array().expect("versions");
        let has = |characters| versions.iter().any(|one| one["characters"] == characters);
        has("before ".len()) && has(text.len())
    })
    .await;
}

/// Goal: a PostgreSQL without space is reported to the operator and to the writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_postgresql_without_space_is_reported_and_loses_no_edit() {
    let postgres = postgres_server::shared();
    let name = postgres.empty().await;
    let server = Server::with(&[("DATABASE__URL", &postgres.url(&name))]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    // A quota, as hosters set it; the error is that of a file that cannot grow.
    let quota = "CREATE FUNCTION quota() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                   RAISE EXCEPTION 'could not extend file: No space left on device' \
                   USING ERRCODE = 'disk_full'; END $$; \
                 CREATE TRIGGER quota BEFORE INSERT ON updates EXECUTE FUNCTION quota()";
    let reviewer = server.reviewer(&desk).await;
    let mut owner = postgres.stranger(&name).await;
    sqlx::raw_sql(quota).execute(&mut owner).await.expect("a quota");
    let people = [&writer, &reviewer];
    is_full_and_then_not(&server, &desk, people, async {
        // A session that joins now is notified.
        let late = server.seated(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(problem(&late, "not-saved").await["status"], 507);
        sqlx::raw_sql("DROP TRIGGER quota ON updates").execute(&mut owner).await.expect("none");
    })
    .await;
}

/// Goal: a disk without space is a reported state, not a crash, although the log is on it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_full_disk_is_reported_and_loses_no_edit() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let disk = folder.path().canonicalize().expect("a path");
    let environment = [
        ("FULL_DISK".to_owned(), disk.display().to_string()),
        ("LD_PRELOAD".to_owned(), shim(folder.path()).await),
        ("GALLEY_HISTORY__PAUSE".to_owned(), "500ms".to_owned()),
    ];
    let mut server = Server::spawn(Arc::clone(&folder), environment.into()).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.append("before ");
    writer.saved().await;
    let reviewer = server.reviewer(&desk).await;
    std::fs::File::create(disk.join("full")).expect("a mark");
    let refused = server.post(&desk.writer, "/api/documents", json!({ "title": "t", "text": "x" }));
    refused.await.problem(503, "unavailable");
    let people = [&writer, &reviewer];
    let whole = is_full_and_then_not(&server, &desk, people, async {
        std::fs::remove_file(disk.join("full")).expect("the mark");
    })
    .await;
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, format!("before {whole}"));
}

pub(crate) async fn shim(folder: &Path) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/server/full_disk.c");
    let library = folder.join("full_disk.so").display().to_string();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, source]).status().await;
    assert!(made.expect("a C compiler").success());
    library
}

/// Types into a full storage, frees it, and holds that no edit is lost.
async fn is_full_and_then_not(
    server: &Server,
    desk: &Desk,
    [writer, reviewer]: [&Peer; 2],
    free: impl Future<Output = ()>,
) -> String {
    let (before, saved_before) = (writer.text(), writer.is_saved_to());
    writer.append("typed without space");
    let event = problem(writer, "not-saved").await;
    assert_eq!(event["status"], 507);
    assert!(event["title"].as_str().expect("text").contains("no space"), "{event}");
    assert_eq!(problem(reviewer, "not-saved").await["status"], 507);
    let answer = becomes(server, 503).await;
    assert_eq!(answer["down"], json!(["storage"]));
    let remedy = answer["remedy"].as_str().expect("text");
    assert!(remedy.contains("no space left") && remedy.contains("free space"), "{remedy}");
    let full = "galley_storage_failing{reason=\"full\"}";
    assert_eq!(server.metric(full).await, Some(1.0));
    // The peers receive it.
    reviewer.reads(&format!("{before}typed without space")).await;
    writer.append(", and more");
    stays_saved_to(writer, saved_before).await;
    let unsaved = "galley_unsaved_bytes";
    until("unsaved bytes", async || server.metric(unsaved).await > Some(0.0)).await;
    free.await;
    writer.saved().await;
    becomes(server, 200).await;
    assert_eq!(server.metric(full).await, Some(0.0));
    server.has(unsaved, 0).await;
    let whole = "typed without space, and more".to_owned();
    assert_eq!(server.text(&desk.writer, &desk.document).await, format!("{before}{whole}"));
    whole
}
