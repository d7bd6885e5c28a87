//! The users of an operation of `operations`, and the documents and reviews that it changes.

use serde_json::{Value, json};

use crate::server::acts::Act;
use crate::server::offer_fixtures;
use crate::server::operations::{Case, OLD};
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::{Peer, State};

/// Users of one operation: budgets count by user.
pub(crate) struct Users {
    pub(crate) kim: Person,
    pub(crate) lee: Person,
    pub(crate) admin: Person,
}

impl Users {
    pub(crate) async fn of(server: &Server) -> Self {
        let (kim, lee) = tokio::join!(server.guest("Kim"), server.guest("Lee"));
        let (id, name) = (String::new(), "the admin token".to_owned());
        Self { kim, lee, admin: Person { id, name, token: server.admin_token() } }
    }
}

/// A document without a share link, or with one that has no reviewer.
pub(crate) async fn half_a_desk(
    act: Act,
    server: &Server,
    writer: Person,
    reviewer: Person,
) -> Desk {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let body = json!({ "title": "a title", "text": OLD });
    let document = server.post(&writer, "/api/documents", body).await.ok(201);
    let document = text(&document["id"]);
    let mut link = Value::Null;
    let links = [Act::JoinShareLink, Act::RestoreDocument, Act::CheckInvite, Act::RenewInvite];
    if links.contains(&act) {
        let path = format!("/api/documents/{document}/share-link");
        link = server.post(&writer, &path, json!({})).await.ok(201);
    }
    if matches!(act, Act::PurgeDocument | Act::RestoreDocument) {
        let path = format!("/api/documents/{document}");
        assert_eq!(server.call(&writer, "DELETE", &path, None).await.status, 204);
    }
    let (invite, link) = (text(&link["invite"]["token"]), text(&link["id"]));
    Desk { document, link, invite, writer, reviewer }
}

/// A guest whom a link with a reviewer refused.
pub(crate) async fn refused_visitor(server: &Server, desk: &Desk) -> Person {
    let park = server.guest("Park").await;
    let path = format!("/api/share-links/{}/join", desk.link);
    let body = json!({ "invite": desk.invite });
    server.post(&park, &path, body).await.problem(409, "reviewer-exists");
    park
}

/// A code that signs this guest in on another device.
pub(crate) async fn a_code(server: &Server, who: &Person) -> String {
    let made = server.post(who, "/api/me/transfer", json!({})).await.ok(201);
    made["code"].as_str().expect("a code").to_owned()
}

/// A browser's `PushSubscription`. Its key is that of RFC 8291 Appendix A.
pub(crate) fn subscription(browser: &str) -> Value {
    json!({
        "endpoint": format!("https://push.example/{browser}"),
        "expirationTime": null,
        "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        },
    })
}

/// The id of a browser that receives pushes for this user.
pub(crate) async fn a_browser(server: &Server, who: &Person) -> String {
    let made = server.post(who, "/api/push-subscriptions", subscription(&who.id)).await.ok(201);
    made["id"].as_str().expect("an id").to_owned()
}

/// Waits for an event and puts it back among the others.
pub(crate) async fn await_event(peer: &Peer, name: &str) {
    let has = |state: &mut State| state.events.iter().any(|event| event["event"] == name);
    peer.until(name, |state| has(state).then_some(())).await;
}

/// The id of a review with a suggestion; without a suggestion for the operation that resolves it.
pub(crate) async fn a_review(
    act: Act,
    at_writer: &Server,
    at_reviewer: &Server,
    desk: &Desk,
) -> Value {
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
    let mut body = json!({ "anchor": anchor, "body": "why?" });
    let is_a_comment = matches!(act, Act::ResolveReview | Act::ReopenReview);
    if !is_a_comment {
        body["suggestion"] = json!("word");
    }
    let review = at_reviewer.post(&desk.reviewer, &path, body).await.ok(201);
    let id = review["id"].as_str().expect("an id");
    if act.is_about_a_decided_one() {
        let decide = if act == Act::ReopenReview { "resolve" } else { "accept" };
        let path = format!("{path}/{id}/{decide}");
        at_writer.post(&desk.writer, &path, json!({})).await.ok(200);
    }
    json!(id)
}

/// The id of a reply of the writer.
pub(crate) async fn a_reply(server: &Server, desk: &Desk, review: &Value) -> Value {
    let review = review.as_str().expect("an id");
    let path = format!("/api/share-links/{}/reviews/{review}/replies", desk.link);
    server.post(&desk.writer, &path, json!({ "body": "because" })).await.ok(201)["id"].clone()
}

/// The ids of an offer with one place and of its claim, as far as the operation needs them.
pub(crate) async fn a_claim(
    act: Act,
    server: &Server,
    owner: &Person,
    claimant: &Person,
) -> (String, String) {
    if act == Act::CreateOffer {
        return (String::new(), String::new());
    }
    let offer = offer_fixtures::an_offer(server, owner, 1).await;
    if !matches!(act, Act::EndClaim | Act::AcceptClaim) {
        return (offer, String::new());
    }
    let claim = offer_fixtures::claim(server, claimant, &offer).await.ok(201);
    let claim = claim["id"].as_str().expect("an id").to_owned();
    (offer, claim)
}

impl Case {
    /// Whether a version has this value.
    pub(crate) async fn has_version(&self, server: &Server, field: &str, value: &str) -> bool {
        let path = format!("{}/versions", self.document());
        let list = server.get(&self.desk.writer, &path).await.ok(200);
        rows(&list, "versions").iter().any(|version| version[field] == value)
    }

    /// Waits until a version has the text of a decision.
    pub(crate) async fn is_durable(&self, server: &Server) {
        let what = format!("a version with the text of {:?}", self.act);
        until(&what, async || self.has_version(server, "kind", "decision").await).await;
    }
}

/// The rows of a list.
pub(crate) fn rows(list: &Value, name: &str) -> Vec<Value> {
    list[name].as_array().expect("rows").clone()
}
