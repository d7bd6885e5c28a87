//! Pushes about review requests: to the receiver of a new one, and to the sender of an accepted one.

use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::server::request_fixtures::{a_person, decide, request_review, send_request, text};
use crate::support::galley_process::Server;
use crate::support::push_service::{Browser, PushService, Response};
use crate::support::rest_client::Person;

const ALLOWED: (&str, &str) = ("PUSH__ALLOW_PRIVATE", "true");

async fn subscribed(server: &Server, who: &Person, service: &PushService) -> Browser {
    let browser = Browser::new();
    let mut body = browser.subscription(service);
    body["lang"] = json!("ko");
    server.post(who, "/api/push-subscriptions", body).await.ok(201);
    browser
}

/// The decrypted pushes of this browser, once the service has received `count` of all browsers.
async fn pushes(service: &PushService, browser: &Browser, count: usize) -> Vec<Value> {
    let received = service.has(count).await;
    let own = received.iter().filter(|push| push.path == browser.path);
    own.map(|push| browser.decrypt(&push.body)).collect()
}

/// Goal: a request and its acceptance reach the other user's browser once each, from the server of the call.
#[tokio::test]
async fn g11_a_request_and_its_acceptance_are_each_pushed_once_to_the_other_user() {
    let (cluster, service) = (Cluster::with(&[ALLOWED]).await, PushService::start().await);
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (a_person(one, "김민수").await, a_person(two, "Lee").await);
    let kims = subscribed(one, &kim, &service).await;
    let lees = subscribed(two, &lee, &service).await;
    let body = json!({ "title": "자기소개서", "text": "성실한 사람" });
    let document = one.post(&kim, "/api/documents", body).await.ok(201)["id"].clone();
    let body = json!({ "to": lee.id, "as": "writer", "document_id": document, "message": "부탁" });

    let request = send_request(one, &kim, body.clone()).await.ok(201);
    let received = pushes(&service, &lees, 1).await;
    assert_eq!(received.len(), 1);
    let push = &received[0];
    assert_eq!((&push["kind"], &push["lang"]), (&json!("request.received"), &json!("ko")));
    assert_eq!(push["url"], "/#requests");
    let params = json!({ "from": "김민수", "as": "writer", "title": "자기소개서" });
    assert_eq!(push["params"], params);
    let key = one.get(&kim, "/api/push-key").await.ok(200)["key"].clone();
    assert_eq!(service.received()[0].signer(&service.url).0, text(&key));
    // Refusals notify no user.
    send_request(one, &kim, body).await.problem(409, "request-already-sent");
    request_review(two, &lee, &kim.id).await.problem(409, "request-already-received");

    for server in [two, one] {
        decide(server, &lee, &request["id"], "accept").await.ok(200);
    }
    let accepted = pushes(&service, &kims, 2).await;
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0]["kind"], "request.accepted");
    assert_eq!(accepted[0]["url"], format!("/d/{}", text(&document)));
    assert_eq!(accepted[0]["params"], json!({ "by": "Lee", "title": "자기소개서" }));
    let topics = [&push["tag"], &accepted[0]["tag"]];
    assert!(topics[0].is_string() && topics[0] != topics[1], "each has a topic of its own");
    service.has_only(2).await;
}

#[tokio::test]
async fn a_request_without_a_document_opens_the_list_and_a_refusal_is_not_pushed() {
    let (server, service) = (Server::with(&[ALLOWED]).await, PushService::start().await);
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    let kims = subscribed(&server, &kim, &service).await;
    // The service sends no response, and the requests do not wait for it.
    service.script([Response::Silence, Response::Silence]);
    let offer = json!({ "to": kim.id, "as": "reviewer" });
    let id = send_request(&server, &lee, offer).await.ok(201)["id"].clone();
    let received = pushes(&service, &kims, 1).await;
    assert_eq!(received[0]["params"], json!({ "from": "Lee", "as": "reviewer" }));
    decide(&server, &kim, &id, "decline").await.ok(200);
    let id = request_review(&server, &kim, &lee.id).await.ok(201)["id"].clone();
    decide(&server, &kim, &id, "withdraw").await.ok(200);
    let id = request_review(&server, &kim, &lee.id).await.ok(201)["id"].clone();
    decide(&server, &lee, &id, "accept").await.ok(200);
    let received = pushes(&service, &kims, 2).await;
    let shown: Vec<_> = received.iter().map(|push| (&push["kind"], &push["url"])).collect();
    let list = json!("/#requests");
    let kinds = [json!("request.received"), json!("request.accepted")];
    assert_eq!(shown, [(&kinds[0], &list), (&kinds[1], &list)]);
    service.has_only(2).await;
}
