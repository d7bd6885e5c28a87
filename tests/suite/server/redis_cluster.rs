//! Several servers with locks and pub/sub on a Redis Cluster.

use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::server::many_servers::was_seated;
use crate::support::galley_process::Server;
use crate::support::redis_cluster::{ClusterServer, FAILOVER_MAX};

/// Two servers with the same Cluster, database and secret.
async fn start(redis: &ClusterServer, more: &[(&str, &str)]) -> (Server, Server) {
    let url = redis.url();
    let mut settings = vec![("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    settings.extend_from_slice(more);
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let one = Server::in_folder(folder, &settings).await;
    let two = one.beside().await;
    (one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_two_servers_on_a_redis_cluster_seat_exactly_one() {
    let redis = ClusterServer::start().await;
    let (one, two) = start(&redis, &[]).await;
    for round in 0..10 {
        let desk = one.desk("text").await;
        let servers = [&one, &two].into_iter().cycle().take(20);
        let claims = servers.map(|server| server.claim_seat(&desk, "writer", "events=1"));
        let peers = futures_util::future::join_all(claims).await;
        let seated = futures_util::future::join_all(peers.iter().map(was_seated)).await;
        assert_eq!(seated.iter().filter(|seated| **seated).count(), 1, "round {round}");
        let url = format!("{}/api/admin/sessions", one.url);
        let request = one.http.get(url).bearer_auth(one.admin_token());
        let sessions: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        let key = format!("share-link:lock:{{{}}}:writer", desk.link);
        let listed = sessions["sessions"].as_array().expect("a list");
        assert!(listed.iter().any(|session| session["lock_key"] == key), "{sessions}");
    }
}

/// Two users on two servers write and read across the failover of a primary to its replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_and_texts_survive_the_failover_of_a_redis_cluster_primary() {
    let mut redis = ClusterServer::start_with(3, 1, &[]).await;
    let (one, two) = start(&redis, &[]).await;
    let desk = loop {
        let desk = one.desk("").await;
        let key = format!("share-link:lock:{{{}}}:writer", desk.link);
        if redis.at(redis.slot(&key).await) == 0 {
            break desk;
        }
    };
    let writer = one.writer(&desk).await;
    let reviewer = two.reviewer(&desk).await;
    writer.append("before ");
    reviewer.reads("before ").await;

    redis.nodes[0].stop().await;
    let died = Instant::now();
    writer.append("meanwhile ");
    writer.saved().await;
    // Pub/sub was on that node: a server that may have missed a message reads the database.
    reviewer.reads("before meanwhile ").await;
    let waiting = loop {
        let peer = two.claim_seat(&desk, "writer", "events=1&wait=60").await;
        let stands = peer.until("a place or a refusal", |state| {
            let stands = state.events.iter().any(|event| event["event"] == "seat.waiting");
            (stands || state.closed.is_some()).then_some(stands)
        });
        if stands.await {
            break peer;
        }
        assert_eq!(peer.closed().await.0, 4503);
    };
    assert!(died.elapsed() < FAILOVER_MAX, "{:?}", died.elapsed());
    assert!(writer.is_open() && reviewer.is_open());
    writer.append("after");
    reviewer.reads("before meanwhile after").await;
    writer.leave().await;
    waiting.event("seat.granted").await;
    waiting.leave().await;
    assert!(reviewer.is_open());
}
