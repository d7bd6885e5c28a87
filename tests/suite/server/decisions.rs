//! `/api/share-links/{id}/decisions` and `…/{did}/undo`: decisions about one and many suggestions, and their
//! undo, on two servers and both engines.

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use galley::domain::fence::Fence;
use galley::domain::ids::{DecisionId, ReviewId, SessionId};
use galley::domain::limits::DECIDED_AT_ONCE_MAX;
use galley::domain::review::Verdict;
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::storage::decisions::{DecisionPart, NewDecision};
use galley::storage::guard::{FenceGuard, Guarded};
use serde_json::{Value, json};

use crate::server::decision_fixtures::Pair;
use crate::server::many_servers::store_unpublished;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};

crate::on_each_engine! {
    crate::server::decision_fixtures::Pair:
    many_suggestions_are_accepted_as_one_by_one_and_an_undo_gives_the_text_before
    a_decision_leaves_some_suggestions_and_says_why
    an_acceptance_finds_a_quote_in_an_edit_whose_publish_was_lost
    g9_a_decision_changes_no_lookalike_and_takes_a_guess_that_was_seen
    a_rejection_leaves_the_text_and_its_undo_opens_the_suggestions
    an_undo_is_whole_or_nothing_and_names_the_changed_suggestions
    an_undo_is_the_writers_within_a_day_and_once
    g2_a_decision_without_the_seat_stores_nothing
    g13_a_decision_names_up_to_two_thousand_suggestions_and_is_announced_as_one
    g13_a_decision_that_makes_the_document_too_large_does_nothing
}

fn skipped(answer: &Value) -> Vec<(Value, &str)> {
    let rows = answer["skipped"].as_array().expect("rows");
    rows.iter().map(|row| (row["id"].clone(), row["reason"].as_str().expect("why"))).collect()
}

const LETTER: &str =
    "저는 성실한 사람입니다. 🙂 I am a plain person, and I write plain sentences. 끝.";

/// The text with all open suggestions, and the number of those that it does not have.
async fn accepted_text(server: &Server, who: &Person, desk: &Desk) -> (String, u64) {
    let url = format!("{}/api/documents/{}/text?view=accepted", server.url, desk.document);
    let answer = server.http.get(url).bearer_auth(&who.token).send().await.expect("an answer");
    let left = answer.headers()["galley-suggestions-left"].to_str().expect("text").parse();
    (answer.text().await.expect("text"), left.expect("a number"))
}

/// Goal: the view leaves what an acceptance would leave, and is for members alone.
#[tokio::test]
async fn the_accepted_view_counts_the_suggestions_that_do_not_stand() {
    let server = Server::start().await;
    let desk = server.desk(LETTER).await;
    assert_eq!(accepted_text(&server, &desk.writer, &desk).await, (LETTER.to_owned(), 0));
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let suggest = async |quote: &str, suggestion: &str| {
        let start = LETTER[..LETTER.find(quote).expect("the quote")].encode_utf16().count();
        let end = start + quote.encode_utf16().count();
        let anchor = json!({ "start": start, "end": end, "quote": quote });
        let body = json!({ "anchor": anchor, "body": "", "suggestion": suggestion });
        server.post(&desk.reviewer, &path, body).await.ok(201)
    };
    suggest("성실한 사람", "꾸준한 지원자").await;
    suggest("사람입니다", "?").await;
    suggest("plain person", "person").await;
    suggest(" 끝.", "").await;
    writer.append(" 🙂");
    writer.saved().await;
    let expected = "저는 꾸준한 지원자입니다. 🙂 I am a person, and I write plain sentences. 🙂";
    assert_eq!(accepted_text(&server, &desk.reviewer, &desk).await, (expected.to_owned(), 1));
    let text = format!("/api/documents/{}/text", desk.document);
    server.get(&desk.writer, &format!("{text}?view=all")).await.problem(400, "malformed");
    let mallory = server.guest("Mallory").await;
    server.get(&mallory, &format!("{text}?view=accepted")).await.problem(404, "not-found");
}

