//! `/api/share-links/{id}/reviewer`, `/invite` and `/invite/check`: the invite, the reviewer, and the end of a
//! reviewer.

use std::time::Duration;

use chrono::Utc;
use galley::domain::ids::InviteId;
use galley::storage::invites::NewInvite;
use serde_json::json;

use crate::server::many_servers::Cluster;
use crate::server::me::anonymous;
use crate::server::request_fixtures::{a_person, decide, request_review, text};
use crate::server::share_links::link;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Answer, Desk, Person};

async fn join(server: &Server, who: &Person, desk: &Desk, invite: &str) -> Answer {
    server.post(who, &format!("{}/join", link(desk)), json!({ "invite": invite })).await
}

async fn check(server: &Server, desk: &Desk, invite: &str) -> Answer {
    anonymous(server, &format!("{}/invite/check", link(desk)), json!({ "invite": invite })).await
}

#[tokio::test]
async fn a_renewed_invite_voids_the_older_one_and_keeps_the_reviewer() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let before = cluster.one.get(&desk.writer, &link(&desk)).await.ok(200);
    assert!(before["reviewer_since"].is_string() && before["invited_at"].is_string(), "{before}");
    assert_eq!(before["attempts"], json!([]));
    let path = format!("{}/invite", link(&desk));
    let renewed = cluster.one.post(&desk.writer, &path, json!({})).await.ok(200);
    let invite = text(&renewed["invite"]["token"]);
    assert_ne!(invite, desk.invite);
    assert_eq!(renewed["invite"]["url"], format!("{}/s/{}#{invite}", cluster.one.url, desk.link));
    assert_eq!(renewed["reviewer"]["id"], desk.reviewer.id);
    assert!(text(&before["invited_at"]) < text(&renewed["invited_at"]));
    for server in [&cluster.one, &cluster.two] {
        let park = server.guest("Park").await;
        join(server, &park, &desk, &desk.invite).await.problem(403, "wrong-invite");
        join(server, &park, &desk, invite).await.problem(409, "reviewer-exists");
        check(server, &desk, &desk.invite).await.problem(404, "not-found");
        let path = format!("/api/documents/{}/share-link", desk.document);
        let again = server.post(&desk.writer, &path, json!({})).await.ok(200);
        assert_eq!(again["invite"]["token"], invite);
        assert_eq!(again["invited_at"], renewed["invited_at"]);
    }
    assert!(reviewer.is_open());
}

#[tokio::test]
async fn a_visitor_checks_an_invite_without_signing_in() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let taken = check(&server, &desk, &desk.invite).await.ok(200);
    let seen = json!({ "title": "자기소개서", "writer": { "name": "Kim" }, "free": false, "yours": false });
    assert_eq!(taken, seen);
    let path = format!("{}/invite/check", link(&desk));
    for (who, yours) in
        [(&desk.writer, true), (&desk.reviewer, true), (&server.guest("Park").await, false)]
    {
        let body = json!({ "invite": desk.invite });
        assert_eq!(server.post(who, &path, body).await.ok(200)["yours"], yours);
    }
    check(&server, &desk, "x").await.problem(404, "not-found");
    check(&server, &desk, "").await.problem(404, "not-found");
    let remove =
        server.call(&desk.writer, "DELETE", &format!("{}/reviewer", link(&desk)), None).await;
    assert_eq!(remove.status, 204);
    check(&server, &desk, &desk.invite).await.problem(404, "not-found");
    let invite = format!("/api/documents/{}/share-link", desk.document);
    let invite =
        server.post(&desk.writer, &invite, json!({})).await.ok(200)["invite"]["token"].clone();
    assert_eq!(check(&server, &desk, text(&invite)).await.ok(200)["free"], true);
    server.call(&desk.writer, "DELETE", &link(&desk), None).await;
    check(&server, &desk, text(&invite)).await.problem(404, "not-found");
}

/// Goal: on either engine, the end of a reviewer reaches every server, and nothing brings the user back.
async fn a_removed_reviewer_loses_the_seat(cluster: &Cluster) {
    let desk = cluster.one.desk("성실한 사람").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let waiting = cluster.one.claim_seat(&desk, "reviewer", "events=1&wait=60").await;
    waiting.event("seat.waiting").await;
    let reviews = format!("{}/reviews", link(&desk));
    let anchor = json!({ "start": 0, "end": 3, "quote": "성실한" });
    let review = json!({ "anchor": anchor, "body": "예를 들어 주세요" });
    let review = cluster.two.post(&desk.reviewer, &reviews, review).await.ok(201);

    let path = format!("{}/reviewer", link(&desk));
    assert_eq!(cluster.one.call(&desk.writer, "DELETE", &path, None).await.status, 204);

    for peer in [&reviewer, &waiting] {
        let lost = peer.event("seat.lost").await;
        assert_eq!(lost["reason"], "revoked");
        assert_eq!(peer.closed().await, (4403, "not-your-role".to_owned()));
    }
    assert_eq!(writer.event("peer.left").await["user"]["id"], desk.reviewer.id);
    for server in [&cluster.one, &cluster.two] {
        let again = server.claim_seat(&desk, "reviewer", "events=1").await;
        assert_eq!(again.closed().await, (4403, "not-your-role".to_owned()));
        server.get(&desk.reviewer, &link(&desk)).await.problem(404, "not-found");
        server.get(&desk.reviewer, &reviews).await.problem(404, "not-found");
        join(server, &desk.reviewer, &desk, &desk.invite).await.problem(403, "wrong-invite");
    }
    cluster.two.call(&desk.writer, "DELETE", &path, None).await.problem(404, "no-reviewer");

    // The next reviewer acquires the seat, and the reviews keep their author.
    let share = format!("/api/documents/{}/share-link", desk.document);
    let share = cluster.two.post(&desk.writer, &share, json!({})).await.ok(200);
    let park = cluster.two.guest("Park").await;
    join(&cluster.two, &park, &desk, text(&share["invite"]["token"])).await.ok(200);
    let desk = Desk { reviewer: park, ..desk };
    let next = cluster.one.reviewer(&desk).await;
    let list = cluster.one.get(&desk.reviewer, &reviews).await.ok(200);
    assert_eq!(list["reviews"][0]["author"]["name"], "Lee");
    let one = format!("{reviews}/{}", text(&review["id"]));
    let edit = cluster.one.call(&desk.reviewer, "PATCH", &one, Some(json!({ "body": "x" }))).await;
    edit.problem(403, "not-author");
    cluster.one.call(&desk.reviewer, "DELETE", &one, None).await.problem(403, "not-author");
    cluster.one.post(&desk.writer, &format!("{one}/resolve"), json!({})).await.ok(200);
    assert!(next.is_open() && writer.is_open());
}

