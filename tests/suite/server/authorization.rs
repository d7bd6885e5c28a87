//! Each operation of the `OpenAPI` document with an id in its path, called by users who may not (G14): a third
//! user, a former reviewer, and a client without a token.
//!
//! The document names the operations, so a new one is called here. Afterwards the users who may call it do: a
//! refusal is no accident of a wrong id or body.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::server::acts::{ALL, Act};
use crate::server::offer_fixtures;
use crate::server::operation_fixtures::{Users, a_browser};
use crate::server::operations::{Case, OLD};
use crate::server::request_fixtures::{a_person, decide, request_review, text};
use crate::support::contract::Contract;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::Peer;

/// Method and path in `openapi.json`.
type Operation = (String, String);

/// Operations for clients without a token, with the reason.
const FOR_ALL: [(&str, &str, &str); 1] = [(
    "POST",
    "/api/share-links/{id}/invite/check",
    "a page refuses a visitor before it asks for a name; the invite is the right to know the title",
)];

/// Operations for each user with a token, with the reason.
const FOR_USERS: [(&str, &str, &str); 4] = [
    ("POST", "/api/share-links/{id}/join", "the invite is the right to become the reviewer"),
    ("GET", "/api/review-offers/{id}", "an offer is for each user who knows its id"),
    ("GET", "/api/review-offers/{id}/claims", "a user who owns no offer lists the own claims"),
    ("POST", "/api/review-offers/{id}/claims", "an offer is for each user who knows its id"),
];

/// The operations that end or replace something: each leaves the ids of the next.
const LAST: [(&str, &str); 8] = [
    ("DELETE", "/api/share-links/{id}/reviews/{rid}/replies/{reply}"),
    ("DELETE", "/api/share-links/{id}/reviews/{rid}"),
    ("DELETE", "/api/review-offers/{id}/claims/{cid}"),
    ("PUT", "/api/share-links/{id}/reviewer"),
    ("DELETE", "/api/share-links/{id}/reviewer"),
    ("DELETE", "/api/share-links/{id}"),
    ("DELETE", "/api/documents/{id}"),
    ("POST", "/api/documents/{id}/restore"),
];

/// The document has at least so many.
const OPERATIONS_MIN: usize = 45;

fn operations() -> Vec<Operation> {
    let contract = Contract::served();
    let paths = contract.document()["paths"].as_object().expect("paths");
    // An external id names a document of its caller.
    let is_of_all = |path: &str| path.contains('{') && !path.contains("/by-external-id/");
    let named = paths.iter().filter(|(path, _)| is_of_all(path) && !path.starts_with("/ws/"));
    let all = named.flat_map(|(path, item)| {
        let methods = item.as_object().expect("a path item").keys();
        methods.map(move |method| (method.to_uppercase(), path.clone()))
    });
    all.collect()
}

fn is_in(list: &[(&str, &str, &str)], (method, path): &Operation) -> bool {
    list.iter().any(|(one, its, _)| one == method && its == path)
}

/// Whether administrators and servers alone call the operation.
fn is_admins((_, path): &Operation) -> bool {
    ["/api/admin/", "/api/users/"].iter().any(|it| path.starts_with(it))
}

