//! People, review requests and partners: races, decisions, the reviewer of a share link.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Answer, Desk, Person};

/// Pairs that ask each other, those that do so at the same moment, and one in how many goes on to accept.
const PAIRS: usize = 200;
const AT_ONCE: usize = 20;
const ONE_ACCEPTS_IN: usize = 8;

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

async fn requests(server: &Server, who: &Person, query: &str) -> Vec<Value> {
    let list = server.get(who, &format!("/api/review-requests{query}")).await.ok(200);
    list["requests"].as_array().expect("requests").clone()
}

async fn partners(server: &Server, who: &Person) -> Vec<String> {
    let list = server.get(who, "/api/partners").await.ok(200);
    let rows = list["partners"].as_array().expect("partners");
    rows.iter().map(|row| text(&row["user"]["id"]).to_owned()).collect()
}

/// Two users ask each other at the same moment. In some pairs, the second one accepts the request of
/// the first.
async fn race(servers: &[&Server], pair: usize) {
    let (one, other) = (servers[pair % servers.len()], servers[(pair + 1) % servers.len()]);
    let (kim, lee) = tokio::join!(a_person(one, "Kim"), a_person(other, "Lee"));
    let (sent, answered) =
        tokio::join!(request_review(one, &kim, &lee.id), request_review(other, &lee, &kim.id));
    let ((first, second), (winner, loser), at) = if sent.status == 201 {
        ((sent, answered), (&kim, &lee), other)
    } else {
        ((answered, sent), (&lee, &kim), one)
    };
    let created = first.ok(201);
    let id = second.json["id"].clone();
    second.problem(409, "request-already-received");
    assert_eq!(id, created["id"]);
    if !pair.is_multiple_of(ONE_ACCEPTS_IN) {
        return;
    }
    for (who, direction) in [(winner, "sent"), (loser, "received")] {
        let pending = requests(at, who, "?state=pending").await;
        assert_eq!(pending, std::slice::from_ref(&created), "one pending request");
        assert_eq!(requests(at, who, &format!("?direction={direction}")).await.len(), 1);
    }
    let accepted = decide(at, loser, &id, "accept").await.ok(200);
    assert_eq!(accepted["partner"]["id"], winner.id);
    assert_eq!(accepted["request"]["state"], "accepted");
    assert_eq!(partners(one, winner).await, std::slice::from_ref(&loser.id));
    assert_eq!(partners(other, loser).await, std::slice::from_ref(&winner.id));
    assert_eq!(requests(at, winner, "").await.len(), 1);
}

