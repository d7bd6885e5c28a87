//! The attacks by files and webhooks: builds and imports as fast as a user may start them, and events for an
//! endpoint that never accepts one.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::sleep;

use crate::attacker::{Attacker, Target, drain};
use crate::attacks::{FIFTY, FULL, LONG, RETRY, write};
use crate::support::zip_archive::archive;
use crate::updates;

/// Users of one address who build and import.
const USERS: usize = 12;
const FORMATS: [&str; 5] = ["docx", "html", "md", "txt", "pdf"];
/// Paragraphs of a Word file of 34 MB, which is 34 kB as an archive.
const PARAGRAPHS: usize = 900_000;
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// Pairs of users who create events.
const PAIRS: usize = 8;
/// Comments on line feeds.
const COMMENTS: usize = 500;

/// Files of texts of 2 MB, each under a new title, and Word files that are a thousand times as long
/// outside their archive.
pub(crate) async fn builds(attacker: Arc<Attacker>) {
    let targets = attacker.targets(USERS / 2).await;
    let long = [updates::first(1, LONG)];
    join_all(targets.iter().map(|target| write(&attacker, target, &long))).await;
    let paragraph = "<w:p><w:r><w:t>a</w:t></w:r></w:p>";
    let word = format!(
        "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body>{}</w:body></w:document>",
        paragraph.repeat(PARAGRAPHS)
    );
    let bomb = archive("word/document.xml", word.as_bytes(), None, 1);
    let attacks = targets.iter().map(|target| async {
        tokio::join!(
            build(&attacker, target, &FORMATS),
            import(&attacker, &target.reviewer, &bomb)
        );
    });
    join_all(attacks).await;
}

/// Builds of texts of 2 MB from fifty addresses, without imports.
pub(crate) async fn builds_of_many(attacker: Arc<Attacker>) {
    let addresses = attacker.at_addresses(FIFTY);
    let long = [updates::first(1, LONG)];
    let builds = async |attacker: &Attacker| {
        let Some(target) = attacker.target().await else { return };
        write(attacker, &target, &long).await;
        build(attacker, &target, &FORMATS).await;
    };
    join_all(addresses.iter().map(builds)).await;
}

/// Files of a long line whose characters take six bytes each in HTML, by two guests at each of four addresses.
pub(crate) async fn quotes(attacker: Arc<Attacker>) {
    let addresses = attacker.at_addresses(4);
    let quotes = "\"".repeat(LONG);
    let long: Vec<_> = (1..=FULL as u64).map(|it| updates::first_of(it, &quotes)).collect();
    let builds = async |attacker: &Attacker| {
        let Some(target) = attacker.target().await else { return };
        write(attacker, &target, &long).await;
        build(attacker, &target, &["html"]).await;
    };
    let twice = addresses.iter().chain(&addresses);
    join_all(twice.map(builds)).await;
}

/// Text files of a document of line feeds, with comments on some near its end.
pub(crate) async fn line_feeds(attacker: Arc<Attacker>) {
    let Some(target) = attacker.target().await else { return };
    let lines = "\n".repeat(LONG);
    let long: Vec<_> = (1..=FULL as u64).map(|it| updates::first_of(it, &lines)).collect();
    write(&attacker, &target, &long).await;
    let Some(seat) = attacker.socket(&target, "reviewer", "").await else { return };
    let path = format!("/api/share-links/{}/reviews", target.link);
    let building = async {
        for number in 1..=COMMENTS {
            let at = FULL * LONG - number;
            let anchor = json!({ "start": at, "end": at + 1, "quote": "\n" });
            attacker.post(&target.reviewer, &path, &json!({ "anchor": anchor, "body": "?" })).await;
        }
        build(&attacker, &target, &["txt", "md"]).await;
    };
    tokio::join!(building, drain(seat));
}

async fn build(attacker: &Attacker, target: &Target, formats: &[&str]) {
    for number in 0.. {
        let title = json!({ "title": format!("{number}") });
        let path = format!("/api/documents/{}", target.document);
        attacker.patch(&target.writer, &path, &title).await;
        let requests = formats.iter().map(|format| {
            let path = format!("/api/share-links/{}/export?format={format}", target.link);
            async move { attacker.get(&target.writer, &path).await }
        });
        let refused = join_all(requests).await.iter().flatten().any(|status| *status == 429);
        if refused {
            sleep(RETRY).await;
        }
    }
}

async fn import(attacker: &Attacker, token: &str, file: &[u8]) {
    loop {
        let imported = attacker.import(token, DOCX, file).await;
        if !imported.is_some_and(|status| status.is_success()) {
            sleep(RETRY).await;
        }
    }
}

/// Reviews and seats, as fast as they go: each is an event for an endpoint that is not there.
pub(crate) async fn webhooks(attacker: Arc<Attacker>) {
    let targets = attacker.targets(PAIRS).await;
    let text = [updates::first(1, 100)];
    join_all(targets.iter().map(|target| async {
        write(&attacker, target, &text).await;
        events(&attacker, target).await;
    }))
    .await;
}

async fn events(attacker: &Attacker, target: &Target) {
    let path = format!("/api/share-links/{}/reviews", target.link);
    let anchor = json!({ "start": 0, "end": 1, "quote": "a" });
    let review = json!({ "anchor": anchor, "body": "?" });
    loop {
        let Some(seat) = attacker.socket(target, "reviewer", "").await else {
            sleep(RETRY).await;
            continue;
        };
        for _ in 0..20 {
            attacker.post(&target.reviewer, &path, &review).await;
        }
        drop(seat);
    }
}
