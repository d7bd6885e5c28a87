//! `/api/share-links`, `/api/share-links/{id}`, its `/join`, and `/api/documents/{id}/share-link`: the link of a
//! document, its invite and its reviewer.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::server::documents::{id, make};
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;

pub(crate) fn link(desk: &Desk) -> String {
    format!("/api/share-links/{}", desk.link)
}

#[tokio::test]
async fn g11_a_document_has_one_share_link_and_one_invite() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let made = make(&server, &kim, "t", "").await;
    let path = format!("/api/documents/{}/share-link", id(&made));
    let first = server.call(&kim, "POST", &path, None).await.ok(201);
    let second = server.call(&kim, "POST", &path, None).await.ok(200);
    assert_eq!(first, second);
    assert_eq!(first["document_id"], made["id"]);
    assert_eq!((&first["writer"]["id"], &first["reviewer"]), (&json!(kim.id), &Value::Null));
    let token = first["invite"]["token"].as_str().expect("an invite");
    let url = format!("{}/s/{}#{token}", server.url, id(&first));
    assert_eq!(first["invite"]["url"], json!(url));
    assert!(22 <= token.len(), "at least 128 bits: {token}");
    let own = format!("/api/share-links/{}", id(&first));
    let revoked = server.call(&kim, "DELETE", &own, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    let third = server.call(&kim, "POST", &path, None).await.ok(201);
    assert_ne!(third["id"], first["id"]);
    assert_ne!(third["invite"]["token"], first["invite"]["token"]);
}

#[tokio::test]
async fn the_first_user_with_the_invite_becomes_the_reviewer() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let park = server.guest("Park").await;
    let made = make(&server, &kim, "t", "text").await;
    let share = format!("/api/documents/{}/share-link", id(&made));
    let link = server.call(&kim, "POST", &share, None).await.ok(201);
    let path = format!("/api/share-links/{}", id(&link));
    let join = format!("{path}/join");
    let invite = json!({ "invite": link["invite"]["token"] });
    server.get(&lee, &path).await.problem(404, "not-found");
    for wrong in ["", "x", id(&link)] {
        server.post(&lee, &join, json!({ "invite": wrong })).await.problem(403, "wrong-invite");
    }
    server.post(&kim, &join, invite.clone()).await.problem(409, "already-writer");
    let joined = server.post(&lee, &join, invite.clone()).await.ok(200);
    assert_eq!(joined["reviewer"], json!({ "id": lee.id, "name": lee.name }));
    assert_eq!(joined.get("invite"), None, "only the writer reads the invite");
    assert_eq!(joined["seats"]["writer"], json!({ "taken": false, "user": null, "since": null }));
    server.post(&lee, &join, invite.clone()).await.ok(200);
    server.post(&park, &join, invite.clone()).await.problem(409, "reviewer-exists");
    assert_eq!(server.text(&lee, id(&made)).await, "text");
    for who in [&kim, &lee] {
        let mut read = server.get(who, &path).await.ok(200);
        let fields = read.as_object_mut().expect("a link");
        // Only the writer reads these.
        for only in ["attempts", "invited_at", "reviewer_since"] {
            assert_eq!(fields.remove(only).is_some(), who.id == kim.id, "{only}");
        }
        assert_eq!(read, joined);
        let listed = server.get(who, "/api/share-links").await.ok(200);
        assert_eq!(listed["share_links"], json!([joined]));
    }
    server.get(&park, &path).await.problem(404, "not-found");
    server.call(&park, "DELETE", &path, None).await.problem(404, "not-found");
    server.call(&lee, "DELETE", &path, None).await.problem(403, "not-the-writer");
    server.call(&kim, "DELETE", &path, None).await;
    server.get(&kim, &path).await.problem(404, "not-found");
    server.post(&lee, &join, invite).await.problem(404, "not-found");
}

#[tokio::test]
async fn share_links_are_paged_for_writer_and_reviewer() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(server.desk_of(kim.clone(), lee.clone(), "text").await.link);
    }
    made.sort();
    for who in [&kim, &lee] {
        let (mut seen, mut next) = (Vec::new(), Some(String::new()));
        while let Some(cursor) = next {
            let listed =
                server.get(who, &format!("/api/share-links?limit=2{cursor}")).await.ok(200);
            let links = listed["share_links"].as_array().expect("links");
            seen.extend(links.iter().map(|link| id(link).to_owned()));
            next = listed["next_cursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
            assert!(next.is_none() || links.len() == 2);
        }
        seen.sort();
        assert_eq!(seen, made, "each once");
    }
    for wrong in ["limit=0", "limit=x", "cursor=x", "cursor="] {
        server.get(&kim, &format!("/api/share-links?{wrong}")).await.problem(422, "invalid");
    }
}
