//! A database set back under running servers, as an asynchronous failover or a restore does: rows that
//! `document.saved` named are gone, with the sequence numbers, client ids and fences of that time. No
//! saved edit is lost while one client or one server has it (decision 40).

use galley::yjs::protocol;
use serde_json::json;
use sqlx::{PgConnection, SqliteConnection};
use tokio::time::{Duration, Instant, sleep};
use yrs::{Doc, ReadTxn as _, StateVector, Transact as _};

use crate::server::postgres::Cluster;
use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::{Peer, empty};

const BACK: (u16, &str) = (1012, "database-set-back");

/// A client that holds its document across reconnects, as y-websocket does.
struct Client<'a> {
    server: &'a Server,
    desk: &'a Desk,
    role: &'static str,
    query: &'static str,
    doc: Doc,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server, desk: &'a Desk, role: &'static str) -> Self {
        Self { server, desk, role, query: "events=1", doc: empty() }
    }

    /// Reconnects, as a stock client does, until it is synced.
    async fn come(&self) -> Peer {
        let (desk, role) = (self.desk, self.role);
        let who = if role == "writer" { &desk.writer } else { &desk.reviewer };
        found(async || {
            let doc = self.doc.clone();
            let (url, token) = (&self.server.url, &who.token);
            match Peer::come(url, &desk.link, role, token, self.query, doc).await {
                Some(peer) if peer.becomes_synced().await => Ok(peer),
                _refused => Err(format!("the {role} is not back")),
            }
        })
        .await
    }
}

/// Whether the writer types in the moment after the set-back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Types,
    Rests,
}

/// Types and saves some rows, has a suggestion accepted, and returns the text.
async fn write(server: &Server, desk: &Desk, writer: &Peer) -> String {
    for word in [" two", " three", " four"] {
        writer.append(word);
        writer.saved().await;
    }
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 3, "quote": "one" });
    let body = json!({ "anchor": anchor, "body": "", "suggestion": "ONE" });
    let review = server.post(&desk.reviewer, &reviews, body).await.ok(201);
    let accept = format!("{reviews}/{}/accept", review["id"].as_str().expect("an id"));
    server.post(&desk.writer, &accept, json!({})).await.ok(200);
    writer.reads("ONE two three four").await;
    writer.append(" five");
    writer.saved().await;
    "ONE two three four five".to_owned()
}

async fn is_everywhere(servers: &[&Server], desk: &Desk, text: &str) {
    for server in servers {
        found(async || {
            let read = server.text(&desk.writer, &desk.document).await;
            if read == text { Ok(()) } else { Err((read, text)) }
        })
        .await;
    }
}

/// Deletes all rows after the second one of the one document, and the fences of its seats.
async fn set_postgres_back(database: &mut PgConnection) {
    let lose = "BEGIN; DELETE FROM updates WHERE seq > 2; DELETE FROM clients; \
                UPDATE documents SET last_seq = 2; UPDATE seats SET fence = fence - 1000000; \
                COMMIT";
    sqlx::raw_sql(lose).execute(database).await.expect("set back");
}

/// Deletes all rows after the second one of each document, and the fences of its seats.
pub(crate) const OLDER_SQLITE: &str = "BEGIN IMMEDIATE; DELETE FROM journal WHERE seq > 2; \
    DELETE FROM updates WHERE seq > 2; DELETE FROM clients; \
    UPDATE documents SET last_seq = MIN(last_seq, 2); \
    UPDATE seats SET fence = fence - 1000000; COMMIT";

async fn set_sqlite_back(database: &mut SqliteConnection) {
    sqlx::raw_sql(OLDER_SQLITE).execute(database).await.expect("set back");
}