async fn many_suggestions_are_accepted_as_one_by_one_and_an_undo_gives_the_text_before(pair: Pair) {
    let (many, single) = (pair.table(LETTER).await, pair.table(LETTER).await);
    // Neighbours, deletions at both ends and in the middle, letters beyond the first plane.
    let suggestions = [
        ("write plain", "compose clear"),
        ("저는 ", ""),
        ("성실한", "꾸준한 👍"),
        (" 사람", " 지원자"),
        ("a plain ", ""),
        (" 끝.", ""),
        ("🙂", "🙃"),
    ];
    let mut versions = Vec::new();
    for (quote, suggestion) in suggestions {
        versions.push(many.suggest(quote, Some(suggestion)).await);
        let review = single.suggest(quote, Some(suggestion)).await;
        assert_eq!((&review["kind"], &review["decision"]), (&json!("suggestion"), &Value::Null));
        let path = single.path(&format!("/reviews/{}/accept", review["id"].as_str().expect("id")));
        let accepted = pair.two.post(&single.desk.writer, &path, json!({})).await.ok(200);
        assert_eq!(accepted["decision"]["by"]["name"], "Kim");
        let shown = single.writer.event("review.updated").await;
        assert_eq!(shown["review"]["decision"], accepted["decision"]);
    }
    let mut expected = LETTER.to_owned();
    for (quote, suggestion) in suggestions {
        expected = expected.replacen(quote, suggestion, 1);
    }
    single.reads(&expected).await;

    let view = accepted_text(&pair.two, &many.desk.reviewer, &many.desk).await;
    assert_eq!(view, (expected.clone(), 0));
    let items: Vec<_> = versions.iter().map(|review| (&review["id"], 1)).collect();
    let made = many.decide("accept", &items).await.ok(200);
    assert_eq!((&made["decision"], &made["skipped"]), (&json!("accept"), &json!([])));
    let ids: Vec<_> = versions.iter().map(|review| review["id"].clone()).collect();
    assert_eq!(made["done"], json!(ids));
    many.reads(&expected).await;
    for peer in [&many.writer, &many.reviewer] {
        for _ in &ids {
            assert_eq!(peer.event("review.updated").await["review"]["status"], "accepted");
        }
    }
    let accepted = many.review(&versions[2]).await;
    assert_eq!((&accepted["status"], &accepted["version"]), (&json!("accepted"), &json!(2)));
    let decision = &accepted["decision"];
    assert_eq!((&decision["id"], &decision["undo_until"]), (&made["id"], &made["undo_until"]));
    assert_eq!(decision["by"]["id"], json!(many.desk.writer.id));

    // A reply is no reason against the undo.
    let reply = many.path(&format!("/reviews/{}/replies", ids[0].as_str().expect("an id")));
    pair.one.post(&many.desk.reviewer, &reply, json!({ "body": "thanks" })).await.ok(201);
    many.writer.append(" More.");
    many.writer.saved().await;
    let undone = many.undo(&made["id"]).await.ok(200);
    assert_eq!(undone["id"], made["id"]);
    assert_eq!(undone["undone"].as_array().map(Vec::len), Some(ids.len()));
    many.reads(&format!("{LETTER} More.")).await;
    for ((quote, _), review) in suggestions.iter().zip(&versions) {
        let open = many.review(review).await;
        assert_eq!((&open["status"], &open["decision"]), (&json!("open"), &Value::Null));
        assert_eq!(
            (&open["anchor"]["state"], &open["anchor"]["quote"]),
            (&json!("exact"), &json!(quote))
        );
    }
    // The suggestions can be decided again.
    let versions: Vec<_> =
        join_all(versions.iter().map(async |review| many.review(review).await)).await;
    let items: Vec<_> = versions
        .iter()
        .map(|review| (&review["id"], review["version"].as_i64().unwrap()))
        .collect();
    assert_eq!(many.decide("accept", &items).await.ok(200)["done"], json!(ids));
    many.reads(&format!("{expected} More.")).await;
}

