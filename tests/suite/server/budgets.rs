//! Bounds that the server keeps for each user and each share link (G17).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::server::commands::galley;
use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::{Answer, Person};

/// Texts that a browser renders as nothing, or as another text.
const UNSEEN: &[&str] = &[
    "\u{200B}\u{200B}",
    "\u{3164}",
    "\u{FEFF}",
    "\u{115F}",
    "\u{061C}",
    "\u{E0041}",
    "Ki\u{200D}m",
    "\u{202E}txt.exe",
];

const MIB: usize = 1_024 * 1_024;

/// A review of the first letter of a text that begins with `a`.
fn draft(body: &str, suggestion: Option<&str>) -> Value {
    let anchor = json!({ "start": 0, "end": 1, "quote": "a" });
    json!({ "anchor": anchor, "body": body, "suggestion": suggestion })
}

#[tokio::test]
async fn g17_a_name_title_or_label_that_a_page_cannot_show_is_rejected() {
    let server = Server::start().await;
    let desk = server.desk("a text").await;
    let _writer = server.writer(&desk).await;
    let versions = format!("/api/documents/{}/versions", desk.document);
    for text in UNSEEN {
        let guest = server.post(&desk.writer, "/api/auth/guest", json!({ "name": text })).await;
        guest.problem(422, "invalid");
        let title = json!({ "title": text, "text": "" });
        server.post(&desk.writer, "/api/documents", title).await.problem(422, "invalid");
        let label = server.post(&desk.writer, &versions, json!({ "label": text })).await;
        label.problem(422, "invalid");
    }
    let family = json!({ "title": "❤\u{FE0F} 👩\u{200D}👩\u{200D}👧 가족", "text": "" });
    server.post(&desk.writer, "/api/documents", family).await.ok(201);
}

#[tokio::test]
async fn g17_a_review_has_no_control_characters() {
    let server = Server::start().await;
    let desk = server.desk("a text").await;
    let _reviewer = server.reviewer(&desk).await;
    server
        .post(&desk.reviewer, &desk.reviews(), draft("\u{1}", None))
        .await
        .problem(422, "invalid");
    let drafted = draft("a\u{1b}[1m", Some("b\0\u{b}\u{1100}\u{1161}"));
    let clean = server.post(&desk.reviewer, &desk.reviews(), drafted).await.ok(201);
    assert_eq!((&clean["body"], &clean["suggestion"]), (&json!("a[1m"), &json!("b\n가")));
    let made = server.post(&desk.reviewer, &desk.reviews(), draft("1.\r\n\t2.", None)).await;
    let made = made.ok(201);
    assert_eq!(made["body"], "1.\n\t2.");
    let path = format!("{}/{}", desk.reviews(), made["id"].as_str().expect("an id"));
    let change =
        server.call(&desk.reviewer, "PATCH", &path, Some(json!({ "body": "\u{7}" }))).await;
    change.problem(422, "invalid");
    let replies = format!("{path}/replies");
    let reply = server.post(&desk.reviewer, &replies, json!({ "body": "\u{8}x\u{2028}" })).await;
    assert_eq!(reply.ok(201)["body"], "x\n");
}

/// Goal: replies of a reviewer reach the writer at a bounded rate, and the writer keeps the seat.
#[tokio::test]
async fn g17_replies_do_not_flood_the_writers_socket() {
    let server = Server::start().await;
    let desk = server.desk("a text").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let began = Instant::now();
    let (mut taken, mut fast) = (0, 0);
    let mut replies = String::new();
    for number in 0..171 {
        // When a review is full, the test continues with the next one.
        let made = match replies.is_empty() {
            true => Some(server.post(&desk.reviewer, &desk.reviews(), draft("?", None)).await),
            false => None,
        };
        if made.as_ref().is_some_and(|made| made.status.as_u16() == 429) {
            fast += 1;
            continue;
        }
        if let Some(made) = made {
            let id = made.ok(201)["id"].as_str().expect("an id").to_owned();
            replies = format!("{}/{id}/replies", desk.reviews());
        }
        let body = json!({ "body": format!("{number} {}", "x".repeat(16_000)) });
        let answer = server.post(&desk.reviewer, &replies, body).await;
        match answer.status.as_u16() {
            201 => taken += 1,
            409 => {
                answer.problem(409, "too-many");
                replies.clear();
            }
            _ => {
                answer.problem(429, "too-many-requests");
                fast += 1;
            }
        }
    }
    assert!(0 < taken && 0 < fast, "{taken} taken, {fast} too fast");
    let bytes: usize =
        writer.look(|state| state.events.iter().map(|event| event.to_string().len()).sum());
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("a few") + 1;
    assert!(bytes < 5 * MIB / 2 + seconds * 256 * 1_024, "{bytes} bytes in {seconds} s");
    assert!(writer.is_open());
    writer.append("!");
    writer.saved().await;
}