async fn survives_on_two_servers(then: Then) {
    let postgres = postgres_server::shared();
    let (cluster, name) = Cluster::start_named(postgres).await;
    let desk = cluster.one.desk("one").await;
    let writer = Client::new(&cluster.one, &desk, "writer");
    let reviewer = Client::new(&cluster.two, &desk, "reviewer");
    let (typing, reading) = (writer.come().await, reviewer.come().await);
    let mut text = write(&cluster.one, &desk, &typing).await;
    reading.reads(&text).await;

    set_postgres_back(&mut postgres.stranger(&name).await).await;
    if then == Then::Types {
        typing.append(" six");
        text.push_str(" six");
    }
    // Immediately, or within two ticks.
    for peer in [&typing, &reading] {
        assert_eq!(peer.closed().await, (BACK.0, BACK.1.to_owned()));
    }
    let (typing, reading) = (writer.come().await, reviewer.come().await);
    typing.saved().await;
    typing.append("!");
    typing.saved().await;
    text.push('!');
    reading.reads(&text).await;
    is_everywhere(&[&cluster.one, &cluster.two], &desk, &text).await;
    for peer in [typing, reading] {
        assert!(peer.is_open());
        peer.leave().await;
    }
    // The contents of the database, and nothing else.
    for server in [&cluster.one, &cluster.two] {
        server.has_rooms(0).await;
    }
    is_everywhere(&[&cluster.one, &cluster.two], &desk, &text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_saved_text_survives_a_postgresql_failover_to_an_older_state_at_rest() {
    survives_on_two_servers(Then::Rests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_saved_text_survives_a_postgresql_failover_to_an_older_state_during_typing() {
    survives_on_two_servers(Then::Types).await;
}

/// Goal: the same with SQLite and a lone server, with clients that read no events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_saved_text_survives_a_restore_of_an_older_sqlite_file() {
    for then in [Then::Rests, Then::Types] {
        let server = Server::with(&[("SEATS__RENEW_EVERY", "500ms")]).await;
        let desk = server.desk("one").await;
        let mut writer = Client::new(&server, &desk, "writer");
        let reviewer = Client { query: "", ..Client::new(&server, &desk, "reviewer") };
        let (typing, reading) = (writer.come().await, reviewer.come().await);
        let mut text = write(&server, &desk, &typing).await;
        set_sqlite_back(&mut server.database().await).await;
        if then == Then::Types {
            typing.append(" six");
            text.push_str(" six");
        }
        for peer in [&typing, &reading] {
            assert_eq!(peer.closed().await, (BACK.0, BACK.1.to_owned()));
        }
        writer.query = "";
        let _typing = writer.come().await;
        is_everywhere(&[&server], &desk, &text).await;
        let reading = reviewer.come().await;
        reading.reads(&text).await;
    }
}

/// Goal: the database lost only grants, which no sequence number reveals: both users continue where
/// they are.
#[tokio::test]
async fn g2_a_grant_that_the_database_lost_is_ratified_again_within_a_tick() {
    let server = Server::with(&[("SEATS__RENEW_EVERY", "500ms")]).await;
    let desk = server.desk("one").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let mut database = server.database().await;
    let lose = "UPDATE seats SET fence = fence - 1000000";
    sqlx::raw_sql(lose).execute(&mut database).await.expect("set back");
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 3, "quote": "one" });
    found(async || {
        let body = json!({ "anchor": anchor, "body": "?" });
        let answer = server.post(&desk.reviewer, &reviews, body).await;
        if answer.status.as_u16() == 201 { Ok(()) } else { Err(answer.json) }
    })
    .await;
    writer.append(" two");
    writer.saved().await;
    assert!(writer.is_open() && reviewer.is_open());
}

/// Deletes all rows after the second one of the one document, and no client id.
async fn set_rows_back(database: &mut SqliteConnection) {
    let lose = "BEGIN IMMEDIATE; DELETE FROM journal WHERE seq > 2; DELETE FROM updates WHERE seq > 2; \
                UPDATE documents SET last_seq = MIN(last_seq, 2); COMMIT";
    sqlx::raw_sql(lose).execute(database).await.expect("set back");
}

/// Goal: the server dies together with the last commits of its database, an accepted suggestion among
/// them. The writer's client returns the server's edit and all later edits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_lost_suggestion_comes_back_from_the_writer_after_the_server_died() {
    for query in ["events=1", ""] {
        let mut server = Server::start().await;
        let desk = server.desk("one").await;
        let writer = Client::new(&server, &desk, "writer");
        let reviewer = Client { query, ..Client::new(&server, &desk, "reviewer") };
        let (typing, reading) = (writer.come().await, reviewer.come().await);
        let text = write(&server, &desk, &typing).await;
        reading.reads(&text).await;
        let (written, read) = (writer.doc.clone(), reviewer.doc.clone());
        server.kill().await;
        drop((typing, reading));
        set_sqlite_back(&mut server.database().await).await;
        server.start_again().await;

        let reviewer = Client { query, doc: read, ..Client::new(&server, &desk, "reviewer") };
        let writer = Client { query, doc: written, ..Client::new(&server, &desk, "writer") };
        let (reading, typing) = (reviewer.come().await, writer.come().await);
        is_everywhere(&[&server], &desk, &text).await;
        typing.append("!");
        reading.reads(&format!("{text}!")).await;
        assert!(typing.is_open() && reading.is_open());
        typing.leave().await;
        reading.leave().await;
        // The contents of the database, and nothing else.
        server.has_rooms(0).await;
        is_everywhere(&[&server], &desk, &format!("{text}!")).await;
    }
}

