//! `/api/partners` and `/api/partners/{user_id}`: the partner of an accepted request, and the reviewer's seat that
//! the acceptance opens.

use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::server::request_fixtures::{a_person, decide, partners, send_request, text};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Desk, Person};

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