async fn races(servers: &[&Server]) {
    for first in (0..PAIRS).step_by(AT_ONCE) {
        join_all((first..first + AT_ONCE).map(|pair| race(servers, pair))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_two_users_who_request_each_other_at_once_have_one_pending_request() {
    races(&[&Server::start().await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_two_users_who_request_each_other_at_once_on_three_servers_have_one_pending_request() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    let third = cluster.one.beside().await;
    races(&[&cluster.one, &cluster.two, &third]).await;
}

/// Goal: of an acceptance, a refusal and a withdrawal on two servers one happens, and each caller knows which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_of_an_acceptance_a_refusal_and_a_withdrawal_at_once_one_happens() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    for _ in 0..20 {
        let (kim, lee) = tokio::join!(a_person(one, "Kim"), a_person(two, "Lee"));
        let id = request_review(one, &kim, &lee.id).await.ok(201)["id"].clone();
        let answers = tokio::join!(
            decide(one, &lee, &id, "accept"),
            decide(two, &lee, &id, "decline"),
            decide(two, &kim, &id, "withdraw"),
        );
        let answers = [answers.0, answers.1, answers.2];
        let path = format!("/api/review-requests/{}", text(&id));
        let state = one.get(&kim, &path).await.ok(200)["state"].clone();
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(done, 1, "{answers:?}");
        for answer in answers.into_iter().filter(|answer| answer.status != 200) {
            assert_eq!(answer.json["state"], state);
            answer.problem(409, "request-not-pending");
        }
        let is_accepted = state == "accepted";
        assert_eq!(partners(two, &kim).await.len(), usize::from(is_accepted));
    }
}

#[tokio::test]
async fn a_request_is_its_two_users_and_each_decision_has_one_of_them() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    let park = a_person(&server, "Park").await;
    let body = json!({ "to": lee.id, "as": "reviewer", "message": " 제가 봐 드릴게요 " });
    let request = send_request(&server, &kim, body).await.ok(201);
    let id = &request["id"];
    assert_eq!(request["from"], json!({ "id": kim.id, "name": "Kim" }));
    assert_eq!(request["to"], json!({ "id": lee.id, "name": "Lee" }));
    assert_eq!(
        (&request["as"], &request["message"]),
        (&json!("reviewer"), &json!("제가 봐 드릴게요"))
    );
    for empty in ["document_id", "title", "decided_at"] {
        assert_eq!(request[empty], Value::Null);
    }
    let path = format!("/api/review-requests/{}", text(id));
    for who in [&kim, &lee] {
        assert_eq!(server.get(who, &path).await.ok(200), request);
    }
    request_review(&server, &kim, &lee.id).await.problem(409, "request-already-sent");
    server.get(&park, &path).await.problem(404, "not-found");
    for what in ["accept", "decline", "withdraw"] {
        decide(&server, &park, id, what).await.problem(404, "not-found");
        decide(&server, &park, &json!("req_0"), what).await.problem(404, "not-found");
    }
    decide(&server, &kim, id, "accept").await.problem(403, "not-the-receiver");
    decide(&server, &kim, id, "decline").await.problem(403, "not-the-receiver");
    decide(&server, &lee, id, "withdraw").await.problem(403, "not-the-sender");
    assert_eq!(server.get(&lee, &path).await.ok(200), request);

    let declined = decide(&server, &lee, id, "decline").await.ok(200);
    assert_eq!(declined["state"], "declined");
    assert!(declined["decided_at"].is_string());
    assert_eq!(decide(&server, &lee, id, "decline").await.ok(200), declined);
    let late = decide(&server, &lee, id, "accept").await;
    assert_eq!(late.json["state"], "declined");
    late.problem(409, "request-not-pending");

    // The next one is withdrawn, and the last one accepted.
    let id = request_review(&server, &lee, &kim.id).await.ok(201)["id"].clone();
    assert_eq!(decide(&server, &lee, &id, "withdraw").await.ok(200)["state"], "withdrawn");
    let id = request_review(&server, &lee, &kim.id).await.ok(201)["id"].clone();
    let accepted = decide(&server, &kim, &id, "accept").await.ok(200);
    assert_eq!((&accepted["share_link_id"], &accepted["share_link"]), (&Value::Null, &Value::Null));
    assert_eq!(decide(&server, &kim, &id, "accept").await.ok(200), accepted);
    for (from, to) in [(&kim, &lee), (&lee, &kim)] {
        request_review(&server, from, &to.id).await.problem(409, "already-partners");
    }

    // Either user ends the partnership, once.
    let path = format!("/api/partners/{}", kim.id);
    assert_eq!(server.call(&lee, "DELETE", &path, None).await.status, 204);
    server.call(&lee, "DELETE", &path, None).await.problem(404, "not-found");
    assert_eq!(partners(&server, &kim).await, Vec::<String>::new());
}

/// The writer's document, and a request about it.
async fn requested_for_a_document(server: &Server, kim: &Person, lee: &Person) -> (Value, Value) {
    let body = json!({ "title": "자기소개서", "text": "성실한 사람" });
    let document = server.post(kim, "/api/documents", body).await.ok(201)["id"].clone();
    let body = json!({ "to": lee.id, "as": "writer", "document_id": document });
    let request = send_request(server, kim, body).await.ok(201);
    assert_eq!(request["title"], "자기소개서");
    (document, request["id"].clone())
}

/// Goal: the receiver of a request needs no invite: the acceptance opens the reviewer's seat on every server.
#[tokio::test]
async fn an_accepted_request_makes_its_receiver_the_reviewer() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (a_person(one, "Kim").await, a_person(two, "Lee").await);
    let (document, id) = requested_for_a_document(one, &kim, &lee).await;
    let accepted = decide(two, &lee, &id, "accept").await.ok(200);
    assert_eq!(accepted["share_link"], "joined");
    let share = format!("/api/documents/{}/share-link", text(&document));
    let link = one.post(&kim, &share, json!({})).await.ok(200);
    assert_eq!(
        (&accepted["share_link_id"], &link["reviewer"]["id"]),
        (&link["id"], &json!(lee.id))
    );
    let shown = one.get(&kim, &format!("/api/share-links/{}", text(&link["id"]))).await.ok(200);
    assert!(shown["reviewer_since"].is_string(), "{shown}");
    let desk = Desk {
        document: text(&document).to_owned(),
        link: text(&link["id"]).to_owned(),
        invite: text(&link["invite"]["token"]).to_owned(),
        writer: kim.clone(),
        reviewer: lee.clone(),
    };
    let writer = one.writer(&desk).await;
    let reviewer = two.reviewer(&desk).await;
    assert_eq!(writer.event("peer.joined").await["user"]["id"], lee.id);
    // The end of the partnership ends no seat.
    let path = format!("/api/partners/{}", lee.id);
    assert_eq!(one.call(&kim, "DELETE", &path, None).await.status, 204);
    writer.append("!");
    reviewer.reads("성실한 사람!").await;
    // A repeated acceptance has the same result.
    assert_eq!(decide(one, &lee, &id, "accept").await.ok(200), accepted);
    assert_eq!(partners(one, &kim).await, Vec::<String>::new());
}

/// Goal: a link keeps its reviewer; the writer receives the attempt of the partner, and may let them in.
#[tokio::test]
async fn g15_an_acceptance_beside_another_reviewer_is_an_attempt_that_the_writer_sees() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let desk = one.desk("text").await;
    let writer = one.writer(&desk).await;
    let reviewer = two.reviewer(&desk).await;
    let park = a_person(two, "Park").await;
    let body = json!({ "to": park.id, "as": "writer", "document_id": desk.document });
    let id = send_request(one, &desk.writer, body).await.ok(201)["id"].clone();

    let accepted = decide(two, &park, &id, "accept").await.ok(200);

    assert_eq!(accepted["share_link"], "reviewer-exists");
    assert_eq!(accepted["share_link_id"], Value::Null);
    // A repeated acceptance has the same result, and is no second attempt.
    assert_eq!(decide(one, &park, &id, "accept").await.ok(200), accepted);
    assert_eq!(partners(one, &park).await, std::slice::from_ref(&desk.writer.id));
    let refused = writer.event("invite.refused").await;
    assert_eq!(refused["user"], json!({ "id": park.id, "name": "Park" }));
    let link = format!("/api/share-links/{}", desk.link);
    let shown = one.get(&desk.writer, &link).await.ok(200);
    assert_eq!(shown["reviewer"]["id"], desk.reviewer.id);
    assert_eq!(shown["attempts"], json!([{ "user": refused["user"], "at": refused["at"] }]));
    let body = Some(json!({ "user_id": park.id }));
    let put = one.call(&desk.writer, "PUT", &format!("{link}/reviewer"), body).await.ok(200);
    assert_eq!(put["reviewer"]["id"], park.id);
    assert_eq!(reviewer.closed().await, (4403, "not-your-role".to_owned()));
    // A repetition reports the link as it is now.
    let repeated = decide(two, &park, &id, "accept").await.ok(200);
    assert_eq!(
        (&repeated["share_link"], &repeated["share_link_id"]),
        (&json!("joined"), &json!(desk.link))
    );
    let document = format!("/api/documents/{}", desk.document);
    assert_eq!(one.call(&desk.writer, "DELETE", &document, None).await.status, 204);
    let repeated = decide(two, &park, &id, "accept").await.ok(200);
    assert_eq!(repeated["share_link"], "document-gone");
}

