//! `/api/share-links/{id}/suggestions`: typed suggestions with parts and gaps, their decisions and their undo, on
//! two servers and both engines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use galley::domain::anchor::{PartRequest, Position};
use galley::yjs::log::UpdateLog;
use galley::yjs::text::Text;
use serde_json::{Value, json};

use crate::server::decision_fixtures::{Pair, Table};
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Desk, Person};

crate::on_each_engine! {
    crate::server::decision_fixtures::Pair:
    typed_suggestions_are_seen_accepted_and_undone
    a_suggestion_with_several_parts_is_decided_as_one
    each_item_of_a_batch_has_its_own_outcome
    a_repeated_batch_changes_nothing
    a_withdrawn_suggestion_is_deleted_or_closed_with_its_replies
    g2_a_batch_without_the_reviewers_seat_stores_nothing
    g9_a_part_named_by_relative_positions_stands_where_its_words_moved
    an_insertion_of_several_parts_is_put_in_as_one
    a_suggestion_that_lost_its_passage_keeps_no_range_from_new_words
}

const ESSAY: &str =
    "1. 지원동기\n저는 물류가 좋습니다. 상자가 손에 닿기까지 봅니다. 🙂\n2. 장점\n꼼꼼합니다.\n";

fn at(words: &str) -> usize {
    ESSAY[..ESSAY.find(words).expect("words of the essay")].encode_utf16().count()
}

fn range(quote: &str, text: &str) -> Value {
    let (start, length) = (at(quote), quote.encode_utf16().count());
    json!({ "start": start, "end": start + length, "quote": quote, "text": text })
}

fn gap(before: &str, text: &str) -> Value {
    json!({ "at": at(before), "text": text })
}

fn put(id: &str, version: Option<i64>, parts: &[Value]) -> Value {
    json!({ "id": format!("typed-0000-0000-{id}"), "version": version, "parts": parts })
}

fn acknowledged(id: &str, version: i64) -> Value {
    json!({ "id": format!("typed-0000-0000-{id}"), "state": "kept", "version": version })
}

pub(crate) async fn send(server: &Server, who: &Person, desk: &Desk, body: Value) -> Answer {
    server.post(who, &format!("/api/share-links/{}/suggestions", desk.link), body).await
}

/// The reviewer, on the second server.
async fn suggest(pair: &Pair, table: &Table<'_>, puts: &[Value]) -> Vec<Value> {
    let body = json!({ "put": puts });
    items(send(&pair.two, &table.desk.reviewer, &table.desk, body).await)
}

pub(crate) fn items(answer: Answer) -> Vec<Value> {
    answer.ok(200)["items"].as_array().expect("items").clone()
}

pub(crate) async fn reviews(pair: &Pair, table: &Table<'_>) -> Vec<Value> {
    let list = pair.one.get(&table.desk.writer, &table.path("/reviews")).await.ok(200);
    list["reviews"].as_array().expect("reviews").clone()
}

async fn typed_suggestions_are_seen_accepted_and_undone(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let puts = [
        put("replace", None, &[range("좋습니다", "재미있습니다")]),
        put("delete1", None, &[range(" 🙂", "")]),
        put("insert1", None, &[gap("상자가", "매일 ")]),
        put("at-end1", None, &[json!({ "at": ESSAY.encode_utf16().count(), "text": "끝.\n" })]),
    ];
    let states = suggest(&pair, &table, &puts).await;
    let expected: Vec<_> =
        ["replace", "delete1", "insert1", "at-end1"].map(|id| acknowledged(id, 1)).into();
    assert_eq!(states, expected);
    for peer in [&table.writer, &table.reviewer] {
        for _ in &puts {
            let review = peer.event("review.created").await["review"].clone();
            assert_eq!((&review["origin"], &review["body"]), (&json!("typed"), &json!("")));
            assert_eq!(review["parts"][0]["text"], review["suggestion"]);
            assert_eq!(review["parts"][0]["anchor"], review["anchor"]);
            assert_eq!(review["anchor"]["state"], "exact");
        }
    }
    // G10: no text of the reviewer is in a replica or in the log before its acceptance.
    table.reads(ESSAY).await;
    let typed = put("insert1", Some(1), &[gap("상자가", "날마다 ")]);
    assert_eq!(suggest(&pair, &table, &[typed]).await, [acknowledged("insert1", 2)]);
    let updated = table.writer.event("review.updated").await["review"].clone();
    assert_eq!((&updated["version"], &updated["suggestion"]), (&json!(2), &json!("날마다 ")));

    let listed = reviews(&pair, &table).await;
    let named: Vec<_> = listed
        .iter()
        .map(|review| (&review["id"], review["version"].as_i64().expect("a version")))
        .collect();
    let made = table.decide("accept", &named).await.ok(200);
    assert_eq!((made["done"].as_array().map(Vec::len), &made["skipped"]), (Some(4), &json!([])));
    let accepted = ESSAY.replace("좋습니다", "재미있습니다").replace(" 🙂", "");
    let accepted = accepted.replace("상자가", "날마다 상자가") + "끝.\n";
    table.reads(&accepted).await;
    table.undo(&made["id"]).await.ok(200);
    table.reads(ESSAY).await;
    for review in reviews(&pair, &table).await {
        assert_eq!(
            (&review["status"], &review["anchor"]["state"]),
            (&json!("open"), &json!("exact"))
        );
    }
    // A rejection leaves the text byte for byte.
    let again = put("insert1", Some(4), &[gap("상자가", "늘 ")]);
    assert_eq!(suggest(&pair, &table, &[again]).await, [acknowledged("insert1", 5)]);
    let named = [(&json!("typed-0000-0000-insert1"), 5)];
    table.decide("reject", &named).await.ok(200);
    table.reads(ESSAY).await;
}

