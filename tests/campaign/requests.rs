//! The REST calls of a campaign. A call is retried until a server responds, because the acts kill
//! servers and some callers disconnect early.

use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::desks::Desks;
use crate::history::What;
use crate::support::rest_client::{Desk, Person};
use crate::world::SERVERS;

/// A call that must succeed fails the run after this.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// One attempt.
const ATTEMPT: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(200);

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) user: &'a Person,
    pub(crate) body: &'a Value,
}

impl Call<'_> {
    /// One attempt at one server; the caller disconnects after `patience`. Status 0: no response.
    pub(crate) async fn once(self, url: &str, time_limit: Duration) -> (u16, Value) {
        let Self { method, path, user, body } = self;
        let method = method.parse().expect("a method");
        let request = Client::new().request(method, format!("{url}{path}"));
        let request = request.bearer_auth(&user.token).json(body).timeout(time_limit);
        let Ok(response) = request.send().await else { return (0, Value::Null) };
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or(Value::Null))
    }

    /// Retries at any server until one responds with one of these.
    pub(crate) async fn until(self, desks: &Desks, wanted: &[u16]) -> (u16, Value) {
        let began = Instant::now();
        for attempt in 0.. {
            let (status, body) = self.once(&desks.url(attempt % SERVERS), ATTEMPT).await;
            if wanted.contains(&status) {
                return (status, body);
            }
            assert!(
                began.elapsed() < TEST_TIMEOUT,
                "{} {}: {status} {body}",
                self.method,
                self.path
            );
            sleep(PAUSE).await;
        }
        unreachable!("the loop has no end")
    }
}

/// A new link for the document of a desk, with its reviewer.
pub(crate) async fn link_again(desks: &Desks, old: &Desk) -> Desk {
    let (path, body) = (format!("/api/documents/{}/share-link", old.document), json!({}));
    let call = Call { method: "POST", path: &path, user: &old.writer, body: &body };
    let (_, link) = call.until(desks, &[200, 201]).await;
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let (id, invite) = (text(&link["id"]), text(&link["invite"]["token"]));
    let (path, body) = (format!("/api/share-links/{id}/join"), json!({ "invite": invite }));
    Call { method: "POST", path: &path, user: &old.reviewer, body: &body }
        .until(desks, &[200])
        .await;
    Desk { link: id, invite, ..old.clone() }
}

/// A new document of the same users.
pub(crate) async fn document_again(desks: &Desks, old: &Desk) -> Desk {
    let body = json!({ "title": "campaign", "text": "" });
    let call = Call { method: "POST", path: "/api/documents", user: &old.writer, body: &body };
    let (_, document) = call.until(desks, &[201]).await;
    let document = document["id"].as_str().expect("an id").to_owned();
    link_again(desks, &Desk { document, ..old.clone() }).await
}

/// Records the result of a request.
pub(crate) fn note(desks: &Desks, op: &str, subject: &str, status: u16) {
    let (op, subject) = (op.to_owned(), subject.to_owned());
    desks.recorder.note(What::Request { op, subject, status });
}

/// The text of a document at one server; empty if the server returns none.
pub(crate) async fn text_at(url: &str, desk: &Desk) -> String {
    let request = Client::new().get(format!("{url}/api/documents/{}/text", desk.document));
    let request = request.bearer_auth(&desk.writer.token).timeout(ATTEMPT);
    match request.send().await {
        Ok(answer) if answer.status().is_success() => answer.text().await.unwrap_or_default(),
        Ok(_) | Err(_) => String::new(),
    }
}