async fn a_decision_leaves_some_suggestions_and_says_why(pair: Pair) {
    let table = pair.table("one two three four five six seven").await;
    let older = table.suggest("two three", Some("2 3")).await;
    let younger = table.suggest("three four", Some("3 4")).await;
    let stale = table.suggest("one", Some("1")).await;
    let comment = table.suggest("five", None).await;
    let gone = table.suggest("seven", Some("7")).await;
    let decided = table.suggest("six", Some("6")).await;
    let other = pair.table("six").await;
    let elsewhere = other.suggest("six", Some("6")).await;
    table.decide("reject", &[(&decided["id"], 1)]).await.ok(200);
    let path = table.path(&format!("/reviews/{}", stale["id"].as_str().expect("an id")));
    let edit = Some(json!({ "suggestion": "uno" }));
    pair.two.call(&table.desk.reviewer, "PATCH", &path, edit).await.ok(200);
    table.writer.remove(28, 5);
    table.reads("one two three four five six ").await;
    let unknown = json!(ReviewId::generate().to_string());
    let items = [
        (&younger["id"], 1),
        (&stale["id"], 1),
        (&comment["id"], 1),
        (&gone["id"], 1),
        (&decided["id"], 2),
        (&elsewhere["id"], 1),
        (&unknown, 1),
        (&older["id"], 1),
    ];
    let made = table.decide("accept", &items).await.ok(200);
    assert_eq!(made["done"], json!([older["id"]]));
    let reasons = [
        (younger["id"].clone(), "overlaps"),
        (stale["id"].clone(), "version"),
        (comment["id"].clone(), "no-suggestion"),
        (gone["id"].clone(), "anchor-moved"),
        (decided["id"].clone(), "decided"),
        (elsewhere["id"].clone(), "not-found"),
        (unknown.clone(), "not-found"),
    ];
    assert_eq!(skipped(&made), reasons);
    table.reads("one 2 3 four five six ").await;
    // Nothing is left to do: no decision, and no event of one.
    let made = table.decide("accept", &items[1..4]).await.ok(200);
    assert_eq!((&made["id"], &made["done"]), (&Value::Null, &json!([])));
    assert_eq!((&made["undo_until"], skipped(&made).len()), (&Value::Null, 3));
    assert_eq!(table.review(&stale).await["status"], "open");
    table.reads("one 2 3 four five six ").await;
}

/// Goal: the room of the deciding server is behind the database. It reads on before it reports that the quote
/// is gone.
async fn an_acceptance_finds_a_quote_in_an_edit_whose_publish_was_lost(pair: Pair) {
    let table = pair.table("two one").await;
    let review = table.suggest("two", Some("2")).await;
    table.writer.remove(0, 4);
    table.reads("one").await;
    store_unpublished(&pair.storage().await, &table.desk, "two ").await;
    let made = table.decide("accept", &[(&review["id"], 1)]).await.ok(200);
    assert_eq!((&made["done"], skipped(&made)), (&json!([review["id"]]), Vec::new()));
    table.reads("2 one").await;
}

