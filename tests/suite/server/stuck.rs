//! A row that another program has locked or damaged delays its own document only (G16), and the close
//! code of a socket names its cause (G10, G14).

use galley::yjs::protocol;
use serde_json::Value;
use tokio::time::{Duration, Instant, sleep};
use yrs::Text as _;

use crate::server::many_servers::was_seated;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server::{self, locked_row};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// The longest time for an edit to be saved while another document is stuck, on a busy machine too. The
/// bound is a second; the test holds the lock until the other document is saved, however long that
/// takes.
const SAVED_WITHIN: Duration = Duration::from_secs(10);

fn problems(peer: &Peer) -> Vec<Value> {
    let problems = |state: &mut crate::support::ws_client::State| {
        state.events.iter().filter(|event| event["event"] == "problem").cloned().collect()
    };
    peer.look(problems)
}

/// The writer `one` types in a document whose row is locked, and `two` in another, which the server saves
/// each time.
pub(crate) async fn type_beside_a_locked_row(one: &Peer, two: &Peer) {
    for round in 0..3 {
        one.append("stuck ");
        two.append("free ");
        let began = Instant::now();
        two.saved().await;
        let took = began.elapsed();
        assert!(took < SAVED_WITHIN, "round {round}: {took:?}");
    }
}

/// Goal: while one document's row is locked, the server saves another document immediately, sends its
/// writer no problem, and is ready. The locked document is stored after the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_locked_row_delays_only_its_own_document() {
    let postgres = postgres_server::shared();
    let name = postgres.empty().await;
    let server = Server::with(&[("DATABASE__URL", &postgres.url(&name))]).await;
    let (stuck, free) = (server.desk("").await, server.desk("").await);
    let (one, two) = (server.writer(&stuck).await, server.writer(&free).await);
    let mut other = locked_row(&postgres.url(&name), &stuck.document).await;
    type_beside_a_locked_row(&one, &two).await;
    let event = one.event("problem").await;
    assert_eq!(event["type"], "/problems/not-saved");
    assert_eq!((one.is_saved_to(), problems(&two)), (0, Vec::new()));
    let ready = server.http.get(format!("{}/readyz", server.url)).send().await;
    assert_eq!(ready.expect("an answer").status(), 200);
    assert_eq!(server.text(&free.writer, &free.document).await, "free free free ");

    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    one.saved().await;
    one.append("no more");
    one.saved().await;
    assert!(one.is_open());
    let stored = server.text(&stuck.writer, &stuck.document).await;
    assert_eq!(stored, "stuck stuck stuck no more");
}

/// Goal: on a takeover at the same server, the previous session's pending edit is stored before the new
/// session is seated. Otherwise the new fence would reject the edit and reset the room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_takeover_on_the_same_server_waits_for_the_first_sessions_edit() {
    let postgres = postgres_server::shared();
    let name = postgres.empty().await;
    let server = Server::with(&[("DATABASE__URL", &postgres.url(&name))]).await;
    let desk = server.desk("Dear").await;
    let (reader, first) = (server.reviewer(&desk).await, server.writer(&desk).await);
    let mut other = locked_row(&postgres.url(&name), &desk.document).await;
    first.append(" Sir");
    // The server has set the document aside: no statement of the edit waits for the row any more.
    first.event("problem").await;

    let mut second = server.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    assert_eq!(first.closed().await, (4410, "taken_over".to_owned()));
    // A server that does not wait ratifies the new fence now. Its statement is the first that waits for
    // the row.
    sleep(RATIFIES_WITHIN).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    while !was_seated(&second).await {
        // The server's wait has timed out, and it has ratified nothing.
        assert_eq!(second.closed().await, (4503, "storage".to_owned()));
        second = server.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    }

    second.synced().await;
    assert_eq!(second.text(), "Dear Sir");
    second.append(" or Madam");
    second.saved().await;
    reader.reads("Dear Sir or Madam").await;
    assert!(reader.is_open() && problems(&reader).iter().all(|it| it["type"] != RESET));
    let stored = server.text(&desk.writer, &desk.document).await;
    assert_eq!(stored, "Dear Sir or Madam");
}