/// Goal: the server pages every list, at any limit that the request names, and the pages contain every
/// row.
#[tokio::test]
async fn g17_a_list_of_reviews_ends_a_page_behind_a_mebibyte() {
    let server = Server::start().await;
    let desk = server.desk("a text").await;
    let _reviewer = server.reviewer(&desk).await;
    let mut made = 0;
    while made < 24 {
        let suggestion = "x".repeat(64_000);
        let drafted = draft("?", Some(&suggestion));
        let answer = server.post(&desk.reviewer, &desk.reviews(), drafted).await;
        match answer.status.as_u16() {
            201 => made += 1,
            status => assert_eq!(status, 429),
        }
    }
    let (mut read, mut pages, mut path) = (0, 0, format!("{}?limit=1000", desk.reviews()));
    loop {
        let page = server.get(&desk.writer, &path).await.ok(200);
        assert!(page.to_string().len() < 2 * MIB);
        read += page["reviews"].as_array().expect("rows").len();
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{}?cursor={cursor}", desk.reviews());
    }
    assert_eq!((read, pages), (24, 2));
}

/// A user of the host application.
async fn user_with_token(server: &Server) -> Person {
    let arguments = ["token", "--sub", "host-user", "--name", "Park"];
    let token = galley(server.folder(), &arguments).await.ok().trim().to_owned();
    Person { id: "host-user".to_owned(), name: "Park".to_owned(), token }
}

/// The response to a new document of this size.
async fn create(server: &Server, who: &Person, bytes: usize) -> Answer {
    let body = json!({ "title": "t", "text": "a".repeat(bytes) });
    server.post(who, "/api/documents", body).await
}

#[tokio::test]
async fn g17_a_user_creates_no_more_documents_and_bytes_than_the_quota() {
    let few = [("LIMITS__USER_DOCUMENTS", "3"), ("LIMITS__USER_BYTES", "100000")];
    let server = Server::with(&few).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let made = create(&server, &kim, 60_000).await.ok(201);
    create(&server, &kim, 60_000).await.problem(409, "quota-spent");
    create(&server, &kim, 10).await.ok(201);
    create(&server, &kim, 10).await.ok(201);
    create(&server, &kim, 10).await.problem(409, "quota-spent");
    create(&server, &lee, 60_000).await.ok(201);
    let path = format!("/api/documents/{}", made["id"].as_str().expect("an id"));
    server.call(&kim, "DELETE", &path, None).await.ok(204);
    create(&server, &kim, 60_000).await.ok(201);
}

#[tokio::test]
async fn g17_guests_of_an_address_share_its_budget_and_users_with_a_token_are_not_charged() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "100000")]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    create(&server, &kim, 60_000).await.ok(201);
    create(&server, &lee, 60_000).await.problem(429, "too-many-requests");
    create(&server, &lee, 30_000).await.ok(201);
    let park = user_with_token(&server).await;
    create(&server, &park, 60_000).await.ok(201);
}

/// A request that the server refuses for another reason stores nothing.
#[tokio::test]
async fn g17_a_refused_request_releases_the_bytes_of_its_guest() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "100000")]).await;
    let desk = server.desk("a").await;
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let remark = json!({ "anchor": null, "body": "x".repeat(15_000) });
    for _ in 0..20 {
        let refused = server.post(&desk.writer, &path, remark.clone()).await;
        refused.problem(403, "seat-not-held");
    }
    create(&server, &desk.writer, 90_000).await.ok(201);
}

/// Goal: the server charges edits and reviews to the disk budget as documents. A rejected edit
/// leaves the saved text unchanged.
#[tokio::test]
async fn g17_edits_of_guests_are_charged_to_their_address() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "100000")]).await;
    let (desk, other) = (server.desk("a").await, server.desk("another").await);
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let second = server.writer(&other).await;
    let bare = server.desk("bare").await;
    let quiet = server.claim_seat(&bare, "writer", "").await;
    quiet.synced().await;
    writer.append(&"x".repeat(60_000));
    writer.saved().await;

    second.append(&"x".repeat(60_000));
    let problem = second.event("problem").await;
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("/problems/unsaved-full"), &json!(429))
    );
    assert_eq!(second.event("denied").await["reason"], "not-stored");
    assert!(second.is_open());
    assert_eq!(server.text(&other.writer, &other.document).await, "another");
    // The close code is the only way in which a stock client can inform its user.
    quiet.append(&"x".repeat(60_000));
    assert_eq!(quiet.closed().await, (4529, "too-many-bytes".to_owned()));
    create(&server, &other.writer, 60_000).await.problem(429, "too-many-requests");
    let long = draft("?", Some(&"x".repeat(60_000)));
    let review = server.post(&desk.reviewer, &desk.reviews(), long).await;
    review.problem(429, "too-many-requests");

    // Within the budget the server accepts edits. A user with a token is not charged to it.
    writer.append("!");
    writer.saved().await;
    server.post(&desk.reviewer, &desk.reviews(), draft("?", None)).await.ok(201);
    assert!(reviewer.is_open());
    let park = server.desk_of(user_with_token(&server).await, server.guest("Lee").await, "").await;
    let third = server.writer(&park).await;
    third.append(&"x".repeat(200_000));
    third.saved().await;
}

