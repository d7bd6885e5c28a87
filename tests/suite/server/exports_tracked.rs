//! A Word export with typed suggestions: a reader that accepts all changes has the accepted view, and one that
//! rejects all has the text.

use serde_json::{Value, json};

use crate::server::exports::download;
use crate::support::galley_process::Server;
use crate::support::tracked_changes;

const ESSAY: &str = "1. 지원동기\n저는 물류가 좋습니다. 상자가 손에 닿기까지 봅니다. 🙂 A & B\n\n2. 장점\n꼼꼼합니다.\n한 줄을 더 씁니다.\n끝";

fn at(words: &str) -> usize {
    ESSAY[..ESSAY.find(words).expect("words of the essay")].encode_utf16().count()
}

fn range(quote: &str, text: &str) -> Value {
    let (start, length) = (at(quote), quote.encode_utf16().count());
    json!({ "start": start, "end": start + length, "quote": quote, "text": text })
}

#[tokio::test]
async fn all_changes_accepted_are_the_accepted_view_and_all_rejected_the_text() {
    let server = Server::start().await;
    let desk = server.desk(ESSAY).await;
    let (_writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let sentence = "상자가 손에 닿기까지 봅니다. ";
    let parts = [
        vec![range("좋습니다", "재미있습니다")],
        vec![range("🙂 ", "")],
        // A move, beside the gap of another suggestion.
        vec![json!({ "at": at("저는"), "text": sentence }), range(sentence, "")],
        vec![json!({ "at": at("2. 장점"), "text": "새 문단입니다.\n\n" })],
        // Joined paragraphs, and a divided one.
        vec![range("꼼꼼합니다.\n한", "꼼꼼하고 한")],
        vec![json!({ "at": at("끝"), "text": "둘째\n셋째 & <넷째>\n" })],
    ];
    let put: Vec<_> = (0..)
        .zip(&parts)
        .map(|(number, parts)| {
            json!({ "id": format!("tracked-change-{number}"), "version": null, "parts": parts })
        })
        .collect();
    let path = format!("/api/share-links/{}/suggestions", desk.link);
    let stored = server.post(&desk.reviewer, &path, json!({ "put": put })).await.ok(200);
    for item in stored["items"].as_array().expect("items") {
        assert_eq!(item["state"], "kept", "{item}");
    }
    let view = format!("{}/api/documents/{}/text?view=accepted", server.url, desk.document);
    let view = server.http.get(view).bearer_auth(&desk.writer.token).send().await;
    let accepted = view.expect("an answer").text().await.expect("a text");
    assert!(accepted.contains("꼼꼼하고 한 줄을") && accepted.contains("봅니다. 저는 물류가"));

    let file = download(&server, &desk.writer, &desk, "format=docx&zone=Asia/Seoul").await;
    let texts = tracked_changes::read(&file.bytes);
    assert!(texts.accepted.contains(&accepted), "{} lacks {accepted}", texts.accepted);
    assert!(texts.rejected.contains(ESSAY), "{} lacks {ESSAY}", texts.rejected);
    assert!(!texts.rejected.contains("재미있습니다"));
}
