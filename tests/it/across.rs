//! One person, two tabs, two servers: taking over, knocking and coming back.
//!
//! The lease is as long as in production, so that what happens at once did not come by a renewal.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sqlx::Connection;
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval};
use yrs::StateVector;
use yrs::updates::decoder::Decode;

use crate::cluster::{Cluster, was_seated};
use crate::desk::Desk;
use crate::peer::{Peer, State};
use crate::process::Server;

/// What is to happen at once has happened by then, on a busy machine too. A quarter of a tick.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The patience of a knock, and what it takes to hear of a server that is dead.
const A_KNOCK: Duration = Duration::from_millis(2_500);

/// A writer's tab, and the secret it was given.
async fn seated(server: &Server, desk: &Desk) -> (Peer, u64, String) {
    let peer = server.knock(desk, "writer", "events=1").await;
    let granted = peer.event("seat.granted").await;
    peer.synced().await;
    let secret = granted["resume"].as_str().expect("a secret").to_owned();
    (peer, granted["fence"].as_u64().expect("a fence"), secret)
}

async fn fence_of(peer: &Peer) -> u64 {
    peer.event("seat.granted").await["fence"].as_u64().expect("a fence")
}

/// That the tab is told that somebody sits there: its own person.
async fn is_refused(server: &Server, desk: &Desk, query: &str) {
    let (code, reason) = server.knock(desk, "writer", query).await.closed().await;
    assert_eq!(code, 4409, "{reason}");
    let reason: Value = serde_json::from_str(&reason).expect("JSON");
    assert_eq!(reason["holder"]["you"], true);
}

/// The stock client in a process of its own, which can be stopped as a laptop is that is closed.
async fn frozen_writer(server: &Server, desk: &Desk) -> Child {
    let reviewer = server.reviewer(desk).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stock/hold.mjs");
    let client = Command::new("node")
        .args([script, &server.url, &desk.link, "writer", &desk.writer.token])
        .kill_on_drop(true)
        .spawn()
        .expect("node");
    reviewer.event("peer.joined").await;
    let id = client.id().expect("it runs").to_string();
    let stopped = Command::new("kill").args(["-STOP", &id]).status().await;
    assert!(stopped.expect("kill is installed").success());
    reviewer.leave().await;
    client
}

/// Goal: whoever takes over on another server has the seat at once, and the old tab is told so at
/// once, long before a renewal would find out.
#[tokio::test]
async fn a_take_over_ends_the_tab_at_the_other_server_at_once() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (mut old, mut fence, _) = seated(&cluster.one, &desk).await;
    for turn in 1..=4 {
        let asked_at = Instant::now();
        let new = cluster.either(turn).knock(&desk, "writer", "events=1&takeover=1").await;
        assert_eq!(old.event("seat.lost").await["reason"], "taken_over");
        assert_eq!(old.closed().await, (4410, "taken_over".to_owned()));
        let later = fence_of(&new).await;
        assert!(asked_at.elapsed() < AT_ONCE, "{:?}", asked_at.elapsed());
        assert!(fence < later);
        new.synced().await;
        (old, fence) = (new, later);
    }
    assert!(old.is_open(), "and does not fight back");
}

/// Goal: of two tabs that take over at the same moment one is seated in the end, wherever they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_of_two_tabs_that_take_over_at_once_one_stays() {
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
        let (one, other) =
            tokio::join!(first.knock(&desk, "writer", query), second.knock(&desk, "writer", query));
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

/// Goal: what was said to be saved is in the document, whoever takes the seat over in the middle of
/// a sentence; and nobody who watches is thrown out (G7, G8).
#[tokio::test]
async fn g7_what_was_said_to_be_saved_survives_take_overs_across_servers() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let watching = cluster.one.reviewer(&desk).await;
    let mut old = cluster.one.writer(&desk).await;
    let mut promised = String::new();
    for turn in 1..=6 {
        let taking = async {
            let client = old.client_id();
            old.until("words that are saved", |s| (100 < saved(s, client)).then_some(())).await;
            cluster.either(turn).knock(&desk, "writer", "events=1&takeover=1").await
        };
        let (typed, new) = tokio::join!(types_until_closed(&old, turn), taking);
        assert_eq!(old.closed().await.0, 4410);
        new.event("seat.granted").await;
        new.synced().await;
        let client = old.client_id();
        let saved = &typed[..old.look(|state| saved(state, client))];
        promised.insert_str(0, saved);
        new.until("all that was saved", |state| state.text().contains(saved).then_some(())).await;
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
    assert!(watching.is_open(), "no room had to be opened afresh");
}

