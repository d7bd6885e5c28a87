//! The commands that the servers send to Redis, counted.

use std::time::Duration;

use tokio::time::sleep;

use crate::server::many_servers::Cluster;
use crate::support::fixtures::{found, until};
use crate::support::redis_monitor::Monitor;

const RENEW: &[(&str, &str)] = &[("SEATS__LEASE", "6s"), ("SEATS__RENEW_EVERY", "2s")];

/// Goal: a tick sends one script for any number of seats, and none when no seat is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_round_is_one_pipeline_for_any_number_of_seats() {
    let cluster = Cluster::with(RENEW).await;
    let monitor = Monitor::of(&cluster.redis).await;
    let of_seats = async || monitor.scripts(&cluster.redis, "share-link:lock:").await;
    // Two rounds without a seat.
    sleep(Duration::from_secs(5)).await;
    assert!(of_seats().await.is_empty(), "nothing is held");
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    let mut peers = Vec::new();
    for _ in 0..40 {
        let desk = cluster.one.desk_of(kim.clone(), lee.clone(), "text").await;
        peers.push(cluster.one.writer(&desk).await);
        peers.push(cluster.one.reviewer(&desk).await);
    }
    of_seats().await;
    monitor.forget();
    let rounds = found(async || {
        let rounds = of_seats().await;
        if 2 <= rounds.len() { Ok(rounds) } else { Err(rounds) }
    });
    for round in rounds.await {
        assert_eq!(round.matches("share-link:lock:").count(), 80, "a round is one script: {round}");
    }
    drop(peers);
}

/// Goal: a claim is one script call, and so is a release.
#[tokio::test]
async fn a_claim_is_one_script_and_so_is_a_release() {
    let cluster = Cluster::with(&[
        ("SEATS__LEASE", "60s"),
        ("SEATS__RENEW_EVERY", "20s"),
        ("SEATS__CLIENT_TIMEOUT", "50s"),
    ])
    .await;
    let monitor = Monitor::of(&cluster.redis).await;
    let desk = cluster.one.desk("text").await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let scripts = async || monitor.scripts(&cluster.redis, &key).await.len();
    // The first call of each script loads it.
    cluster.one.writer(&desk).await.leave().await;
    until("the release", async || cluster.redis.run::<u64>(&format!("EXISTS {key}")).await == 0)
        .await;
    scripts().await;
    monitor.forget();
    let writer = cluster.one.writer(&desk).await;
    assert_eq!(scripts().await, 1, "the claim");
    writer.leave().await;
    until("the release", async || 2 <= scripts().await).await;
    assert_eq!(scripts().await, 2);
}
