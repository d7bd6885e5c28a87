//! Texts that are costly to build: their versions delay no other document, also when the server stops.

use std::time::Duration;

use galley::yjs::protocol;
use serde_json::Value;
use tokio::time::Instant;

use crate::server::cost::split;
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// Letters that each split one long text: a debug build integrates them for seconds.
const SPLITS: u32 = 110_000;

/// Documents with a seated writer each.
async fn seated(server: &Server, count: usize) -> Vec<(Desk, Peer)> {
    let mut seated = Vec::new();
    for _ in 0..count {
        let desk = server.desk("").await;
        let writer = server.writer(&desk).await;
        seated.push((desk, writer));
    }
    seated
}

/// Stores a costly text in each of those documents.
async fn fill(costly: &[(Desk, Peer)]) {
    let update = protocol::update(&split(2 * SPLITS, SPLITS));
    for (_, writer) in costly {
        writer.send(update.clone());
    }
    for (_, writer) in costly {
        writer.saved().await;
    }
}

/// The versions of a document; the list builds no text.
async fn versions(server: &Server, desk: &Desk) -> Vec<Value> {
    let path = format!("/api/documents/{}/versions", desk.document);
    let answer = server.get(&desk.writer, &path).await.ok(200);
    answer["versions"].as_array().expect("a list").clone()
}

/// Goal: while the server builds versions of costly texts in parallel, it serves a request for
/// another text and stores the version of another document.
#[tokio::test]
async fn g17_versions_of_costly_texts_leave_a_build_permit_for_others() {
    let server = Server::with(&[("HISTORY__PAUSE", "500ms"), ("HISTORY__LONGEST", "10m")]).await;
    let honest = server.desk("honest").await;
    let writer = server.writer(&honest).await;
    let costly = seated(&server, 6).await;
    fill(&costly).await;
    let began = Instant::now();
    writer.append("!");
    writer.saved().await;
    let (mut longest, mut stored_before_the_last) = (Duration::ZERO, false);
    loop {
        let requested_at = Instant::now();
        assert_eq!(server.text(&honest.writer, &honest.document).await, "honest!");
        longest = longest.max(requested_at.elapsed());
        let newest = versions(&server, &honest).await;
        let is_stored = newest.first().is_some_and(|version| version["kind"] == "pause");
        let mut left = 0;
        for (desk, _) in &costly {
            left += usize::from(versions(&server, desk).await.is_empty());
        }
        stored_before_the_last |= is_stored && 0 < left;
        if left == 0 {
            break;
        }
        assert!(began.elapsed() < 3 * TEST_TIMEOUT, "{left} versions are missing");
    }
    let all = began.elapsed();
    assert!(stored_before_the_last, "the version of another document came after {all:?}");
    assert!(longest < all / 2, "a text took {longest:?} of {all:?}");
}

/// Goal: a stopping server has some seconds for versions. It may lose those of costly texts, and
/// no others.
#[tokio::test]
async fn g16_a_stop_during_costly_texts_keeps_the_versions_of_other_documents() {
    let mut server = Server::start().await;
    let costly = seated(&server, 8).await;
    let honest = seated(&server, 4).await;
    fill(&costly).await;
    for (_, writer) in &honest {
        writer.append("honest");
        writer.saved().await;
    }
    assert!(server.stop().await.success());
    server.start_again().await;
    for (desk, _) in &honest {
        let stored = versions(&server, desk).await;
        assert_eq!(stored.len(), 1, "{stored:?}; {}", server.log());
        assert_eq!(stored[0]["kind"], "seat");
    }
}
