//! The attack on requests, offers and pushes: guests who request reviews of each other, and claim each
//! other's offers, as fast as they may. Each has ten browsers whose push service accepts and never responds.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::attacker::Attacker;
use crate::attacks::RETRY;

/// Guests of one address.
const GUESTS: usize = 40;
/// As many as a user may have.
const BROWSERS: usize = 10;
/// A point of P-256, and a secret.
const POINT: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const SECRET: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// A guest, and the token of the personal link by which others name the guest.
struct Guest {
    token: String,
    link: String,
}

pub(crate) async fn requests(attacker: Arc<Attacker>) {
    let Ok(silent) = TcpListener::bind("127.0.0.2:0").await else { return };
    let Ok(address) = silent.local_addr() else { return };
    let accepting = async {
        let mut open = Vec::new();
        while let Ok((socket, _)) = silent.accept().await {
            open.push(socket);
        }
    };
    let attacking = async {
        let mut guests = Vec::new();
        for number in 0..GUESTS {
            guests.extend(enter(&attacker, &format!("http://{address}/{number}")).await);
        }
        let pairs = guests.iter().zip(guests.iter().cycle().skip(1));
        join_all(pairs.map(|(one, other)| harass(&attacker, one, other))).await;
    };
    tokio::join!(accepting, attacking);
}

async fn enter(attacker: &Attacker, endpoint: &str) -> Option<Guest> {
    let token = attacker.guest().await?;
    let (_, body) = attacker.post(&token, "/api/me/address/renew", &json!({})).await?;
    let link = body["link"]["token"].as_str()?.to_owned();
    for number in 0..BROWSERS {
        let keys = json!({ "p256dh": POINT, "auth": SECRET });
        let browser = json!({ "endpoint": format!("{endpoint}/{number}"), "keys": keys });
        attacker.post(&token, "/api/push-subscriptions", &browser).await?;
    }
    Some(Guest { token, link })
}

/// Sends requests that the receiver accepts, and offers whose claim the owner accepts, and parts again.
async fn harass(attacker: &Attacker, one: &Guest, other: &Guest) {
    let message = "x".repeat(1_000);
    let id = |answer: Option<(_, Value)>| {
        let (_, body): (reqwest::StatusCode, _) = answer?;
        body["id"].as_str().map(str::to_owned)
    };
    loop {
        let body = json!({ "to": other.link, "as": "writer", "message": message });
        let request = id(attacker.post(&one.token, "/api/review-requests", &body).await);
        if let Some(request) = request {
            let path = format!("/api/review-requests/{request}/accept");
            attacker.post(&other.token, &path, &json!({})).await;
        }
        let body = json!({ "title": "offer", "capacity": 1, "message": message });
        let offer = id(attacker.post(&one.token, "/api/review-offers", &body).await);
        if let Some(offer) = offer {
            let path = format!("/api/review-offers/{offer}");
            let claims = format!("{path}/claims");
            attacker.post(&other.token, &claims, &json!({ "message": message })).await;
            attacker.post(&one.token, &format!("{path}/close"), &json!({})).await;
        } else {
            sleep(RETRY).await;
        }
    }
}