/// Types words at the beginning, one after the other, until the tab is closed; gives all of them.
async fn types_until_closed(peer: &Peer, turn: usize) -> String {
    let (mut typed, mut tick) = (String::new(), interval(Duration::from_millis(1)));
    while peer.is_open() {
        let word = format!("{turn}.{} ", typed.len());
        peer.insert(u32::try_from(typed.len()).expect("short"), &word);
        typed.push_str(&word);
        tick.tick().await;
    }
    typed
}

/// How far the server called the tab's own words safe, in characters: it typed nothing but ASCII,
/// and deleted nothing.
fn saved(state: &State, client: u64) -> usize {
    let client = yrs::block::ClientID::new(client);
    let saved = state.events.iter().filter(|event| event["event"] == "document.saved");
    let clock = |event: &Value| {
        let bytes = STANDARD.decode(event["state_vector"].as_str()?).ok()?;
        Some(StateVector::decode_v1(&bytes).ok()?.get(&client))
    };
    saved.filter_map(clock).max().unwrap_or(0) as usize
}

/// Goal: what the other server has shown and not stored yet is stored before the new writer begins.
#[tokio::test]
async fn what_the_other_server_owes_the_database_is_stored_before_a_take_over() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("Dear").await;
    let watching = cluster.one.reviewer(&desk).await;
    let old = cluster.one.writer(&desk).await;
    let mut other = cluster.one.database().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    old.append(" Sir");
    watching.reads("Dear Sir").await;
    let new = cluster.two.knock(&desk, "writer", "events=1&takeover=1").await;
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

/// Goal: a living tab keeps its seat, whichever server the same person knocks at.
#[tokio::test]
async fn a_living_tab_is_not_turned_out_by_a_knock_at_another_server() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (old, ..) = seated(&cluster.one, &desk).await;
    for _ in 0..3 {
        is_refused(&cluster.two, &desk, "events=1").await;
    }
    old.append("!");
    old.saved().await;
    let waiter = cluster.two.knock(&desk, "writer", "events=1&wait=60").await;
    let told = waiter.event("seat.waiting").await;
    assert_eq!((&told["holder"]["name"], &told["holder"]["you"]), (&"Kim".into(), &true.into()));
    let path = format!("/api/share-links/{}", desk.link);
    let link = cluster.one.get(&desk.writer, &path).await.ok(200);
    let seats = &link["seats"];
    assert_eq!(seats["writer"]["waiting"], 1);
    assert!(seats["reviewer"].get("waiting").is_none(), "{seats}");
    assert!(old.is_open());
}

/// Goal: a tab that says nothing for a second is dead, also to another server.
#[tokio::test]
async fn a_frozen_tab_makes_way_for_a_knock_at_another_server() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let mut frozen = frozen_writer(&cluster.one, &desk).await;
    let knocked_at = Instant::now();
    let new = cluster.two.knock(&desk, "writer", "events=1").await;
    new.event("seat.granted").await;
    let waited = knocked_at.elapsed();
    assert!(Duration::from_millis(900) < waited && waited < A_KNOCK, "{waited:?}");
    assert!(new.is_open());
    frozen.kill().await.expect("it can be killed");
}

/// Goal: a seat that is only kept for its holder's return is theirs at once, with a secret or
/// without.
#[tokio::test]
async fn a_broken_connection_makes_way_at_once_at_another_server() {
    let cluster = Cluster::start().await;
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
    let knocked_at = Instant::now();
    let back = cluster.two.knock(&desk, "writer", "events=1").await;
    assert!(first < fence_of(&back).await);
    assert!(knocked_at.elapsed() < AT_ONCE, "{:?}", knocked_at.elapsed());
}

/// Goal: when a server dies, its people need not wait for the lease: with the secret they are back
/// at once, without it when nobody answers their knock.
#[tokio::test]
async fn g4_the_people_of_a_killed_server_are_back_before_its_leases_end() {
    let mut cluster = Cluster::start().await;
    let (by_secret, by_knock) = (cluster.one.desk("text").await, cluster.one.desk("text").await);
    let (first, first_fence, secret) = seated(&cluster.one, &by_secret).await;
    let (second, second_fence, _) = seated(&cluster.one, &by_knock).await;
    cluster.one.kill().await;
    let killed_at = Instant::now();
    let query = format!("events=1&resume={secret}");
    let back = cluster.two.knock(&by_secret, "writer", &query).await;
    assert!(first_fence < fence_of(&back).await);
    assert!(killed_at.elapsed() < AT_ONCE, "{:?}", killed_at.elapsed());
    let knocked_at = Instant::now();
    let back = cluster.two.knock(&by_knock, "writer", "events=1").await;
    assert!(second_fence < fence_of(&back).await);
    assert!(knocked_at.elapsed() < A_KNOCK, "{:?}", knocked_at.elapsed());
    back.synced().await;
    back.append("!");
    back.saved().await;
    drop((first, second));
}

