//! Users who can be named, their review requests and partners.

use serde_json::{Value, json};

use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Person};

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// A guest whom other users can name: the first read of the address stores the user.
pub(crate) async fn a_person(server: &Server, name: &str) -> Person {
    let person = server.guest(name).await;
    server.call_patiently(&person, "GET", "/api/me/address", None).await.ok(200);
    person
}

pub(crate) async fn send_request(server: &Server, from: &Person, body: Value) -> Answer {
    server.call_patiently(from, "POST", "/api/review-requests", Some(body)).await
}

pub(crate) async fn request_review(server: &Server, from: &Person, to: &str) -> Answer {
    send_request(server, from, json!({ "to": to, "as": "writer" })).await
}

pub(crate) async fn decide(server: &Server, who: &Person, id: &Value, what: &str) -> Answer {
    let path = format!("/api/review-requests/{}/{what}", text(id));
    server.call_patiently(who, "POST", &path, Some(json!({}))).await
}

pub(crate) async fn partners(server: &Server, who: &Person) -> Vec<String> {
    let list = server.get(who, "/api/partners").await.ok(200);
    let rows = list["partners"].as_array().expect("partners");
    rows.iter().map(|row| text(&row["user"]["id"]).to_owned()).collect()
}