#[tokio::test]
async fn g14_a_removed_reviewer_loses_the_seat_on_every_server() {
    a_removed_reviewer_loses_the_seat(&Cluster::start().await).await;
}

#[tokio::test]
async fn g14_a_removed_reviewer_loses_the_seat_on_every_server_on_postgresql() {
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let cluster = Cluster::with(&[("DATABASE__URL", url.as_str())]).await;
    a_removed_reviewer_loses_the_seat(&cluster).await;
}

#[tokio::test]
async fn a_refused_user_replaces_the_reviewer() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let (park, choi) = (cluster.two.guest("박제삼").await, cluster.two.guest("Choi").await);
    for _ in 0..2 {
        join(&cluster.two, &park, &desk, &desk.invite).await.problem(409, "reviewer-exists");
    }
    let refused = writer.event("invite.refused").await;
    assert_eq!(refused["user"], json!({ "id": park.id, "name": "박제삼" }));
    assert_eq!(refused["type"], "invite.refused");
    join(&cluster.two, &choi, &desk, "x").await.problem(403, "wrong-invite");
    let shown = cluster.one.get(&desk.writer, &link(&desk)).await.ok(200);
    assert_eq!(shown["attempts"], json!([{ "user": refused["user"], "at": refused["at"] }]));
    let of_reviewer = cluster.one.get(&desk.reviewer, &link(&desk)).await.ok(200);
    for field in ["attempts", "invited_at", "reviewer_since"] {
        assert!(of_reviewer.get(field).is_none(), "{of_reviewer}");
    }

    let path = format!("{}/reviewer", link(&desk));
    let put = async |who: &Person, user: &str| {
        cluster.one.call(who, "PUT", &path, Some(json!({ "user_id": user }))).await
    };
    for stranger in [&desk.reviewer, &park, &choi] {
        put(stranger, &park.id).await.problem(404, "not-found");
    }
    put(&desk.writer, &choi.id).await.problem(404, "not-a-partner");
    put(&desk.writer, "no such id!").await.problem(422, "invalid");
    for _ in 0..2 {
        let changed = put(&desk.writer, &park.id).await.ok(200);
        assert_eq!(changed["reviewer"]["id"], park.id);
        assert_eq!(changed["attempts"], json!([]));
    }
    assert_eq!(reviewer.closed().await, (4403, "not-your-role".to_owned()));
    let back = cluster.two.claim_seat(&desk, "reviewer", "events=1").await;
    assert_eq!(back.closed().await.0, 4403);
    // The user who was let in needs no further join.
    let next = cluster.two.reviewer(&Desk { reviewer: park, ..desk.clone() }).await;
    assert_eq!(writer.event("peer.joined").await["user"]["name"], "Lee");
    assert_eq!(writer.event("peer.joined").await["user"]["name"], "박제삼");
    join(&cluster.one, &desk.reviewer, &desk, &desk.invite).await.problem(409, "reviewer-exists");
    assert_eq!(writer.event("invite.refused").await["user"]["name"], "Lee");
    assert!(next.is_open());
}

#[tokio::test]
async fn only_the_owner_changes_the_reviewer_and_the_invite() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let mallory = server.guest("Mallory").await;
    for who in [&desk.reviewer, &mallory] {
        let calls = [
            ("POST", format!("{}/invite", link(&desk)), Some(json!({}))),
            ("DELETE", format!("{}/reviewer", link(&desk)), None),
            ("PUT", format!("{}/reviewer", link(&desk)), Some(json!({ "user_id": mallory.id }))),
        ];
        for (method, path, body) in calls {
            server.call(who, method, &path, body).await.problem(404, "not-found");
        }
    }
    let shown = server.get(&desk.writer, &link(&desk)).await.ok(200);
    assert_eq!(shown["reviewer"]["id"], desk.reviewer.id);
    join(&server, &desk.reviewer, &desk, &desk.invite).await.ok(200);
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

/// Goal: the tick ends the session of a former reviewer when the message about it is lost.
#[tokio::test]
async fn g15_the_tick_finds_a_former_reviewer() {
    let cluster = Cluster::with(&[("SEATS__RENEW_EVERY", "1s"), ("SEATS__LEASE", "4s")]).await;
    let desk = cluster.one.desk("text").await;
    let reviewer = cluster.two.reviewer(&desk).await;
    let storage = cluster.one.storage().await;
    let link = desk.link.parse().expect("an id");
    let invite = NewInvite { id: InviteId::generate(), hash: [0; 32], now: Utc::now() };
    storage.remove_reviewer(link, &invite).await.expect("removed");
    let closed = tokio::time::timeout(Duration::from_secs(20), reviewer.closed()).await;
    assert_eq!(closed.expect("a tick"), (4403, "not-your-role".to_owned()));
}
