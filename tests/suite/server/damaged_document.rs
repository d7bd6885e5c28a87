//! A stored document with a damaged row: the server reports a read-only state and does not retry for ever.

use serde_json::json;
use sqlx::SqliteConnection;

use crate::support::galley_process::Server;

/// Moves the journal into the tables, as the server does at its start.
async fn move_journal(database: &mut SqliteConnection) {
    let statements = "BEGIN IMMEDIATE; \
         INSERT INTO updates SELECT document_id, seq, bytes FROM journal ORDER BY id; \
         UPDATE documents SET last_seq = (SELECT MAX(seq) FROM journal); \
         DELETE FROM journal; COMMIT";
    sqlx::raw_sql(statements).execute(database).await.expect("moved");
}

async fn rows(database: &mut SqliteConnection) -> Vec<(i64, Vec<u8>)> {
    let rows = sqlx::query_as("SELECT seq, bytes FROM updates ORDER BY seq");
    rows.fetch_all(database).await.expect("rows")
}

/// Goal: with a missing or malformed row a document opens read-only up to that row. The server notifies its
/// users, logs the row, and adds or merges nothing. With the row restored all is as before.
#[tokio::test]
async fn a_damaged_document_opens_read_only_up_to_the_damage_until_the_row_is_restored() {
    let server = Server::with(&[("SEATS__RENEW_EVERY", "250ms")]).await;
    let desk = server.desk("one").await;
    let writer = server.writer(&desk).await;
    for word in [" two", " three", " four"] {
        writer.append(word);
        writer.saved().await;
    }
    server.has_rooms(1).await;
    writer.leave().await;
    server.has_rooms(0).await;
    let mut database = server.database().await;
    move_journal(&mut database).await;
    let whole = rows(&mut database).await;
    assert_eq!(whole.len(), 4);
    let document = format!("/api/documents/{}", desk.document);
    let (versions, label) = (format!("{document}/versions"), json!({ "label": "mended" }));
    for (damage, read, said) in [
        ("DELETE FROM updates WHERE seq = 3", "one two", "number 3 is missing"),
        ("UPDATE updates SET bytes = x'010203' WHERE seq = 2", "one", "malformed update"),
        ("DELETE FROM updates WHERE seq = 4", "one two three", "number 4 is missing"),
    ] {
        sqlx::raw_sql(damage).execute(&mut database).await.expect("damage");
        let damaged = rows(&mut database).await;
        let writer = server.writer(&desk).await;
        writer.reads(read).await;
        server.has_rooms(1).await;
        let updated = writer.event("problem").await;
        assert_eq!(updated["type"], "/problems/document-damaged");
        writer.append(" more");
        assert_eq!(writer.event("problem").await["type"], "/problems/document-damaged");
        assert_eq!(writer.event("denied").await["reason"], "not-stored");
        // The damaged rows contain neither the owner nor the title.
        server.get(&desk.writer, &document).await.ok(200);
        let named = server.post(&desk.writer, &versions, label.clone()).await;
        named.problem(500, "document-damaged");
        // The server closes a client that reads no events with a final code at its first edit.
        let stock = server.claim_seat(&desk, "writer", "takeover=1").await;
        stock.synced().await;
        stock.append(" more");
        assert_eq!(stock.closed().await, (4403, "document-damaged".to_owned()));
        let text = server.get(&desk.writer, &format!("{document}/text")).await;
        text.problem(500, "document-damaged");
        let log = std::fs::read_to_string(server.folder().join("log")).expect("a log");
        assert!(log.contains(said) && log.contains("from a backup"), "{log}");
        assert_eq!(rows(&mut database).await, damaged);

        for (seq, bytes) in &whole {
            let mend = "INSERT INTO updates SELECT id, $1, $2 FROM documents WHERE true \
                        ON CONFLICT (document_id, seq) DO UPDATE SET bytes = excluded.bytes";
            let mending = sqlx::query(mend).bind(seq).bind(bytes).execute(&mut database);
            mending.await.expect("mended");
        }
        drop((writer, stock));
        server.has_rooms(0).await;
    }
    let writer = server.writer(&desk).await;
    assert_eq!(writer.text(), "one two three four");
    writer.append("!");
    writer.saved().await;
    server.post(&desk.writer, &versions, label).await.ok(201);
}

/// Goal: reviews of a damaged document can be read, answered and rejected. An operation that needs the text
/// is refused and changes nothing.
#[tokio::test]
async fn reviews_of_a_damaged_document_can_be_read_and_have_no_position() {
    let server = Server::start().await;
    let desk = server.desk("one").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.append(" two");
    writer.saved().await;
    let all = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 4, "end": 7, "quote": "two" });
    let suggestion = json!({ "anchor": anchor, "suggestion": "deux" });
    let made = server.post(&desk.reviewer, &all, suggestion.clone()).await.ok(201);
    let one = format!("{all}/{}", made["id"].as_str().expect("an id"));
    for person in [writer, reviewer] {
        person.leave().await;
    }
    server.has_rooms(0).await;
    let mut database = server.database().await;
    move_journal(&mut database).await;
    let damage = "UPDATE updates SET bytes = x'010203' WHERE seq = 2";
    sqlx::raw_sql(damage).execute(&mut database).await.expect("damage");

    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let listed = server.get(&desk.writer, &all).await.ok(200);
    let read = &listed["reviews"][0];
    assert_eq!((&read["id"], &read["anchor"]["quote"]), (&made["id"], &json!("two")));
    assert_eq!(read["anchor"]["state"], "orphaned");
    let accepted = server.post(&desk.writer, &format!("{one}/accept"), json!({})).await;
    accepted.problem(500, "document-damaged");
    let another = server.post(&desk.reviewer, &all, suggestion).await;
    another.problem(500, "document-damaged");
    assert_eq!(server.get(&desk.writer, &all).await.ok(200), listed);
    let reply = json!({ "body": "later" });
    server.post(&desk.writer, &format!("{one}/replies"), reply).await.ok(201);
    let rejected = server.post(&desk.writer, &format!("{one}/reject"), json!({})).await.ok(200);
    assert_eq!(rejected["status"], "rejected");
    let updated = async || writer.event("review.updated").await["review"].clone();
    assert_eq!(updated().await["replies"][0]["body"], "later");
    assert_eq!(updated().await, rejected);
}
