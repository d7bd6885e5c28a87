//! `/api/review-offers` and their `/claims`: answers, limits and costs.

use serde_json::{Value, json};

use crate::server::offer_fixtures::{Fleet, an_offer, claim, claims, offer};
use crate::support::galley_process::Server;
use crate::support::redis_monitor::Monitor;
use crate::support::rest_client::Person;

const ALL: &str = "/api/review-offers";

fn path(offer: &str, rest: &str) -> String {
    format!("{ALL}/{offer}{rest}")
}

/// An offer from its creation to its close, at two servers.
async fn an_offer_is_claimed_accepted_declined_and_closed(one: &Server, two: &Server) {
    let [kim, lee, park, choi] = [
        one.guest("Kim").await,
        one.guest("Lee").await,
        two.guest("Park").await,
        two.guest("Choi").await,
    ];
    let body =
        json!({ "title": " 첨삭 두 편 ", "capacity": 2, "message": "자기소개서만\r\n받아요" });
    let made = one.post(&kim, ALL, body).await.ok(201);
    let id = made["id"].as_str().expect("an id");
    assert_eq!(
        (&made["title"], &made["message"]),
        (&json!("첨삭 두 편"), &json!("자기소개서만\n받아요"))
    );
    assert_eq!(made["owner"], json!({ "id": kim.id, "name": "Kim" }));
    assert_eq!(
        (&made["capacity"], &made["remaining"], &made["state"]),
        (&json!(2), &json!(2), &json!("open"))
    );
    assert_eq!(made["url"], format!("{}/#offer={id}", one.url));
    assert_eq!((&made["closed_at"], made.get("claim")), (&Value::Null, None));

    // A claim may have no body.
    let first = two.call(&lee, "POST", &path(id, "/claims"), None).await.ok(201);
    assert_eq!((&first["number"], &first["state"]), (&json!(1), &json!("claimed")));
    assert_eq!(first["user"], json!({ "id": lee.id, "name": "Lee" }));
    let body = json!({ "message": "부탁드려요" });
    let second = one.post(&park, &path(id, "/claims"), body).await.ok(201);
    assert_eq!((&second["number"], &second["message"]), (&json!(2), &json!("부탁드려요")));
    claim(two, &choi, id).await.problem(409, "sold-out");
    let again = claim(one, &lee, id).await;
    assert_eq!(again.json["id"], first["id"]);
    again.problem(409, "already-claimed");
    for server in [one, two] {
        let seen = offer(server, &lee, id).await;
        assert_eq!((&seen["remaining"], &seen["state"]), (&json!(0), &json!("sold-out")));
        assert_eq!(seen["claim"]["id"], first["id"]);
        assert_eq!(offer(server, &choi, id).await["claim"], Value::Null);
        let own = server.get(&park, &path(id, "/claims")).await.ok(200);
        assert_eq!(own["claims"], json!([second]));
        assert_eq!(server.get(&choi, &path(id, "/claims")).await.ok(200)["claims"], json!([]));
        assert_eq!(claims(server, &kim, id).await, [first.clone(), second.clone()]);
    }

    it_is_decided_and_closed([one, two], [&kim, &lee, &park, &choi], id, [first, second]).await;
}