/// A document with all that has an id, and users with and without rights to it.
struct World {
    server: Server,
    desk: Desk,
    third: Person,
    former: Person,
    /// By the part of a path before the id.
    ids: HashMap<&'static str, String>,
    /// The review and the reply of the former reviewer.
    of_former: [(&'static str, String); 2],
    _peers: [Peer; 2],
}

impl World {
    async fn with(settings: &[(&str, &str)]) -> Self {
        let server = Server::with(settings).await;
        let (kim, former) = (a_person(&server, "Kim").await, server.guest("Park").await);
        let (third, lee) = (server.guest("Choi").await, a_person(&server, "Lee").await);
        let desk = server.desk_of(kim.clone(), former.clone(), OLD).await;
        let writer = server.writer(&desk).await;
        let link = format!("/api/share-links/{}", desk.link);
        let left = server.reviewer(&desk).await;
        let old = review(&server, &desk).await;
        let old_reply = reply(&server, &former, &desk, &old).await;
        let path = format!("{link}/reviewer");
        assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, 204);
        left.closed().await;
        let path = format!("/api/documents/{}/share-link", desk.document);
        let invite = server.post(&kim, &path, json!({})).await.ok(200)["invite"]["token"].clone();
        server.post(&lee, &format!("{link}/join"), json!({ "invite": invite })).await.ok(200);
        let desk = Desk { reviewer: lee.clone(), invite: text(&invite).to_owned(), ..desk };
        let reviewer = server.reviewer(&desk).await;
        let (one, other) = (review(&server, &desk).await, review(&server, &desk).await);
        let body = json!({ "decision": "reject", "reviews": [{ "id": other, "version": 1 }] });
        let decision = server.post(&kim, &format!("{link}/decisions"), body).await.ok(200);
        let path = format!("/api/documents/{}/versions", desk.document);
        let version = server.post(&kim, &path, json!({ "label": "first" })).await.ok(201);
        let hana = a_person(&server, "Hana").await;
        let requested = request_review(&server, &kim, &hana.id).await.ok(201);
        decide(&server, &hana, &requested["id"], "accept").await.ok(200);
        let requested = request_review(&server, &kim, &lee.id).await.ok(201);
        let offer = offer_fixtures::an_offer(&server, &kim, 2).await;
        let claim = offer_fixtures::claim(&server, &lee, &offer).await.ok(201);
        let admin = Users::of(&server).await.admin;
        let sessions = server.get(&admin, "/api/admin/sessions").await.ok(200);
        let id_of = |value: &Value| text(&value["id"]).to_owned();
        let ids = HashMap::from([
            ("documents", desk.document.clone()),
            ("share-links", desk.link.clone()),
            ("versions", id_of(&version)),
            ("replies", reply(&server, &kim, &desk, &one).await),
            ("reviews", one),
            ("decisions", id_of(&decision)),
            ("partners", hana.id),
            ("review-requests", id_of(&requested)),
            ("review-offers", offer),
            ("claims", id_of(&claim)),
            ("push-subscriptions", a_browser(&server, &kim).await),
            ("users", desk.writer.id.clone()),
            ("sessions", text(&sessions["sessions"][0]["session_id"]).to_owned()),
            ("webhooks", format!("whk_{}", "0".repeat(32))),
        ]);
        let of_former = [("reviews", old), ("replies", old_reply)];
        Self { server, desk, third, former, ids, of_former, _peers: [writer, reviewer] }
    }

    /// The path of an operation; with `is_of_former` that of the former reviewer's own review.
    fn path(&self, path: &str, is_of_former: bool) -> String {
        let mut filled: Vec<&str> = Vec::new();
        for part in path.split('/') {
            let before = filled.last().copied().unwrap_or_default();
            let own = self.of_former.iter().find(|(name, _)| is_of_former && *name == before);
            filled.push(match own {
                _ if !part.starts_with('{') => part,
                Some((_, id)) => id,
                None => self.ids.get(before).unwrap_or_else(|| panic!("{path}: no id of {before}")),
            });
        }
        let query = if path.ends_with("/export") { "?format=txt" } else { "" };
        filled.join("/") + query
    }

    /// The status of the operation for this user. None: a client without a token.
    async fn call(&self, who: Option<&Person>, operation: &Operation, is_of_former: bool) -> u16 {
        let (method, path) = operation;
        let url = self.server.url.clone() + &self.path(path, is_of_former);
        let mut request = self.server.http.request(method.parse().expect("a method"), url);
        if let Some(who) = who {
            request = request.bearer_auth(&who.token);
        }
        let act = ALL.into_iter().find(|act| act.route() == (method.as_str(), path.as_str()));
        let body = act.and_then(|act| {
            let part =
                if act == Act::ReplaceReviewer { &self.third.id } else { &self.ids["reviews"] };
            let part = (part.clone(), String::new());
            Case::without_seats(act, self.desk.clone(), self.third.clone(), part).request().2
        });
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.expect("an answer").status().as_u16()
    }

    /// The callers without a right whom the operation does not refuse.
    async fn faults(&self, operation: &Operation) -> Vec<String> {
        let mut faults = Vec::new();
        let is_admins = is_admins(operation);
        let callers =
            [("nobody", None), ("third", Some(&self.third)), ("former", Some(&self.former))];
        let reviews: &[bool] =
            if operation.1.contains("{rid}") { &[false, true] } else { &[false] };
        for (name, who) in callers {
            let is_open =
                is_in(&FOR_ALL, operation) || (who.is_some() && is_in(&FOR_USERS, operation));
            for is_of_former in reviews.iter().copied() {
                let status = self.call(who, operation, is_of_former).await;
                let is_right = match who {
                    _ if is_open => status < 400 || status == 409,
                    None => status == 401,
                    Some(_) => status == 403 || (status == 404 && !is_admins),
                };
                faults.extend((!is_right).then(|| format!("{operation:?} by {name}: {status}")));
            }
        }
        faults
    }

    /// The sockets of both seats.
    async fn closes_the_sockets_of_outsiders(&self) {
        let tokenless = Person { id: String::new(), name: String::new(), token: "x".to_owned() };
        for role in ["writer", "reviewer"] {
            for (who, code) in [(&tokenless, 4401), (&self.third, 4403), (&self.former, 4403)] {
                let (url, link) = (&self.server.url, &self.desk.link);
                let peer = Peer::connect(url, link, role, &who.token, "events=1").await;
                assert_eq!(peer.closed().await.0, code, "{role} by {}", who.name);
            }
        }
    }

    /// Holds that an outsider is refused where the writer or the reviewer is not.
    async fn refuses_all_but_its_users(&self) {
        let mut all = operations();
        assert!(OPERATIONS_MIN <= all.len(), "{all:?}");
        let mut faults = Vec::new();
        for operation in &all {
            faults.extend(self.faults(operation).await);
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        self.closes_the_sockets_of_outsiders().await;
        let rank = |(method, path): &Operation| {
            LAST.iter().position(|it| *it == (method.as_str(), path.as_str()))
        };
        all.retain(|it| !is_admins(it) && !is_in(&FOR_ALL, it) && !is_in(&FOR_USERS, it));
        all.sort_by_key(|operation| rank(operation).map_or(0, |at| at + 1));
        for operation in &all {
            let writers = self.call(Some(&self.desk.writer), operation, false).await;
            let reviewers = self.call(Some(&self.desk.reviewer), operation, false).await;
            let may = |status: u16| status < 500 && ![400, 401, 403, 404, 422].contains(&status);
            assert!(may(writers) || may(reviewers), "{operation:?}: {writers}, {reviewers}");
        }
    }
}

/// The id of a new review of the reviewer.
async fn review(server: &Server, desk: &Desk) -> String {
    let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
    let body = json!({ "anchor": anchor, "body": "why?", "suggestion": "word" });
    text(&server.post(&desk.reviewer, &desk.reviews(), body).await.ok(201)["id"]).to_owned()
}

/// The id of a new reply.
async fn reply(server: &Server, who: &Person, desk: &Desk, review: &str) -> String {
    let path = format!("{}/{review}/replies", desk.reviews());
    text(&server.post(who, &path, json!({ "body": "because" })).await.ok(201)["id"]).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g14_each_operation_about_an_id_refuses_outsiders_on_sqlite() {
    World::with(&[]).await.refuses_all_but_its_users().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g14_each_operation_about_an_id_refuses_outsiders_on_postgresql() {
    let database = postgres_server::shared().database().await;
    World::with(&[("DATABASE__URL", &database.url())]).await.refuses_all_but_its_users().await;
}
