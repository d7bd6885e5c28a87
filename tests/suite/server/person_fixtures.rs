//! A user with a row of every kind, beside users whose documents name that user.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::server::exports::download;
use crate::server::offer_fixtures::{an_offer, claim};
use crate::server::operation_fixtures::{a_browser, a_code};
use crate::server::request_fixtures::{a_person, request_review, text};
use crate::support::fixtures::found;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::Peer;

/// A user to delete.
pub(crate) struct Whole {
    pub(crate) kim: Person,
    /// The user's own document, which Lee reviews.
    pub(crate) own: Desk,
    /// A document of Park, which the user reviews.
    pub(crate) other: Desk,
    /// The ids of the accepted suggestion, and of Park's comment with a reply of the user.
    pub(crate) reviews: [String; 2],
    /// Texts that no other user has.
    pub(crate) marks: [String; 3],
    pub(crate) park_offer: String,
    /// The user's seats, and a third socket in the queue of one.
    pub(crate) peers: [Peer; 3],
}

fn random_mark(what: &str) -> String {
    format!("{what}{:016x}", getrandom::u64().expect("random bits"))
}

async fn review(server: &Server, who: &Person, desk: &Desk, body: &str) -> String {
    let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
    let body = json!({ "anchor": anchor, "body": body, "suggestion": "word" });
    text(&server.post(who, &desk.reviews(), body).await.ok(201)["id"]).to_owned()
}

impl Whole {
    pub(crate) async fn on(server: &Server) -> Self {
        let [name, mark, remark] = ["Nabi", "haneul", "baram"].map(random_mark);
        let kim = a_person(server, &name).await;
        let (lee, park) = (a_person(server, "Lee").await, a_person(server, "Park").await);
        let own = server.desk_of(kim.clone(), lee.clone(), &format!("text {mark}")).await;
        let other = server.desk_of(park.clone(), kim.clone(), "text here").await;
        let (writer, of_lee) = (server.writer(&own).await, server.reviewer(&own).await);
        let (of_park, reviewer) = (server.writer(&other).await, server.reviewer(&other).await);
        let waiting = server.claim_seat(&other, "reviewer", "events=1&wait=60").await;
        waiting.event("seat.waiting").await;
        review(server, &lee, &own, "why?").await;
        let versions = format!("/api/documents/{}/versions", own.document);
        server.post(&kim, &versions, json!({ "label": mark })).await.ok(201);
        let link = format!("/api/share-links/{}", other.link);
        let suggestion = review(server, &kim, &other, &remark).await;
        let accept = format!("{link}/reviews/{suggestion}/accept");
        server.post(&park, &accept, json!({})).await.ok(200);
        let anchor = json!({ "start": 5, "end": 9, "quote": "here" });
        let body = json!({ "anchor": anchor, "body": "how?" });
        let comment = server.post(&park, &other.reviews(), body).await.ok(201);
        let comment = text(&comment["id"]).to_owned();
        let replies = format!("{link}/reviews/{comment}/replies");
        server.post(&kim, &replies, json!({ "body": remark })).await.ok(201);
        server.post(&kim, &format!("{link}/turn"), json!({ "to": "writer" })).await.ok(200);
        server.call(&kim, "PUT", &format!("{link}/seen"), Some(json!({ "change": 1 }))).await;
        for (who, desk) in [(&kim, &own), (&park, &other)] {
            download(server, who, desk, "format=txt").await;
        }
        Self::among_people(server, &kim, &lee, &park, &mark).await;
        let park_offer = an_offer(server, &park, 2).await;
        claim(server, &kim, &park_offer).await.ok(201);
        for peer in [of_lee, of_park] {
            peer.leave().await;
        }
        let (marks, peers) = ([name, mark, remark], [writer, reviewer, waiting]);
        Self { kim, own, other, reviews: [suggestion, comment], marks, park_offer, peers }
    }

    /// The rows of no document.
    async fn among_people(server: &Server, kim: &Person, lee: &Person, park: &Person, mark: &str) {
        let bin = json!({ "title": mark, "text": mark });
        let binned = server.post(kim, "/api/documents", bin).await.ok(201);
        let binned = format!("/api/documents/{}", text(&binned["id"]));
        assert_eq!(server.call(kim, "DELETE", &binned, None).await.status, 204);
        let body = json!({ "title": mark, "message": mark, "capacity": 2 });
        let offer = server.post(kim, "/api/review-offers", body).await.ok(201);
        let claimed = claim(server, lee, text(&offer["id"])).await.ok(201);
        let accept = format!(
            "/api/review-offers/{}/claims/{}/accept",
            text(&offer["id"]),
            text(&claimed["id"])
        );
        server.post(kim, &accept, json!({})).await.ok(200);
        request_review(server, kim, &park.id).await.ok(201);
        let hana = a_person(server, "Hana").await;
        request_review(server, &hana, &kim.id).await.ok(201);
        let handle = json!({ "handle": mark });
        server.call(kim, "PUT", "/api/me/address", Some(handle)).await.ok(200);
        a_browser(server, kim).await;
        let reminders = json!({ "review_unanswered": true, "seat_free": true,
            "request_unanswered": true, "quiet": null, "time_zone": "Asia/Seoul" });
        server.call(kim, "PUT", "/api/me/reminders", Some(reminders)).await.ok(200);
        a_code(server, kim).await;
        let full = server.desk_of(hana, park.clone(), "text").await;
        let join = format!("/api/share-links/{}/join", full.link);
        server
            .post(kim, &join, json!({ "invite": full.invite }))
            .await
            .problem(409, "reviewer-exists");
    }

