//! A commit whose handler is dropped, or whose server dies, before its message (G15).
//!
//! The operations are the mutating routes whose effect other users see. Ticks are switched off where
//! a dropped handler is tested, since they would deliver the effect; a killed server has nothing else.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::delivery::QUICK;
use crate::desk::{Desk, Person};
use crate::kills::say;
use crate::peer::{Peer, State};
use crate::process::Server;
use crate::proxy::{Proxy, Way};
use crate::random::Random;
use crate::redis_server;

/// No tick comes within a test.
const NO_TICK: [(&str, &str); 3] =
    [("SEATS__LEASE", "600s"), ("SEATS__RENEW_EVERY", "200s"), ("SEATS__CLIENT_TIMEOUT", "500s")];

/// What is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Revoke,
    DeleteDocument,
    Create,
    Reply,
    DeleteReview,
    Reject,
    Accept,
}

const ALL: [Act; 7] = [
    Act::Revoke,
    Act::DeleteDocument,
    Act::Create,
    Act::Reply,
    Act::DeleteReview,
    Act::Reject,
    Act::Accept,
];

/// A desk with a review on it, and what is to be done.
struct Case {
    act: Act,
    desk: Desk,
    review: String,
}

impl Case {
    /// The reviewer is seated on that server.
    async fn new(act: Act, server: &Server, desk: Desk) -> Self {
        let path = format!("/api/share-links/{}/reviews", desk.link);
        let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
        let body = json!({ "anchor": anchor, "body": "why?", "suggestion": "word" });
        let review = server.post(&desk.reviewer, &path, body).await.ok(201);
        let review = review["id"].as_str().expect("an id").to_owned();
        Self { act, desk, review }
    }

    /// The user who does not act comes first.
    fn other_first(&self, writer: Peer, reviewer: Peer) -> [Peer; 2] {
        if self.is_the_reviewers() { [writer, reviewer] } else { [reviewer, writer] }
    }

    /// Whether the reviewer acts, and not the writer.
    fn is_the_reviewers(&self) -> bool {
        matches!(self.act, Act::Create | Act::Reply | Act::DeleteReview)
    }

    fn actor(&self) -> &Person {
        if self.is_the_reviewers() { &self.desk.reviewer } else { &self.desk.writer }
    }

    fn one(&self) -> String {
        format!("/api/share-links/{}/reviews/{}", self.desk.link, self.review)
    }

    /// Method, path and body.
    fn request(&self) -> (&'static str, String, String) {
        let link = format!("/api/share-links/{}", self.desk.link);
        let anchor = json!({ "start": 5, "end": 9, "quote": "here" });
        let empty = "{}".to_owned();
        match self.act {
            Act::Revoke => ("DELETE", link, String::new()),
            Act::DeleteDocument => {
                ("DELETE", format!("/api/documents/{}", self.desk.document), String::new())
            }
            Act::Create => {
                let body = json!({ "anchor": anchor, "body": "new" }).to_string();
                ("POST", format!("{link}/reviews"), body)
            }
            Act::Reply => {
                ("POST", format!("{}/replies", self.one()), json!({ "body": "new" }).to_string())
            }
            Act::DeleteReview => ("DELETE", self.one(), String::new()),
            Act::Reject => ("POST", format!("{}/reject", self.one()), empty),
            Act::Accept => ("POST", format!("{}/accept", self.one()), empty),
        }
    }

    /// Sends the request and closes the connection a while after.
    async fn send(&self, server: &Server, close_after: Duration) {
        let (method, path, body) = self.request();
        let address = server.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        socket.set_nodelay(true).expect("an open socket");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.actor().token,
            body.len()
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        // The step at which the client disconnects, not a wait for anything.
        sleep(close_after).await;
    }

    /// Whether the database has the effect.
    async fn is_committed(&self, server: &Server) -> bool {
        let writer = &self.desk.writer;
        match self.act {
            Act::Revoke => {
                let path = format!("/api/share-links/{}", self.desk.link);
                server.get(writer, &path).await.status == 404
            }
            Act::DeleteDocument => {
                let path = format!("/api/documents/{}", self.desk.document);
                server.get(writer, &path).await.status == 404
            }
            Act::Create => {
                let path = format!("/api/share-links/{}/reviews", self.desk.link);
                let list = server.get(writer, &path).await.ok(200);
                list["reviews"].as_array().is_some_and(|all| all.len() == 2)
            }
            Act::DeleteReview => server.get(writer, &self.one()).await.status == 404,
            Act::Reply => server.get(writer, &self.one()).await.ok(200)["replies"][0].is_object(),
            Act::Reject => server.get(writer, &self.one()).await.ok(200)["status"] == "rejected",
            Act::Accept => server.get(writer, &self.one()).await.ok(200)["status"] == "accepted",
        }
    }