#[tokio::test]
async fn a_partner_becomes_the_reviewer_without_an_invite() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (a_person(one, "Kim").await, a_person(two, "Lee").await);
    let park = a_person(two, "Park").await;
    let body = json!({ "title": "t", "text": "text" });
    let document = one.post(&kim, "/api/documents", body).await.ok(201)["id"].clone();
    let share = format!("/api/documents/{}/share-link", text(&document));
    let link = one.post(&kim, &share, json!({})).await.ok(201);
    let path = format!("/api/share-links/{}/reviewer", text(&link["id"]));
    let put = async |who: &Person, user: &Person| {
        two.call(who, "PUT", &path, Some(json!({ "user_id": user.id }))).await
    };
    put(&kim, &lee).await.problem(404, "not-a-partner");
    for partner in [&lee, &park] {
        let id = request_review(two, partner, &kim.id).await.ok(201)["id"].clone();
        decide(one, &kim, &id, "accept").await.ok(200);
    }
    // A partner has no right to a link of their own accord.
    put(&lee, &lee).await.problem(404, "not-found");
    for _ in 0..2 {
        assert_eq!(put(&kim, &lee).await.ok(200)["reviewer"]["id"], lee.id);
    }
    put(&kim, &park).await.problem(409, "reviewer-exists");
    let peer = one
        .claim_seat(
            &Desk {
                document: text(&document).to_owned(),
                link: text(&link["id"]).to_owned(),
                invite: String::new(),
                writer: kim.clone(),
                reviewer: lee.clone(),
            },
            "reviewer",
            "events=1",
        )
        .await;
    assert_eq!(peer.event("seat.granted").await["user"]["id"], lee.id);
    assert_eq!(one.call(&kim, "DELETE", &path, None).await.status, 204);
    assert_eq!(put(&kim, &park).await.ok(200)["reviewer"]["id"], park.id);
}
