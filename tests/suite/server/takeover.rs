//! Takeover, liveness probe and resume of one user's sessions across two servers.
//!
//! A test that calls an effect immediate runs without ticks.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sqlx::Connection;
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval};
use yrs::StateVector;
use yrs::updates::decoder::Decode;

use crate::server::many_servers::{Cluster, was_seated};
use crate::support::fixtures::NO_TICK;
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::{Peer, State};

/// A writer in its seat, with its client id and its resume secret.
async fn seated(server: &Server, desk: &Desk) -> (Peer, u64, String) {
    let peer = server.claim_seat(desk, "writer", "events=1").await;
    let granted = peer.event("seat.granted").await;
    peer.synced().await;
    let secret = granted["resume"].as_str().expect("a secret").to_owned();
    (peer, granted["fence"].as_u64().expect("a fence"), secret)
}

async fn fence_of(peer: &Peer) -> u64 {
    peer.event("seat.granted").await["fence"].as_u64().expect("a fence")
}

/// Holds that the server refuses the claim: the user's other session holds the seat.
async fn is_refused(server: &Server, desk: &Desk, query: &str) {
    let (code, reason) = server.claim_seat(desk, "writer", query).await.closed().await;
    assert_eq!(code, 4409, "{reason}");
    let reason: Value = serde_json::from_str(&reason).expect("JSON");
    assert_eq!(reason["holder"]["you"], true);
}

/// The stock client in a process of its own. SIGSTOP freezes it, as a closed laptop does.
async fn frozen_writer(server: &Server, desk: &Desk) -> Child {
    let reviewer = server.reviewer(desk).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stock/hold_seat.mjs");
    let client = Command::new("node")
        .args([script, &server.url, &desk.link, "writer", &desk.writer.token])
        .kill_on_drop(true)
        .spawn()
        .expect("node");
    reviewer.event("peer.joined").await;
    let id = client.id().expect("the stock client starts").to_string();
    let stopped = Command::new("kill").args(["-STOP", &id]).status().await;
    assert!(stopped.expect("kill is installed").success());
    reviewer.leave().await;
    client
}

/// Goal: a takeover at another server is granted immediately. The previous socket is closed immediately
/// too, long before a renewal round would find the loss.
#[tokio::test]
async fn a_takeover_ends_the_session_at_the_other_server_at_once() {
    let cluster = Cluster::with(&NO_TICK).await;
    let desk = cluster.one.desk("text").await;
    let (mut old, mut fence, _) = seated(&cluster.one, &desk).await;
    for round in 1..=4 {
        let new = cluster.either(round).claim_seat(&desk, "writer", "events=1&takeover=1").await;
        assert_eq!(old.event("seat.lost").await["reason"], "taken_over");
        assert_eq!(old.closed().await, (4410, "taken_over".to_owned()));
        let later = fence_of(&new).await;
        assert!(fence < later);
        new.synced().await;
        (old, fence) = (new, later);
    }
    assert!(old.is_open(), "the closed client claims no seat");
}

/// Goal: after two simultaneous takeovers one session holds the seat, whichever servers received them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_after_two_simultaneous_takeovers_one_session_holds_the_seat() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let mut seated = cluster.one.writer(&desk).await;
    for round in 0..24 {
        let query = "events=1&takeover=1";
        let (first, second) = match round % 3 {
            0 => (&cluster.one, &cluster.one),
            1 => (&cluster.one, &cluster.two),
            _ => (&cluster.two, &cluster.two),
        };
        let (one, other) = tokio::join!(
            first.claim_seat(&desk, "writer", query),
            second.claim_seat(&desk, "writer", query)
        );
        assert_eq!(seated.closed().await.0, 4410, "round {round}");
        let both = [&one, &other].map(Peer::closed);
        let (_ended, index, _) = futures_util::future::select_all(both.map(Box::pin)).await;
        seated = if index == 0 { other } else { one };
        seated.synced().await;
        seated.append("!");
        seated.saved().await;
    }
    assert!(seated.is_open());
}

