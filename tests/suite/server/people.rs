//! `/api/people/find` and `/api/me/address`: how users find each other.

use serde_json::{Value, json};

use crate::server::many_servers::Cluster;
use crate::server::request_fixtures::{a_person, request_review, text};
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Person};

async fn find(server: &Server, who: &Person, to: &str) -> Answer {
    server.post(who, "/api/people/find", json!({ "to": to })).await
}

async fn set_handle(server: &Server, who: &Person, handle: Value) -> Answer {
    server.call(who, "PUT", "/api/me/address", Some(json!({ "handle": handle }))).await
}

#[tokio::test]
async fn a_user_is_found_by_the_exact_handle_or_the_personal_link() {
    let cluster = Cluster::start().await;
    let (one, two) = (&cluster.one, &cluster.two);
    let (kim, lee) = (one.guest("Kim").await, two.guest("Lee").await);
    // A guest who has done nothing yet is unknown.
    request_review(one, &kim, &lee.id).await.problem(404, "unknown-user");
    let address = two.get(&lee, "/api/me/address").await.ok(200);
    let token = text(&address["link"]["token"]);
    assert_eq!((&address["handle"], token.len()), (&Value::Null, 43));
    assert_eq!(address["link"]["url"], format!("{}/#ask={token}", two.url));
    let again = one.get(&lee, "/api/me/address").await.ok(200);
    assert_eq!(again["link"]["token"], token);

    let named = set_handle(two, &lee, json!("이하나_LEE")).await.ok(200);
    assert_eq!((&named["handle"], &named["link"]), (&json!("이하나_lee"), &address["link"]));
    set_handle(one, &kim, json!("이하나_lee")).await.problem(409, "handle-taken");
    for to in ["@이하나_lee", "@이하나_Lee", token] {
        let found = find(one, &kim, to).await.ok(200);
        assert_eq!(found, json!({ "user": { "id": lee.id, "name": "Lee" } }));
    }
    let nearly = format!("{}x", &token[..42]);
    for to in ["이하나_lee", "@이하나", "@", "", &lee.id, "Lee", &nearly, &"@x".repeat(1_000)]
    {
        find(one, &kim, to).await.problem(404, "unknown-user");
    }
    for bad in ["a", "", "@lee", "l e", "ㅋㅋ", &"a".repeat(31)] {
        set_handle(one, &kim, json!(bad)).await.problem(422, "invalid-handle");
    }
    let without = one.call(&kim, "PUT", "/api/me/address", Some(json!({}))).await;
    without.problem(422, "invalid");
    assert_eq!(one.get(&kim, "/api/me/address").await.ok(200)["handle"], Value::Null);

    // A renewal voids the older token on every server, and null the handle.
    let renewed = one.post(&lee, "/api/me/address/renew", json!({})).await.ok(200);
    assert_ne!(renewed["link"]["token"], token);
    assert_eq!(renewed["handle"], "이하나_lee");
    find(two, &kim, token).await.problem(404, "unknown-user");
    request_review(two, &kim, token).await.problem(404, "unknown-user");
    assert_eq!(set_handle(one, &lee, Value::Null).await.ok(200)["handle"], Value::Null);
    find(two, &kim, "@이하나_lee").await.problem(404, "unknown-user");
    let request = request_review(two, &kim, text(&renewed["link"]["token"])).await.ok(201);
    assert_eq!(request["to"]["id"], lee.id);
}

#[tokio::test]
async fn g17_a_user_names_thirty_people_in_a_minute() {
    let server = Server::start().await;
    let (kim, lee) = (a_person(&server, "Kim").await, a_person(&server, "Lee").await);
    for _ in 0..30 {
        find(&server, &kim, "@no_such_user").await.problem(404, "unknown-user");
    }
    let mut tries = 0;
    while find(&server, &kim, "@no_such_user").await.status == 404 {
        tries += 1;
        assert!(tries < 30, "no rate");
    }
    let body = json!({ "to": lee.id, "as": "writer" });
    let answer = server.post(&kim, "/api/review-requests", body).await;
    // A slow machine admits the next name meanwhile.
    let is_refused = answer.status == 429 && answer.retry_after.is_some();
    assert!(is_refused || answer.status == 201, "{answer:?}");
    find(&server, &lee, "@no_such_user").await.problem(404, "unknown-user");
}