async fn a_suggestion_with_several_parts_is_decided_as_one(pair: Pair) {
    let table = pair.table(ESSAY).await;
    // A move: the sentence leaves its place and comes to another, around a suggestion of its own.
    let sentence = "상자가 손에 닿기까지 봅니다. ";
    let moved = put("moved01", None, &[gap("저는", sentence), range(sentence, "")]);
    let other = put("between", None, &[range("물류가", "배송이")]);
    assert_eq!(
        suggest(&pair, &table, &[moved, other]).await,
        [acknowledged("moved01", 1), acknowledged("between", 1)]
    );
    let review = table.writer.event("review.created").await["review"].clone();
    assert_eq!(review["parts"].as_array().map(Vec::len), Some(2));
    assert_eq!(review["parts"][1]["anchor"]["quote"], sentence);
    let view = format!("/api/documents/{}/text?view=accepted", table.desk.document);
    let view = format!("{}{view}", pair.two.url);
    let view = pair.two.http.get(view).bearer_auth(&table.desk.writer.token).send().await;
    let accepted =
        ESSAY.replace(sentence, "").replace("저는 물류가", &format!("{sentence}저는 배송이"));
    assert_eq!(view.expect("an answer").text().await.expect("a text"), accepted);

    // A form changes one part; this suggestion changes by typing alone.
    let path = table.path("/reviews/typed-0000-0000-moved01");
    let patch = json!({ "suggestion": "x" });
    let patched = pair.two.call(&table.desk.reviewer, "PATCH", &path, Some(patch)).await;
    patched.problem(422, "invalid");
    let remark = json!({ "body": "순서를 바꿔 보세요" });
    let patched = pair.two.call(&table.desk.reviewer, "PATCH", &path, Some(remark)).await.ok(200);
    assert_eq!(
        (&patched["version"], patched["parts"].as_array().map(Vec::len)),
        (&json!(2), Some(2))
    );

    let ids = [json!("typed-0000-0000-moved01"), json!("typed-0000-0000-between")];
    let made = table.decide("accept", &[(&ids[0], 2), (&ids[1], 1)]).await.ok(200);
    assert_eq!(made["done"], json!(ids));
    table.reads(&accepted).await;
    let stored = table.review(&json!({ "id": ids[0] })).await;
    let states: Vec<_> = [0, 1].map(|part| stored["parts"][part]["anchor"]["state"].clone()).into();
    assert_eq!(states[0], "edited", "the accepted text stands there");
    assert_eq!(table.undo(&made["id"]).await.ok(200)["undone"].as_array().map(Vec::len), Some(2));
    table.reads(ESSAY).await;

    // One part does not stand any more, so the suggestion is left whole.
    let units = |text: &str| u32::try_from(text.encode_utf16().count()).expect("short");
    table.writer.remove(u32::try_from(at(sentence)).expect("short"), units(sentence));
    table.reads(&ESSAY.replace(sentence, "")).await;
    let made = table.decide("accept", &[(&ids[0], 4), (&ids[1], 3)]).await.ok(200);
    assert_eq!(made["done"], json!([ids[1]]));
    assert_eq!(made["skipped"], json!([{ "id": ids[0], "reason": "anchor-moved" }]));
    table.reads(&ESSAY.replace(sentence, "").replace("물류가", "배송이")).await;
}

