//! `/api/share-links/{id}/seen` and `/turn`: seen marks, counts of reviews, the turn.

use serde_json::{Value, json};

use crate::server::delivery::QUICK;
use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};

const TEXT: &str = "One plain sentence. Another plain sentence.";

fn link(desk: &Desk) -> String {
    format!("/api/share-links/{}", desk.link)
}

fn comment(body: &str) -> Value {
    json!({ "anchor": { "start": 4, "end": 9, "quote": "plain" }, "body": body })
}

impl Server {
    /// The seen mark and the counts of a link, in both responses that have them.
    async fn progress(&self, who: &Person, desk: &Desk) -> (i64, [i64; 3]) {
        let shown = self.get(who, &link(desk)).await.ok(200);
        let list = self.get(who, "/api/share-links").await.ok(200);
        let rows = list["share_links"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["id"] == shown["id"]).expect("the link");
        for name in ["seen", "reviews", "turn"] {
            assert_eq!(row[name], shown[name], "{name}");
        }
        let number = |value: &Value| value.as_i64().expect("a number");
        let counts = &shown["reviews"];
        let counts = ["open", "unread", "total"].map(|name| number(&counts[name]));
        (number(&shown["seen"]), counts)
    }
}

#[tokio::test]
async fn changes_by_the_other_user_are_unread_until_the_member_has_seen_them() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (kim, lee) = (&desk.writer, &desk.reviewer);
    assert_eq!(server.progress(kim, &desk).await, (0, [0, 0, 0]));
    let (_writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let reviews = format!("{}/reviews", link(&desk));
    let first = server.post(lee, &reviews, comment("one")).await.ok(201);
    assert_eq!((&first["change"], &first["changed_by"]), (&json!(1), &json!(lee.id)));
    let second = server.post(kim, &reviews, comment("two")).await.ok(201);
    assert_eq!((&second["change"], &second["changed_by"]), (&json!(2), &json!(kim.id)));
    let summary = json!({ "anchor": null, "body": "three" });
    server.post(lee, &reviews, summary).await.ok(201);
    assert_eq!(server.progress(kim, &desk).await, (0, [3, 2, 3]));
    assert_eq!(server.progress(lee, &desk).await, (0, [3, 1, 3]));

    let seen = async |who: &Person, change: Value| {
        let body = Some(json!({ "change": change }));
        server.call(who, "PUT", &format!("{}/seen", link(&desk)), body).await
    };
    seen(kim, json!(1)).await.ok(204);
    assert_eq!(server.progress(kim, &desk).await, (1, [3, 1, 3]));
    // Above the last change, and lower than before.
    seen(kim, json!(9_000_000)).await.ok(204);
    assert_eq!(server.progress(kim, &desk).await, (3, [3, 0, 3]));
    seen(kim, json!(u64::MAX)).await.ok(204);
    seen(kim, json!(0)).await.ok(204);
    assert_eq!(server.progress(kim, &desk).await, (3, [3, 0, 3]));
    assert_eq!(server.progress(lee, &desk).await, (0, [3, 1, 3]), "each member has a mark");

    // A decision and a reply by the other user make a review unread again.
    let path = format!("{reviews}/{}", first["id"].as_str().expect("an id"));
    let replied = server.post(lee, &format!("{path}/replies"), json!({ "body": "!" })).await;
    assert_eq!(replied.ok(201)["review"]["change"], 4);
    assert_eq!(server.progress(kim, &desk).await, (3, [3, 1, 3]));
    seen(lee, json!(4)).await.ok(204);
    let resolved = server.post(kim, &format!("{path}/resolve"), json!({})).await.ok(200);
    assert_eq!((&resolved["change"], &resolved["changed_by"]), (&json!(5), &json!(kim.id)));
    assert_eq!(server.progress(lee, &desk).await, (4, [2, 1, 3]));
    assert_eq!(server.progress(kim, &desk).await, (3, [2, 0, 3]), "its last change is the own one");

    // A mark needs no seat.
    reviewer.leave().await;
    seen(lee, json!(5)).await.ok(204);
    assert_eq!(server.progress(lee, &desk).await, (5, [2, 0, 3]));
    let stranger = server.guest("Park").await;
    seen(&stranger, json!(5)).await.problem(404, "not-found");
    for wrong in [json!(-1), json!(1.5), json!("1"), json!(null)] {
        assert_eq!(seen(kim, wrong).await.status.as_u16(), 422);
    }
    let listed = server.get(kim, &reviews).await.ok(200);
    let changes: Vec<_> =
        listed["reviews"].as_array().expect("rows").iter().map(|row| &row["change"]).collect();
    assert_eq!(changes, [5, 2, 3]);
}