/// Goal: a suggestion in a deleted line is orphaned beside a twin of the line, after any number of reads. In a
/// dragged line it is a guess, which a decision takes only with its place.
async fn g9_a_decision_changes_no_lookalike_and_takes_a_guess_that_was_seen(pair: Pair) {
    let line = |team: &str| format!("Team {team} reduced latency by twelve percent everywhere.\n");
    let (alpha, beta) = (line("Alpha"), line("Beta"));
    let table = pair.table(&format!("{alpha}{beta}")).await;
    let review = table.suggest("twelve percent", Some("12 %")).await;
    let length = u32::try_from(alpha.len()).expect("short");
    table.writer.remove(0, length);
    table.reads(&beta).await;
    for _ in 0..3 {
        assert_eq!(table.review(&review).await["anchor"]["state"], "orphaned");
    }
    let made = table.decide("accept", &[(&review["id"], 1)]).await.ok(200);
    assert_eq!(skipped(&made), [(review["id"].clone(), "anchor-moved")]);
    // The writer takes the deletion back, and drags the line.
    table.writer.insert(0, &alpha);
    table.reads(&format!("{alpha}{beta}")).await;
    assert_eq!(table.review(&review).await["anchor"]["state"], "exact");
    table.writer.remove(0, length);
    table.writer.append(&alpha);
    let dragged = format!("{beta}{alpha}");
    table.reads(&dragged).await;
    for _ in 0..3 {
        assert_eq!(table.review(&review).await["anchor"]["state"], "moved");
    }
    let made = table.decide("accept", &[(&review["id"], 1)]).await.ok(200);
    assert_eq!(skipped(&made), [(review["id"].clone(), "moved")]);
    let accept = table.path(&format!("/reviews/{}/accept", review["id"].as_str().expect("an id")));
    pair.one.post(&table.desk.writer, &accept, json!({})).await.problem(409, "moved");
    assert_eq!(accepted_text(&pair.one, &table.desk.writer, &table.desk).await, (dragged, 1));
    let decide = async |seen: &Value| {
        let item = json!({ "id": review["id"], "version": 1, "moved": [seen] });
        let body = json!({ "decision": "accept", "reviews": [item] });
        pair.one.post(&table.desk.writer, &table.path("/decisions"), body).await.ok(200)
    };
    let made = decide(&json!("AA==")).await;
    assert_eq!(skipped(&made), [(review["id"].clone(), "moved")], "another place");
    let made = decide(&table.review(&review).await["anchor"]["relative"]["start"]).await;
    assert_eq!(made["done"], json!([review["id"]]));
    table.reads(&format!("{beta}{}", alpha.replace("twelve percent", "12 %"))).await;
}

async fn a_rejection_leaves_the_text_and_its_undo_opens_the_suggestions(pair: Pair) {
    let table = pair.table("one two").await;
    let (one, two) = (table.suggest("one", Some("1")).await, table.suggest("two", Some("")).await);
    let made = table.decide("reject", &[(&one["id"], 1), (&two["id"], 1)]).await.ok(200);
    assert_eq!(made["done"], json!([one["id"], two["id"]]));
    assert_eq!(table.review(&one).await["status"], "rejected");
    assert_eq!(table.review(&two).await["decision"]["id"], made["id"]);
    // The text may change meanwhile.
    table.writer.insert(0, "0 ");
    table.writer.saved().await;
    table.undo(&made["id"]).await.ok(200);
    for review in [&one, &two] {
        assert_eq!(table.review(review).await["status"], "open");
    }
    table.reads("0 one two").await;
    // A reopened suggestion is decided by the reopening.
    let made = table.decide("reject", &[(&one["id"], 3), (&two["id"], 3)]).await.ok(200);
    let path = table.path(&format!("/reviews/{}/reopen", one["id"].as_str().expect("an id")));
    let reopened = pair.one.post(&table.desk.writer, &path, json!({})).await.ok(200);
    assert_eq!(reopened["decision"], Value::Null);
    let refused = table.undo(&made["id"]).await;
    assert_eq!(refused.json["reviews"], json!([one["id"]]));
    refused.problem(409, "undo-conflict");
    assert_eq!(table.review(&two).await["status"], "rejected");
}

async fn an_undo_is_whole_or_nothing_and_names_the_changed_suggestions(pair: Pair) {
    let table = pair.table("one two three four").await;
    let mut made = Vec::new();
    for (quote, suggestion) in [("one", "1"), ("two ", ""), ("three", "3"), ("four", "vier")] {
        made.push(table.suggest(quote, Some(suggestion)).await);
    }
    let items: Vec<_> = made.iter().map(|review| (&review["id"], 1)).collect();
    let decision = table.decide("accept", &items).await.ok(200);
    table.reads("1 3 vier").await;
    // Into an accepted word, and into the gap of a deleted one.
    table.writer.insert(6, "!");
    table.writer.insert(2, "zwei ");
    table.writer.saved().await;
    table.reads("1 zwei 3 vi!er").await;
    let refused = table.undo(&decision["id"]).await;
    assert_eq!(refused.json["reviews"], json!([made[1]["id"], made[3]["id"]]));
    refused.problem(409, "undo-conflict");
    for review in &made {
        assert_eq!(table.review(review).await["status"], "accepted");
    }
    table.reads("1 zwei 3 vi!er").await;
    // The text of the decision stands again.
    table.writer.remove(11, 1);
    table.writer.remove(2, 5);
    table.reads("1 3 vier").await;
    table.undo(&decision["id"]).await.ok(200);
    table.reads("one two three four").await;
    // A deleted review prevents the undo.
    let items: Vec<_> = made.iter().map(|review| (&review["id"], 3)).collect();
    let decision = table.decide("accept", &items).await.ok(200);
    let path = table.path(&format!("/reviews/{}", made[0]["id"].as_str().expect("an id")));
    pair.two.call(&table.desk.reviewer, "DELETE", &path, None).await.ok(204);
    let refused = table.undo(&decision["id"]).await;
    assert_eq!(refused.json["reviews"], json!([made[0]["id"]]));
    refused.problem(409, "undo-conflict");
    table.reads("1 3 vier").await;
}