    /// Waits until the other user's socket has the effect.
    async fn reaches(&self, other: &Peer) {
        match self.act {
            Act::Revoke | Act::DeleteDocument => assert_eq!(other.closed().await.0, 4404),
            Act::Create => {
                let is_there = |state: &mut State| state.events.iter().any(is_new).then_some(());
                other.until("the new review", is_there).await;
            }
            Act::DeleteReview => {
                other.event("review.deleted").await;
            }
            Act::Reply | Act::Reject => {
                other.event("review.updated").await;
            }
            Act::Accept => {
                other.reads("word here").await;
                other.event("review.updated").await;
            }
        }
    }
}

fn is_new(event: &serde_json::Value) -> bool {
    event["event"] == "review.created" && event["review"]["body"] == "new"
}

/// Goal: whenever the client of a request disconnects, the effect and its notification agree.
#[tokio::test]
async fn g15_a_request_whose_client_disconnects_at_any_step_delivers_what_it_commits() {
    let server = Server::with(&NO_TICK).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let mut cases = Vec::new();
    for act in ALL {
        for step in 0..7_u32 {
            let desk = server.desk_of(kim.clone(), lee.clone(), "text here").await;
            let writer = server.writer(&desk).await;
            let reviewer = server.reviewer(&desk).await;
            let case = Case::new(act, &server, desk).await;
            let [other, _actor] = case.other_first(writer, reviewer);
            // A commit is under way some milliseconds after the request, in a slow build later.
            case.send(&server, Duration::from_micros(500) * step.pow(2)).await;
            cases.push((case, other));
        }
    }
    // The first request was dropped long before the last; a commit still under way notifies later.
    let mut committed = 0;
    for (case, other) in &cases {
        if case.is_committed(&server).await {
            committed += 1;
            case.reaches(other).await;
        }
    }
    assert!(0 < committed, "no request came as far as its commit");
}

/// Goal: a server is killed between a commit and its message; the sockets of the other server have
/// the effect within a tick. Its messages are held back on their way to Redis.
#[tokio::test]
async fn g15_the_effect_of_a_commit_whose_server_is_killed_reaches_the_other_server() {
    let seed = std::env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| getrandom::u64().expect("random bits"));
    say(&format!("crash points: GALLEY_SEED={seed}"));
    let mut random = Random::new(seed);
    let redis = redis_server::Server::start().await;
    let proxy = Proxy::to(&redis).await;
    let (direct, held) = (redis.url(), proxy.url());
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let settings =
        |url| [QUICK[0], QUICK[1], ("DATABASE__SHARED_SQLITE", "true"), ("LOCKS__URL", url)];
    let mut one = Server::in_folder(Arc::clone(&folder), &settings(&held)).await;
    let two = Server::in_folder(folder, &settings(&direct)).await;
    let (kim, lee) = (two.guest("Kim").await, two.guest("Lee").await);
    let mut committed = 0;
    for (act, waits) in ALL.into_iter().zip([true, false].into_iter().cycle()) {
        let desk = two.desk_of(kim.clone(), lee.clone(), "text here").await;
        // The actor's seat is on the server that dies.
        let is_the_reviewers = matches!(act, Act::Create | Act::Reply | Act::DeleteReview);
        let (at_writer, at_reviewer) = if is_the_reviewers { (&two, &one) } else { (&one, &two) };
        let writer = at_writer.writer(&desk).await;
        let reviewer = at_reviewer.reviewer(&desk).await;
        let case = Case::new(act, at_reviewer, desk).await;
        let other = if is_the_reviewers { &writer } else { &reviewer };
        other.event("review.created").await;

        proxy.hold(Way::ToServer);
        if waits {
            let (method, path, body) = case.request();
            let body = (!body.is_empty()).then(|| serde_json::from_str(&body).expect("JSON"));
            let answer = one.call(case.actor(), method, &path, body).await;
            assert!(answer.status.is_success(), "{act:?}: {answer:?}");
        } else {
            let micros = u32::try_from(random.below(60_000)).expect("small");
            case.send(&one, Duration::from_micros(micros.into())).await;
        }
        one.kill().await;
        if case.is_committed(&two).await {
            committed += 1;
            case.reaches(other).await;
        }
        assert!(!waits || 0 < committed, "{act:?} was answered");
        proxy.heal();
        one.start_again().await;
    }
    assert!(4 <= committed, "{committed}");
}
