//! Seats on one server with locks in memory: acquiring, holding and releasing them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::fixtures::{NO_TICK, synced, until};
use crate::support::galley_process::{Server, command_of};
use crate::support::rest_client::Desk;
use crate::support::stopwatch::Stopwatch;
use crate::support::ws_client::Peer;

const QUICK: &[(&str, &str)] = &[
    ("SEATS__LEASE", "3s"),
    ("SEATS__RENEW_EVERY", "1s"),
    ("SEATS__CLIENT_TIMEOUT", "2s"),
    ("SEATS__RESUME_GRACE", "2s"),
];

#[tokio::test]
async fn two_users_are_seated_and_each_receives_the_other_as_a_peer() {
    let server = Server::start().await;
    let desk = server.desk("안녕하세요").await;
    let writer = server.claim_seat(&desk, "writer", "events=1").await;
    let granted = writer.event("seat.granted").await;
    assert_eq!(granted["role"], "writer");
    assert_eq!(granted["lease_ms"], 12_000);
    assert_eq!(
        (&granted["message_bytes"], &granted["reconnect_within_ms"]),
        (&json!(2_097_152), &json!(600))
    );
    assert_eq!(granted["user"], json!({ "id": desk.writer.id, "name": "Kim" }));
    assert!(granted["fence"].as_u64().is_some_and(|fence| 0 < fence));
    assert!(granted["resume"].as_str().is_some_and(|secret| 22 <= secret.len()));
    let reviewer = server.reviewer(&desk).await;
    let joined = writer.event("peer.joined").await;
    assert_eq!((&joined["role"], &joined["user"]["name"]), (&json!("reviewer"), &json!("Lee")));
    let here = reviewer.event("peer.joined").await;
    assert_eq!(here["role"], "writer");
    let path = format!("/api/share-links/{}", desk.link);
    let link = server.get(&desk.writer, &path).await.ok(200);
    assert_eq!(link["seats"]["reviewer"]["taken"], true);
    assert_eq!(link["seats"]["reviewer"]["user"]["name"], "Lee");
    reviewer.leave().await;
    assert_eq!(writer.event("peer.left").await["role"], "reviewer");
}

/// Goal: the server seats only the link's own writer and reviewer, and each refusal names its reason.
#[tokio::test]
async fn a_third_user_a_stranger_and_an_unauthenticated_client_are_refused() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let third = server.guest("Park").await;
    let codes = [
        (&desk.link, "reviewer", third.token.as_str(), 4403),
        (&desk.link, "writer", third.token.as_str(), 4403),
        (&desk.link, "writer", desk.reviewer.token.as_str(), 4403),
        (&desk.link, "writer", "no.such.token", 4401),
        (&desk.link, "editor", desk.writer.token.as_str(), 4400),
        (&desk.document, "writer", desk.writer.token.as_str(), 4404),
    ];
    for (link, role, token, code) in codes {
        let peer = Peer::connect(&server.url, link, role, token, "events=1").await;
        assert_eq!(peer.closed().await.0, code, "{link} {role}");
    }
    for query in ["wait=301", "wait=soon", "events=maybe", "takeover=2"] {
        let peer =
            Peer::connect(&server.url, &desk.link, "writer", &desk.writer.token, query).await;
        assert_eq!(peer.closed().await.0, 4400, "{query}");
    }
    let path = format!("/api/share-links/{}/join", desk.link);
    let join = server.post(&third, &path, json!({ "invite": desk.invite })).await;
    join.problem(409, "reviewer-exists");
}

/// Goal: a live holder keeps its seat; the refusal names the holder and the time of the grant.
#[tokio::test]
async fn g1_a_claim_of_a_held_seat_is_refused_with_its_holder_and_grant_time() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _seated = server.writer(&desk).await;
    let second = server.claim_seat(&desk, "writer", "events=1").await;
    let (code, reason) = second.closed().await;
    assert_eq!(code, 4409);
    let reason: Value = serde_json::from_str(&reason).expect("JSON");
    assert_eq!(reason["holder"]["name"], "Kim");
    assert_eq!(reason["holder"]["you"], true);
    let since = reason["holder"]["since"].as_str().expect("a time");
    assert!(chrono::DateTime::parse_from_rfc3339(since).is_ok(), "{since}");
}

#[tokio::test]
async fn a_takeover_by_the_same_user_closes_the_other_session_with_its_reason() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let first = server.claim_seat(&desk, "writer", "events=1").await;
    let fence = first.event("seat.granted").await["fence"].as_u64();
    let second = server.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    let later = second.event("seat.granted").await["fence"].as_u64();
    assert!(fence < later);
    assert_eq!(first.event("seat.lost").await["reason"], "taken_over");
    assert_eq!(first.closed().await, (4410, "taken_over".to_owned()));
    assert!(second.is_open());
}

#[tokio::test]
async fn g4_a_clean_close_frees_the_seat_at_once() {
    let server = Server::with(&NO_TICK).await;
    let desk = server.desk("text").await;
    server.writer(&desk).await.leave().await;
    synced(&server, &desk, "writer", "events=1").await;
}

/// Goal: the seat of a broken socket stays reserved for its user, whose next claim is granted.
#[tokio::test]
async fn a_claim_of_the_same_user_after_a_broken_socket_is_granted() {
    let server = Server::with(&NO_TICK).await;
    let desk = server.desk("text").await;
    let cut = server.claim_seat(&desk, "writer", "events=1").await;
    let fence = cut.event("seat.granted").await["fence"].as_u64();
    drop(cut);
    let back = server.claim_seat(&desk, "writer", "events=1").await;
    assert!(fence < back.event("seat.granted").await["fence"].as_u64());
}

