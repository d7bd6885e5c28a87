//! Servers on PostgreSQL: started simultaneously on an empty database, killed, and without PostgreSQL for a
//! while.

use std::sync::Arc;

use tempfile::TempDir;

use crate::server::storage_outage::stays_saved_to;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server;

/// Two servers with one Redis and an empty database, started simultaneously.
pub(crate) struct Cluster {
    _redis: redis_server::Server,
    pub(crate) one: Server,
    pub(crate) two: Server,
}

impl Cluster {
    async fn start(postgres: &postgres_server::Server) -> Self {
        Self::start_named(postgres).await.0
    }

    /// Starts the same; also returns the name of the database.
    pub(crate) async fn start_named(postgres: &postgres_server::Server) -> (Self, String) {
        let redis = redis_server::Server::start().await;
        let name = postgres.empty().await;
        let (locks, database) = (redis.url(), postgres.url(&name));
        let settings = [
            ("LOCKS__URL", locks.as_str()),
            ("DATABASE__URL", database.as_str()),
            ("SEATS__LEASE", "3s"),
            ("SEATS__RENEW_EVERY", "1s"),
        ];
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let (one, two) = tokio::join!(
            Server::in_folder(Arc::clone(&folder), &settings),
            Server::in_folder(folder, &settings),
        );
        (Self { _redis: redis, one, two }, name)
    }
}

async fn is_ready(server: &Server) -> bool {
    let ready = server.http.get(format!("{}/readyz", server.url)).send().await;
    ready.expect("an answer").status().is_success()
}

async fn becomes(server: &Server, ready: bool) {
    until(&format!("readiness {ready}"), async || is_ready(server).await == ready).await;
}

/// Goal: two servers create the schema of an empty database together, two users write across them, and text
/// that a killed server saved is on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_text_that_a_killed_server_saved_in_postgresql_is_on_the_other() {
    let mut cluster = Cluster::start(postgres_server::shared()).await;
    for server in [&cluster.one, &cluster.two] {
        assert!(is_ready(server).await);
    }
    let desk = cluster.one.desk("나는 글을 쓴다").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let mut text = "나는 글을 쓴다".to_owned();
    for number in 0..20 {
        let more = format!(" {number}🙂");
        writer.append(&more);
        text.push_str(&more);
    }
    reviewer.reads(&text).await;
    writer.saved().await;
    let idle = "galley_database_connections{state=\"idle\"}";
    until("an idle connection", async || cluster.one.metric(idle).await > Some(0.0)).await;
    cluster.one.has("galley_database_waiting", 0).await;
    cluster.one.kill().await;
    drop(writer);

    let again = cluster.two.writer(&desk).await;
    assert_eq!(again.text(), text);
    again.append(" 끝");
    again.saved().await;
    reviewer.reads(&format!("{text} 끝")).await;
    cluster.one.start_again().await;
    let read = cluster.one.text(&desk.writer, &desk.document).await;
    assert_eq!(read, format!("{text} 끝"));
    // PostgreSQL's notice of an existing schema was a line of every start.
    assert!(!cluster.one.log().contains("already exists"), "{}", cluster.one.log());
}

/// Goal: without its database a server is not ready and sends no `document.saved`. After the recovery it
/// stores every edit once, and no client reconnects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_edits_during_a_postgresql_outage_are_stored_after_the_reconnect() {
    let postgres = postgres_server::Server::careless();
    let cluster = Cluster::start(&postgres).await;
    let desk = cluster.one.desk("Dear").await;
    let writer = cluster.one.writer(&desk).await;
    writer.append(" Sir");
    writer.saved().await;
    postgres.stop();
    for part in [" or", " Mad", "am"] {
        writer.append(part);
    }
    writer.event("problem").await;
    becomes(&cluster.one, false).await;
    // No more than " Sir".
    stays_saved_to(&writer, 4).await;
    postgres.start_again().await;
    writer.saved().await;
    becomes(&cluster.one, true).await;
    assert!(writer.is_open());
    for server in [&cluster.one, &cluster.two] {
        assert_eq!(server.text(&desk.writer, &desk.document).await, "Dear Sir or Madam");
    }
}
