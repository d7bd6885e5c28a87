//! The wall clock of Redis steps back under running servers. A shim loaded into `redis-server` shifts
//! its clock.

use std::sync::Arc;

use tempfile::TempDir;

use crate::support::galley_process::Server;
use crate::support::shifted_redis::Redis;

/// Longer than any TTL in Redis that the test sets.
const STEP_MS: i64 = 60_000;
const LEASE_MS: i64 = 12_000;
const STEPS: &str = "galley_locks_clock_steps_back_total";

/// Triggers a preflight at each server: each opens a new connection.
async fn looks_again(redis: &Redis) {
    let _killed: i64 = redis.run("CLIENT KILL TYPE normal").await.expect("an answer");
}

/// Goal: the servers log and count a step back once. The seat of a dead server lasts longer by the step
/// at most, a holder keeps renewing, and an administrator frees the seat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_step_back_of_the_redis_clock_is_logged_counted_and_prolongs_a_dead_seat() {
    let redis = Redis::start(false).await;
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let settings = [("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    let mut one = Server::in_folder(Arc::clone(&folder), &settings).await;
    let two = Server::in_folder(folder, &settings).await;
    let desk = one.desk("one").await;
    let (writer, reviewer) = (two.writer(&desk).await, one.reviewer(&desk).await);
    assert_eq!(two.metric(STEPS).await.unwrap_or_default(), 0.0);
    one.kill().await;
    drop(reviewer);

    redis.shift_clock(-STEP_MS);
    looks_again(&redis).await;
    two.has(STEPS, 1).await;
    let log = two.log();
    let lines: Vec<_> =
        log.lines().filter(|line| line.contains("the clock of Redis stepped back")).collect();
    assert!(matches!(lines[..], [line] if line.contains("seconds=")), "{lines:?}");

    let key = format!("share-link:lock:{}:reviewer", desk.link);
    let left: i64 = redis.run(&format!("PTTL {key}")).await.expect("an answer");
    assert!(LEASE_MS < left && left <= LEASE_MS + STEP_MS, "{left}");
    writer.append(" two");
    writer.saved().await;

    let session: String = redis.run(&format!("GET {key}")).await.expect("an answer");
    let path = format!("{}/api/admin/sessions/{session}", two.url);
    let ended = two.http.delete(path).bearer_auth(two.admin_token()).send().await;
    assert_eq!(ended.expect("an answer").status().as_u16(), 204);
    let reviewer = two.reviewer(&desk).await;
    reviewer.reads("one two").await;
    assert!(writer.is_open());
    // A second preflight reports nothing new.
    looks_again(&redis).await;
    writer.append(" three");
    reviewer.reads("one two three").await;
    assert_eq!(two.metric(STEPS).await, Some(1.0));
}
