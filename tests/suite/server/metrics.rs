//! The metrics of seats and their renewal: each one changes with its event.

use crate::support::galley_process::Server;
use crate::support::redis_server;

/// Goal: the server counts each claim, wait, hand-over, end of a lease, renewal round and reassertion once.
#[tokio::test]
async fn each_event_of_a_seat_and_its_renewal_is_counted_once() {
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
    server.has(&claims("granted"), 1).await;
    server.has("galley_seats_held{role=\"writer\"}", 1).await;
    server.has("galley_seats_held{role=\"reviewer\"}", 0).await;
    server.has("galley_renewal_locks", 1).await;
    assert_eq!(server.claim_seat(&desk, "writer", "").await.closed().await.0, 4409);
    server.has(&claims("taken"), 1).await;
    server.has(holds, 0).await;

    // Released, and handed over.
    let second = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    second.event("seat.waiting").await;
    server.has("galley_seats_waited_for{role=\"writer\"}", 1).await;
    first.leave().await;
    second.event("seat.granted").await;
    server.has("galley_seat_handover_seconds_count", 1).await;
    server.has("galley_seats_waited_for{role=\"writer\"}", 0).await;
    server.has(&claims("granted"), 2).await;
    server.has("galley_seat_wait_seconds_count", 3).await;
    server.has(holds, 1).await;

    // Taken over.
    let third = server.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    third.event("seat.granted").await;
    assert_eq!(second.closed().await.0, 4410);
    server.has(holds, 2).await;

    // The key vanishes from Redis and is reasserted.
    server.has("galley_renewal_reasserted_total", 0).await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let rounds = server.metric("galley_renewal_round_seconds_count").await;
    let gone: i64 = redis.run(&format!("DEL {key}")).await;
    assert_eq!(gone, 1);
    server.has("galley_renewal_reasserted_total", 1).await;
    assert!(rounds < server.metric("galley_renewal_round_seconds_count").await);
    let lags = server.metric("galley_renewal_lag_seconds_count").await;
    assert!(Some(0.0) < lags, "{lags:?}");

    // Released after the idle timeout.
    assert_eq!(third.closed().await.0, 4411);
    server.has(holds, 3).await;
    server.has("galley_seats_lost_total{reason=\"idle\"}", 1).await;
    server.has("galley_seats_held{role=\"writer\"}", 0).await;
}