const RESET: &str = "/problems/document-reset";
/// The time of a claim from the end of the first session to the statement of the new fence, with a
/// margin.
const RATIFIES_WITHIN: Duration = Duration::from_millis(300);

/// Goal: a client that sends 40,000 edits at once while the database stores nothing retains its socket and
/// loses none, because the server reads its socket no faster than it stores. Other documents go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_flood_of_edits_pauses_its_own_socket_only() {
    let many = "1000000";
    let server =
        Server::with(&[("LIMITS__MESSAGES_PER_SECOND", many), ("LIMITS__MESSAGE_BURST", many)])
            .await;
    let (flooded, other) = (server.desk("").await, server.desk("").await);
    // Without events: a rejected edit closes the socket.
    let writer = server.claim_seat(&flooded, "writer", "").await;
    writer.synced().await;
    let (one, two) = (server.writer(&other).await, server.reviewer(&other).await);
    let edits: Vec<_> = (0..FLOOD)
        .map(|at| writer.edit_offline(|content, transaction| content.insert(transaction, at, "x")))
        .collect();

    let mut database = server.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut database).await.expect("a lock");
    edits.iter().for_each(|edit| writer.send(protocol::update(edit)));
    one.append("relayed");
    two.reads("relayed").await;
    sleep(FLOODED_FOR).await;
    sqlx::raw_sql("COMMIT").execute(&mut database).await.expect("it is free");
    one.saved().await;
    // The room reports no lost edit of the flood: the last one is there.
    let whole = "x".repeat(FLOOD as usize);
    until("the flood is stored", async || {
        server.text(&flooded.writer, &flooded.document).await == whole
    })
    .await;
    assert!(writer.is_open() && one.is_open() && two.is_open());
}

/// More than the queue of the persister has places.
const FLOOD: u32 = 40_000;
/// The time in which a server without backpressure fills the queue; SQLite waits five seconds for a lock.
const FLOODED_FOR: Duration = Duration::from_secs(3);

/// Goal: a malformed row ends the sessions of its own document, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_damaged_row_delays_only_its_own_document() {
    let server = Server::start().await;
    let (bad, good) = (server.desk("text").await, server.desk("").await);
    let one = server.seated(&bad, "writer", "events=1").await;
    let reader = server.claim_seat(&bad, "reviewer", "").await;
    let two = server.writer(&good).await;
    reader.synced().await;
    let mut database = server.database().await;
    sqlx::query("UPDATE seats SET fence = -1 WHERE link_id = $1 AND role = 'writer'")
        .bind(&bad.link)
        .execute(&mut database)
        .await
        .expect("damage");
    one.append(", and more");
    two.append("sound");
    two.saved().await;
    assert_eq!(one.event("problem").await["type"], "/problems/document-damaged");
    assert_eq!(one.event("problem").await["type"], "/problems/document-reset");
    assert_eq!(reader.closed().await, (4403, "document-damaged".to_owned()));
    // The stored text can still be read.
    let reader = server.claim_seat(&bad, "reviewer", "").await;
    reader.reads("text").await;
    let writer = server.claim_seat(&bad, "writer", "events=1").await;
    assert_eq!(writer.closed().await, (4403, "document-damaged".to_owned()));
    // A new document is saved too.
    let new = server.desk("").await;
    let three = server.writer(&new).await;
    three.append("new");
    three.saved().await;
    assert!(two.is_open() && problems(&two).is_empty());
}

