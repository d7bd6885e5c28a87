//! Redis restarts, loses its data, stops; clients freeze. Held seats stay held, or their writes fail closed.

use std::time::Duration;

use serde_json::json;
use sqlx::Connection;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::server::many_servers::{Cluster, was_seated};
use crate::server::reminder_fixtures::admin;
use crate::server::set_back::waits_for_a_lock;
use crate::support::fixtures::{synced, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server::{self, locked_row};
use crate::support::ws_client::Peer;

/// The number of seats in Redis.
async fn held(cluster: &Cluster) -> usize {
    let keys: Vec<String> = cluster.redis.run("KEYS share-link:lock:*").await;
    keys.len()
}

/// Goal: a restart of Redis without its data under 200 sessions ends none of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_two_hundred_sessions_are_reasserted_after_an_empty_redis_restart() {
    let mut cluster = Cluster::start().await;
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    let mut peers = Vec::new();
    for number in 0..100 {
        let server = cluster.either(number);
        let desk = server.desk_of(kim.clone(), lee.clone(), "text").await;
        peers.push(server.writer(&desk).await);
        peers.push(server.reviewer(&desk).await);
    }
    assert_eq!(held(&cluster).await, 200);
    cluster.redis.stop().await;
    cluster.redis.start_again().await;
    let came_back = Instant::now();
    let all_again = until("every lock is reasserted", async || held(&cluster).await == 200).await;
    let waited = all_again - came_back;
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    for peer in peers.iter().step_by(2) {
        peer.append(" more");
        peer.saved().await;
    }
    assert!(peers.iter().all(Peer::is_open));
}

/// An older state of Redis names sessions that have left, or shows seats as free that later sessions hold. A
/// claim in between is refused in favour of the later session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_redis_restart_with_an_older_state_costs_no_session_its_seat() {
    const DESKS: usize = 6;
    let mut cluster = Cluster::start().await;
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    let (mut desks, mut first) = (Vec::new(), Vec::new());
    for number in 0..DESKS {
        let desk = cluster.one.desk_of(kim.clone(), lee.clone(), "").await;
        let writer = cluster.either(number).writer(&desk).await;
        // Some sessions leave before Redis saves its state.
        if number % 2 == 0 {
            writer.leave().await;
        } else {
            first.push(writer);
        }
        desks.push(desk);
    }
    let state = cluster.redis.stored().await;
    for writer in first {
        writer.leave().await;
    }
    let mut later = Vec::new();
    for (number, desk) in desks.iter().enumerate() {
        let writer = cluster.either(number / 2).seated(desk, "writer", "events=1&wait=20").await;
        let reviewer = cluster.either(number).reviewer(desk).await;
        later.push((writer, reviewer));
    }
    cluster.redis.stop().await;
    cluster.redis.start_again_with(&state).await;
    let tabs = desks.iter().enumerate().map(async |(number, desk)| {
        // The claim goes to the session's own server, which probes its own socket. Pub/sub may still
        // reconnect, and a server counts a probe without a reply as unanswered.
        let server = cluster.either(number / 2);
        let mut close = (4503, String::new());
        // That server has not reconnected to Redis yet.
        while close.0 == 4503 {
            close = server.claim_seat(desk, "writer", "events=1").await.closed().await;
        }
        assert_eq!(close.0, 4409, "{}", close.1);
    });
    futures_util::future::join_all(tabs).await;
    for (writer, reviewer) in &later {
        writer.append("later");
        writer.saved().await;
        reviewer.reads("later").await;
        assert!(writer.is_open() && reviewer.is_open());
    }
}

/// Goal: a SCRIPT FLUSH costs no seat.
#[tokio::test]
async fn a_script_flush_loses_no_seat() {
    let cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "500ms")]).await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let _: () = cluster.redis.run("SCRIPT FLUSH").await;
        sleep(Duration::from_millis(100)).await;
    }
    writer.append("!");
    writer.saved().await;
    let reviewer = cluster.two.reviewer(&desk).await;
    reviewer.reads("text!").await;
}

/// Goal: Redis is away for a minute. The server rejects writes before the key can expire, the sockets stay
/// open, and writing continues after the reconnect.
#[tokio::test]
async fn g3_without_redis_writes_stop_before_the_key_could_expire_and_go_on_after() {
    let mut cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.one.reviewer(&desk).await;
    cluster.redis.stop().await;
    let stopped_at = Instant::now();
    writer.event("seat.uncertain").await;
    let waited = stopped_at.elapsed();
    // The server may have sent the last renewal immediately before; the key lives 12 s from then.
    assert!(waited < Duration::from_secs(12), "{waited:?}");
    let refused = writer.append("typed meanwhile ");
    assert_eq!(writer.event("denied").await["reason"], "seat-uncertain");
    assert!(!refused.is_empty());
    sleep(Duration::from_secs(60).saturating_sub(stopped_at.elapsed())).await;
    assert!(writer.is_open() && reviewer.is_open(), "the sockets stay");
    assert_eq!(reviewer.text(), "");
    cluster.redis.start_again().await;
    writer.event("seat.restored").await;
    // The server requests the rejected edit, and the client still has it.
    reviewer.reads("typed meanwhile ").await;
    writer.append("and after");
    writer.saved().await;
    reviewer.reads("typed meanwhile and after").await;
}

