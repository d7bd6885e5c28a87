//! Users, documents and links over REST.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::ws_client::Peer;

/// A user with a token.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) token: String,
}

/// A document with its link, its writer and its reviewer.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) document: String,
    pub(crate) link: String,
    pub(crate) invite: String,
    pub(crate) writer: Person,
    pub(crate) reviewer: Person,
}

impl Desk {
    /// The path of the reviews.
    pub(crate) fn reviews(&self) -> String {
        format!("/api/share-links/{}/reviews", self.link)
    }
}

/// A response: status, `ETag`, the seconds of `Retry-After`, and JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) etag: Option<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) json: Value,
}

impl Answer {
    /// The JSON of a successful response.
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.json);
        self.json
    }

    /// Holds that the response is this typed problem.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, name: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.json);
        assert_eq!(self.json["type"], format!("/problems/{name}"), "{}", self.json);
        assert_eq!(self.json["status"], status);
    }
}

impl Server {
    pub(crate) async fn guest(&self, name: &str) -> Person {
        let request = self.http.post(format!("{}/api/auth/guest", self.url));
        let response = request.json(&json!({ "name": name })).send().await.expect("an answer");
        let guest: Value = response.json().await.expect("JSON");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        Person {
            id: text(&guest["user"]["id"]),
            name: name.to_owned(),
            token: text(&guest["token"]),
        }
    }

    pub(crate) async fn call(
        &self,
        who: &Person,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.call_if(who, method, path, body, None).await
    }

    pub(crate) async fn call_if(
        &self,
        who: &Person,
        method: &str,
        path: &str,
        body: Option<Value>,
        if_match: Option<&str>,
    ) -> Answer {
        let method: Method = method.parse().expect("a method");
        let mut request =
            self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&who.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        if let Some(tag) = if_match {
            request = request.header("If-Match", tag);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status();
        let header = |name| response.headers().get(name).map(|it| it.to_str().expect("text"));
        let etag = header("etag").map(str::to_owned);
        let retry_after = header("retry-after").map(|it| it.parse().expect("seconds"));
        let bytes = response.bytes().await.expect("a body");
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status, etag, retry_after, json }
    }

    /// Sends a request, after a 503 again once its `Retry-After` is over, as the protocol requires. The
    /// writes of SQLite wait for one another, and on a slow disk the last ones wait in vain.
    pub(crate) async fn call_patiently(
        &self,
        who: &Person,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let served = async {
            let mut answer = self.call(who, method, path, body.clone()).await;
            while answer.status == StatusCode::SERVICE_UNAVAILABLE {
                sleep(Duration::from_secs(answer.retry_after.expect("a hint"))).await;
                answer = self.call(who, method, path, body.clone()).await;
            }
            answer
        };
        timeout(3 * TEST_TIMEOUT, served).await.expect("an answer other than 503")
    }

    pub(crate) async fn get(&self, who: &Person, path: &str) -> Answer {
        self.call(who, "GET", path, None).await
    }

    pub(crate) async fn post(&self, who: &Person, path: &str, body: Value) -> Answer {
        self.call(who, "POST", path, Some(body)).await
    }

    /// The document's text, as the server returns it.
    pub(crate) async fn text(&self, who: &Person, document: &str) -> String {
        let url = format!("{}/api/documents/{document}/text", self.url);
        let request = self.http.get(url).bearer_auth(&who.token);
        request.send().await.expect("an answer").text().await.expect("text")
    }

    /// A writer and a reviewer of a document with this text.
    pub(crate) async fn desk(&self, text: &str) -> Desk {
        let (writer, reviewer) = (self.guest("Kim").await, self.guest("Lee").await);
        self.desk_of(writer, reviewer, text).await
    }

    pub(crate) async fn desk_of(&self, writer: Person, reviewer: Person, text: &str) -> Desk {
        let body = json!({ "title": "자기소개서", "text": text });
        // Many documents at once wait for SQLite's only writer, on a busy machine in vain.
        let made = self.call_patiently(&writer, "POST", "/api/documents", Some(body)).await;
        let document = made.ok(201);
        let document = document["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/documents/{document}/share-link");
        let link = self.post(&writer, &path, json!({})).await.ok(201);
        let invite = link["invite"]["token"].as_str().expect("an invite").to_owned();
        let link = link["id"].as_str().expect("an id").to_owned();
        let body = json!({ "invite": invite });
        self.post(&reviewer, &format!("/api/share-links/{link}/join"), body).await.ok(200);
        Desk { document, link, invite, writer, reviewer }
    }

    /// The writer, seated and synced.
    pub(crate) async fn writer(&self, desk: &Desk) -> Peer {
        self.seated(desk, "writer", "events=1").await
    }

    /// The reviewer, seated and synced.
    pub(crate) async fn reviewer(&self, desk: &Desk) -> Peer {
        self.seated(desk, "reviewer", "events=1").await
    }

    pub(crate) async fn seated(&self, desk: &Desk, role: &str, query: &str) -> Peer {
        let peer = self.claim_seat(desk, role, query).await;
        peer.event("seat.granted").await;
        peer.synced().await;
        peer
    }

    /// A socket that claims a seat; the claim may fail.
    pub(crate) async fn claim_seat(&self, desk: &Desk, role: &str, query: &str) -> Peer {
        let who = if role == "writer" { &desk.writer } else { &desk.reviewer };
        Peer::connect(&self.url, &desk.link, role, &who.token, query).await
    }
}

/// A time of an answer. Chrono writes the fraction of a second only where it has one, so times are
/// not compared as text.
pub(crate) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time: {value}"))
}