/// Goal: with a malformed owner of a client id, the document opens with all of its text and is
/// read-only.
#[tokio::test]
async fn g16_a_document_with_an_owner_that_does_not_parse_opens_read_only() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    writer.append(" more");
    writer.saved().await;
    writer.leave().await;
    server.has_rooms(0).await;
    let mut database = server.database().await;
    let damage = "UPDATE clients SET user_id = 'not an id' WHERE user_id IS NOT NULL";
    sqlx::raw_sql(damage).execute(&mut database).await.expect("damage");
    let writer = server.writer(&desk).await;
    assert_eq!(writer.text(), "text more");
    assert_eq!(writer.event("problem").await["type"], "/problems/document-damaged");
    writer.append("!");
    assert_eq!(writer.event("denied").await["reason"], "not-stored");
}

/// A writer with events and a reviewer without; the server will reject the writer's next edit.
async fn refused_after(server: &Server, desk: &Desk, change: &'static str) -> (Peer, Peer) {
    let writer = server.writer(desk).await;
    let reader = server.claim_seat(desk, "reviewer", "").await;
    reader.synced().await;
    let mut database = server.database().await;
    sqlx::query(change).bind(&desk.link).execute(&mut database).await.expect("changed");
    writer.append("GHOST");
    (writer, reader)
}

/// Goal: a client that reads no events and received a rejected edit does not send it again: the close
/// code stops it.
#[tokio::test]
async fn g10_a_stock_client_that_received_a_rejected_edit_is_closed_for_good() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let later = "UPDATE seats SET fence = fence + 100 WHERE link_id = $1 AND role = 'writer'";
    let (writer, reader) = refused_after(&server, &desk, later).await;
    assert_eq!(reader.closed().await, (4410, "document-reset".to_owned()));
    assert_eq!(writer.closed().await, (4410, "expired".to_owned()));
    server.has_rooms(0).await;
    let reader = server.reviewer(&desk).await;
    assert_eq!(reader.text(), "text");
    assert_eq!(server.text(&desk.writer, &desk.document).await, "text");
}

/// Goal: a writer whose link is revoked, or whose session is evicted, learns it from the rejection of
/// its edit, before any message or tick.
#[tokio::test]
async fn g14_the_rejection_of_an_edit_names_the_reason_of_the_lost_seat() {
    let server = Server::start().await;
    let revoked = "UPDATE share_links SET revoked_at = 1 WHERE id = $1";
    let (writer, reader) = refused_after(&server, &server.desk("text").await, revoked).await;
    assert_eq!(writer.event("seat.lost").await["reason"], "revoked");
    for peer in [writer, reader] {
        assert_eq!(peer.closed().await, (4404, "revoked".to_owned()));
    }
    let evicted = "UPDATE seats SET fence = fence + 1 WHERE link_id = $1 AND role = 'writer'";
    let (writer, reader) = refused_after(&server, &server.desk("text").await, evicted).await;
    assert_eq!(writer.closed().await, (4410, "evicted".to_owned()));
    assert_eq!(reader.closed().await, (4410, "document-reset".to_owned()));
}

/// Goal: SIGTERM ends a server whose queue of edits is full and whose database does not respond, within
/// the sum of the bounds of a stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_stop_with_a_full_queue_and_storage_away_ends_within_its_bound() {
    let mut server = Server::with(&[("LIMITS__MESSAGES_PER_SECOND", "100000")]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    let mut other = server.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    let is_full = |state: &mut crate::support::ws_client::State| {
        state.events.iter().any(|event| event["type"] == "/problems/unsaved-full")
    };
    let began = Instant::now();
    while !writer.look(is_full) {
        assert!(writer.is_open() && began.elapsed() < TEST_TIMEOUT, "the queue is never full");
        for _ in 0..500 {
            writer.append("x");
        }
        sleep(Duration::from_millis(10)).await;
    }
    server.stops_within(STOP_MAX).await;
}

/// Sockets 5 s, edits 10 s, versions 2.5 s, tasks and releases 10 s, and the rest for a busy machine.
const STOP_MAX: Duration = Duration::from_secs(60);
