//! The commands and statements of a pair: on one server, and split over two.

use crate::server::statements::{Counted, PAUSE};
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

use serde_json::json;
use tokio::time::sleep;

type Pair = (Desk, Peer, Peer);

/// A writer on the first server and a reviewer on the second, who see each other.
async fn pair_on(one: &Server, two: &Server) -> Pair {
    let desk = one.desk("One plain sentence.").await;
    let (writer, reviewer) = (one.writer(&desk).await, two.reviewer(&desk).await);
    writer.event("peer.joined").await;
    reviewer.event("peer.joined").await;
    (desk, writer, reviewer)
}

/// The acts of a pair, whose reviewer is on `two`.
async fn measure_acts(counted: &mut Counted, two: Option<&Server>) {
    let begin = async |one: &Server| pair_on(one, two.unwrap_or(one)).await;
    let join = async |one: &Server, (desk, reviewer): (Desk, Peer)| {
        let writer = one.writer(&desk).await;
        writer.event("document.saved").await;
        reviewer.event("peer.joined").await;
        vec![writer, reviewer]
    };
    let alone = async |one: &Server| {
        let desk = one.desk("One plain sentence.").await;
        let reviewer = two.unwrap_or(one).reviewer(&desk).await;
        reviewer.event("document.saved").await;
        (desk, reviewer)
    };
    counted.measure("a join", alone, join).await;
    let edit = async |_: &Server, (_, writer, reviewer): Pair| {
        writer.append("!");
        writer.saved().await;
        reviewer.reads("One plain sentence.!").await;
        vec![writer, reviewer]
    };
    counted.measure("an edit", begin, edit).await;
    let announce = async |_: &Server, (_, writer, reviewer): Pair| {
        writer.announce(&json!({ "cursor": 1 }));
        let client = writer.client_id();
        reviewer.until("the cursor", move |state| state.presence.get(&client)?.1.clone()).await;
        vec![writer, reviewer]
    };
    counted.measure("a cursor", begin, announce).await;
    let anchor = json!({ "start": 4, "end": 9, "quote": "plain" });
    let draft = json!({ "anchor": anchor, "body": "?", "suggestion": "short" });
    let review = async |one: &Server, (desk, writer, reviewer): Pair| {
        let path = format!("/api/share-links/{}/reviews", desk.link);
        two.unwrap_or(one).post(&desk.reviewer, &path, draft.clone()).await.ok(201);
        writer.event("review.created").await;
        vec![writer, reviewer]
    };
    counted.measure("a review", begin, review).await;
    let part = json!({ "start": 4, "end": 9, "quote": "plain", "text": "short" });
    let put = json!({ "id": "typed-0000-0000-plain01", "version": null, "parts": [part] });
    let suggest = async |one: &Server, (desk, writer, reviewer): Pair| {
        let path = format!("/api/share-links/{}/suggestions", desk.link);
        let mut put = put.clone();
        put["id"] = format!("typed-{}", desk.document).into();
        two.unwrap_or(one).post(&desk.reviewer, &path, json!({ "put": [put] })).await.ok(200);
        writer.event("review.created").await;
        vec![writer, reviewer]
    };
    counted.measure("a suggestion", begin, suggest).await;
    let leave = async |_: &Server, (_, writer, reviewer): Pair| {
        writer.leave().await;
        reviewer.event("peer.left").await;
        vec![reviewer]
    };
    counted.measure("a leave", begin, leave).await;
}

/// Goal: with a pair on one server an edit, a cursor and a review send Redis no command; on two servers each
/// is one message. A statement more or less is a change of this table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_act_of_a_pair_costs_its_commands_and_statements_on_one_server_and_on_two() {
    let mut counted = Counted::start().await;
    let two = counted.server.beside().await;
    measure_acts(&mut counted, None).await;
    measure_acts(&mut counted, Some(&two)).await;
    counted.cost(&[
        ("a join", 5, 1),
        ("an edit", 2, 0),
        ("a cursor", 0, 0),
        ("a review", 12, 0),
        ("a suggestion", 21, 0),
        ("a leave", 0, 1),
        // On the other server the first session opens the room: it subscribes, and both rooms introduce
        // themselves.
        ("a join", 7, 7),
        ("an edit", 2, 1),
        ("a cursor", 0, 1),
        ("a review", 12, 1),
        ("a suggestion", 21, 1),
        ("a leave", 0, 4),
    ]);
}

/// Goal: a tick reads the rights of all sessions in one statement, and the numbers of all rooms in another.
/// Nothing else reads a link, a seat or a document meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_costs_one_statement_of_all_sessions_and_one_of_all_rooms() {
    const PAIRS: i64 = 3;
    let quick = [("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "300ms")];
    let mut counted = Counted::with(&quick).await;
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        pairs.push(pair_on(&counted.server, &counted.server).await);
    }
    let read = "SELECT query, calls, rows FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%' \
                AND (query LIKE '%share_links%' OR query LIKE '%seats%' OR query LIKE '%documents%')";
    // The tasks of the joins end within the first windows.
    let (mut found, mut windows) = (Vec::<(String, i64, i64)>::new(), 0);
    while found.len() != 2 && windows < 30 {
        counted.forget().await;
        found.clear();
        while found.iter().all(|(_, ticks, _)| *ticks < 3) {
            sleep(PAUSE).await;
            let rows = sqlx::query_as(read).fetch_all(&mut counted.database).await;
            found = rows.expect("statements");
        }
        windows += 1;
    }
    for (query, ticks, rows) in &found {
        let expected = if query.contains("seats") { 2 * PAIRS } else { PAIRS };
        assert_eq!(*rows, ticks * expected, "{query}");
    }
    let [(_, one, _), (_, other, _)] = found.as_slice() else { panic!("{found:#?}") };
    assert!(one.abs_diff(*other) <= 1, "{found:#?}");
}