#[tokio::test]
async fn the_turn_is_passed_with_a_seat_and_taken_back() {
    let server = Server::start().await;
    let desk = server.desk(TEXT).await;
    let (kim, lee, park) = (&desk.writer, &desk.reviewer, server.guest("Park").await);
    let pass = async |who: &Person, to: Value| {
        server.post(who, &format!("{}/turn", link(&desk)), json!({ "to": to })).await
    };
    pass(kim, json!("reviewer")).await.problem(403, "seat-not-held");
    assert_eq!(server.get(kim, &link(&desk)).await.ok(200)["turn"], Value::Null);
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    pass(&park, json!("reviewer")).await.problem(404, "not-found");
    for wrong in [json!("admin"), json!(null), json!(1)] {
        assert_eq!(pass(kim, wrong).await.status.as_u16(), 422);
    }
    let passed = pass(kim, json!("reviewer")).await.ok(200)["turn"].clone();
    assert_eq!(passed["role"], "reviewer");
    assert_eq!(passed["by"], json!({ "id": kim.id, "name": "Kim" }));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("turn.changed").await["turn"], passed);
    }
    // Repeated by either user, it is the same turn, without an event.
    for who in [kim, lee] {
        assert_eq!(pass(who, json!("reviewer")).await.ok(200)["turn"], passed);
    }
    assert_eq!(server.get(lee, &link(&desk)).await.ok(200)["turn"], passed);
    let back = pass(kim, json!("writer")).await.ok(200)["turn"].clone();
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("turn.changed").await["turn"], back);
    }
    let again = pass(lee, json!("reviewer")).await.ok(200)["turn"].clone();
    assert_eq!(again["by"]["name"], "Lee");
    let list = server.get(kim, "/api/share-links").await.ok(200);
    assert_eq!(list["share_links"][0]["turn"], again);
    // The turn takes a number of the review changes and is no unread review.
    let reviews = format!("{}/reviews", link(&desk));
    let made = server.post(lee, &reviews, comment("one")).await.ok(201);
    assert_eq!(made["change"], 4);
    assert_eq!(server.progress(kim, &desk).await, (0, [1, 1, 1]));
}

/// Goal: both users receive the turn and the replies from a server that has neither socket.
#[tokio::test]
async fn g15_a_turn_and_a_changed_reply_arrive_at_the_sockets_of_another_server() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk(TEXT).await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    writer.event("peer.joined").await;
    let path = format!("{}/turn", link(&desk));
    let turn = cluster.two.post(&desk.writer, &path, json!({ "to": "reviewer" })).await.ok(200);
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("turn.changed").await["turn"], turn["turn"]);
    }
    let reviews = format!("{}/reviews", link(&desk));
    let made = cluster.two.post(&desk.writer, &reviews, comment("why?")).await.ok(201);
    assert_eq!(made["author"]["name"], "Kim");
    let path = format!("{reviews}/{}/replies", made["id"].as_str().expect("an id"));
    let reply = cluster.one.post(&desk.reviewer, &path, json!({ "body": "x" })).await.ok(201);
    let path = format!("{path}/{}", reply["id"].as_str().expect("an id"));
    let body = Some(json!({ "body": "so" }));
    let edited = cluster.one.call(&desk.reviewer, "PATCH", &path, body).await.ok(200);
    for peer in [&writer, &reviewer] {
        peer.event("review.created").await;
        peer.event("review.updated").await;
        assert_eq!(peer.event("review.updated").await["review"], edited);
    }
    let deleted = cluster.one.call(&desk.reviewer, "DELETE", &path, None).await.ok(200);
    assert_eq!(deleted["replies"], json!([]));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("review.updated").await["review"], deleted);
    }
    let listed = cluster.one.get(&desk.reviewer, &link(&desk)).await.ok(200);
    assert_eq!(listed["turn"], turn["turn"]);
}

/// Goal: a turn whose message was lost arrives within a tick, and once.
#[tokio::test]
async fn g15_a_turn_that_no_message_announced_arrives_within_a_tick() {
    use galley::domain::fence::Fence;
    use galley::domain::seat::{Role, Seat};
    use galley::domain::user::User;
    use galley::storage::guard::FenceGuard;

    let server = Server::with(&QUICK).await;
    let desk = server.desk(TEXT).await;
    let writer = server.writer(&desk).await;
    let reviewer = server.claim_seat(&desk, "reviewer", "events=1").await;
    let fence = reviewer.event("seat.granted").await["fence"].as_u64().expect("a fence");
    let id = desk.link.parse().expect("an id");
    let guard = FenceGuard { seat: Seat::new(id, Role::Reviewer), fence: Fence(fence) };
    let lee = User { id: desk.reviewer.id.parse().expect("an id"), name: "Lee".to_owned() };
    let storage = server.storage().await;
    let now = chrono::Utc::now();
    storage.pass_turn(id, Role::Writer, &lee, guard, now).await.expect("stored");
    for peer in [&writer, &reviewer] {
        let turn = peer.event("turn.changed").await["turn"].clone();
        assert_eq!((&turn["role"], &turn["by"]["name"]), (&json!("writer"), &json!("Lee")));
    }
    let reviews = format!("{}/reviews", link(&desk));
    server.post(&desk.reviewer, &reviews, comment("last")).await.ok(201);
    for peer in [&writer, &reviewer] {
        peer.event("review.created").await;
        let more = peer.take_events();
        assert!(!more.iter().any(|event| event["event"] == "turn.changed"), "{more:?}");
    }
}
