//! `peer.joined` and `peer.left`: each peer in the room receives them once; a session receives none
//! about itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// The peer events that arrived before the ones that every joining session receives.
async fn greeted(peer: &Peer) -> Vec<(String, String)> {
    peer.event("document.saved").await;
    peer_events(peer)
}

/// The peer events that arrived and were not taken yet: event and role.
fn peer_events(peer: &Peer) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let events = peer.take_events();
    let peers = events.iter().filter(|e| word(&e["event"]).starts_with("peer."));
    peers.map(|event| (word(&event["event"]), word(&event["role"]))).collect()
}

fn one(event: &str, role: &str) -> Vec<(String, String)> {
    vec![(event.to_owned(), role.to_owned())]
}

/// All earlier events have arrived when this returns: a cursor takes the same path. It is sent again
/// each second: what a server publishes while Redis's pub/sub reconnects is lost.
async fn all_has_arrived(from: &Peer, to: &Peer) {
    let client = from.client_id();
    let before = to.look(|state| state.presence.get(&client).map_or(0, |(clock, _)| *clock));
    let arrived = to.until("the cursor", move |state| {
        state
            .presence
            .get(&client)
            .filter(|(clock, at)| before < *clock && at.is_some())
            .map(|_| ())
    });
    let mut again = tokio::time::interval(Duration::from_secs(1));
    let announced = async {
        loop {
            again.tick().await;
            from.announce(&json!({ "cursor": 1 }));
        }
    };
    tokio::select! {
        () = arrived => {}
        () = announced => {}
    }
}

async fn secret_of(peer: &Peer) -> String {
    peer.event("seat.granted").await["resume"].as_str().expect("a secret").to_owned()
}

/// A session in its seat, with its resume secret.
async fn tab(server: &Server, desk: &Desk, query: &str) -> (Peer, String) {
    let peer = server.claim_seat(desk, "writer", &format!("events=1{query}")).await;
    let secret = secret_of(&peer).await;
    peer.synced().await;
    (peer, secret)
}

/// Goal: a session that moves to another server receives no event about its predecessor, and its peers
/// receive one. After it has left, no joining session receives it as a peer.
#[tokio::test]
async fn a_session_that_moves_to_another_server_is_not_its_own_peer_and_leaves_no_stale_peer() {
    let cluster = Cluster::start().await;
    for is_by_secret in [false, true] {
        let desk = cluster.one.desk("text").await;
        let beside = cluster.one.reviewer(&desk).await;
        let (old, secret) = tab(&cluster.two, &desk, "").await;
        beside.event("peer.joined").await;
        let way = if is_by_secret { format!("&resume={secret}") } else { "&takeover=1".to_owned() };
        let (new, _) = tab(&cluster.one, &desk, &way).await;
        assert_eq!(greeted(&new).await, one("peer.joined", "reviewer"), "{way}");
        assert_eq!(old.closed().await.0, 4410);
        all_has_arrived(&new, &beside).await;
        assert_eq!(peer_events(&beside), one("peer.joined", "writer"), "{way}");
        let beside = cluster.one.claim_seat(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&beside).await, one("peer.joined", "writer"), "{way}");
        new.leave().await;
        assert_eq!(beside.event("peer.left").await["role"], "writer");
        let beside = cluster.one.claim_seat(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&beside).await, [], "{way}");
    }
}

/// Goal: the same on one server, where the replaced session is still about to leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_on_the_same_server_is_not_its_own_peer() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let mut reviewer = server.reviewer(&desk).await;
    for _ in 0..20 {
        let new = server.claim_seat(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&new).await, one("peer.joined", "writer"));
        assert_eq!(reviewer.closed().await.0, 4410);
        all_has_arrived(&writer, &new).await;
        assert_eq!(peer_events(&new), []);
        reviewer = new;
    }
}

/// Goal: a waiter that acquires the seat of a killed server receives its peers, and not the dead
/// session.
#[tokio::test]
async fn a_waiter_seated_after_a_killed_server_receives_no_dead_peer() {
    let mut cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")]).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let _dead = cluster.one.writer(&desk).await;
    reviewer.event("peer.joined").await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    cluster.one.kill().await;
    waiter.event("seat.granted").await;
    assert_eq!(greeted(&waiter).await, one("peer.joined", "reviewer"));
    reviewer.event("peer.joined").await;
    all_has_arrived(&reviewer, &waiter).await;
    assert_eq!(peer_events(&waiter), []);
}

/// Goal: a seat that moved between servers repeatedly leaves no stale peer behind.
#[tokio::test]
async fn a_seat_that_moved_between_servers_leaves_no_stale_peer() {
    // The first server holds its room this long for the session that died.
    let cluster = Cluster::with(&[("SEATS__RESUME_GRACE", "10s")]).await;
    let desk = cluster.one.desk("text").await;
    let (first, secret) = tab(&cluster.one, &desk, "").await;
    drop(first);
    let (second, secret) = tab(&cluster.two, &desk, &format!("&resume={secret}")).await;
    let (third, _) = tab(&cluster.one, &desk, &format!("&resume={secret}")).await;
    second.closed().await;
    let far = cluster.two.reviewer(&desk).await;
    third.event("peer.joined").await;
    far.event("peer.joined").await;
    third.leave().await;
    far.event("peer.left").await;
    let (last, _) = tab(&cluster.one, &desk, "").await;
    far.event("peer.joined").await;
    last.leave().await;
    far.event("peer.left").await;
    let near = cluster.one.claim_seat(&desk, "reviewer", "events=1&takeover=1").await;
    assert_eq!(greeted(&near).await, []);
}

/// Goal: after an outage longer than a lease Redis returns empty. No peer that held its seat throughout
/// is reported as gone.
#[tokio::test]
async fn no_peer_leaves_because_redis_returned_empty() {
    let mut cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")]).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let writer = cluster.one.writer(&desk).await;
    reviewer.event("peer.joined").await;
    writer.event("peer.joined").await;
    for _ in 0..3 {
        cluster.redis.stop().await;
        writer.event("seat.uncertain").await;
        reviewer.event("seat.uncertain").await;
        cluster.redis.start_again().await;
        writer.event("seat.restored").await;
        reviewer.event("seat.restored").await;
        // The event crosses servers, so it arrives after the peer events of the reconnect.
        all_has_arrived(&writer, &reviewer).await;
        all_has_arrived(&reviewer, &writer).await;
    }
    assert_eq!((peer_events(&writer), peer_events(&reviewer)), (vec![], vec![]));
}
