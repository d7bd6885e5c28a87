//! The commands that the servers send to Redis, counted.

use std::time::Duration;

use tokio::time::sleep;

use crate::server::many_servers::Cluster;

const RENEW: &[(&str, &str)] = &[("SEATS__LEASE", "6s"), ("SEATS__RENEW_EVERY", "2s")];

/// Windows of the count: each of the two servers may check its Redis in another one.
const WINDOWS: usize = 12;

/// Goal: a tick sends one pipeline for any number of seats, and none when no seat is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_round_is_one_pipeline_for_any_number_of_seats() {
    let cluster = Cluster::with(RENEW).await;
    cluster.redis.forget_calls().await;
    sleep(Duration::from_secs(5)).await;
    for command in ["evalsha", "eval", "script|load", "pexpire", "mget", "get"] {
        assert_eq!(cluster.redis.calls(command).await, 0, "{command} with nothing held");
    }
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    let mut peers = Vec::new();
    for _ in 0..40 {
        let desk = cluster.one.desk_of(kim.clone(), lee.clone(), "text").await;
        peers.push(cluster.one.writer(&desk).await);
        peers.push(cluster.one.reviewer(&desk).await);
    }
    let mut counts = (0, 0);
    // A server's health check runs one script more, at most once in fifteen seconds.
    for _ in 0..WINDOWS {
        cluster.redis.forget_calls().await;
        sleep(Duration::from_secs(6)).await;
        counts = (cluster.redis.calls("script|load").await, cluster.redis.calls("evalsha").await);
        if counts.0 == counts.1 {
            break;
        }
    }
    let (rounds, scripts) = counts;
    assert!((2..=4).contains(&rounds), "{rounds} pipelines in three ticks");
    assert_eq!(scripts, rounds, "80 seats fit one script of a pipeline");
    assert_eq!(cluster.redis.calls("mget").await, rounds);
    assert_eq!(cluster.redis.calls("pexpire").await, rounds * 80, "the tick renews each seat once");
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
    let desk = cluster.one.desk("text").await;
    // The first call of each script loads it.
    cluster.one.writer(&desk).await.leave().await;
    cluster.redis.forget_calls().await;
    let writer = cluster.one.writer(&desk).await;
    assert_eq!(cluster.redis.calls("evalsha").await, 1, "the claim");
    writer.leave().await;
    let released = async {
        while cluster.redis.calls("evalsha").await < 2 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), released).await.expect("the release");
    assert_eq!(cluster.redis.calls("evalsha").await, 2);
    assert_eq!(cluster.redis.calls("eval").await, 0);
}