    /// Begins the deletion by an administrator. Returns the receipt.
    pub(crate) async fn delete(&self, server: &Server, query: &str) -> String {
        let path = format!("/api/users/{}{query}", self.kim.id);
        let begun = server.call_patiently(&admin(server), "DELETE", &path, None).await.ok(202);
        text(&begun["id"]).to_owned()
    }

    /// Texts that no table and no byte may have. The words of reviews stay unless they are deleted, too.
    pub(crate) fn needles(&self, with_reviews: bool) -> Vec<&str> {
        let [name, mark, remark] = &self.marks;
        let mut needles = vec![self.kim.id.as_str(), name, mark];
        needles.extend(with_reviews.then_some(remark.as_str()));
        needles
    }

    /// Park's list of reviews names a deleted user, or has none of the user's.
    pub(crate) async fn is_nameless(&self, server: &Server, with_reviews: bool) {
        let list = server.get(&self.other.writer, &self.other.reviews()).await.ok(200);
        let shown: Vec<_> = list["reviews"].as_array().expect("rows").iter().collect();
        let [suggestion, comment] = &self.reviews;
        let of = |id: &String| shown.iter().find(|it| it["id"] == **id).copied();
        let comment = of(comment).expect("the comment of Park");
        if with_reviews {
            assert_eq!((of(suggestion), &comment["replies"]), (None, &json!([])));
            return;
        }
        let suggestion = of(suggestion).expect("it stays");
        assert_eq!(
            (&suggestion["body"], &suggestion["status"]),
            (&json!(self.marks[2]), &json!("accepted"))
        );
        let author = &suggestion["author"];
        assert!(text(&author["id"]).starts_with("del_"), "{author}");
        assert_eq!((&author["name"], author), (&Value::Null, &comment["replies"][0]["author"]));
        let path = format!("/api/documents/{}/versions", self.other.document);
        let versions = server.get(&self.other.writer, &path).await.ok(200);
        let versions = versions["versions"].as_array().expect("rows");
        assert!(
            versions.iter().any(|it| it["authors"].as_array().expect("authors").contains(author))
        );
    }
}

pub(crate) fn admin(server: &Server) -> Person {
    Person { id: String::new(), name: "the admin".to_owned(), token: server.admin_token() }
}

/// The receipt, when the deletion is done.
pub(crate) async fn done(server: &Server, receipt: &str) -> Value {
    let path = format!("{}/api/user-deletions/{receipt}", server.url);
    found(async || {
        let answer = server.http.get(&path).send().await.map_err(|error| error.to_string())?;
        let receipt: Value = answer.json().await.map_err(|error| error.to_string())?;
        if receipt["state"] == "done" { Ok(receipt) } else { Err(receipt.to_string()) }
    })
    .await
}

/// The needles that the bytes of a folder's database have.
pub(crate) fn in_bytes<'n>(folder: &Path, needles: &[&'n str]) -> Vec<(String, &'n str)> {
    let files = ["galley.db", "galley.db-wal", "galley.db-shm"]
        .map(|name| (name, folder.join("data").join(name)));
    let bytes = files.iter().filter_map(|(name, path)| Some((name, fs::read(path).ok()?)));
    let mut found = Vec::new();
    for (name, bytes) in bytes {
        let has = |needle: &&str| bytes.windows(needle.len()).any(|part| part == needle.as_bytes());
        found
            .extend(needles.iter().copied().filter(has).map(|needle| ((*name).to_owned(), needle)));
    }
    found
}

/// The rows of a dump of a PostgreSQL database that have a needle, each after the head of its table.
pub(crate) fn in_dump(dump: &str, needles: &[&str]) -> Vec<String> {
    let mut table = "";
    let mut found = Vec::new();
    for line in dump.lines() {
        if line.starts_with("COPY ") {
            table = line;
        }
        if needles.iter().any(|needle| line.contains(needle)) {
            found.push(format!("{table} {line}"));
        }
    }
    found
}
