//! A document near its quota, and at it: both users are notified, and the document accepts only edits that
//! shrink it.

use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// A small quota, and frequent ticks, because some checks run at a tick.
const SMALL: [(&str, &str); 4] = [
    ("LIMITS__DOCUMENT_BYTES", "131072"),
    ("LIMITS__MESSAGE_BYTES", "65536"),
    ("SEATS__LEASE", "3s"),
    ("SEATS__RENEW_EVERY", "1s"),
];

/// Waits until the events show this state of the quota.
async fn is_notified(peer: &Peer, state: &str) -> Value {
    loop {
        let size = peer.event("document.size").await;
        assert_eq!(size["limit"], 131_072);
        if size["state"] == state {
            return size;
        }
    }
}

async fn both_are_notified(writer: &Peer, reviewer: &Peer, state: &str) {
    is_notified(writer, state).await;
    is_notified(reviewer, state).await;
}

/// A suggestion of the reviewer; returns its path.
async fn suggestion(server: &Server, desk: &Desk, quote: &str, put_in: &str) -> String {
    let end = quote.encode_utf16().count();
    let anchor = json!({ "start": 0, "end": end, "quote": quote });
    let body = json!({ "anchor": anchor, "body": "", "suggestion": put_in });
    let review = server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201);
    format!("{}/{}", desk.reviews(), review["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn g13_both_users_are_warned_at_four_fifths_of_the_quota_and_notified_when_it_is_ample() {
    let server = Server::with(&SMALL).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.append(&"x".repeat(60_000));
    writer.saved().await;
    assert!(writer.look(|state| state.events.iter().all(|e| e["event"] != "document.size")));
    writer.append(&"y".repeat(50_000));
    let size = is_notified(&writer, "near").await;
    assert!(size["bytes"].as_u64().is_some_and(|bytes| 110_000 <= bytes), "{size}");
    is_notified(&reviewer, "near").await;
    // A session that joins later receives the state too.
    reviewer.leave().await;
    let reviewer = server.reviewer(&desk).await;
    is_notified(&reviewer, "near").await;
    // The log drops removed text only at the next maintenance of the room.
    writer.remove(0, 60_000);
    both_are_notified(&writer, &reviewer, "ample").await;
    reviewer.reads(&"y".repeat(50_000)).await;
}

#[tokio::test]
async fn g13_a_full_document_can_be_read_shortened_and_reviewed_and_no_other_is_affected() {
    let server = Server::with(&SMALL).await;
    let (desk, other) = (server.desk("Begin. ").await, server.desk("").await);
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let neighbour = server.writer(&other).await;
    writer.append(&"x".repeat(60_000));
    writer.append(&"y".repeat(60_000));
    let fits = writer.text();
    writer.saved().await;
    let longer = suggestion(&server, &desk, "Begin.", &"long ".repeat(6_000)).await;
    let shorter = suggestion(&server, &desk, "Begin. xx", "B").await;
    // More text than the quota has room for.
    let end = u32::try_from(fits.encode_utf16().count()).expect("a small text");
    writer.append(&"z".repeat(40_000));
    let problem = writer.event("problem").await;
    assert_eq!(problem["type"], "/problems/document-too-large");
    assert_eq!(writer.event("denied").await["reason"], "not-stored");
    both_are_notified(&writer, &reviewer, "full").await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, fits);
    assert_eq!(reviewer.text(), fits);
    // Reviews and other documents are not affected.
    let accept = |review: &str| format!("{review}/accept");
    let refused = server.post(&desk.writer, &accept(&longer), json!({})).await;
    refused.problem(409, "document-too-large");
    let note = json!({ "anchor": { "start": 0, "end": 5, "quote": "Begin" }, "body": "?" });
    server.post(&desk.reviewer, &desk.reviews(), note).await.ok(201);
    neighbour.append("undisturbed");
    neighbour.saved().await;
    // The writer removes the rejected text: only its deletion mark is stored.
    writer.remove(end, 40_000);
    both_are_notified(&writer, &reviewer, "near").await;
    server.post(&desk.writer, &accept(&shorter), json!({})).await.ok(200);
    let shortened = fits.replacen("Begin. xx", "B", 1);
    reviewer.reads(&shortened).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, shortened);
}

#[tokio::test]
async fn an_edit_above_the_quota_is_stored_when_there_is_room_again() {
    let server = Server::with(&SMALL).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    for letter in ["a", "b", "c"] {
        writer.append(&letter.repeat(40_000));
    }
    writer.append(&"d".repeat(20_000));
    is_notified(&writer, "full").await;
    // The client keeps typing: each edit builds on a rejected one.
    writer.append("and more");
    writer.remove(0, 40_000);
    writer.append(".");
    let text = writer.text();
    reviewer.reads(&text).await;
    writer.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, text);
}

/// Goal: deletion marks have a bound too, with an error type of its own.
#[tokio::test]
async fn g13_the_marks_of_deletions_have_a_bound_of_their_own() {
    use yrs::Text as _;
    let server = Server::with(&SMALL).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    for _ in 0..3 {
        writer.append(&"x".repeat(43_000));
    }
    // Every other letter: each deletion leaves a mark, too small for garbage collection.
    for from in [6_400, 4_800, 3_200, 1_700] {
        let marks = writer.edit_offline(|content, transaction| {
            (0..800).for_each(|at| content.remove_range(transaction, from - at * 2, 1));
        });
        writer.send(galley::yjs::protocol::update(&marks));
    }
    assert_eq!(writer.event("problem").await["type"], "/problems/document-too-large");
    is_notified(&writer, "full").await;
    let length = server.text(&desk.writer, &desk.document).await.len();
    assert!((126_500..128_000).contains(&length), "{length}");
    // The remedy: text that is removed in one piece becomes one mark.
    let all = writer.look(|state| state.text().len());
    writer.remove(0, u32::try_from(all).expect("a small text"));
    is_notified(&writer, "ample").await;
    writer.append("anew");
    writer.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "anew");
}

#[tokio::test]
async fn a_reviewer_on_another_server_is_notified_of_a_full_document() {
    let cluster = Cluster::with(&SMALL).await;
    let desk = cluster.one.desk("").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    writer.append(&"x".repeat(60_000));
    // The other server subscribes to the room while its reviewer joins, and the event is published once.
    reviewer.reads(&"x".repeat(60_000)).await;
    writer.append(&"y".repeat(60_000));
    writer.append(&"z".repeat(40_000));
    both_are_notified(&writer, &reviewer, "full").await;
    writer.remove(0, 60_000);
    reviewer.until("all that was typed", |s| s.text().ends_with('z').then_some(())).await;
    is_notified(&reviewer, "near").await;
}