/// Goal: text that `document.saved` named stays in the document through takeovers during typing. No
/// reviewer's socket is closed (G7, G8).
#[tokio::test]
async fn g7_saved_text_survives_takeovers_across_servers() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let watching = cluster.one.reviewer(&desk).await;
    let mut old = cluster.one.writer(&desk).await;
    let mut promised = String::new();
    for round in 1..=6 {
        let taking = async {
            let client = old.client_id();
            old.until("words that are saved", |s| (100 < saved(s, client)).then_some(())).await;
            cluster.either(round).claim_seat(&desk, "writer", "events=1&takeover=1").await
        };
        let (typed, new) = tokio::join!(types_until_closed(&old, round), taking);
        assert_eq!(old.closed().await.0, 4410);
        new.event("seat.granted").await;
        new.synced().await;
        let client = old.client_id();
        let saved = &typed[..old.look(|state| saved(state, client))];
        promised.insert_str(0, saved);
        new.until("every saved word", |state| state.text().contains(saved).then_some(())).await;
        old = new;
    }
    old.append("end");
    old.saved().await;
    assert!(600 < promised.len(), "hardly anything was saved: {promised}");
    let text = cluster.two.text(&desk.writer, &desk.document).await;
    for word in promised.split(' ') {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    watching.reads(&text).await;
    assert!(watching.is_open(), "no room was reset");
}

/// Types words at the beginning until the server closes the socket. Returns all of them.
async fn types_until_closed(peer: &Peer, round: usize) -> String {
    let (mut typed, mut tick) = (String::new(), interval(Duration::from_millis(1)));
    while peer.is_open() {
        let word = format!("{round}.{} ", typed.len());
        peer.insert(u32::try_from(typed.len()).expect("short"), &word);
        typed.push_str(&word);
        tick.tick().await;
    }
    typed
}

/// The length that `document.saved` names for this client, in characters. The client types only ASCII
/// and deletes nothing.
fn saved(state: &State, client: u64) -> usize {
    let client = yrs::block::ClientID::new(client);
    let saved = state.events.iter().filter(|event| event["event"] == "document.saved");
    let clock = |event: &Value| {
        let bytes = STANDARD.decode(event["state_vector"].as_str()?).ok()?;
        Some(StateVector::decode_v1(&bytes).ok()?.get(&client))
    };
    saved.filter_map(clock).max().unwrap_or(0) as usize
}

/// Goal: a takeover flushes the pending edit of the previous session's server before the new writer is
/// seated.
#[tokio::test]
async fn a_takeover_flushes_pending_edits_of_the_other_server_first() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("Dear").await;
    let watching = cluster.one.reviewer(&desk).await;
    let old = cluster.one.writer(&desk).await;
    let mut other = cluster.one.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    old.append(" Sir");
    watching.reads("Dear Sir").await;
    let new = cluster.two.claim_seat(&desk, "writer", "events=1&takeover=1").await;
    assert_eq!(old.closed().await.0, 4410);
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    other.close().await.expect("closed");
    new.event("seat.granted").await;
    new.reads("Dear Sir").await;
    new.append(" or Madam");
    new.saved().await;
    watching.reads("Dear Sir or Madam").await;
    assert!(watching.is_open());
}

/// Goal: a session that answers the liveness probe keeps its seat, whichever server receives the same
/// user's claim.
#[tokio::test]
async fn a_session_that_answers_the_liveness_probe_of_another_server_keeps_its_seat() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (old, ..) = seated(&cluster.one, &desk).await;
    for _ in 0..3 {
        is_refused(&cluster.two, &desk, "events=1").await;
    }
    old.append("!");
    old.saved().await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    let event = waiter.event("seat.waiting").await;
    assert_eq!((&event["holder"]["name"], &event["holder"]["you"]), (&"Kim".into(), &true.into()));
    let path = format!("/api/share-links/{}", desk.link);
    let link = cluster.one.get(&desk.writer, &path).await.ok(200);
    let seats = &link["seats"];
    assert_eq!(seats["writer"]["waiting"], 1);
    assert!(seats["reviewer"].get("waiting").is_none(), "{seats}");
    assert!(old.is_open());
}

