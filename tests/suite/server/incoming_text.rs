//! The rule for text from clients (PROTOCOL): every entrance of REST cleans it, and the text of a stock client that
//! keeps to no rule has true positions.

use serde_json::json;

use crate::server::imports::import;
use crate::support::galley_process::Server;

/// Word's soft break, a NUL, a byte order mark, decomposed Hangul.
const DIRTY: &str = "\u{FEFF}\u{1112}\u{1161}\u{11AB}\u{B}\u{1100}\u{1173}\u{11AF}\u{0}.";
const CLEAN: &str = "한\n글.";

#[tokio::test]
async fn every_entrance_cleans_its_text_and_keeps_quotes() {
    let server = Server::start().await;
    let desk = server.desk(DIRTY).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, CLEAN);
    let (_writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 1, "quote": "한" });
    let body = json!({ "anchor": anchor, "body": DIRTY, "suggestion": DIRTY });
    let made = server.post(&desk.reviewer, &reviews, body).await.ok(201);
    assert_eq!((&made["body"], &made["suggestion"]), (&json!(CLEAN), &json!(CLEAN)));
    let path = format!("{reviews}/{}", made["id"].as_str().expect("an id"));
    let change = Some(json!({ "body": format!("{DIRTY}!") }));
    let changed = server.call(&desk.reviewer, "PATCH", &path, change).await.ok(200);
    assert_eq!(changed["body"], format!("{CLEAN}!"));
    let reply = json!({ "body": DIRTY });
    let replied = server.post(&desk.writer, &format!("{path}/replies"), reply).await.ok(201);
    assert_eq!(replied["body"], CLEAN);
    let remark = json!({ "anchor": null, "body": DIRTY });
    assert_eq!(server.post(&desk.writer, &reviews, remark).await.ok(201)["body"], CLEAN);

    let title = json!({ "title": "\u{1112}\u{1161}\u{11AB}", "text": "" });
    let document = server.post(&desk.writer, "/api/documents", title).await.ok(201);
    assert_eq!(document["title"], "한");
    let text = DIRTY.replace('\0', "").into_bytes();
    let name = "?name=%E1%84%92%E1%85%A1%E1%86%AB.txt";
    let imported = import(&server, &desk.writer, name, "text/plain", text).await.ok(201);
    assert_eq!(imported["title"], "한");
    let id = imported["id"].as_str().expect("an id");
    assert_eq!(server.text(&desk.writer, id).await, CLEAN);
}

/// Goal: the server rewrites no update, so offsets, quotes and headings are those of the stored letters, and what
/// it puts in is composed.
#[tokio::test]
async fn decomposed_text_of_a_stock_client_has_true_positions() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let word = "\u{1106}\u{116E}\u{11AF}\u{1105}\u{1172}\u{1105}\u{1173}\u{11AF}";
    let heading = "1. \u{110C}\u{1175}\u{110B}\u{116F}\u{11AB} (500\u{110C}\u{1161})";
    let text = format!("{heading}\n\u{110C}\u{1165}\u{1102}\u{1173}\u{11AB} {word} \u{2028}.");
    writer.insert(0, &text);
    writer.saved().await;
    reviewer.reads(&text).await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, text);
    let units = |text: &str| text.encode_utf16().count();
    let start = units(&text[..text.find(word).expect("the word")]);
    let end = start + units(word);

    let path = format!("/api/share-links/{}", desk.link);
    let anchor = |quote: &str| json!({ "start": start, "end": end, "quote": quote });
    let comment = json!({ "anchor": anchor(word), "body": "?" });
    let made = server.post(&desk.writer, &format!("{path}/reviews"), comment).await.ok(201);
    let exact = (json!("exact"), json!(start), json!(word));
    let anchored = &made["anchor"];
    assert_eq!(
        (anchored["state"].clone(), anchored["start"].clone(), anchored["quote"].clone()),
        exact
    );
    let composed = json!({ "anchor": anchor("물류를"), "body": "?" });
    let refused = server.post(&desk.writer, &format!("{path}/reviews"), composed).await;
    refused.problem(422, "anchor-mismatch");

    let part = json!({ "start": start, "end": end, "quote": word, "text": "\u{110B}\u{1172}\u{1110}\u{1169}\u{11BC}\u{110B}\u{1173}\u{11AF}\u{B}" });
    let put = json!({ "put": [{ "id": "decomposed-word-1", "version": null, "parts": [part] }], "withdraw": [] });
    let answer = server.post(&desk.reviewer, &format!("{path}/suggestions"), put).await.ok(200);
    assert_eq!(answer["items"][0]["state"], "kept");
    let accept = format!("{path}/reviews/decomposed-word-1/accept");
    let accepted = server.post(&desk.writer, &accept, json!({})).await.ok(200);
    assert_eq!(accepted["status"], "accepted");
    let after = text.replace(word, "유통을\n");
    reviewer.reads(&after).await;

    let sections = format!("/api/documents/{}/sections", desk.document);
    let body = json!({ "sections": [{ "title": heading, "limit": 700 }] });
    let set = server.call(&desk.writer, "PUT", &sections, Some(body)).await.ok(200);
    assert_eq!(set["sections"][0]["title"], "1. 지원 (500자)");
    assert_eq!(set["sections"][0]["at"], 0);
}
