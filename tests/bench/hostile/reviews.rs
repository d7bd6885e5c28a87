//! The attacks by reviews: their places, their lists, their replies.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::attacker::{Attacker, Target, drain};
use crate::attacks::{FULL, LONG, RETRY, write};
use crate::updates;

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
