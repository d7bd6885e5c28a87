//! Several servers on one Redis and one database.

use std::sync::Arc;
use std::time::Duration;

use galley::storage::Storage;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::server::exports::download;
use crate::support::galley_process::Server;
use crate::support::redis_server;
use crate::support::rest_client::Desk;
use crate::support::stopwatch::Stopwatch;
use crate::support::ws_client::Peer;

/// Two servers with the same Redis, database and secret.
pub(crate) struct Cluster {
    pub(crate) redis: redis_server::Server,
    pub(crate) one: Server,
    pub(crate) two: Server,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(more: &[(&str, &str)]) -> Self {
        let redis = redis_server::Server::start().await;
        let url = redis.url();
        let mut settings = vec![("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
        settings.extend_from_slice(more);
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let one = Server::in_folder(folder, &settings).await;
        let two = one.beside().await;
        Self { redis, one, two }
    }

    /// The database of both.
    pub(crate) async fn storage(&self) -> Storage {
        let url = format!("sqlite://{}/data/galley.db", self.one.folder().display());
        Storage::open(&url).await.expect("the servers' database")
    }

    /// One of the two servers, alternating.
    pub(crate) fn either(&self, index: usize) -> &Server {
        if index.is_multiple_of(2) { &self.one } else { &self.two }
    }
}

/// Whether the server granted the seat; waits for either outcome.
pub(crate) async fn was_seated(peer: &Peer) -> bool {
    peer.until("a seat or a refusal", |state| {
        let granted = state.events.iter().any(|event| event["event"] == "seat.granted");
        (granted || state.closed.is_some()).then_some(granted)
    })
    .await
}

/// Goal: of 100 simultaneous claims of one seat on two servers one is granted, in each of 50 rounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_of_a_hundred_claims_on_two_servers_one_is_granted_in_each_of_fifty_rounds() {
    let cluster = Cluster::start().await;
    for round in 0..50 {
        let desk = cluster.one.desk("text").await;
        let claims =
            (0..100).map(|number| cluster.either(number).claim_seat(&desk, "writer", "events=1"));
        let peers = futures_util::future::join_all(claims).await;
        let seated = futures_util::future::join_all(peers.iter().map(was_seated)).await;
        let winners = seated.iter().filter(|seated| **seated).count();
        let ends = |(peer, _): (&Peer, _)| peer.look(|state| state.closed.clone());
        let ends: Vec<_> = peers.iter().zip(&seated).filter(|it| *it.1).map(ends).collect();
        assert_eq!(winners, 1, "round {round}: {ends:?}");
        for (peer, seated) in peers.iter().zip(seated) {
            assert_eq!(peer.is_open(), seated, "the winner stays, the others are closed");
            assert!(seated || peer.closed().await.0 == 4409);
        }
    }
}

/// Goal: edits, presence and reviews of two users pass between two servers.
#[tokio::test]
async fn edits_presence_and_reviews_cross_servers() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("나는 글을 쓴다").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    assert_eq!(writer.event("peer.joined").await["user"]["name"], "Lee");
    writer.append(". 매일");
    reviewer.reads("나는 글을 쓴다. 매일").await;
    reviewer.announce(&json!({ "cursor": 1 }));
    let client = reviewer.client_id();
    writer.until("presence", move |s| s.presence.get(&client)?.1.clone()).await;
    // The server without the reviewer's socket reads from Redis that the seat is held.
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let body = json!({ "anchor": { "start": 0, "end": 2, "quote": "나는" }, "body": "주어?",
                       "suggestion": "저는" });
    let review = cluster.one.post(&desk.reviewer, &path, body).await.ok(201);
    let created = reviewer.event("review.created").await;
    assert_eq!(created["review"]["id"], review["id"]);
    writer.event("review.created").await;
    // The server without the writer's socket accepts the suggestion.
    let accept = format!("{path}/{}/accept", review["id"].as_str().expect("an id"));
    cluster.two.post(&desk.writer, &accept, json!({})).await.ok(200);
    writer.reads("저는 글을 쓴다. 매일").await;
    reviewer.reads("저는 글을 쓴다. 매일").await;
    reviewer.leave().await;
    assert_eq!(writer.event("peer.left").await["role"], "reviewer");
}

/// Goal: the key test. A server is frozen for longer than the lease while its client sends edits.
/// Another session acquires the seat; after that grant no edit of the old session is stored.
#[tokio::test]
async fn g2_a_server_frozen_beyond_its_lease_writes_nothing_after_the_new_grant() {
    let cluster = Cluster::with(&[
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "1s"),
        ("SEATS__CLIENT_TIMEOUT", "30s"),
    ])
    .await;
    let desk = cluster.one.desk("").await;
    let old = cluster.one.claim_seat(&desk, "writer", "events=1").await;
    let old_fence = old.event("seat.granted").await["fence"].as_u64();
    old.synced().await;
    old.append("before ");
    old.saved().await;
    // A claim without `wait` would be refused before the lease ends. A waiter is granted the seat at
    // its end.
    let new = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    new.event("seat.waiting").await;
    cluster.one.freeze().await;
    assert!(old_fence < new.event("seat.granted").await["fence"].as_u64());
    new.synced().await;
    // These edits wait in the receive buffer of the frozen server's socket.
    for number in 0..50 {
        old.append(&format!("stale{number} "));
    }
    new.append("new ");
    new.saved().await;
    cluster.one.thaw().await;
    let (code, reason) = old.closed().await;
    assert_eq!((code, reason.as_str()), (4410, "taken_over"));
    new.append("after");
    new.saved().await;
    assert_eq!(new.text(), "before new after");
    for server in [&cluster.one, &cluster.two] {
        assert_eq!(server.text(&desk.writer, &desk.document).await, "before new after");
    }
}

