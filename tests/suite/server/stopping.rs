//! The drain of a server: its announcement, its order and its bound.

use serde_json::Value;
use sqlx::Connection as _;

use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server;

impl Server {
    /// Status and body of `/readyz`.
    async fn readiness(&self) -> (u16, Value) {
        let answer = self.http.get(format!("{}/readyz", self.url)).send().await;
        let answer = answer.expect("the listener is open");
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    /// Waits until `/readyz` announces the stop.
    async fn announces_its_stop(&self) -> Value {
        found(async || {
            let (status, body) = self.readiness().await;
            if status == 503 { Ok(body) } else { Err(body) }
        })
        .await
    }
}

#[tokio::test]
async fn a_stopping_server_is_not_ready_before_it_closes_its_listener() {
    let mut server = Server::with(&[("SERVER__LINGER", "10m")]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    assert_eq!(server.readiness().await.0, 200);

    server.signal("-TERM").await;

    let body = server.announces_its_stop().await;
    assert_eq!(body["down"], serde_json::json!(["draining"]), "{body}");
    // The server still serves open sockets; a load balancer sends new ones to another server.
    writer.append("still served");
    writer.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "still served");
    let late = server.claim_seat(&desk, "reviewer", "events=1").await;
    assert_eq!(late.closed().await.0, 1012);
    assert!(writer.is_open());

    server.signal("-TERM").await;
    let status = server.ended().await;
    assert_eq!(status.code(), Some(1), "a second signal ends it at once");
}

#[tokio::test]
async fn a_terminals_interrupt_does_not_linger() {
    let mut server = Server::with(&[("SERVER__LINGER", "10m")]).await;
    server.signal("-INT").await;
    assert!(server.ended().await.success());
}

/// Goal: the server acts on the second signal while edits wait for a database that does not store them.
#[tokio::test]
async fn g16_a_second_signal_ends_a_server_that_cannot_store() {
    let mut server = Server::start().await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let mut stranger = server.database().await;
    let lock = stranger.begin_with("BEGIN IMMEDIATE").await.expect("the write lock");
    writer.append("owed");
    reviewer.reads("owed").await;
    server.signal("-TERM").await;
    assert_eq!(writer.closed().await.0, 1012);
    server.signal("-TERM").await;
    assert_eq!(server.ended().await.code(), Some(1));
    drop(lock);
}

/// Goal: a session whose link the server is reading when the drain begins is not seated.
#[tokio::test]
async fn g16_no_session_is_seated_after_the_drain_began() {
    let postgres = postgres_server::shared();
    let database = postgres.empty().await;
    let url = postgres.url(&database);
    let mut server = Server::with(&[("DATABASE__URL", url.as_str())]).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let mut stranger = postgres.stranger(&database).await;
    let mut lock = stranger.begin().await.expect("a transaction");
    // The claim reads both tables, and no other step of the stop waits for the first.
    sqlx::raw_sql("LOCK TABLE share_links IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .expect("locked");
    let late = server.claim_seat(&desk, "reviewer", "events=1").await;
    let waits = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the link is being read", async || {
        sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut *lock).await.expect("read") != 0
    })
    .await;

    server.signal("-TERM").await;
    // The drain has copied the registry by now.
    assert_eq!(writer.closed().await.0, 1012);
    lock.rollback().await.expect("unlocked");

    assert_eq!(late.closed().await.0, 1012);
    let granted = late.take_events().iter().any(|event| event["event"] == "seat.granted");
    assert!(!granted, "the server stops");
    assert!(server.ended().await.success());
}