#[tokio::test]
async fn a_resume_secret_claims_the_seat_of_an_open_socket() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let first = server.claim_seat(&desk, "writer", "events=1").await;
    let granted = first.event("seat.granted").await;
    let query = format!("events=1&resume={}", granted["resume"].as_str().expect("a secret"));
    let second = server.claim_seat(&desk, "writer", &query).await;
    second.event("seat.granted").await;
    assert_eq!(first.closed().await.0, 4410);
}

#[tokio::test]
async fn g4_a_cut_connection_frees_the_seat_after_the_resume_grace_and_not_before() {
    let server = Server::with(QUICK).await;
    let desk = server.desk("text").await;
    drop(server.reviewer(&desk).await);
    let cut_at = Instant::now();
    let writer = server.writer(&desk).await;
    let path = format!("/api/share-links/{}", desk.link);
    let link = server.get(&desk.writer, &path).await.ok(200);
    assert_eq!(link["seats"]["reviewer"]["taken"], true, "reserved for its holder");
    writer.event("peer.left").await;
    let waited = cut_at.elapsed();
    assert!(Duration::from_millis(1_500) < waited, "{waited:?}");
    let link = server.get(&desk.writer, &path).await.ok(200);
    assert_eq!(link["seats"]["reviewer"]["taken"], false);
}

/// Goal: a revoked link closes both sockets immediately, and stays revoked.
#[tokio::test]
async fn g14_a_revoked_link_ends_both_sockets() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let path = format!("/api/share-links/{}", desk.link);
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("seat.lost").await["reason"], "revoked");
        assert_eq!(peer.closed().await.0, 4404);
    }
    let again = server.claim_seat(&desk, "writer", "events=1").await;
    assert_eq!(again.closed().await.0, 4404);
}

/// Goal: a socket ends with its token.
#[tokio::test]
async fn g14_a_socket_ends_with_its_token() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let peer = with_token_of_3_s(&server, &desk, "events=1").await;
    peer.event("seat.granted").await;
    assert_eq!(peer.closed().await, (4401, "token-expired".to_owned()));
}

/// Goal: a waiter's socket ends with its token too. The waiter acquires no seat, and its edits are not
/// stored.
#[tokio::test]
async fn g14_a_waiter_leaves_the_wait_queue_with_its_token() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let requested_at = Stopwatch::start();
    let waiter = with_token_of_3_s(&server, &desk, "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    waiter.append("of somebody whose token is over by now");
    assert_eq!(waiter.closed().await, (4401, "token-expired".to_owned()));
    assert!(requested_at.elapsed() < Duration::from_secs(20), "{:?}", requested_at.elapsed());
    holder.leave().await;
    let next = server.writer(&desk).await;
    assert_eq!(next.text(), "text");
    assert!(waiter.take_events().iter().all(|event| event["event"] != "seat.granted"));
}

async fn with_token_of_3_s(server: &Server, desk: &Desk, query: &str) -> Peer {
    let made = command_of(env!("CARGO_BIN_EXE_galley").as_ref())
        .args(["token", "--sub", &desk.writer.id, "--name", "Kim", "--ttl", "3s"])
        .current_dir(server.folder())
        .output()
        .await
        .expect("the binary");
    let token = String::from_utf8(made.stdout).expect("text");
    Peer::connect(&server.url, &desk.link, "writer", token.trim(), query).await
}

/// Goal: a session whose seat is being ratified answers the liveness probe, and a second session of the
/// same user does not get its seat.
#[tokio::test]
async fn a_session_being_seated_answers_the_liveness_probe() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let mut other = server.database().await;
    // The session holds the key; its fence cannot be ratified.
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    let first = server.claim_seat(&desk, "writer", "events=1").await;
    let path = format!("/api/share-links/{}", desk.link);
    until("the session has the key", async || {
        server.get(&desk.writer, &path).await.ok(200)["seats"]["writer"]["taken"] == true
    })
    .await;
    let second = server.claim_seat(&desk, "writer", "events=1").await;
    assert_eq!(second.closed().await.0, 4409);
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    first.event("seat.granted").await;
    first.synced().await;
    assert!(first.is_open());
}

/// Goal: the server warns an idle session, and then releases its seat.
#[tokio::test]
async fn the_idle_timeout_is_warned_of_a_minute_before() {
    let mut settings = QUICK.to_vec();
    settings.push(("SEATS__IDLE_RELEASE", "61s"));
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let warned = writer.event("seat.idle").await;
    let release_at = warned["release_at"].as_str().expect("a time");
    let release_at: chrono::DateTime<chrono::Utc> = release_at.parse().expect("RFC 3339");
    let left = (release_at - chrono::Utc::now()).num_milliseconds();
    assert!((50_000..=60_000).contains(&left), "{left} ms");
}

#[tokio::test]
async fn the_idle_timeout_releases_a_seat_after_a_warning() {
    let mut settings = QUICK.to_vec();
    settings.push(("SEATS__IDLE_RELEASE", "4s"));
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let warned = writer.event("seat.idle").await;
    assert!(warned["release_at"].is_string());
    writer.append(" and more");
    assert!(writer.is_open());
    writer.event("seat.idle").await;
    assert_eq!(writer.event("seat.lost").await["reason"], "idle");
    assert_eq!(writer.closed().await.0, 4411);
}

/// Goal: SIGTERM closes sockets with 1012, stores every edit and releases the seats.
#[tokio::test]
async fn a_drain_announces_the_stop_stores_every_edit_and_exits_with_success() {
    let mut server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.append("last words");
    writer.synced().await;
    // The update has arrived when the server answers a later message.
    writer.saved().await;
    let status = server.stop().await;
    assert!(status.success(), "{status:?}");
    assert!(writer.event("server.draining").await["reconnect_after_ms"].is_u64());
    assert_eq!(writer.closed().await.0, 1012);
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "last words");
}