async fn each_item_of_a_batch_has_its_own_outcome(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let quote = range("좋습니다", "싫습니다");
    let long = |length: usize| json!({ "at": 0, "text": "a".repeat(length) });
    let many = vec![range("장점", "단점"); 65];
    let other = STANDARD.encode([0, 77, 3, 0]);
    let comment = table.suggest("꼼꼼합니다", None).await["id"].as_str().expect("an id").to_owned();
    let cases: Vec<(Value, &str)> = vec![
        (put("good001", None, std::slice::from_ref(&quote)), ""),
        (put("good001", None, &[gap("2.", "x")]), "malformed"),
        (put("again01", None, &[quote]), "overlaps"),
        (put("inside1", None, &[json!({ "at": at("좋습니다") + 1, "text": "x" })]), "overlaps"),
        (put("beside1", None, &[json!({ "at": at("좋습니다"), "text": "x" })]), ""),
        (put("twice01", None, &[range("2.", "x"), range("2.", "y")]), "overlaps"),
        (
            put("changed", None, &[json!({ "start": 0, "end": 2, "quote": "2.", "text": "" })]),
            "quote-changed",
        ),
        (put("future1", Some(7), &[gap("2.", "x")]), "version"),
        (put("outside", None, &[json!({ "at": 9_999, "text": "x" })]), "position"),
        (put("foreign", None, &[json!({ "at": other, "text": "x" })]), "position"),
        (put("nothing", None, &[gap("2.", "")]), "malformed"),
        (
            put("emptyyy", None, &[json!({ "start": 0, "end": 0, "quote": "", "text": "x" })]),
            "malformed",
        ),
        (put("no-part", None, &[]), "malformed"),
        (put("control", None, &[gap("2.", "\u{1}")]), "malformed"),
        (put("negativ", None, &[json!({ "at": -1, "text": "x" })]), "malformed"),
        (put("nobase6", None, &[json!({ "at": "%", "text": "x" })]), "malformed"),
        (put("bothhhh", None, &[json!({ "at": 0, "start": 0, "text": "x" })]), "malformed"),
        (json!({ "id": "short", "version": null, "parts": [gap("2.", "x")] }), "malformed"),
        (json!(7), "malformed"),
        (put("many-65", None, &many), "too-long"),
        (put("long-64", None, &[long(64 * 1024 + 1)]), "too-long"),
        (put("mebibyt", None, &[long(1024 * 1024)]), "too-long"),
        (json!({ "id": comment, "version": 1, "parts": [gap("2.", "x")] }), "not-yours"),
        (put("last-go", None, &[gap("2.", "x")]), ""),
    ];
    let puts: Vec<_> = cases.iter().map(|(item, _)| item.clone()).collect();
    let states = suggest(&pair, &table, &puts).await;
    assert_eq!(states.len(), cases.len());
    for (state, (item, reason)) in states.iter().zip(&cases) {
        let expected = if reason.is_empty() { "kept" } else { "refused" };
        assert_eq!(state["state"], expected, "{state} {}", item["id"]);
        assert_eq!(state["reason"].as_str().unwrap_or_default(), *reason, "{state}");
    }
    assert_eq!(reviews(&pair, &table).await.len(), 1 + 3);
    table.reads(ESSAY).await;

    // A review of another user, and one of another link.
    let elsewhere = pair.table(ESSAY).await;
    let foreign = put("good001", None, &[gap("2.", "x")]);
    let states = suggest(&pair, &elsewhere, &[foreign]).await;
    assert_eq!(states[0]["reason"], "not-yours");

    // More items than a batch may have: nothing is stored.
    let gaps = (0..201).map(|number| put(&format!("many-{number:03}"), None, &[gap("2.", "x")]));
    let body = json!({ "put": gaps.collect::<Vec<_>>() });
    let answer = send(&pair.two, &table.desk.reviewer, &table.desk, body).await;
    answer.problem(413, "too-large");
    let list = json!({ "put": { "id": "x" } });
    send(&pair.two, &table.desk.reviewer, &table.desk, list).await.problem(422, "invalid");
    assert_eq!(reviews(&pair, &table).await.len(), 1 + 3);
}