/// Goal: who was cut off comes back before those who wait, on any server; and the line stays.
#[tokio::test]
async fn g5_a_resume_goes_before_the_line() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (cut, _, secret) = seated(&cluster.one, &desk).await;
    let waiter = cluster.two.knock(&desk, "writer", "events=1&wait=60").await;
    assert_eq!(waiter.event("seat.waiting").await["position"], 1);
    drop(cut);
    let asked_at = Instant::now();
    let query = format!("events=1&resume={secret}");
    let back = cluster.two.knock(&desk, "writer", &query).await;
    back.event("seat.granted").await;
    assert!(asked_at.elapsed() < AT_ONCE, "{:?}", asked_at.elapsed());
    back.synced().await;
    assert_eq!(waiter.event("seat.waiting").await["position"], 1, "behind another session now");
    back.leave().await;
    waiter.event("seat.granted").await;
    // Handed on already: the next one's is not the last one's.
    is_refused(&cluster.one, &desk, &query).await;
    assert!(waiter.is_open());
}

/// Goal: a secret opens the seat that it was given with, to the person it was given to, once.
#[tokio::test]
async fn an_old_secret_or_somebody_elses_opens_nothing() {
    let cluster = Cluster::start().await;
    let (desk, other) = (cluster.one.desk("text").await, cluster.one.desk("text").await);
    let (old, _, first) = seated(&cluster.one, &desk).await;
    let (_elsewhere, _, elsewhere) = seated(&cluster.one, &other).await;
    let reviewer = cluster.one.knock(&desk, "reviewer", "events=1").await;
    let reviewers = reviewer.event("seat.granted").await;
    let reviewers = reviewers["resume"].as_str().expect("a secret");
    for secret in ["", "nonsense", reviewers, &elsewhere] {
        is_refused(&cluster.two, &desk, &format!("events=1&resume={secret}")).await;
    }
    let back = cluster.two.knock(&desk, "writer", &format!("events=1&resume={first}")).await;
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

/// Goal: the secret itself is in nobody's data: neither in Redis nor in a log.
#[tokio::test]
async fn the_secret_is_nowhere_but_with_its_owner() {
    let cluster = Cluster::with(&[("LOG__LEVEL", "debug")]).await;
    let desk = cluster.one.desk("text").await;
    let (_old, _, secret) = seated(&cluster.one, &desk).await;
    let back = cluster.two.knock(&desk, "writer", &format!("events=1&resume={secret}")).await;
    let next = back.event("seat.granted").await["resume"].as_str().expect("a secret").to_owned();
    let keys: Vec<String> = cluster.redis.run("KEYS *").await;
    let mut seen = String::new();
    for key in keys {
        let dump: Vec<Vec<u8>> = match cluster.redis.run::<String>(&format!("TYPE {key}")).await {
            kind if kind == "hash" => cluster.redis.run(&format!("HGETALL {key}")).await,
            kind if kind == "string" => vec![cluster.redis.run(&format!("GET {key}")).await],
            _ => vec![],
        };
        // An owner is packed, which is no text as a whole.
        seen.push_str(&String::from_utf8_lossy(&dump.join(&b' ')));
    }
    assert!(seen.contains(&desk.writer.id), "the grant was looked at");
    seen.push_str(&std::fs::read_to_string(cluster.one.folder().join("log")).expect("a log"));
    assert!(!seen.contains(&secret) && !seen.contains(&next));
}

/// Goal: fifty knocks at once of one person are one question to the other server (G13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_a_flood_of_knocks_is_one_question() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (_old, ..) = seated(&cluster.one, &desk).await;
    // It cannot answer, so all knocks wait for the same answer.
    cluster.one.freeze().await;
    let before = cluster.redis.calls("publish").await;
    let knocks = (0..50).map(|_| cluster.two.knock(&desk, "writer", "events=1"));
    let peers = futures_util::future::join_all(knocks).await;
    let seated = futures_util::future::join_all(peers.iter().map(was_seated)).await;
    assert_eq!(seated.iter().filter(|seated| **seated).count(), 1);
    let published = cluster.redis.calls("publish").await - before;
    assert!(published < 15, "{published} messages");
    cluster.one.thaw().await;
}