/// All structs of a client, as its reply to a query that the server did not send.
fn whole(doc: &Doc) -> bytes::Bytes {
    let update = doc.transact().encode_diff_v1(&StateVector::default());
    protocol::sync_step2(&update)
}

/// Goal: a stock client in the reviewer's seat sends all its structs. Known text, and text of the
/// writer that the database lost, is no edit of the reviewer: the client stays connected. Its own text
/// closes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_a_reviewers_resend_that_adds_nothing_is_accepted() {
    let mut server = Server::start().await;
    let desk = server.desk("one").await;
    let writer = Client::new(&server, &desk, "writer");
    let reviewer = Client { query: "", ..Client::new(&server, &desk, "reviewer") };
    let (typing, reading) = (writer.come().await, reviewer.come().await);
    for word in [" two", " three"] {
        typing.append(word);
        typing.saved().await;
    }
    reading.reads("one two three").await;
    reading.send(whole(&reviewer.doc));
    typing.append(" four");
    reading.reads("one two three four").await;
    let (written, read) = (writer.doc.clone(), reviewer.doc.clone());
    server.kill().await;
    drop((typing, reading));
    set_rows_back(&mut server.database().await).await;
    server.start_again().await;

    let reviewer = Client { query: "", doc: read, ..Client::new(&server, &desk, "reviewer") };
    let reading = reviewer.come().await;
    reading.send(whole(&reviewer.doc));
    assert_eq!(server.text(&desk.writer, &desk.document).await, "one two");
    let writer = Client { doc: written, ..Client::new(&server, &desk, "writer") };
    let typing = writer.come().await;
    typing.append("!");
    reading.reads("one two three four!").await;
    is_everywhere(&[&server], &desk, "one two three four!").await;
    reading.edit_offline(|content, transaction| {
        yrs::Text::insert(content, transaction, 0, "MINE ");
    });
    reading.send(whole(&reviewer.doc));
    assert_eq!(reading.closed().await, (4403, "not-the-writer".to_owned()));
    is_everywhere(&[&server], &desk, "one two three four!").await;
    assert!(typing.is_open());
}

/// The longest time in which the server closes a room and its clients after a set-back, on a busy
/// machine too. Without a bound over all retries, each waits for a locked row: more than 50 s.
const CLOSED_WITHIN: Duration = Duration::from_secs(40);

