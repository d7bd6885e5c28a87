//! A receiver of webhooks: verifies the signature of each request. The push service of the tests carries
//! it, and misbehaves as a test asks.

use std::collections::BTreeMap;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use chrono::Utc;
use serde_json::{Value, json};

use crate::support::contract;
use crate::support::push_service::{PushService, Received};

/// The secret of every endpoint of the tests.
pub(crate) const SECRET: &str = "a secret of the host product";

/// The settings of endpoints with these addresses, for the environment.
pub(crate) fn setting(urls: &[&str], events: &[&str]) -> String {
    let rows = urls.iter().map(|url| json!({ "url": url, "secret": SECRET, "events": events }));
    Value::from(rows.collect::<Vec<_>>()).to_string()
}

/// The event of a request, after the check of its signature.
pub(crate) fn event(received: &Received) -> Value {
    let header = received.header("galley-signature").expect("a signature");
    let (time, signature) = header.split_once(",v1=").expect("a version");
    let time = time.strip_prefix("t=").expect("a time");
    // The age at its arrival: a test with many kills reads its first events minutes later.
    let arrived = Utc::now() - received.at.elapsed();
    let age = arrived.timestamp() - time.parse::<i64>().expect("seconds");
    // The two clocks round apart.
    assert!((-1..60).contains(&age), "{age} s");
    let mut mac = Context::with_key(&Key::new(HMAC_SHA256, SECRET.as_bytes()));
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(&received.body);
    let own: String = mac.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(signature, own);
    let event: Value = serde_json::from_slice(&received.body).expect("JSON");
    contract::hold_webhook(&event);
    assert_eq!(received.header("galley-event"), event["type"].as_str());
    assert_eq!(received.header("content-type"), Some("application/json"));
    event
}

/// All events that have arrived, also in failed attempts.
pub(crate) fn events(receiver: &PushService) -> Vec<Value> {
    receiver.received().iter().map(event).collect()
}

/// The events of each document in order. Holds that no event arrives between two attempts of another
/// one, or after its last.
pub(crate) fn lanes(receiver: &PushService) -> BTreeMap<String, Vec<Value>> {
    let mut lanes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in events(receiver) {
        let lane = lanes.entry(event["document_id"].to_string()).or_default();
        let index = lane.iter().position(|it| it["id"] == event["id"]);
        match index {
            Some(index) => assert_eq!(index + 1, lane.len(), "{event} after a later event"),
            None => lane.push(event),
        }
    }
    lanes
}