async fn an_undo_is_the_writers_within_a_day_and_once(pair: Pair) {
    let table = pair.table("one two").await;
    let (one, two) = (table.suggest("one", Some("1")).await, table.suggest("two", Some("2")).await);
    let made = table.decide("accept", &[(&one["id"], 1)]).await.ok(200);
    table.undo_as(&table.desk.reviewer, &made["id"]).await.problem(403, "seat-not-held");
    let stranger = pair.one.guest("Park").await;
    table.undo_as(&stranger, &made["id"]).await.problem(404, "not-found");
    let unknown = json!(DecisionId::generate().to_string());
    table.undo(&unknown).await.problem(404, "not-found");
    table.undo(&json!("x")).await.problem(404, "not-found");
    table.reads("1 two").await;
    let both = join_all((0..2).map(|_| table.undo(&made["id"]))).await;
    let mut statuses: Vec<_> = both.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    table.undo(&made["id"]).await.problem(409, "already-undone");
    table.reads("one two").await;
    // A decision of yesterday.
    let storage = pair.storage().await;
    let parse = |id: &Value| id.as_str().expect("an id").parse().expect("an id");
    let link = table.desk.link.parse().expect("an id");
    let Person { id, name, .. } = &table.desk.writer;
    let part = DecisionPart {
        review: parse(&two["id"]),
        version: 1,
        part: 0,
        current: None,
        position: None,
    };
    let old = NewDecision {
        id: DecisionId::generate(),
        document: table.desk.document.parse().expect("an id"),
        link,
        verdict: Verdict::Reject,
        by: User { id: id.parse().expect("an id"), name: name.clone() },
        at: Utc::now() - TimeDelta::hours(24) - TimeDelta::seconds(1),
        parts: vec![part],
    };
    let guard = FenceGuard { seat: Seat::new(link, Role::Writer), fence: table.fence };
    let decided = storage.decide(&old, guard, None).await.expect("stored");
    assert!(matches!(decided, Guarded::Done(_)), "{decided:?}");
    table.undo(&json!(old.id.to_string())).await.problem(409, "undo-expired");
    let left = table.review(&two).await;
    assert_eq!(
        (&left["status"], &left["decision"]["by"]["name"]),
        (&json!("rejected"), &json!("Kim"))
    );
}

async fn g2_a_decision_without_the_seat_stores_nothing(pair: Pair) {
    let table = pair.table("one two").await;
    let (one, two) = (table.suggest("one", Some("1")).await, table.suggest("two", Some("2")).await);
    let made = table.decide("reject", &[(&two["id"], 1)]).await.ok(200);
    let body = json!({ "decision": "accept", "reviews": [{ "id": one["id"], "version": 1 }] });
    let path = table.path("/decisions");
    let by_reviewer = pair.two.post(&table.desk.reviewer, &path, body.clone()).await;
    by_reviewer.problem(403, "seat-not-held");
    // The database has ratified another session's fence; these servers do not know it yet.
    let storage = pair.storage().await;
    let link = table.desk.link.parse().expect("an id");
    let seat = Seat::new(link, Role::Writer);
    let user = table.desk.writer.id.parse().expect("an id");
    let session = SessionId::generate();
    let higher = Fence(table.fence.0 + 1);
    storage.ratify(seat, higher, session, &user, Utc::now()).await.expect("ratified");
    pair.one.post(&table.desk.writer, &path, body).await.problem(403, "seat-not-held");
    table.undo(&made["id"]).await.problem(403, "seat-not-held");
    assert_eq!(table.review(&one).await["status"], "open");
    assert_eq!(table.review(&two).await["status"], "rejected");
    assert_eq!(pair.two.text(&table.desk.writer, &table.desk.document).await, "one two");
}