/// The owner accepts the first claim and declines the second, and closes the offer.
async fn it_is_decided_and_closed(
    [one, two]: [&Server; 2],
    [kim, lee, park, choi]: [&Person; 4],
    id: &str,
    [first, second]: [Value; 2],
) {
    let of = |claim: &Value, rest: &str| {
        path(id, &format!("/claims/{}{rest}", claim["id"].as_str().expect("an id")))
    };
    // Only the owner accepts, and only the two end a claim.
    one.post(lee, &of(&first, "/accept"), json!({})).await.problem(403, "not-the-owner");
    one.post(choi, &of(&first, "/accept"), json!({})).await.problem(404, "not-found");
    one.call(choi, "DELETE", &of(&first, ""), None).await.problem(404, "not-found");
    two.post(lee, &path(id, "/close"), json!({})).await.problem(403, "not-the-owner");
    let mut accepted = Value::Null;
    for server in [one, two] {
        accepted = server.post(kim, &of(&first, "/accept"), json!({})).await.ok(200);
        assert_eq!(accepted["partner"], json!({ "id": lee.id, "name": "Lee" }));
        assert_eq!(accepted["claim"]["state"], "accepted");
    }
    for who in [kim, lee] {
        two.call(who, "DELETE", &of(&first, ""), None).await.problem(409, "claim-accepted");
    }
    // The owner declines: the place is free again, under the next number.
    two.call(kim, "DELETE", &of(&second, ""), None).await.ok(204);
    one.call(park, "DELETE", &of(&second, ""), None).await.problem(404, "not-found");
    let third = claim(one, choi, id).await.ok(201);
    assert_eq!(third["number"], 3);
    one.call(choi, "DELETE", &of(&third, ""), None).await.ok(204);

    let closed = two.post(kim, &path(id, "/close"), json!({})).await.ok(200);
    assert_eq!((&closed["state"], &closed["remaining"]), (&json!("closed"), &json!(1)));
    let once_more = one.post(kim, &path(id, "/close"), json!({})).await.ok(200);
    assert_eq!(once_more["closed_at"], closed["closed_at"]);
    claim(one, park, id).await.problem(409, "offer-closed");
    assert_eq!(claims(two, kim, id).await, [accepted["claim"].clone()]);
    let list = one.get(kim, ALL).await.ok(200);
    assert_eq!((&list["offers"], &list["next_cursor"]), (&json!([once_more]), &Value::Null));
    assert_eq!(two.get(lee, ALL).await.ok(200)["offers"], json!([]));
}

#[tokio::test]
async fn an_offer_goes_from_its_creation_to_its_close_on_one_server() {
    let fleet = Fleet::alone().await;
    an_offer_is_claimed_accepted_declined_and_closed(fleet.server(0), fleet.server(0)).await;
}

#[tokio::test]
async fn an_offer_goes_from_its_creation_to_its_close_on_two_servers_with_postgresql() {
    let fleet = Fleet::of(2).await;
    let (one, two) = (fleet.server(0), fleet.server(1));
    an_offer_is_claimed_accepted_declined_and_closed(one, two).await;
}

/// Goal: invalid input is a typed problem, and the server stores nothing of it.
#[tokio::test]
async fn g12_an_invalid_offer_or_claim_is_a_typed_problem_and_not_stored() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let title = "t".repeat(201);
    let message = "글".repeat(1_001);
    for body in [
        json!({ "title": "t", "capacity": 0 }),
        json!({ "title": "t", "capacity": 101 }),
        json!({ "title": "t", "capacity": -1 }),
        json!({ "title": "t", "capacity": 4_294_967_297_i64 }),
        json!({ "title": "t", "capacity": 1.5 }),
        json!({ "title": "t", "capacity": "5" }),
        json!({ "title": "t" }),
        json!({ "capacity": 1 }),
        json!({ "title": " ", "capacity": 1 }),
        json!({ "title": title, "capacity": 1 }),
        json!({ "title": "t", "capacity": 1, "message": message }),
    ] {
        server.post(&kim, ALL, body).await.problem(422, "invalid");
    }
    assert_eq!(server.get(&kim, ALL).await.ok(200)["offers"], json!([]));
    let id = an_offer(&server, &kim, 1).await;
    let body = json!({ "message": message });
    server.post(&lee, &path(&id, "/claims"), body).await.problem(422, "invalid");
    claim(&server, &kim, &id).await.problem(422, "own-offer");
    let unknown = "off_00000000000000000000000000000000";
    for offer in [unknown, "off_1", "doc_00000000000000000000000000000000"] {
        claim(&server, &lee, offer).await.problem(404, "not-found");
        server.get(&lee, &path(offer, "")).await.problem(404, "not-found");
        server.get(&lee, &path(offer, "/claims")).await.problem(404, "not-found");
        server.post(&lee, &path(offer, "/close"), json!({})).await.problem(404, "not-found");
    }
    let stranger = Person { token: "no token".to_owned(), ..lee.clone() };
    claim(&server, &stranger, &id).await.problem(401, "unauthenticated");
    let claim_of_none = path(&id, "/claims/clm_00000000000000000000000000000000");
    server.call(&kim, "DELETE", &claim_of_none, None).await.problem(404, "not-found");
    let accept = format!("{claim_of_none}/accept");
    server.post(&kim, &accept, json!({})).await.problem(404, "not-found");
    let seen = offer(&server, &kim, &id).await;
    assert_eq!((&seen["remaining"], &seen["state"]), (&json!(1), &json!("open")));
    assert_eq!(claims(&server, &kim, &id).await, Vec::<Value>::new());
    // A claim of another offer is none of this one.
    let other = an_offer(&server, &kim, 1).await;
    let made = claim(&server, &lee, &other).await.ok(201);
    let here = path(&id, &format!("/claims/{}", made["id"].as_str().expect("an id")));
    server.call(&lee, "DELETE", &here, None).await.problem(404, "not-found");
    assert_eq!(offer(&server, &kim, &other).await["remaining"], 0);
}

