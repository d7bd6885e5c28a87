//! The live document, over its sockets: the server accepts, broadcasts and stores its edits, and recovers them
//! after a crash.

use galley::yjs::protocol;
use serde_json::json;
use tokio::time::{Duration, Instant, sleep, timeout};
use yrs::Text as _;

use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::ws_client::Peer;

/// Precomposed and decomposed Hangul, a family of one grapheme, a combining accent.
const KOREAN: &str = "저는 한글과 \u{1112}\u{1161}\u{11ab}글, 👩‍👩‍👧 그리고 cafe\u{301}를 씁니다.";

fn utf16(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).expect("short")
}

#[tokio::test]
async fn an_edit_of_the_writer_reaches_the_reviewer() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.insert(0, KOREAN);
    reviewer.reads(KOREAN).await;
    writer.insert(utf16("저는 "), "오늘 🙂 ");
    let expected = KOREAN.replacen("저는 ", "저는 오늘 🙂 ", 1);
    reviewer.reads(&expected).await;
    writer.remove(utf16("저는 "), utf16("오늘 🙂 "));
    reviewer.reads(KOREAN).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, KOREAN);
}

/// Goal: at rest every replica has the same text: every edit that was broadcast and stored (G8).
#[tokio::test]
async fn g8_at_rest_every_replica_has_the_same_text() {
    let server = Server::start().await;
    let desk = server.desk("시작").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    for step in 0..300_u32 {
        let length = utf16(&writer.text());
        match step % 3 {
            0 => writer.insert((step * 7919) % (length + 1), "ab"),
            1 => writer.append("다."),
            _ => writer.remove(0, 1),
        };
    }
    writer.append("끝");
    writer.saved().await;
    let text = writer.text();
    reviewer.reads(&text).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, text);
}

/// Goal: no message type carries a reviewer's edit into any replica (G10).
#[tokio::test]
async fn g10_a_reviewers_edit_is_in_no_replica() {
    let server = Server::start().await;
    let desk = server.desk("The text.").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let update = reviewer.insert(0, "EVIL ");
    assert_eq!(reviewer.event("denied").await["reason"], "not-the-writer");
    reviewer.send(protocol::sync_step2(&update));
    reviewer.event("denied").await;
    reviewer.remove(0, 8);
    reviewer.event("denied").await;
    // The server handled the messages above before this one.
    writer.append(" More.");
    writer.saved().await;
    assert_eq!(writer.text(), "The text. More.");
    assert_eq!(server.text(&desk.writer, &desk.document).await, "The text. More.");
    assert!(reviewer.is_open(), "the reviewer still reads");
}

/// Goal: the server closes a client that reads no events after its first edit from the reviewer's seat,
/// before its replica diverges further.
#[tokio::test]
async fn g10_a_reviewers_edit_closes_a_client_that_reads_no_events() {
    let server = Server::start().await;
    let desk = server.desk("The text.").await;
    let writer = server.writer(&desk).await;
    let stock = server.claim_seat(&desk, "reviewer", "").await;
    stock.reads("The text.").await;
    // A reply without new structs is no edit.
    stock.send(protocol::sync_step2(&[0, 0]));
    writer.append(" More.");
    stock.reads("The text. More.").await;
    stock.insert(0, "REV ");
    assert_eq!(stock.closed().await, (4403, "not-the-writer".to_owned()));
    assert_eq!(server.text(&desk.writer, &desk.document).await, "The text. More.");
}

/// Goal: the edits of an offline writer are merged after its reconnect, under its own client id.
#[tokio::test]
async fn offline_edits_are_merged_when_their_writer_returns() {
    let server = Server::start().await;
    let desk = server.desk("one").await;
    let writer = server.writer(&desk).await;
    writer.append(" two");
    writer.saved().await;
    let offline = writer.edit_offline(|content, transaction| {
        let end = content.len(transaction);
        content.insert(transaction, end, " three");
    });
    writer.leave().await;
    let again = server.writer(&desk).await;
    again.send(protocol::sync_step2(&offline));
    let reviewer = server.reviewer(&desk).await;
    reviewer.reads("one two three").await;
}

#[tokio::test]
async fn presence_is_broadcast_under_the_servers_name_and_removed_with_its_socket() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    reviewer.announce(&json!({ "user": { "name": "the boss" }, "cursor": 3 }));
    let client = reviewer.client_id();
    let state = writer
        .until("the reviewer's presence", move |state| state.presence.get(&client)?.1.clone())
        .await;
    assert_eq!(state["user"]["name"], "Lee");
    assert_eq!(state["user"]["role"], "reviewer");
    assert_eq!(state["cursor"], 3);
    drop(reviewer);
    writer
        .until("its end", move |state| state.presence.get(&client)?.1.is_none().then_some(()))
        .await;
}

