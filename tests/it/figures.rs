//! What the operator reads of seats and their renewal: each figure follows what happens.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::process::Server;
use crate::redis_server::{self, PATIENCE};

/// Waits until that line has exactly that value.
async fn becomes(server: &Server, line: &str, wanted: f64) {
    let began = Instant::now();
    loop {
        let found = server.figure(line).await;
        if found == Some(wanted) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{line}: {found:?} and not {wanted}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Goal: claims, waits, hand-overs, holds that end by whatever way, rounds and what they put back are
/// each counted once.
#[tokio::test]
async fn seats_and_their_renewal_are_measured() {
    let redis = redis_server::Server::start().await;
    let url = redis.url();
    let settings = [
        ("LOCKS__URL", url.as_str()),
        ("DATABASE__SHARED_SQLITE", "true"),
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "1s"),
        ("SEATS__IDLE_RELEASE", "15s"),
    ];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let claims =
        |outcome| format!("galley_seat_claims_total{{role=\"writer\",outcome=\"{outcome}\"}}");
    let holds = "galley_lock_hold_seconds_count{class=\"seat\"}";

    let first = server.writer(&desk).await;
    becomes(&server, &claims("granted"), 1.0).await;
    becomes(&server, "galley_seats_held{role=\"writer\"}", 1.0).await;
    becomes(&server, "galley_seats_held{role=\"reviewer\"}", 0.0).await;
    becomes(&server, "galley_renewal_locks", 1.0).await;
    assert_eq!(server.knock(&desk, "writer", "").await.closed().await.0, 4409);
    becomes(&server, &claims("taken"), 1.0).await;
    becomes(&server, holds, 0.0).await;

    // Given back, and handed over.
    let second = server.knock(&desk, "writer", "events=1&wait=60").await;
    second.event("seat.waiting").await;
    first.leave().await;
    second.event("seat.granted").await;
    becomes(&server, "galley_seat_handover_seconds_count", 1.0).await;
    becomes(&server, &claims("granted"), 2.0).await;
    becomes(&server, "galley_seat_wait_seconds_count", 3.0).await;
    becomes(&server, holds, 1.0).await;

    // Taken over.
    let third = server.knock(&desk, "writer", "events=1&takeover=1").await;
    third.event("seat.granted").await;
    assert_eq!(second.closed().await.0, 4410);
    becomes(&server, holds, 2.0).await;

    // Gone from Redis, and put back.
    becomes(&server, "galley_renewal_reasserted_total", 0.0).await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let rounds = server.figure("galley_renewal_round_seconds_count").await;
    let gone: i64 = redis.run(&format!("DEL {key}")).await;
    assert_eq!(gone, 1);
    becomes(&server, "galley_renewal_reasserted_total", 1.0).await;
    assert!(rounds < server.figure("galley_renewal_round_seconds_count").await);
    let lags = server.figure("galley_renewal_lag_seconds_count").await;
    assert!(Some(0.0) < lags, "{lags:?}");

    // Idle for too long.
    assert_eq!(third.closed().await.0, 4411);
    becomes(&server, holds, 3.0).await;
    becomes(&server, "galley_seats_lost_total{reason=\"idle\"}", 1.0).await;
    becomes(&server, "galley_seats_held{role=\"writer\"}", 0.0).await;
}
