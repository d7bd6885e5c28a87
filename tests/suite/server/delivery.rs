//! The effect of a commit reaches every socket that it concerns, also when no message announces it (G15).

use futures_util::StreamExt as _;
use galley::domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use galley::domain::fence::Fence;
use galley::domain::ids::ReviewId;
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::log::Append;
use galley::storage::reviews::{NewReview, ReviewChange};
use galley::yjs::log::SERVER_IDS;
use galley::yjs::text::document_from_text;

use serde_json::json;
use tokio::time::timeout;

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;

/// Short leases make ticks frequent.
pub(crate) const QUICK: [(&str, &str); 2] =
    [("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "500ms")];

impl Server {
    /// A second process on the server's SQLite file: no message announces its commits.
    pub(crate) async fn storage(&self) -> Storage {
        let url = format!("sqlite://{}/data/galley.db", self.folder().display());
        Storage::open(&url).await.expect("the server's own file")
    }
}

impl Desk {
    /// An edit by no session: only the database has it.
    pub(crate) fn unannounced_edit(&self, text: &str) -> Append {
        let client = *SERVER_IDS.start();
        Append {
            document: self.document.parse().expect("an id"),
            guard: None,
            update: document_from_text(text, client),
            clients: vec![client],
            user: None,
            expected_seq: None,
            after: 0,
            now: chrono::Utc::now(),
        }
    }
}

#[tokio::test]
async fn g15_a_lone_server_ends_the_sockets_of_a_link_whose_revocation_no_message_announced() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    // A waiter holds no seat, and the tick checks its link too.
    let waiter = server.claim_seat(&desk, "reviewer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;

    let link = desk.link.parse().expect("an id");
    assert!(server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked"));

    for peer in [&writer, &reviewer, &waiter] {
        assert_eq!(peer.closed().await.0, 4404);
    }
}

#[tokio::test]
async fn g15_a_session_in_its_resume_grace_ends_with_its_link() {
    let settings = [QUICK[0], QUICK[1], ("SEATS__RESUME_GRACE", "60s")];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let reviewer = server.reviewer(&desk).await;
    drop(writer);
    let link = desk.link.parse().expect("an id");
    server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked");
    assert_eq!(reviewer.closed().await.0, 4404);
    server.has("galley_seats_held{role=\"writer\"}", 0).await;
}

#[tokio::test]
async fn g15_a_lone_server_ends_the_sockets_of_a_document_deleted_without_a_message() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let document = desk.document.parse().expect("an id");
    assert!(server.storage().await.delete_document(document).await.expect("deleted"));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.closed().await.0, 4404);
    }
}

/// An accepted suggestion whose commit returned to no handler looks the same.
#[tokio::test]
async fn g15_a_lone_server_shows_a_committed_edit_that_no_message_announced() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let edit = desk.unannounced_edit("committed");
    server.storage().await.append(&[edit]).await.expect("stored");
    for peer in [&writer, &reviewer] {
        peer.reads("committed").await;
        peer.saved().await;
    }
}

/// A second DELETE returns 404 and announces nothing: the document's own DELETE closes the sockets.
#[tokio::test]
async fn g15_deleting_a_document_ends_sockets_that_an_earlier_revocation_left_open() {
    // No tick runs within this test.
    let settings = [("SEATS__LEASE", "600s"), ("SEATS__RENEW_EVERY", "200s")];
    let more = ("SEATS__CLIENT_TIMEOUT", "500s");
    let server = Server::with(&[settings[0], settings[1], more]).await;
    let desk = server.desk("text").await;
    let reviewer = server.reviewer(&desk).await;
    let link = desk.link.parse().expect("an id");
    server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked");
    let path = format!("/api/documents/{}", desk.document);
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(reviewer.closed().await.0, 4404);
}

impl Desk {
    /// A comment on the first four letters, stored by no handler.
    fn unannounced_review(&self) -> NewReview {
        let quote = |text: &str| text.to_owned();
        NewReview {
            id: ReviewId::generate(),
            link: self.link.parse().expect("an id"),
            author: User {
                id: self.reviewer.id.parse().expect("an id"),
                name: self.reviewer.name.clone(),
            },
            is_summary: false,
            origin: AnchorOrigin {
                range: TextRange { start: 0, end: 4 },
                quote: quote("text"),
                prefix: quote(""),
                suffix: quote(""),
            },
            current: RelativeRange { start: Vec::new(), end: Vec::new() },
            body: quote("why?"),
            suggestion: None,
            now: chrono::Utc::now(),
        }
    }
}

