//! Standing in line for a seat, on one server and across two.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::peer::Peer;
use crate::process::Server;

const QUICK: &[(&str, &str)] = &[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")];

/// Goal: who waits is told their place and who sits there, and is seated the moment it is free.
#[tokio::test]
async fn g5_who_waits_is_seated_the_moment_the_seat_is_free() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "events=1&wait=60").await;
    let told = waiter.event("seat.waiting").await;
    assert_eq!(told["position"], 1);
    assert_eq!(told["holder"]["name"], "Kim");
    assert!(told["holder"]["since"].is_string() && told["retry_at"].is_string());
    holder.append(", and more");
    let left_at = Instant::now();
    holder.leave().await;
    waiter.event("seat.granted").await;
    assert!(left_at.elapsed() < Duration::from_secs(1), "{:?}", left_at.elapsed());
    // What it asked while it waited is answered now, and it may write.
    waiter.synced().await;
    assert_eq!(waiter.text(), "text, and more");
    waiter.append("!");
    waiter.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "text, and more!");
}

/// Goal: a stock client, which is told nothing and counts its server as gone after 30 s of silence,
/// hears a frame every four seconds while it waits, and begins to sync when it is seated.
#[tokio::test]
async fn a_stock_client_is_kept_alive_in_the_line() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "wait=60").await;
    waiter.until("it is kept alive twice", |state| (2 <= state.keep_alives).then_some(())).await;
    assert!(waiter.is_open() && waiter.text().is_empty());
    holder.leave().await;
    waiter.synced().await;
    assert_eq!(waiter.text(), "text");
    assert!(waiter.look(|state| state.events.is_empty()));
}

/// Goal: a page that was asleep asks whether anybody is there, and is answered at once in the line too:
/// it would take silence for a dead connection, and come back to the end of the line.
#[tokio::test]
async fn who_asks_in_the_line_whether_anybody_is_there_is_answered_at_once() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let asked_at = Instant::now();
    for asked in 1..=100 {
        waiter.send(vec![3]);
        waiter.until("an answer", |state| (asked <= state.keep_alives).then_some(())).await;
    }
    assert!(asked_at.elapsed() < Duration::from_secs(60), "{:?}", asked_at.elapsed());
    assert!(waiter.is_open());
}

#[tokio::test]
async fn who_waited_in_vain_is_told_so() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let asked_at = Instant::now();
    let waiter = server.knock(&desk, "writer", "events=1&wait=1").await;
    waiter.event("seat.waiting").await;
    assert_eq!(waiter.closed().await, (4408, "seat-not-free".to_owned()));
    assert!(Duration::from_secs(1) <= asked_at.elapsed());
    let at_once = server.knock(&desk, "writer", "events=1&wait=0").await;
    assert_eq!(at_once.closed().await.0, 4409);
}

/// Goal: the line is first come first served on both servers, and who leaves it holds nobody up.
#[tokio::test]
async fn g5_the_line_keeps_its_order_across_servers_and_lets_leavers_go() {
    let cluster = Cluster::with(QUICK).await;
    let desk = cluster.one.desk("text").await;
    let holder = cluster.one.writer(&desk).await;
    let mut waiters = Vec::new();
    for place in 1..=4_usize {
        let waiter = cluster.either(place).knock(&desk, "writer", "events=1&wait=60").await;
        assert_eq!(waiter.event("seat.waiting").await["position"], json!(place));
        waiters.push(waiter);
    }
    let cut = waiters.remove(2);
    let gone = waiters.remove(0);
    gone.leave().await;
    drop(cut);
    let mut seated = holder;
    for waiter in waiters {
        let left_at = Instant::now();
        seated.leave().await;
        waiter.event("seat.granted").await;
        assert!(left_at.elapsed() < Duration::from_secs(2), "{:?}", left_at.elapsed());
        waiter.synced().await;
        seated = waiter;
    }
}

/// Goal: a waiter outlives the server of the holder (G4).
#[tokio::test]
async fn g4_a_killed_servers_seat_goes_to_the_first_in_line() {
    let mut cluster = Cluster::with(QUICK).await;
    let desk = cluster.one.desk("text").await;
    let _holder = cluster.one.writer(&desk).await;
    let waiter = cluster.two.knock(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    cluster.one.kill().await;
    let killed_at = Instant::now();
    waiter.event("seat.granted").await;
    assert!(killed_at.elapsed() < Duration::from_millis(3_800), "{:?}", killed_at.elapsed());
}

#[tokio::test]
async fn g14_a_revoked_link_sends_the_line_away() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let path = format!("/api/share-links/{}", desk.link);
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(waiter.closed().await.0, 4404);
}

/// Goal: a stopping server sends those who wait elsewhere too, and does not wait for them.
#[tokio::test]
async fn a_stopping_server_sends_the_line_away() {
    let mut server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "events=1&wait=300").await;
    waiter.event("seat.waiting").await;
    assert!(server.stop().await.success());
    assert_eq!(waiter.event("server.draining").await["reconnect_after_ms"], 0);
    assert_eq!(waiter.closed().await.0, 1012);
}

/// Goal: a take-over by the same person passes the line, which stays as it was.
#[tokio::test]
async fn a_take_over_goes_before_the_line() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.knock(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let taker: Peer = server.knock(&desk, "writer", "events=1&takeover=1").await;
    taker.event("seat.granted").await;
    assert_eq!(holder.closed().await.0, 4410);
    assert!(waiter.is_open());
    taker.leave().await;
    waiter.event("seat.granted").await;
}