/// Goal: a session that does not answer the liveness probe of another server within a second loses its
/// seat.
#[tokio::test]
async fn a_frozen_client_loses_its_seat_after_a_liveness_probe_from_another_server() {
    let cluster = Cluster::with(&NO_TICK).await;
    let desk = cluster.one.desk("text").await;
    let mut frozen = frozen_writer(&cluster.one, &desk).await;
    let knocked_at = Instant::now();
    let new = cluster.two.claim_seat(&desk, "writer", "events=1").await;
    new.event("seat.granted").await;
    let waited = knocked_at.elapsed();
    assert!(Duration::from_millis(900) < waited, "{waited:?}");
    assert!(new.is_open());
    frozen.kill().await.expect("it can be killed");
}

/// Goal: a seat in its resume grace is granted immediately to its user at another server, with the
/// resume secret or without.
#[tokio::test]
async fn a_seat_in_its_resume_grace_is_granted_at_once_at_another_server() {
    let cluster = Cluster::with(&NO_TICK).await;
    let desk = cluster.one.desk("text").await;
    let watching = cluster.one.reviewer(&desk).await;
    let (cut, first, _) = seated(&cluster.one, &desk).await;
    cut.announce(&serde_json::json!({ "cursor": 1 }));
    let client = cut.client_id();
    watching.until("presence", move |s| s.presence.get(&client)?.1.clone()).await;
    drop(cut);
    watching
        .until("the cursor goes", move |s| s.presence.get(&client)?.1.is_none().then_some(()))
        .await;
    let back = cluster.two.claim_seat(&desk, "writer", "events=1").await;
    assert!(first < fence_of(&back).await);
}

/// Goal: users of a killed server regain their seats before the lease ends: immediately with the resume
/// secret, otherwise after an unanswered liveness probe.
#[tokio::test]
async fn g4_users_of_a_killed_server_regain_their_seats_before_the_leases_end() {
    let mut cluster = Cluster::with(&NO_TICK).await;
    let (by_secret, by_probe) = (cluster.one.desk("text").await, cluster.one.desk("text").await);
    let (first, first_fence, secret) = seated(&cluster.one, &by_secret).await;
    let (second, second_fence, _) = seated(&cluster.one, &by_probe).await;
    cluster.one.kill().await;
    let query = format!("events=1&resume={secret}");
    let back = cluster.two.claim_seat(&by_secret, "writer", &query).await;
    assert!(first_fence < fence_of(&back).await);
    let back = cluster.two.claim_seat(&by_probe, "writer", "events=1").await;
    assert!(second_fence < fence_of(&back).await);
    back.synced().await;
    back.append("!");
    back.saved().await;
    drop((first, second));
}

/// Goal: a resume precedes the wait queue on any server, and the waiters keep their positions.
#[tokio::test]
async fn g5_a_resume_precedes_the_wait_queue() {
    let cluster = Cluster::with(&NO_TICK).await;
    let desk = cluster.one.desk("text").await;
    let (cut, _, secret) = seated(&cluster.one, &desk).await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    assert_eq!(waiter.event("seat.waiting").await["position"], 1);
    drop(cut);
    let query = format!("events=1&resume={secret}");
    let back = cluster.two.claim_seat(&desk, "writer", &query).await;
    back.event("seat.granted").await;
    back.synced().await;
    assert_eq!(
        waiter.event("seat.waiting").await["position"],
        1,
        "the waiter is behind another session"
    );
    back.leave().await;
    waiter.event("seat.granted").await;
    // The grant has moved on: the next session's secret differs from the last one's.
    is_refused(&cluster.one, &desk, &query).await;
    assert!(waiter.is_open());
}

