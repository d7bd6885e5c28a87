//! Who is told that somebody came or went: those who sit beside them, once; never they themselves.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::desk::Desk;
use crate::peer::Peer;
use crate::process::Server;

/// The comings and goings that it was told of, up to what everybody is told upon coming.
async fn greeted(peer: &Peer) -> Vec<(String, String)> {
    peer.event("document.saved").await;
    told(peer)
}

/// The comings and goings that it was told of and that were not taken yet: event and role.
fn told(peer: &Peer) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let events = peer.take_events();
    let peers = events.iter().filter(|e| word(&e["event"]).starts_with("peer."));
    peers.map(|event| (word(&event["event"]), word(&event["role"]))).collect()
}

fn one(event: &str, role: &str) -> Vec<(String, String)> {
    vec![(event.to_owned(), role.to_owned())]
}

/// What was said before has arrived when this is over: a cursor comes by the same ways.
async fn all_has_arrived(from: &Peer, to: &Peer) {
    let client = from.client_id();
    let before = to.look(|state| state.presence.get(&client).map_or(0, |(clock, _)| *clock));
    from.announce(&json!({ "cursor": 1 }));
    to.until("the cursor", move |state| {
        state
            .presence
            .get(&client)
            .filter(|(clock, at)| before < *clock && at.is_some())
            .map(|_| ())
    })
    .await;
}

async fn secret_of(peer: &Peer) -> String {
    peer.event("seat.granted").await["resume"].as_str().expect("a secret").to_owned()
}

/// A tab in the seat, and the secret of it.
async fn tab(server: &Server, desk: &Desk, query: &str) -> (Peer, String) {
    let peer = server.knock(desk, "writer", &format!("events=1{query}")).await;
    let secret = secret_of(&peer).await;
    peer.synced().await;
    (peer, secret)
}

/// Goal: who moves to a server hears nothing of the session they were, and whoever sits beside
/// them hears of them once; when they have left nobody is told that they are there.
#[tokio::test]
async fn who_moves_to_another_server_is_no_peer_of_their_own_and_leaves_no_ghost() {
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
        assert_eq!(told(&beside), one("peer.joined", "writer"), "{way}");
        let beside = cluster.one.knock(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&beside).await, one("peer.joined", "writer"), "{way}");
        new.leave().await;
        assert_eq!(beside.event("peer.left").await["role"], "writer");
        let beside = cluster.one.knock(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&beside).await, [], "{way}");
    }
}

/// Goal: the same on one server, where the session that was is still about to leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_over_on_the_same_server_is_no_peer_of_their_own() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let mut reviewer = server.reviewer(&desk).await;
    for _ in 0..20 {
        let new = server.knock(&desk, "reviewer", "events=1&takeover=1").await;
        assert_eq!(greeted(&new).await, one("peer.joined", "writer"));
        assert_eq!(reviewer.closed().await.0, 4410);
        all_has_arrived(&writer, &new).await;
        assert_eq!(told(&new), []);
        reviewer = new;
    }
}

/// Goal: who waited for the seat of a server that was killed is told of the others, and not of the
/// session that sat there.
#[tokio::test]
async fn who_is_seated_after_a_killed_server_is_not_told_of_its_dead() {
    let mut cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")]).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let _dead = cluster.one.writer(&desk).await;
    reviewer.event("peer.joined").await;
    let waiter = cluster.two.knock(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    cluster.one.kill().await;
    waiter.event("seat.granted").await;
    assert_eq!(greeted(&waiter).await, one("peer.joined", "reviewer"));
    reviewer.event("peer.joined").await;
    all_has_arrived(&reviewer, &waiter).await;
    assert_eq!(told(&waiter), []);
}

/// Goal: of a seat that went to and fro between servers nobody is left over.
#[tokio::test]
async fn nobody_is_left_over_of_a_seat_that_went_to_and_fro() {
    // For as long as that the first server keeps its room for the tab that died.
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
    let near = cluster.one.knock(&desk, "reviewer", "events=1&takeover=1").await;
    assert_eq!(greeted(&near).await, []);
}

/// Goal: a Redis that was away for longer than a lease and comes back empty makes nobody leave who
/// has sat there all the time.
#[tokio::test]
async fn nobody_is_said_to_have_left_because_redis_came_back_empty() {
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
        // Across servers again, and so after what they say of each other when they meet again.
        all_has_arrived(&writer, &reviewer).await;
        all_has_arrived(&reviewer, &writer).await;
    }
    assert_eq!((told(&writer), told(&reviewer)), (vec![], vec![]));
}