/// Goal: typing while the seat is uncertain counts as activity: the session does not reach its idle timeout.
#[tokio::test]
async fn typing_while_redis_is_away_resets_the_idle_timeout() {
    let mut cluster = Cluster::with(&[
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "1s"),
        ("SEATS__IDLE_RELEASE", "8s"),
    ])
    .await;
    let desk = cluster.one.desk("").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.one.reviewer(&desk).await);
    cluster.redis.stop().await;
    writer.event("seat.uncertain").await;
    // The reviewer moves last, so the server warns and releases it last if typing does not count.
    writer.append("typed ");
    writer.event("denied").await;
    writer.take_events();
    reviewer.announce(&json!({ "cursor": 0 }));
    while reviewer.is_open() {
        writer.append("away ");
        assert_eq!(writer.event("denied").await["reason"], "seat-uncertain");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(reviewer.closed().await.0, 4411);
    assert_eq!(writer.take_events().iter().find(|event| event["event"] == "seat.idle"), None);
    let typed = writer.text();
    cluster.redis.start_again().await;
    writer.event("seat.restored").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    reviewer.reads(&typed).await;
}

/// Goal: no seat is granted while the lock service is away, and the refusal has a retry hint.
#[tokio::test]
async fn without_redis_no_seat_is_granted() {
    let mut cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    cluster.redis.stop().await;
    let peer = cluster.one.claim_seat(&desk, "writer", "events=1").await;
    assert_eq!(peer.closed().await.0, 4503);
    let lives = cluster.one.http.get(format!("{}/healthz", cluster.one.url)).send().await;
    assert_eq!(lives.expect("an answer").status().as_u16(), 200);
}

/// Goal: a change that is committed is no failure because Redis cannot name the sessions.
#[tokio::test]
async fn without_redis_a_committed_change_succeeds_and_its_seats_are_unknown() {
    let mut cluster = Cluster::start().await;
    let (desk, park) = (cluster.one.desk("text").await, cluster.one.guest("Park").await);
    let link = format!("/api/share-links/{}", desk.link);
    let (join, invite) = (format!("{link}/join"), json!({ "invite": desk.invite }));
    let refused = cluster.one.post(&park, &join, invite.clone()).await;
    refused.problem(409, "reviewer-exists");
    cluster.redis.stop().await;
    let body = Some(json!({ "user_id": park.id }));
    let replaced = cluster.one.call(&desk.writer, "PUT", &format!("{link}/reviewer"), body).await;
    let replaced = replaced.ok(200);
    assert_eq!(replaced["reviewer"]["id"], park.id);
    let unknown = json!({ "taken": null, "user": null, "since": null });
    let unknown = json!({ "writer": unknown, "reviewer": unknown });
    assert_eq!(replaced["seats"], unknown);
    assert_eq!(cluster.two.post(&park, &join, invite).await.ok(200)["seats"], unknown);
    assert_eq!(cluster.two.get(&park, &link).await.ok(200)["seats"], unknown);
    let list = cluster.one.get(&desk.writer, "/api/share-links").await.ok(200);
    assert_eq!(list["share_links"][0]["seats"], unknown);
    let (path, title) = (format!("/api/documents/{}", desk.document), json!({ "title": "제목" }));
    let renamed = cluster.two.call(&desk.writer, "PATCH", &path, Some(title)).await.ok(200);
    assert_eq!(renamed["title"], "제목");
    assert_eq!(cluster.one.get(&desk.writer, &path).await.ok(200)["title"], "제목");
}

/// Goal: Redis ends between the commit of an eviction and the release of its seat. The session has ended.
#[tokio::test]
async fn without_redis_a_committed_eviction_succeeds() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let mut cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let admin = admin(&cluster.one);
    let sessions = cluster.one.get(&admin, "/api/admin/sessions").await.ok(200);
    let session = sessions["sessions"][0]["session_id"].as_str().expect("an id");
    let path = format!("/api/admin/sessions/{session}");
    let mut other = locked_row(&url, &desk.document).await;
    let redis = &mut cluster.redis;
    let meanwhile = async {
        // The session is found by then, and the eviction waits for the row.
        until("the eviction waits", async || waits_for_a_lock(&mut other).await).await;
        redis.stop().await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    };
    let evicting = cluster.one.call(&admin, "DELETE", &path, None);
    let (evicted, ()) = tokio::join!(evicting, meanwhile);
    evicted.ok(204);
    assert_eq!(writer.closed().await, (4410, "evicted".to_owned()));
}