async fn a_repeated_batch_changes_nothing(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let puts = [
        put("first01", None, &[range("좋습니다", "싫습니다"), gap("2.", "x")]),
        put("second1", None, &[range("장점", "")]),
    ];
    let expected = [acknowledged("first01", 1), acknowledged("second1", 1)];
    assert_eq!(suggest(&pair, &table, &puts).await, expected);
    let before = reviews(&pair, &table).await;
    assert_eq!(suggest(&pair, &table, &puts).await, expected);
    assert_eq!(reviews(&pair, &table).await, before);
    // Another tab has another text for the same version.
    let put_again = put("second1", None, &[range("장점", "단점")]);
    let refused = suggest(&pair, &table, &[put_again]).await;
    assert_eq!((&refused[0]["reason"], &refused[0]["version"]), (&json!("version"), &json!(1)));
    let changed = put("second1", Some(1), &[range("장점", "단점")]);
    assert_eq!(suggest(&pair, &table, &[changed]).await, [acknowledged("second1", 2)]);
    // The writer decides what the reviewer still types.
    let id = json!("typed-0000-0000-second1");
    table.decide("reject", &[(&id, 2)]).await.ok(200);
    let late = put("second1", Some(2), &[range("장점", "강점")]);
    assert_eq!(suggest(&pair, &table, &[late]).await[0]["reason"], "decided");
}

async fn a_withdrawn_suggestion_is_deleted_or_closed_with_its_replies(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let puts = ["alone01", "replied"].map(|id| {
        let part =
            if id == "alone01" { range("장점", "") } else { range("물류가", "배송이") };
        put(id, None, &[part])
    });
    suggest(&pair, &table, &puts).await;
    let reply = table.path("/reviews/typed-0000-0000-replied/replies");
    pair.one.post(&table.desk.writer, &reply, json!({ "body": "왜요?" })).await.ok(201);
    let named =
        |id: &str, version| json!({ "id": format!("typed-0000-0000-{id}"), "version": version });
    let withdraw = async |named: &[Value]| {
        let body = json!({ "withdraw": named });
        items(send(&pair.two, &table.desk.reviewer, &table.desk, body).await)
    };
    let late = withdraw(&[named("replied", 1)]).await;
    assert_eq!((&late[0]["reason"], &late[0]["version"]), (&json!("version"), &json!(2)));
    for _ in 0..2 {
        let states = withdraw(&[named("alone01", 1), named("replied", 2)]).await;
        assert!(states.iter().all(|state| state["state"] == "withdrawn"), "{states:?}");
    }
    let deleted = table.writer.event("review.deleted").await;
    assert_eq!(deleted["review"]["id"], "typed-0000-0000-alone01");
    let left = reviews(&pair, &table).await;
    assert_eq!(left.len(), 1);
    assert_eq!(
        (&left[0]["status"], &left[0]["outcome"]),
        (&json!("resolved"), &json!("withdrawn"))
    );
    assert_eq!(left[0]["replies"].as_array().map(Vec::len), Some(1));
    let reopen = table.path("/reviews/typed-0000-0000-replied/reopen");
    let open = pair.one.post(&table.desk.writer, &reopen, json!({})).await.ok(200);
    assert_eq!((&open["status"], &open["outcome"]), (&json!("open"), &Value::Null));
    // The writer types the words of the suggestion.
    let start = u32::try_from(at("물류가")).expect("short");
    table.writer.remove(start, 3);
    table.writer.insert(start, "배송이");
    table.reads(&ESSAY.replace("물류가", "배송이")).await;
    let states = withdraw(&[named("replied", 4)]).await;
    assert_eq!(states[0]["state"], "withdrawn");
    assert_eq!(reviews(&pair, &table).await[0]["outcome"], "fulfilled");
    // A withdrawal overtakes its put, whose request was on its way.
    assert_eq!(withdraw(&[named("late001", 0)]).await[0]["state"], "withdrawn");
    let late = suggest(&pair, &table, &[put("late001", None, &[gap("2.", "x")])]).await;
    assert_eq!(late[0]["reason"], "decided");
    assert_eq!(reviews(&pair, &table).await.len(), 1);
}

async fn g2_a_batch_without_the_reviewers_seat_stores_nothing(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let body = || json!({ "put": [put("seatless", None, &[gap("2.", "x")])] });
    let writer = send(&pair.one, &table.desk.writer, &table.desk, body()).await;
    writer.problem(403, "seat-not-held");
    let mallory = pair.one.guest("Mallory").await;
    send(&pair.one, &mallory, &table.desk, body()).await.problem(404, "not-found");
    let Table { desk, writer, reviewer, .. } = table;
    reviewer.leave().await;
    until("the seat is released", async || {
        send(&pair.one, &desk.reviewer, &desk, body()).await.status == 403
    })
    .await;
    writer.reads(ESSAY).await;
}