/// Goal: a resume secret opens the seat of its own grant, for its own user, once.
#[tokio::test]
async fn a_used_or_foreign_resume_secret_opens_no_seat() {
    let cluster = Cluster::start().await;
    let (desk, other) = (cluster.one.desk("text").await, cluster.one.desk("text").await);
    let (old, _, first) = seated(&cluster.one, &desk).await;
    let (_elsewhere, _, elsewhere) = seated(&cluster.one, &other).await;
    let reviewer = cluster.one.claim_seat(&desk, "reviewer", "events=1").await;
    let reviewers = reviewer.event("seat.granted").await;
    let reviewers = reviewers["resume"].as_str().expect("a secret");
    for secret in ["", "nonsense", reviewers, &elsewhere] {
        is_refused(&cluster.two, &desk, &format!("events=1&resume={secret}")).await;
    }
    let back = cluster.two.claim_seat(&desk, "writer", &format!("events=1&resume={first}")).await;
    back.event("seat.granted").await;
    assert_eq!(old.closed().await, (4410, "taken_over".to_owned()));
    for server in [&cluster.one, &cluster.two] {
        is_refused(server, &desk, &format!("events=1&resume={first}")).await;
    }
    let (url, token) = (&cluster.two.url, &desk.writer.token);
    let query = format!("events=1&resume={reviewers}");
    let theirs = Peer::connect(url, &desk.link, "reviewer", token, &query).await;
    assert_eq!(theirs.closed().await.0, 4403);
    assert!(back.is_open() && reviewer.is_open());
}

/// Goal: neither Redis nor a log contains the resume secret.
#[tokio::test]
async fn no_resume_secret_is_in_redis_or_in_a_log() {
    let cluster = Cluster::with(&[("LOG__LEVEL", "debug")]).await;
    let desk = cluster.one.desk("text").await;
    let (_old, _, secret) = seated(&cluster.one, &desk).await;
    let back = cluster.two.claim_seat(&desk, "writer", &format!("events=1&resume={secret}")).await;
    let next = back.event("seat.granted").await["resume"].as_str().expect("a secret").to_owned();
    let keys: Vec<String> = cluster.redis.run("KEYS *").await;
    let mut seen = String::new();
    for key in keys {
        let dump: Vec<Vec<u8>> = match cluster.redis.run::<String>(&format!("TYPE {key}")).await {
            kind if kind == "hash" => cluster.redis.run(&format!("HGETALL {key}")).await,
            kind if kind == "string" => vec![cluster.redis.run(&format!("GET {key}")).await],
            _ => vec![],
        };
        // The value of an owner is packed bytes, not UTF-8.
        seen.push_str(&String::from_utf8_lossy(&dump.join(&b' ')));
    }
    assert!(seen.contains(&desk.writer.id), "the dump contains the grant");
    seen.push_str(&std::fs::read_to_string(cluster.one.folder().join("log")).expect("a log"));
    assert!(!seen.contains(&secret) && !seen.contains(&next));
}

/// Goal: fifty simultaneous claims of one user send one liveness probe to the other server (G13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_fifty_simultaneous_claims_send_one_liveness_probe() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (_old, ..) = seated(&cluster.one, &desk).await;
    // The frozen server cannot reply, so all claims await the same probe.
    cluster.one.freeze().await;
    let before = cluster.redis.calls("publish").await;
    let claims = (0..50).map(|_| cluster.two.claim_seat(&desk, "writer", "events=1"));
    let peers = futures_util::future::join_all(claims).await;
    let seated = futures_util::future::join_all(peers.iter().map(was_seated)).await;
    assert_eq!(seated.iter().filter(|seated| **seated).count(), 1);
    let published = cluster.redis.calls("publish").await - before;
    assert!(published < 15, "{published} messages");
    cluster.one.thaw().await;
}
