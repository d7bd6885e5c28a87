//! Calls on the reviews of a link by a session of this server, and by a member without a session.

use serde_json::{Value, json};

use crate::server::statements::{Counted, id_of};
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// A link with both seats held, and a path of its API.
type Seated = (Desk, Vec<Peer>, String);

async fn seated(server: &Server) -> Seated {
    let desk = server.desk("One plain sentence.").await;
    let peers = vec![server.writer(&desk).await, server.reviewer(&desk).await];
    let path = format!("/api/share-links/{}/reviews", desk.link);
    (desk, peers, path)
}

/// A link with both seats held and a suggestion, and the path of the suggestion.
async fn reviewed(server: &Server) -> Seated {
    let (desk, peers, path) = seated(server).await;
    let made = server.post(&desk.reviewer, &path, draft()).await.ok(201);
    (desk, peers, format!("{path}/{}", id_of(&made)))
}

fn draft() -> Value {
    let anchor = json!({ "start": 4, "end": 9, "quote": "plain" });
    json!({ "anchor": anchor, "body": "?", "suggestion": "short" })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_of_a_session_of_this_server_cost_no_statement_outside_their_transaction() {
    let mut counted = Counted::start().await;
    let list = async |server: &Server, (desk, peers, path): Seated| {
        server.get(&desk.reviewer, &path).await.ok(200);
        peers
    };
    counted.measure("a list without reviews", seated, list).await;
    let list_all = async |server: &Server, (desk, peers, path): Seated| {
        let path = path.rsplit_once('/').expect("an id").0;
        server.get(&desk.reviewer, path).await.ok(200);
        peers
    };
    counted.measure("a list", reviewed, list_all).await;
    counted.measure("one review", reviewed, list).await;
    let create = async |server: &Server, (desk, peers, path): Seated| {
        server.post(&desk.reviewer, &path, draft()).await.ok(201);
        peers
    };
    counted.measure("a review", seated, create).await;
    let edit = async |server: &Server, (desk, peers, path): Seated| {
        let body = Some(json!({ "body": "!" }));
        server.call(&desk.reviewer, "PATCH", &path, body).await.ok(200);
        peers
    };
    counted.measure("a changed review", reviewed, edit).await;
    let reply = async |server: &Server, (desk, peers, path): Seated| {
        let body = json!({ "body": "!" });
        server.post(&desk.writer, &format!("{path}/replies"), body).await.ok(201);
        peers
    };
    counted.measure("a reply", reviewed, reply).await;
    let resolve = async |server: &Server, (desk, peers, path): Seated| {
        server.post(&desk.writer, &format!("{path}/resolve"), json!({})).await.ok(200);
        peers
    };
    counted.measure("a resolution", reviewed, resolve).await;
    let pass = async |server: &Server, (desk, peers, _): Seated| {
        let path = format!("/api/share-links/{}/turn", desk.link);
        server.post(&desk.writer, &path, json!({ "to": "reviewer" })).await.ok(200);
        peers
    };
    counted.measure("a turn", seated, pass).await;
    let see = async |server: &Server, (desk, peers, _): Seated| {
        let path = format!("/api/share-links/{}/seen", desk.link);
        server.call(&desk.writer, "PUT", &path, Some(json!({ "change": 1 }))).await.ok(204);
        peers
    };
    counted.measure("a seen mark", reviewed, see).await;
    let without_session = async |server: &Server| {
        let (desk, mut peers, path) = seated(server).await;
        peers.pop().expect("the reviewer").leave().await;
        peers[0].event("peer.left").await;
        (desk, peers, path)
    };
    counted.measure("a list without reviews and without a session", without_session, list).await;
    // A list and a review are two statements and three in a transaction. A change of a review, a reply and a
    // resolution read the review before their transaction.
    counted.cost(&[
        ("a list without reviews", 3, 0),
        ("a list", 5, 0),
        ("one review", 4, 0),
        ("a review", 12, 0),
        ("a changed review", 15, 0),
        ("a reply", 19, 0),
        ("a resolution", 15, 0),
        ("a turn", 9, 0),
        ("a seen mark", 3, 0),
        ("a list without reviews and without a session", 4, 0),
    ]);
}
