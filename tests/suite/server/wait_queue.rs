//! The wait queue of a seat, on one server and across two.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::stopwatch::Stopwatch;
use crate::support::ws_client::Peer;

const QUICK: &[(&str, &str)] = &[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")];

/// Goal: a waiter receives its queue position and the holder, and is seated as soon as the seat is
/// free.
#[tokio::test]
async fn g5_the_first_waiter_is_seated_when_the_seat_is_handed_over() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    let event = waiter.event("seat.waiting").await;
    assert_eq!(event["position"], 1);
    assert_eq!(event["holder"]["name"], "Kim");
    assert!(event["holder"]["since"].is_string() && event["retry_at"].is_string());
    holder.append(", and more");
    let left_at = Stopwatch::start();
    holder.leave().await;
    waiter.event("seat.granted").await;
    assert!(left_at.elapsed() < Duration::from_millis(2_500), "{:?}", left_at.elapsed());
    // The server answers the waiter's earlier messages now, and the waiter may write.
    waiter.synced().await;
    assert_eq!(waiter.text(), "text, and more");
    waiter.append("!");
    waiter.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "text, and more!");
}

/// Goal: a stock client reads no events and closes after 30 s of silence. It receives a frame every
/// four seconds while it waits, and syncs when it is seated.
#[tokio::test]
async fn a_stock_client_receives_heartbeats_in_the_wait_queue() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "wait=60").await;
    waiter.until("it is kept alive twice", |state| (2 <= state.keep_alives).then_some(())).await;
    assert!(waiter.is_open() && waiter.text().is_empty());
    holder.leave().await;
    waiter.synced().await;
    assert_eq!(waiter.text(), "text");
    assert!(waiter.look(|state| state.events.is_empty()));
}

/// Goal: a page that resumes from sleep probes the connection, and the server answers a waiter
/// immediately. Otherwise the page would reconnect and lose its queue position.
#[tokio::test]
async fn a_waiter_that_probes_its_connection_is_answered_at_once() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let requested_at = Stopwatch::start();
    for count in 1..=100 {
        waiter.send(vec![3]);
        waiter.until("an answer", |state| (count <= state.keep_alives).then_some(())).await;
    }
    assert!(requested_at.elapsed() < Duration::from_secs(60), "{:?}", requested_at.elapsed());
    assert!(waiter.is_open());
}

#[tokio::test]
async fn a_waiter_is_closed_with_seat_not_free_when_its_wait_times_out() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let requested_at = Instant::now();
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=1").await;
    waiter.event("seat.waiting").await;
    assert_eq!(waiter.closed().await, (4408, "seat-not-free".to_owned()));
    assert!(Duration::from_secs(1) <= requested_at.elapsed());
    let at_once = server.claim_seat(&desk, "writer", "events=1&wait=0").await;
    assert_eq!(at_once.closed().await.0, 4409);
}

/// Goal: the wait queue is first come, first served on both servers, and a waiter that leaves delays no
/// other.
#[tokio::test]
async fn g5_the_wait_queue_is_ordered_across_servers_and_drops_leaving_waiters() {
    let cluster = Cluster::with(QUICK).await;
    let desk = cluster.one.desk("text").await;
    let holder = cluster.one.writer(&desk).await;
    let mut waiters = Vec::new();
    for position in 1..=4_usize {
        let waiter = cluster.either(position).claim_seat(&desk, "writer", "events=1&wait=60").await;
        assert_eq!(waiter.event("seat.waiting").await["position"], json!(position));
        waiters.push(waiter);
    }
    let cut = waiters.remove(2);
    let gone = waiters.remove(0);
    gone.leave().await;
    drop(cut);
    let mut seated = holder;
    for waiter in waiters {
        let left_at = Stopwatch::start();
        seated.leave().await;
        waiter.event("seat.granted").await;
        assert!(left_at.elapsed() < Duration::from_millis(2_500), "{:?}", left_at.elapsed());
        waiter.synced().await;
        seated = waiter;
    }
}

/// Goal: a waiter outlives the server of the holder (G4).
#[tokio::test]
async fn g4_a_killed_servers_seat_goes_to_the_first_in_the_wait_queue() {
    let mut cluster = Cluster::with(QUICK).await;
    let desk = cluster.one.desk("text").await;
    let _holder = cluster.one.writer(&desk).await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    cluster.one.kill().await;
    let killed_at = Stopwatch::start();
    waiter.event("seat.granted").await;
    assert!(killed_at.elapsed() < Duration::from_millis(5_500), "{:?}", killed_at.elapsed());
}

#[tokio::test]
async fn g14_a_revoked_link_closes_the_wait_queue() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let path = format!("/api/share-links/{}", desk.link);
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(waiter.closed().await.0, 4404);
}

/// Goal: a stopping server closes its waiters with a retry hint too, and does not wait for them.
#[tokio::test]
async fn a_drain_closes_the_wait_queue() {
    let mut server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=300").await;
    waiter.event("seat.waiting").await;
    assert!(server.stop().await.success());
    // A drain spreads the sockets by their position in the registry, which holds the waiter too.
    let hint = &waiter.event("server.draining").await["reconnect_after_ms"];
    assert!(hint.as_u64().is_some_and(|hint| hint <= 25), "{hint}");
    assert_eq!(waiter.closed().await.0, 1012);
}

/// Goal: a takeover by the same user precedes the wait queue, which is unchanged.
#[tokio::test]
async fn a_takeover_precedes_the_wait_queue() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let taker: Peer = server.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    taker.event("seat.granted").await;
    assert_eq!(holder.closed().await.0, 4410);
    assert!(waiter.is_open());
    taker.leave().await;
    waiter.event("seat.granted").await;
}