/// Goal: a frozen client loses its seat within `client_timeout` and a tick (G4).
///
/// The client is the stock one in a process of its own, stopped with SIGSTOP. Its kernel still acknowledges
/// packets, so only the missing pongs reveal the frozen process.
#[tokio::test]
async fn g4_a_frozen_client_loses_its_seat_within_client_timeout_and_a_tick() {
    let server = Server::with(&[
        ("SEATS__LEASE", "6s"),
        ("SEATS__RENEW_EVERY", "2s"),
        ("SEATS__CLIENT_TIMEOUT", "4s"),
    ])
    .await;
    let desk = server.desk("text").await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stock/hold_seat.mjs");
    let mut client = Command::new("node")
        .args([script, &server.url, &desk.link, "reviewer", &desk.reviewer.token])
        .kill_on_drop(true)
        .spawn()
        .expect("node");
    let writer = server.writer(&desk).await;
    writer.event("peer.joined").await;
    let id = client.id().expect("the stock client starts").to_string();
    let stopped = Command::new("kill").args(["-STOP", &id]).status().await;
    assert!(stopped.expect("kill is installed").success());
    let frozen_at = Instant::now();
    writer.event("peer.left").await;
    let waited = frozen_at.elapsed();
    assert!(waited <= Duration::from_millis(6_500), "{waited:?}");
    let reviewer = server.reviewer(&desk).await;
    assert!(reviewer.is_open());
    client.kill().await.expect("it can be killed");
}

/// Goal: a writer that reloads while storage is away, and types as soon as storage returns, loses no edit and
/// no document. The server does not store an edit that builds on a rejected one.
#[tokio::test]
async fn g7_a_reload_while_storage_is_away_loses_no_edit_and_no_document() {
    let server = Server::start().await;
    let desk = server.desk("Dear").await;
    let before = server.writer(&desk).await;
    let mut other = server.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    before.append(" Sir");
    before.event("problem").await;
    before.leave().await;
    // The claim arrives while storage is away: it is refused then, or granted after the return.
    let early = server.claim_seat(&desk, "writer", "events=1").await;
    sleep(Duration::from_secs(1)).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    other.close().await.expect("closed");
    let after = match was_seated(&early).await {
        true => early,
        false => synced(&server, &desk, "writer", "events=1").await,
    };
    after.synced().await;
    after.append(" or Madam");
    after.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "Dear Sir or Madam");
    assert!(after.is_open());
}

/// Goal: a key of another type, set by hand, costs only its own seat: the server renews and lists its other
/// seats.
#[tokio::test]
async fn g6_a_key_of_another_type_costs_no_other_seat() {
    let cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")]).await;
    let mut peers = Vec::new();
    for broken in ["lock", "grant", "none"] {
        let desk = cluster.one.desk("text").await;
        let peer = cluster.one.writer(&desk).await;
        if broken != "none" {
            let lock = format!("share-link:lock:{}:writer", desk.link);
            let spoilt = format!("share-link:{broken}:{}:writer", desk.link);
            let mut spoil = redis::pipe();
            // A round that comes between them would set the key again.
            spoil.atomic().del(&[&lock, &spoilt]).lpush(&spoilt, "x");
            let mut redis = cluster.redis.connection().await;
            spoil.exec_async(&mut redis).await.expect("no error");
        }
        peers.push((desk, peer));
    }
    for (_, peer) in &peers[..2] {
        assert_eq!(peer.closed().await.0, 4410);
    }
    // Longer than the lease.
    sleep(Duration::from_secs(4)).await;
    let (desk, unharmed) = &peers[2];
    unharmed.append(" goes on");
    unharmed.saved().await;
    let close = unharmed.look(|state| state.events.iter().any(|e| e["event"] == "seat.uncertain"));
    assert!(!close);
    let link = format!("/api/share-links/{}", desk.link);
    let link = cluster.two.get(&desk.writer, &link).await.ok(200);
    assert_eq!(link["seats"]["writer"]["taken"], true);
    let link = format!("/api/share-links/{}", peers[0].0.link);
    let link = cluster.two.get(&peers[0].0.writer, &link).await.ok(200);
    assert_eq!(link["seats"]["writer"]["taken"], true, "by no known session");
}