async fn g13_a_decision_names_up_to_two_thousand_suggestions_and_is_announced_as_one(pair: Pair) {
    const WORD: &str = "plain word, ";
    let text = WORD.repeat(DECIDED_AT_ONCE_MAX);
    let desk = pair.one.desk(&text).await;
    let length = u32::try_from(WORD.len()).expect("short");
    let suggestions: Vec<_> = (0..u32::try_from(DECIDED_AT_ONCE_MAX).expect("few"))
        .map(|number| ("plain", number * length, "clear"))
        .collect();
    let ids: Vec<_> = pair
        .suggest_many(&desk, &suggestions)
        .await
        .into_iter()
        .map(|id| json!(id.to_string()))
        .collect();
    let table = pair.seats(desk).await;
    let items: Vec<_> = ids.iter().map(|id| (id, 1)).collect();
    // Bad input.
    let unknown = json!(ReviewId::generate().to_string());
    let too_many: Vec<_> = items.iter().copied().chain([(&unknown, 1)]).collect();
    for wrong in [&too_many[..], &[], &[items[0], items[0]]] {
        table.decide("accept", wrong).await.problem(422, "invalid");
    }
    table.decide("resolve", &items[..1]).await.problem(422, "invalid");
    let junk = json!("junk");
    table.decide("accept", &[(&junk, 1)]).await.problem(422, "invalid");
    table.reads(&text).await;

    let made = table.decide("accept", &items).await.ok(200);
    assert_eq!((&made["done"], &made["skipped"]), (&json!(ids), &json!([])));
    for peer in [&table.writer, &table.reviewer] {
        let event = peer.event("decision.made").await;
        assert_eq!((&event["id"], &event["decision"]), (&made["id"], &json!("accept")));
        assert_eq!(event["by"]["name"], "Kim");
        let done = event["done"].as_array().expect("rows");
        assert_eq!(done.len(), ids.len());
        assert!(done.iter().all(|row| row["version"] == 2));
    }
    table.reads(&text.replace("plain", "clear")).await;
    let undone = table.undo(&made["id"]).await.ok(200);
    assert_eq!(undone["undone"].as_array().map(Vec::len), Some(ids.len()));
    for peer in [&table.writer, &table.reviewer] {
        let event = peer.event("decision.undone").await;
        assert_eq!(event["id"], made["id"]);
        assert_eq!(event["undone"].as_array().map(Vec::len), Some(ids.len()));
    }
    table.reads(&text).await;
    let last = json!({ "id": ids[1_999] });
    let open = table.review(&last).await;
    assert_eq!((&open["status"], &open["anchor"]["state"]), (&json!("open"), &json!("exact")));
}

async fn g13_a_decision_that_makes_the_document_too_large_does_nothing(pair: Pair) {
    let words = ["one", "two", "three", "four", "five"];
    let text = words.join(" ");
    let table = pair.table(&text).await;
    let long = "long ".repeat(13_000);
    let mut made = Vec::new();
    for word in words {
        made.push(table.suggest(word, Some(&long)).await);
    }
    let items: Vec<_> = made.iter().map(|review| (&review["id"], 1)).collect();
    let refused = table.decide("accept", &items).await;
    let detail = refused.json["detail"].as_str().expect("prose").to_owned();
    assert!(detail.contains("bytes larger"), "{detail}");
    refused.problem(409, "document-too-large");
    for review in &made {
        assert_eq!(table.review(review).await["status"], "open");
    }
    table.reads(&text).await;
    let decided = table.decide("accept", &items[..1]).await.ok(200);
    assert_eq!(decided["done"], json!([made[0]["id"]]));
    table.reads(&text.replace("one", &long)).await;
}
