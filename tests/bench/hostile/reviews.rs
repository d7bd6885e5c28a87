//! The attacks by reviews: their places, their lists, their replies.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::attacker::{Attacker, Target, drain};
use crate::attacks::{FIFTY, FULL, LONG, RETRY, write};
use crate::updates;

const SUGGESTIONS: usize = 2_000;
const BATCH: usize = 200;

/// Reviews of letters that are deleted afterwards, in a text that has them everywhere.
pub(crate) async fn orphans(attacker: Arc<Attacker>) {
    let targets = attacker.targets(4).await;
    join_all(targets.iter().map(|target| orphans_of(&attacker, target))).await;
}

async fn orphans_of(attacker: &Attacker, target: &Target) {
    const REVIEWS: u16 = 200;
    let all = usize::from(REVIEWS) + LONG / 2;
    write(attacker, target, &[updates::first(1, all)]).await;
    let reviews = format!("/api/share-links/{}/reviews", target.link);
    let Some(reviewer) = attacker.socket(target, "reviewer", "").await else { return };
    let reviewing = async {
        for start in 0..REVIEWS {
            let anchor = json!({ "start": start, "end": start + 1, "quote": "a" });
            let body = json!({ "anchor": anchor, "body": "?" });
            attacker.post(&target.reviewer, &reviews, &body).await;
        }
        let more: Vec<_> = (2..=FULL as u64).map(|client| updates::first(client, LONG)).collect();
        write(attacker, target, &more).await;
        write(attacker, target, &[updates::deletion(1, REVIEWS.into())]).await;
        loop {
            attacker.get(&target.reviewer, &reviews).await;
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::join!(reviewing, drain(reviewer));
}

/// Text that is six times as long in JSON; where the server refuses it, text that is twice as long.
async fn filling(attacker: &Attacker, token: &str, path: &str, at: &Value) -> &'static str {
    let probe = json!({ "anchor": at, "body": "\u{1}" });
    match attacker.post(token, path, &probe).await {
        Some((status, _)) if status.is_success() => "\u{1}",
        _ => "\"",
    }
}

pub(crate) async fn lists(attacker: Arc<Attacker>) {
    let Some(target) = attacker.target().await else { return };
    write(&attacker, &target, &[updates::first(1, 100)]).await;
    let Some(reviewer) = attacker.socket(&target, "reviewer", "").await else { return };
    let path = format!("/api/share-links/{}/reviews", target.link);
    let making = async {
        let anchor = json!({ "start": 0, "end": 1, "quote": "a" });
        let unit = filling(&attacker, &target.reviewer, &path, &anchor).await;
        let (body, suggestion) = (unit.repeat(16 * 1_024), unit.repeat(64 * 1_024));
        let review = json!({ "anchor": anchor, "body": body, "suggestion": suggestion });
        let makes = async || {
            for _ in 0..900 / 6 {
                attacker.post(&target.reviewer, &path, &review).await;
            }
        };
        tokio::join!(makes(), makes(), makes(), makes(), makes(), makes());
        let lists = async || loop {
            attacker.get(&target.reviewer, &path).await;
            sleep(Duration::from_millis(10)).await;
        };
        tokio::join!(lists(), lists(), lists(), lists(), lists(), lists());
    };
    tokio::join!(making, drain(reviewer));
}

/// Lists of suggestions, and texts in which all of them are accepted.
pub(crate) async fn views(attacker: Arc<Attacker>) {
    views_at(&attacker).await;
}

pub(crate) async fn views_of_many(attacker: Arc<Attacker>) {
    join_all(attacker.at_addresses(FIFTY).iter().map(views_at)).await;
}

async fn views_at(attacker: &Attacker) {
    let Some(target) = attacker.target().await else { return };
    write(attacker, &target, &[updates::first(1, 2 * SUGGESTIONS)]).await;
    let Some(reviewer) = attacker.socket(&target, "reviewer", "").await else { return };
    let reading = async {
        suggest(attacker, &target).await;
        let list = format!("/api/share-links/{}/reviews", target.link);
        let view = format!("/api/documents/{}/text?view=accepted", target.document);
        let reads = async |path: &str| loop {
            attacker.get(&target.reviewer, path).await;
            sleep(Duration::from_millis(10)).await;
        };
        tokio::join!(reads(&list), reads(&view), reads(&list), reads(&view));
    };
    tokio::join!(reading, drain(reviewer));
}

/// As many suggestions as a decision takes, in batches as large as the server admits.
async fn suggest(attacker: &Attacker, target: &Target) {
    let path = format!("/api/share-links/{}/suggestions", target.link);
    let all: Vec<_> = (0..SUGGESTIONS).collect();
    for batch in all.chunks(BATCH) {
        let puts = batch.iter().map(|number| {
            let part = json!({ "at": 2 * number, "text": "a suggestion of a few words" });
            json!({ "id": format!("typed-0000-{number:08}"), "version": null, "parts": [part] })
        });
        let body = json!({ "put": puts.collect::<Vec<_>>() });
        while let Some((status, _)) = attacker.post(&target.reviewer, &path, &body).await {
            if status.is_success() {
                break;
            }
            sleep(RETRY).await;
        }
    }
}

/// Replies to one review, each of which the server announces to the writer's socket.
pub(crate) async fn replies(attacker: Arc<Attacker>) {
    let Some(target) = attacker.target().await else { return };
    write(&attacker, &target, &[updates::first(1, 100)]).await;
    let path = format!("/api/share-links/{}/reviews", target.link);
    let seated = |role| sit(&attacker, &target, role);
    let replying = async {
        loop {
            let anchor = json!({ "start": 0, "end": 1, "quote": "a" });
            let unit = filling(&attacker, &target.reviewer, &path, &anchor).await;
            let review = json!({ "anchor": anchor, "body": "?" });
            let made = attacker.post(&target.reviewer, &path, &review).await;
            let id = made.and_then(|(_, review)| Some(review["id"].as_str()?.to_owned()));
            let Some(id) = id else {
                sleep(RETRY).await;
                continue;
            };
            let reply = json!({ "body": unit.repeat(16 * 1_024) });
            for _ in 0..200 {
                attacker.post(&target.reviewer, &format!("{path}/{id}/replies"), &reply).await;
            }
        }
    };
    tokio::join!(seated("writer"), seated("reviewer"), replying);
}

/// Holds a seat, and takes it again when the server closes the socket.
async fn sit(attacker: &Attacker, target: &Target, role: &str) {
    loop {
        if let Some(socket) = attacker.socket(target, role, "events=1").await {
            drain(socket).await;
        }
        sleep(RETRY).await;
    }
}