fn done<T: std::fmt::Debug>(guarded: Guarded<T>) -> T {
    match guarded {
        Guarded::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

/// The server of these writes is killed between its commits and their messages.
#[tokio::test]
async fn g15_changes_of_reviews_that_no_message_announced_arrive_at_the_sockets_within_a_tick() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let reviewer = server.claim_seat(&desk, "reviewer", "events=1").await;
    let fence = reviewer.event("seat.granted").await["fence"].as_u64().expect("a fence");
    let storage = server.storage().await;
    let new = desk.unannounced_review();
    let guard = FenceGuard { seat: Seat::new(new.link, Role::Reviewer), fence: Fence(fence) };
    let peers = [&writer, &reviewer];

    let made = done(storage.create_review(&new, guard).await.expect("stored"));
    for peer in peers {
        let event = peer.event("review.created").await;
        assert_eq!(event["review"]["id"], made.id.to_string(), "{event}");
        assert_eq!(event["review"]["anchor"]["quote"], "text", "{event}");
    }

    let body = ReviewChange { body: Some("because".to_owned()), ..ReviewChange::default() };
    let now = chrono::Utc::now();
    done(storage.change_review(new.link, new.id, &body, None, guard, now).await.expect("stored"));
    for peer in peers {
        assert_eq!(peer.event("review.updated").await["review"]["body"], "because");
    }

    done(storage.delete_review(new.link, new.id, None, guard).await.expect("stored"));
    for peer in peers {
        assert_eq!(peer.event("review.deleted").await["review"]["id"], made.id.to_string());
    }

    // A handler's own event follows these events, and each arrived once.
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let body = json!({ "anchor": { "start": 0, "end": 4, "quote": "text" }, "body": "last" });
    server.post(&desk.reviewer, &path, body).await.ok(201);
    for peer in peers {
        assert_eq!(peer.event("review.created").await["review"]["body"], "last");
        let more = peer.take_events();
        let reviews = |event: &serde_json::Value| {
            event["event"].as_str().is_some_and(|name| name.starts_with("review."))
        };
        assert!(!more.iter().any(reviews), "{more:?}");
    }
}

/// A replayed message carries a number that was delivered before.
#[tokio::test]
async fn g15_a_replayed_event_of_a_review_reaches_no_socket() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    writer.event("peer.joined").await;
    let channel = format!("share-link:room:{}", desk.document);
    let client = redis::Client::open(cluster.redis.url()).expect("an address");
    let mut eavesdropper = client.get_async_pubsub().await.expect("a connection");
    eavesdropper.subscribe(&channel).await.expect("subscribed");
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let review = async |text: &str| {
        let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
        let body = json!({ "anchor": anchor, "body": text });
        cluster.two.post(&desk.reviewer, &path, body).await.ok(201);
        assert_eq!(writer.event("review.created").await["review"]["body"], text);
    };
    review("once").await;
    let mut messages = eavesdropper.on_message();
    let caught = timeout(TEST_TIMEOUT, async {
        let mut message = Vec::new();
        while !is_about(&message, b"review.created") {
            message = messages.next().await.expect("a message").get_payload_bytes().to_vec();
        }
        message
    });
    let caught = caught.await.expect("the message is sent");

    let mut redis = cluster.redis.connection().await;
    for _ in 0..20 {
        let publish = redis::cmd("PUBLISH").arg(&channel).arg(&caught).clone();
        let heard: usize = publish.query_async(&mut redis).await.expect("published");
        assert!(heard >= 2, "both servers are subscribed");
    }
    // Later messages arrive after the replayed ones.
    review("twice").await;

    for peer in [&writer, &reviewer] {
        let again = |event: &serde_json::Value| event["review"]["body"] == "once";
        let event = peer.take_events().into_iter().filter(again).count();
        assert!(event <= 1, "{event} times");
    }
}

fn is_about(message: &[u8], name: &[u8]) -> bool {
    message.windows(name.len()).any(|part| part == name)
}