async fn g9_a_part_named_by_relative_positions_stands_where_its_words_moved(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let storage = pair.storage().await;
    let document = table.desk.document.parse().expect("an id");
    let log = storage.log(document).await.expect("the log").expect("a document");
    let merged = UpdateLog::open(log.parts).expect("a log").merged();
    let text = Text::build(&merged).expect("text");
    let start = u32::try_from(at("좋습니다")).expect("short");
    let (start, end) = (Position::Offset(start), Position::Offset(start + 4));
    let quote = "좋습니다".to_owned();
    let (_, range) = text.anchor_part(&PartRequest::Range { start, end, quote }).expect("a range");
    let gap = Position::Offset(u32::try_from(at("상자가")).expect("short"));
    let (_, gap) = text.anchor_part(&PartRequest::Gap(gap)).expect("a gap");
    // The writer types before both.
    table.writer.insert(0, "자기소개서\n");
    table.writer.saved().await;
    let parts = |with: &str| {
        [
            json!({ "at": STANDARD.encode(&gap.end), "text": with }),
            json!({
                "start": STANDARD.encode(&range.start),
                "end": STANDARD.encode(&range.end),
                "quote": "좋습니다",
                "text": with,
            }),
        ]
    };
    assert_eq!(
        suggest(&pair, &table, &[put("moved01", None, &parts("가 "))]).await,
        [acknowledged("moved01", 1)]
    );
    let change = [put("moved01", Some(1), &parts("나 "))];
    assert_eq!(suggest(&pair, &table, &change).await, [acknowledged("moved01", 2)]);
    assert_eq!(suggest(&pair, &table, &change).await, [acknowledged("moved01", 2)]);
    let moved = "자기소개서\n".encode_utf16().count();
    let review = &reviews(&pair, &table).await[0];
    assert_eq!(review["parts"][0]["anchor"]["start"], json!(at("상자가") + moved));
    assert_eq!(review["parts"][1]["anchor"]["start"], json!(at("좋습니다") + moved));
    let id = json!("typed-0000-0000-moved01");
    table.decide("accept", &[(&id, 2)]).await.ok(200);
    let expected = ESSAY.replace("좋습니다", "나 ").replace("상자가", "나 상자가");
    table.reads(&format!("자기소개서\n{expected}")).await;
}

/// A page divides an insertion that is longer than a part.
async fn an_insertion_of_several_parts_is_put_in_as_one(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let texts = ["가나다 ", "라마바 ", "사아자 "].map(|words| words.repeat(6_000));
    let parts = texts.each_ref().map(|text| gap("상자가", text));
    let states = suggest(&pair, &table, &[put("divided", None, &parts)]).await;
    assert_eq!(states, [acknowledged("divided", 1)]);
    let another = suggest(&pair, &table, &[put("another", None, &parts[..1])]).await;
    assert_eq!(another[0]["reason"], "overlaps");
    let made = table.decide("accept", &[(&states[0]["id"], 1)]).await.ok(200);
    table.reads(&ESSAY.replace("상자가", &(texts.concat() + "상자가"))).await;
    table.undo(&made["id"]).await.ok(200);
    table.reads(ESSAY).await;
    let parts = reviews(&pair, &table).await[0]["parts"].as_array().expect("parts").clone();
    assert!(parts.iter().all(|part| part["anchor"]["state"] == "exact"), "{parts:?}");
}

async fn a_suggestion_that_lost_its_passage_keeps_no_range_from_new_words(pair: Pair) {
    let table = pair.table(ESSAY).await;
    let puts = [
        put("gap0001", None, &[gap("상자가", "늘 ")]),
        put("range01", None, &[range("닿기까지", "오도록")]),
    ];
    suggest(&pair, &table, &puts).await;
    // Of the passage of the gap its neighbours go, of that of the range all letters but the last.
    for words in ["닿기까", "좋습니다. 상자가 손에"] {
        let length = words.encode_utf16().count();
        table.writer.remove(
            u32::try_from(at(words)).expect("short"),
            u32::try_from(length).expect("short"),
        );
    }
    let text = ESSAY.replace("닿기까", "").replace("좋습니다. 상자가 손에", "");
    table.reads(&text).await;
    let at = at("좋습니다");
    let rest = json!({ "start": at + 1, "end": at + 2, "quote": "지", "text": "도록" });
    let puts = [
        put("again01", None, &[json!({ "at": at, "text": "또 " })]),
        put("again02", None, &[rest]),
    ];
    let states = suggest(&pair, &table, &puts).await;
    assert_eq!(states, [acknowledged("again01", 1), acknowledged("again02", 1)]);
    let made =
        table.decide("accept", &[(&states[0]["id"], 1), (&states[1]["id"], 1)]).await.ok(200);
    assert_eq!(made["skipped"], json!([]));
}
