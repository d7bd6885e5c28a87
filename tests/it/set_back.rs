//! A database that was set back under living servers, as an asynchronous failover or a restore does:
//! rows that were called saved are gone, with the numbers, client ids and fences of that time. No edit
//! that was called saved is lost while one client or one server has it (DESIGN §8).

use serde_json::json;
use sqlx::{PgConnection, SqliteConnection};
use tokio::time::{Duration, Instant, sleep};
use yrs::Doc;

use crate::desk::Desk;
use crate::peer::{Peer, empty};
use crate::postgres::Cluster;
use crate::postgres_server;
use crate::process::Server;
use crate::redis_server::PATIENCE;

const BACK: (u16, &str) = (1012, "database-set-back");

/// A client that keeps its document from one connection to the next, as y-websocket does.
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

    /// Comes, again and again as a stock client does, until it is in sync.
    async fn come(&self) -> Peer {
        let (desk, role) = (self.desk, self.role);
        let who = if role == "writer" { &desk.writer } else { &desk.reviewer };
        let began = Instant::now();
        loop {
            let doc = self.doc.clone();
            let (url, token) = (&self.server.url, &who.token);
            let came = Peer::come(url, &desk.link, role, token, self.query, doc).await;
            if let Some(peer) = came
                && peer.becomes_synced().await
            {
                return peer;
            }
            assert!(began.elapsed() < PATIENCE, "the {role} cannot come back");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Whether the writer types in the moment after the database was set back, or nobody does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Types,
    Rests,
}

/// Types and saves some rows, has a suggestion accepted, and says what the text is.
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
    let began = Instant::now();
    for server in servers {
        loop {
            let read = server.text(&desk.writer, &desk.document).await;
            if read == text {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{read:?} and not {text:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Takes back all that came after the second row of the one document, and the fences of its seats.
async fn set_postgres_back(database: &mut PgConnection) {
    let lose = "BEGIN; DELETE FROM updates WHERE seq > 2; DELETE FROM clients; \
                UPDATE documents SET last_seq = 2; UPDATE seats SET fence = fence - 1000000; \
                COMMIT";
    sqlx::raw_sql(lose).execute(database).await.expect("set back");
}

async fn set_sqlite_back(database: &mut SqliteConnection) {
    let lose = "BEGIN IMMEDIATE; DELETE FROM journal WHERE seq > 2; DELETE FROM updates WHERE seq > 2; \
                DELETE FROM clients; UPDATE documents SET last_seq = MIN(last_seq, 2); \
                UPDATE seats SET fence = fence - 1000000; COMMIT";
    sqlx::raw_sql(lose).execute(database).await.expect("set back");
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
    // At once, or within two ticks.
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
    // What the database has, and nothing else.
    for server in [&cluster.one, &cluster.two] {
        server.has_rooms(0).await;
    }
    is_everywhere(&[&cluster.one, &cluster.two], &desk, &text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_what_was_called_saved_survives_a_postgresql_set_back_while_nobody_types() {
    survives_on_two_servers(Then::Rests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_what_was_called_saved_survives_a_postgresql_set_back_while_the_writer_types() {
    survives_on_two_servers(Then::Types).await;
}

/// Goal: the same of SQLite and a lone server, with clients that hear no events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_what_was_called_saved_survives_a_sqlite_file_that_was_set_back() {
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

/// Goal: only grants were lost, of which no number tells: both people go on where they are.
#[tokio::test]
async fn g2_a_grant_that_the_database_lost_is_ratified_again_within_a_tick() {
    let server = Server::with(&[("SEATS__RENEW_EVERY", "500ms")]).await;
    let desk = server.desk("one").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let mut database = server.database().await;
    let lose = "UPDATE seats SET fence = fence - 1000000";
    sqlx::raw_sql(lose).execute(&mut database).await.expect("set back");
    let began = Instant::now();
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 3, "quote": "one" });
    loop {
        let body = json!({ "anchor": anchor, "body": "?" });
        let answer = server.post(&desk.reviewer, &reviews, body).await;
        if answer.status.as_u16() == 201 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", answer.json);
        sleep(Duration::from_millis(50)).await;
    }
    writer.append(" two");
    writer.saved().await;
    assert!(writer.is_open() && reviewer.is_open());
}