/// Goal: after `kill -9` the seat is free within the lease, and never before its key expires.
#[tokio::test]
async fn g4_a_killed_servers_seat_is_free_within_the_lease_and_not_before_the_keys_end() {
    let mut cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s")]).await;
    let desk = cluster.one.desk("text").await;
    let old = cluster.one.writer(&desk).await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    cluster.one.kill().await;
    let killed_at = Instant::now();
    let key = format!("share-link:lock:{}:writer", desk.link);
    let ttl: u64 = cluster.redis.run(&format!("PTTL {key}")).await;
    drop(old);
    waiter.event("seat.granted").await;
    let waited = killed_at.elapsed();
    // The test reads PTTL a moment after the kill, in whole milliseconds.
    assert!(Duration::from_millis(ttl - 5) <= waited, "{waited:?} < {ttl} ms");
    assert!(waited < 2 * Duration::from_secs(3), "{waited:?}");
}

/// Goal: a link revoked on one server closes the sockets of the other within two seconds (G14).
#[tokio::test]
async fn g14_a_link_revoked_on_one_server_ends_the_sockets_of_the_other() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let revoked_at = Stopwatch::start();
    let path = format!("/api/share-links/{}", desk.link);
    cluster.one.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(reviewer.closed().await.0, 4404);
    assert!(revoked_at.elapsed() < Duration::from_secs(2), "{:?}", revoked_at.elapsed());
}

/// Goal: after the resume grace the other servers learn that a session with a broken socket has left.
#[tokio::test]
async fn an_away_session_leaves_its_peers_on_other_servers_after_the_resume_grace() {
    let cluster = Cluster::with(&[
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "500ms"),
        ("SEATS__RESUME_GRACE", "3s"),
    ])
    .await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let writer = cluster.one.writer(&desk).await;
    reviewer.event("peer.joined").await;
    drop(writer);
    assert_eq!(reviewer.event("peer.left").await["role"], "writer");
}

/// Goal: when a server dies, peers on another server receive `peer.left` once its seats are free, and
/// its presence is removed. A session that joins an open room receives its peers, on any server.
#[tokio::test]
async fn g4_sessions_of_a_killed_server_leave_their_peers_on_another_server() {
    let mut cluster = Cluster::with(&[("SEATS__LEASE", "6s"), ("SEATS__RENEW_EVERY", "2s")]).await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.two.writer(&desk).await;
    let reviewer = cluster.one.reviewer(&desk).await;
    writer.event("peer.joined").await;
    reviewer.announce(&json!({ "cursor": 1 }));
    let client = reviewer.client_id();
    writer.until("presence", move |s| s.presence.get(&client)?.1.clone()).await;
    let again = cluster.two.seated(&desk, "writer", "events=1&takeover=1").await;
    // The event may follow that of the replaced session, which is about to leave.
    let about_lee =
        |event: &Value, what: &str| event["event"] == what && event["user"]["name"] == "Lee";
    let notified = |what: &'static str| {
        again.until(what, move |s| s.events.iter().any(|e| about_lee(e, what)).then_some(()))
    };
    notified("peer.joined").await;
    again.until("presence", move |s| s.presence.get(&client)?.1.clone()).await;
    cluster.one.kill().await;
    notified("peer.left").await;
    again
        .until("the cursor goes", move |s| s.presence.get(&client)?.1.is_none().then_some(()))
        .await;
    let events = again.take_events();
    assert_eq!(events.iter().filter(|event| about_lee(event, "peer.left")).count(), 1);
}

/// Stores a text at the beginning of a document without a message to the servers.
pub(crate) async fn store_unpublished(storage: &Storage, desk: &Desk, text: &str) {
    storage.append(&[desk.unannounced_edit(text)]).await.expect("stored");
}

/// Goal: a file has the last stored edit, also at a server that missed its message.
#[tokio::test]
async fn an_export_has_an_edit_whose_publish_was_lost() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let reader = cluster.two.reviewer(&desk).await;
    store_unpublished(&cluster.storage().await, &desk, "never told").await;
    let file = download(&cluster.two, &desk.reviewer, &desk, "format=txt").await;
    let text = String::from_utf8_lossy(&file.bytes);
    assert!(text.contains("never told"), "{text}");
    reader.reads("never told").await;
}

/// Goal: the other servers show an edit whose server died between the commit and the publish, although
/// no later message reveals the gap (G8).
#[tokio::test]
async fn g8_a_stored_edit_whose_publish_was_lost_reaches_the_other_servers() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let readers = [cluster.one.reviewer(&desk).await, cluster.two.writer(&desk).await];
    store_unpublished(&cluster.storage().await, &desk, "never told").await;
    for reader in &readers {
        reader.reads("never told").await;
        // `document.saved` names it as well.
        reader.saved().await;
    }
}

/// Goal: reviewing at any server counts as activity: the seat does not reach its idle timeout.
#[tokio::test]
async fn reviewing_at_any_server_resets_the_idle_timeout() {
    let settings =
        [("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "1s"), ("SEATS__IDLE_RELEASE", "6s")];
    let cluster = Cluster::with(&settings).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.one.reviewer(&desk).await;
    let path = format!("/api/share-links/{}/reviews", desk.link);
    for server in [&cluster.one, &cluster.two] {
        reviewer.event("seat.idle").await;
        let body = json!({ "anchor": { "start": 0, "end": 4, "quote": "text" }, "body": "why?" });
        server.post(&desk.reviewer, &path, body).await.ok(201);
    }
    // The server warns again, because the seat was not idle in between.
    reviewer.event("seat.idle").await;
    assert_eq!(reviewer.event("seat.lost").await["reason"], "idle");
}