/// Goal: a user has 100 open offers, and claims 50 places a day.
#[tokio::test]
async fn g13_offers_and_claims_of_a_user_are_bounded_and_the_limit_names_a_time() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let mut offers = Vec::new();
    for _ in 0..100 {
        offers.push(an_offer(&server, &kim, 1).await);
    }
    let body = json!({ "title": "t", "capacity": 1 });
    server.post(&kim, ALL, body.clone()).await.problem(409, "quota-spent");
    server.post(&kim, &path(&offers[99], "/close"), json!({})).await.ok(200);
    server.post(&kim, ALL, body.clone()).await.ok(201);
    server.post(&lee, ALL, body).await.ok(201);
    for offer in &offers[..50] {
        claim(&server, &lee, offer).await.ok(201);
    }
    let refused = claim(&server, &lee, &offers[50]).await;
    let wait = refused.retry_after.expect("a hint");
    refused.problem(429, "claim-limit");
    assert!(80_000 < wait && wait <= 86_400, "{wait}");
    assert_eq!(offer(&server, &lee, &offers[50]).await["remaining"], 1);
    // The limit is the user's own.
    claim(&server, &server.guest("Park").await, &offers[50]).await.ok(201);
}

/// Goal: a claim costs two scripts, and every other answer none.
#[tokio::test]
async fn a_claim_is_two_scripts_and_a_sold_out_or_closed_offer_none() {
    let fleet = Fleet::of(1).await;
    let (server, redis) = (fleet.server(0), fleet.redis.as_ref().expect("a Redis"));
    let [kim, lee, park] =
        [server.guest("Kim").await, server.guest("Lee").await, server.guest("Park").await];
    let monitor = Monitor::of(redis).await;
    // The first call of each script loads it.
    let warm = an_offer(server, &kim, 1).await;
    claim(server, &lee, &warm).await.ok(201);
    let id = an_offer(server, &kim, 1).await;
    let scripts = async || monitor.scripts(redis, &id).await.len();
    claim(server, &lee, &id).await.ok(201);
    assert_eq!(scripts().await, 2, "a claim and a release");
    claim(server, &park, &id).await.problem(409, "sold-out");
    claim(server, &lee, &id).await.problem(409, "already-claimed");
    claim(server, &kim, &id).await.problem(422, "own-offer");
    offer(server, &park, &id).await;
    server.post(&kim, &path(&id, "/close"), json!({})).await.ok(200);
    claim(server, &park, &id).await.problem(409, "offer-closed");
    assert_eq!(scripts().await, 2);
}