/// Goal: the rows of a set-back database are locked. The room stops restoring the lost edits within a
/// bound, and the clients return them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_room_of_a_locked_older_database_closes_within_a_bound() {
    let postgres = postgres_server::shared();
    let (cluster, name) = Cluster::start_named(postgres).await;
    let desk = cluster.one.desk("one").await;
    let writer = Client::new(&cluster.one, &desk, "writer");
    let typing = writer.come().await;
    for word in [" two", " three", " four"] {
        typing.append(word);
        typing.saved().await;
    }
    let mut database = postgres.stranger(&name).await;
    set_postgres_back(&mut database).await;
    let lock = "BEGIN; LOCK TABLE updates IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut database).await.expect("the lock");
    let began = Instant::now();
    while typing.is_open() {
        assert!(began.elapsed() < CLOSED_WITHIN, "the room still waits for the database");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(typing.closed().await, (BACK.0, BACK.1.to_owned()));
    sqlx::raw_sql("COMMIT").execute(&mut database).await.expect("it is free");
    let typing = writer.come().await;
    typing.saved().await;
    is_everywhere(&[&cluster.one, &cluster.two], &desk, "one two three four").await;
}

/// Goal: lost grants with locked rows delay no revocation of the next ticks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_revocation_does_not_wait_for_lost_grants() {
    let postgres = postgres_server::shared();
    let (cluster, name) = Cluster::start_named(postgres).await;
    let server = &cluster.one;
    let mut peers = Vec::new();
    let mut lost = Vec::new();
    for _ in 0..4 {
        let desk = server.desk("one").await;
        peers.push((server.writer(&desk).await, server.reviewer(&desk).await));
        lost.push(desk);
    }
    let revoked = server.desk("one").await;
    let reviewer = server.reviewer(&revoked).await;
    let links: Vec<_> = lost.iter().map(|desk| desk.link.clone()).collect();
    let documents: Vec<_> = lost.iter().map(|desk| desk.document.clone()).collect();
    let (mut holder, mut database) =
        (postgres.stranger(&name).await, postgres.stranger(&name).await);
    let fences = fences_of(&mut database, &links).await;
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.expect("a transaction");
    sqlx::query("SELECT 1 FROM documents WHERE id = ANY($1) FOR UPDATE")
        .bind(&documents)
        .execute(&mut holder)
        .await
        .expect("the locks");
    sqlx::query("UPDATE seats SET fence = fence - 1000000 WHERE link_id = ANY($1)")
        .bind(&links)
        .execute(&mut database)
        .await
        .expect("set back");
    until("a grant is ratified again", async || waits_for_a_lock(&mut database).await).await;
    sqlx::query("UPDATE share_links SET revoked_at = now() WHERE id = $1")
        .bind(&revoked.link)
        .execute(&mut database)
        .await
        .expect("revoked");
    assert_eq!(reviewer.closed().await.0, 4404);

    sqlx::raw_sql("COMMIT").execute(&mut holder).await.expect("it is free");
    let began = Instant::now();
    while fences_of(&mut database, &links).await != fences {
        assert!(began.elapsed() < CLOSED_WITHIN, "the grants are not ratified again");
        sleep(Duration::from_millis(50)).await;
    }
    for ((writer, reviewer), desk) in peers.iter().zip(&lost) {
        writer.append(" two");
        reviewer.reads("one two").await;
        is_everywhere(&[server], desk, "one two").await;
    }
}

/// The ratified fences of all seats of those links.
async fn fences_of(database: &mut PgConnection, links: &[String]) -> Vec<i64> {
    let fences = "SELECT fence FROM seats WHERE link_id = ANY($1) ORDER BY link_id, role";
    sqlx::query_scalar(fences).bind(links).fetch_all(database).await.expect("fences")
}

pub(crate) async fn waits_for_a_lock(database: &mut PgConnection) -> bool {
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND application_name = 'galley' AND wait_event_type = 'Lock'";
    let count: i64 = sqlx::query_scalar(waits).fetch_one(database).await.expect("a count");
    0 < count
}
