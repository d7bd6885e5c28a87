//! Bounds that the server keeps for each user and each share link (G17).

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::process::Server;

/// Texts of which a browser shows nothing, or shows another text.
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

fn reviews(desk: &Desk) -> String {
    format!("/api/share-links/{}/reviews", desk.link)
}

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
async fn g17_a_review_with_control_characters_is_rejected() {
    let server = Server::start().await;
    let desk = server.desk("a text").await;
    let _reviewer = server.reviewer(&desk).await;
    for drafted in [draft("\u{1}", None), draft("", Some("b\0")), draft("a\u{1b}[1m", None)] {
        server.post(&desk.reviewer, &reviews(&desk), drafted).await.problem(422, "invalid");
    }
    let made = server.post(&desk.reviewer, &reviews(&desk), draft("1.\r\n\t2.", None)).await;
    let made = made.ok(201);
    assert_eq!(made["body"], "1.\n\t2.");
    let path = format!("{}/{}", reviews(&desk), made["id"].as_str().expect("an id"));
    let change =
        server.call(&desk.reviewer, "PATCH", &path, Some(json!({ "body": "\u{7}" }))).await;
    change.problem(422, "invalid");
    let replies = format!("{path}/replies");
    let reply = server.post(&desk.reviewer, &replies, json!({ "body": "\u{8}x" })).await;
    reply.problem(422, "invalid");
}
