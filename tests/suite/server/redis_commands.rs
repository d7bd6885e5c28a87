//! The commands that the servers send to Redis, counted.

use std::time::Duration;

use tokio::time::sleep;

use crate::server::many_servers::Cluster;

const RENEW: &[(&str, &str)] = &[("SEATS__LEASE", "6s"), ("SEATS__RENEW_EVERY", "2s")];

/// A window with one tick or two. Other work of the two servers is seldom: each checks its Redis in
/// thirty seconds and acquires the lock of a job in fifteen, so most windows have none of it.
const WINDOW: Duration = Duration::from_millis(2_500);
const WINDOWS: usize = 30;

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
    let mut counts = [0; 4];
    for _ in 0..WINDOWS {
        cluster.redis.forget_calls().await;
        sleep(WINDOW).await;
        let commands = ["script|load", "evalsha", "mget", "pexpire"];
        counts = cluster.redis.calls_of(commands).await;
        if (1..=2).contains(&counts[0]) && counts[0] == counts[1] && counts[1] == counts[2] {
            break;
        }
    }
    let rounds = counts[0];
    assert!((1..=2).contains(&rounds), "{counts:?}: pipelines in a window of one tick or two");
    assert_eq!(counts, [rounds, rounds, rounds, rounds * 80], "a round is one script for 80 seats");
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