/// Goal: a rejected edit stays in its client, and the server requests it again when the budget has
/// room.
#[tokio::test]
async fn g17_an_edit_above_the_budget_of_an_address_is_stored_when_there_is_room() {
    // A thousand bytes a second.
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "3600000")]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    for _ in 0..2 {
        writer.append(&"x".repeat(1_795_000));
        writer.saved().await;
    }
    let give_up_at = Instant::now() + TEST_TIMEOUT;
    while !writer.take_events().iter().any(|event| event["type"] == "/problems/unsaved-full") {
        assert!(Instant::now() < give_up_at, "the budget has no end");
        writer.append(&"y".repeat(1_000));
        sleep(Duration::from_millis(100)).await;
    }
    let text = writer.text();
    writer.saved().await;
    assert!(server.text(&desk.writer, &desk.document).await == text);
}

/// Goal: the quota of a user counts stored edits, also those that SQLite holds in its journal.
#[tokio::test]
async fn g17_edits_count_towards_the_quota_of_the_next_new_document() {
    let server = Server::with(&[("LIMITS__USER_BYTES", "100000")]).await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    create(&server, &desk.writer, 10).await.ok(201);
    writer.append(&"x".repeat(100_000));
    writer.saved().await;
    create(&server, &desk.writer, 10).await.problem(409, "quota-spent");
}

/// Goal: above its size bound the database accepts edits and no new documents.
#[tokio::test]
async fn g17_a_full_database_accepts_edits_and_no_new_document_until_there_is_room() {
    let server = Server::with(&[("LIMITS__STORED_BYTES", "8388608")]).await;
    let desk = server.desk("a text").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    // The documents exceed the bound and stay within the reserve of the edits.
    let mut made = Vec::new();
    for _ in 0..22 {
        let answer = create(&server, &desk.writer, 400_000).await;
        made.extend(answer.json["id"].as_str().map(ToOwned::to_owned));
    }
    let refused = found(async || {
        let answer = create(&server, &desk.writer, 10).await;
        sleep(Duration::from_millis(100)).await;
        if answer.status.as_u16() == 201 { Err("the server takes everything") } else { Ok(answer) }
    });
    let refused = refused.await;
    refused.problem(507, "storage-full");
    let review = server.post(&desk.reviewer, &desk.reviews(), draft("?", None)).await;
    review.problem(507, "storage-full");
    let versions = format!("/api/documents/{}/versions", desk.document);
    let named = server.post(&desk.writer, &versions, json!({ "label": "one" })).await;
    named.problem(507, "storage-full");
    writer.append(" and more");
    writer.saved().await;
    for id in made {
        delete_for_ever(&server, &desk.writer, &format!("/api/documents/{id}")).await;
    }
    until("the server notices the free space", async || {
        create(&server, &desk.writer, 10).await.status.as_u16() == 201
    })
    .await;
}

/// Goal: edits have a bounded reserve above the size bound, and are accepted again when there is room.
#[tokio::test]
async fn g17_edits_are_rejected_an_eighth_above_the_size_bound_until_there_is_room() {
    let server = Server::with(&[("LIMITS__STORED_BYTES", "1048576")]).await;
    let (desk, other) = (server.desk("a text").await, server.desk("another").await);
    let writer = server.writer(&desk).await;
    let large = server.writer(&other).await;
    large.append(&"x".repeat(1_800_000));
    large.saved().await;
    let give_up_at = Instant::now() + TEST_TIMEOUT;
    while !writer.take_events().iter().any(|event| event["type"] == "/problems/unsaved-full") {
        assert!(Instant::now() < give_up_at, "edits have no end");
        writer.append("!");
        sleep(Duration::from_millis(100)).await;
    }
    server
        .call(&desk.writer, "GET", &format!("/api/documents/{}", desk.document), None)
        .await
        .ok(200);
    let path = format!("/api/documents/{}", other.document);
    delete_for_ever(&server, &other.writer, &path).await;
    writer.saved().await;
}

/// Deletes a document also from the bin, which takes as much room as the document did.
async fn delete_for_ever(server: &Server, owner: &Person, path: &str) {
    server.call(owner, "DELETE", path, None).await.ok(204);
    server.call(owner, "DELETE", &format!("{path}?permanent=true"), None).await.ok(204);
}