/// Goal: one document receives nothing of another.
#[tokio::test]
async fn a_document_receives_nothing_of_another() {
    let server = Server::start().await;
    let (one, two) = (server.desk("one").await, server.desk("two").await);
    let (first, second) = (server.writer(&one).await, server.writer(&two).await);
    first.append("!");
    first.saved().await;
    second.append("?");
    second.saved().await;
    assert_eq!(server.text(&one.writer, &one.document).await, "one!");
    assert_eq!(server.text(&two.writer, &two.document).await, "two?");
    server
        .get(&one.writer, &format!("/api/documents/{}/text", two.document))
        .await
        .problem(404, "not-found");
}

/// Goal: one commit stores all edits that arrived before it, not one commit for each key.
#[tokio::test]
async fn edits_that_arrive_together_share_a_commit() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let mut writers = Vec::new();
    for _ in 0..10 {
        let desk = server.desk_of(kim.clone(), lee.clone(), "").await;
        writers.push(server.writer(&desk).await);
    }
    // The edits are made before the test sends the first, so the server receives them as fast as it accepts
    // them.
    let typed = |writer: &Peer| {
        let typed = |at| writer.edit_offline(|text, transaction| text.insert(transaction, at, "x"));
        (0..100).map(typed).collect::<Vec<_>>()
    };
    let edits: Vec<_> = writers.iter().map(typed).collect();
    for (writer, edits) in writers.iter().zip(&edits) {
        for edit in edits {
            writer.send(protocol::update(edit));
        }
    }
    for writer in &writers {
        writer.saved().await;
    }
    // Where commits are slow, one commit stores more edits.
    let commits = server.metric("galley_document_persist_seconds_count").await.expect("some");
    assert!(commits < 500.0, "{commits} for 1,000 edits");
}

/// Goal: a typing writer does not receive `document.saved` after each key.
#[tokio::test]
async fn document_saved_is_broadcast_at_most_twice_a_second() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.append("x");
    writer.saved().await;
    writer.take_events();
    let began = Instant::now();
    for _ in 0..100 {
        writer.append("x");
        sleep(Duration::from_millis(10)).await;
    }
    writer.saved().await;
    let events = writer.take_events();
    let events = events.iter().filter(|event| event["event"] == "document.saved").count();
    // One more, because the first of them may come immediately.
    let halves_of_seconds = began.elapsed().as_millis().div_ceil(500);
    assert!(
        events as u128 <= halves_of_seconds + 1,
        "{events} times in {halves_of_seconds} halves"
    );
}

/// Goal: a document that is edited all day does not grow by a row for each key, and merging rows loses no
/// concurrent edit.
#[tokio::test]
async fn compaction_merges_rows_during_typing_and_kill_9_loses_no_edit() {
    let settings = [("SEATS__RENEW_EVERY", "250ms"), ("LIMITS__MESSAGE_BURST", "100000")];
    let mut server = Server::with(&settings).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    // Too few rows for a merge: it starts while more arrive.
    for _ in 0..990 {
        writer.append("가");
    }
    writer.saved().await;
    let mut database = server.database().await;
    let began = Instant::now();
    loop {
        let rows = "SELECT (SELECT COUNT(*) FROM updates) + (SELECT COUNT(*) FROM journal)";
        let rows: i64 = sqlx::query_scalar(rows).fetch_one(&mut database).await.expect("a count");
        if rows < 900 {
            break;
        }
        assert!(began.elapsed() < TEST_TIMEOUT, "{rows} rows, and no merge");
        writer.append("나");
        // The merge waits until no edit of the room is pending.
        sleep(Duration::from_millis(10)).await;
    }
    writer.append("다");
    writer.saved().await;
    let text = writer.text();
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, text);
}

/// Goal: the server merges rows into one snapshot when the last session leaves; text, count and edits stay
/// right.
#[tokio::test]
async fn compaction_merges_rows_and_counts_characters_when_the_last_session_leaves() {
    let mut server = Server::start().await;
    let desk = server.desk("하나").await;
    let path = format!("/api/documents/{}", desk.document);
    let writer = server.writer(&desk).await;
    for number in 0..100 {
        writer.append(if number % 2 == 0 { "가" } else { "👩‍👩‍👧" });
    }
    writer.saved().await;
    let text = writer.text();
    let open = server.get(&desk.writer, &path).await.ok(200);
    assert_eq!(open["characters"], 102, "the live count is in graphemes");
    let list = server.get(&desk.writer, "/api/documents").await.ok(200);
    assert_eq!(list["documents"][0], open, "the list has the same count");
    writer.leave().await;
    let listed = async {
        let list = async || server.get(&desk.writer, "/api/documents").await.ok(200);
        while list().await["documents"][0]["characters"] != 102 {}
    };
    timeout(TEST_TIMEOUT, listed).await.expect("the stored count is updated");
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, text);
    let again = server.writer(&desk).await;
    again.append("!");
    again.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, format!("{text}!"));
}
