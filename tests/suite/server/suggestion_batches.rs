//! Batches of typed suggestions: ids that were used, batches at the same time, and batches that the budget delays.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::decision_fixtures::{Pair, Table};
use crate::server::suggestions::{items, reviews, send};
use crate::support::galley_process::Server;

crate::on_each_engine! {
    crate::server::decision_fixtures::Pair:
    g9_a_version_that_the_writer_has_read_never_names_other_words
    one_of_two_batches_at_once_keeps_a_passage
}

const TEXT: &str = "the quick brown fox";
const ID: &str = "typed-0000-0000-quick01";

fn put(id: &str, quote: &str, text: &str) -> Value {
    let start = TEXT.find(quote).expect("a word");
    let part = json!({ "start": start, "end": start + quote.len(), "quote": quote, "text": text });
    json!({ "id": id, "version": null, "parts": [part] })
}

async fn suggest(pair: &Pair, table: &Table<'_>, body: Value) -> Vec<Value> {
    items(send(&pair.two, &table.desk.reviewer, &table.desk, body).await)
}

/// The reviewer withdrew the suggestion that the writer had read, and put other words under its id and version.
async fn g9_a_version_that_the_writer_has_read_never_names_other_words(pair: Pair) {
    let table = pair.table(TEXT).await;
    let first = put(ID, "quick", "good");
    let made = suggest(&pair, &table, json!({ "put": [first] })).await;
    assert_eq!((&made[0]["state"], &made[0]["version"]), (&json!("kept"), &json!(1)));
    let path = table.path(&format!("/reviews/{ID}"));
    let read = pair.one.get(&table.desk.writer, &path).await;
    let tag = read.etag.clone().expect("a tag");
    assert_eq!(read.ok(200)["suggestion"], "good");
    let withdraw = json!({ "withdraw": [{ "id": ID, "version": 1 }] });
    assert_eq!(suggest(&pair, &table, withdraw).await[0]["state"], "withdrawn");
    // Other words, and a repeat of the first put that arrives late.
    for late in [put(ID, "brown", "awful"), first] {
        let refused = suggest(&pair, &table, json!({ "put": [late] })).await;
        assert_eq!(
            (&refused[0]["state"], &refused[0]["reason"]),
            (&json!("refused"), &json!("decided"))
        );
    }
    assert!(reviews(&pair, &table).await.is_empty());
    let accept = format!("{path}/accept");
    let body = Some(json!({}));
    let accepted = pair.one.call_if(&table.desk.writer, "POST", &accept, body, Some(&tag)).await;
    assert_eq!(accepted.status, 404);
    let decided = table.decide("accept", &[(&json!(ID), 1)]).await.ok(200);
    assert_eq!((&decided["done"], &decided["skipped"][0]["id"]), (&json!([]), &json!(ID)));
    table.reads(TEXT).await;
}

async fn one_of_two_batches_at_once_keeps_a_passage(pair: Pair) {
    let table = pair.table(TEXT).await;
    let words = ["the", "quick", "brown", "fox"];
    for (number, word) in words.into_iter().enumerate() {
        let batch = |of: &str, text: &str| json!({ "put": [put(&format!("typed-0000-0000-{of}-{number:04}"), word, text)] });
        let (one, two) = tokio::join!(
            send(&pair.one, &table.desk.reviewer, &table.desk, batch("one", "1")),
            send(&pair.two, &table.desk.reviewer, &table.desk, batch("two", "2"))
        );
        let mut states = [items(one), items(two)].concat();
        states.sort_by_key(|state| state["state"].to_string());
        assert_eq!(
            (&states[0]["state"], &states[1]["reason"]),
            (&json!("kept"), &json!("overlaps")),
            "{states:?}"
        );
    }
    assert_eq!(reviews(&pair, &table).await.len(), words.len());
}

/// Gaps of a text with many words.
fn batch(name: &str, count: usize, bytes: usize) -> Value {
    let text = "a".repeat(bytes);
    let puts = (0..count).map(|number| {
        let part = json!({ "at": 2 * number, "text": text });
        json!({ "id": format!("typed-0000-{name}-{number:04}"), "version": null, "parts": [part] })
    });
    json!({ "put": puts.collect::<Vec<_>>() })
}

/// A batch within every limit was refused for ever, and a refused try spent what had come back.
#[tokio::test]
async fn g17_a_batch_passes_when_its_retry_after_is_over() {
    let server = Server::start().await;
    let desk = server.desk(&"a ".repeat(200)).await;
    let seated = server.claim_seat(&desk, "reviewer", "events=1").await;
    seated.event("seat.granted").await;
    let try_once = async |body: &Value| send(&server, &desk.reviewer, &desk, body.clone()).await;
    // With its events it costs more than the whole budget.
    let largest = try_once(&batch("large", 200, 10_240)).await;
    let states = items(largest);
    assert!(states.iter().all(|state| state["state"] == "kept"), "{states:?}");
    for round in 0..2 {
        let next = batch(&format!("next{round}"), 40, 6_000);
        let mut answer = try_once(&next).await;
        let mut tries = 0;
        while answer.status == 429 && tries < 5 {
            tries += 1;
            answer = try_once(&next).await;
        }
        if answer.status == 429 {
            tokio::time::sleep(Duration::from_secs(answer.retry_after.expect("a time"))).await;
            answer = try_once(&next).await;
        }
        assert_eq!(items(answer).len(), 40);
    }
}
