//! Review offers and the claims of their places.

use serde_json::{Value, json};

use crate::server::statements::{Counted, id_of, pair};
use crate::support::galley_process::Server;
use crate::support::rest_client::Person;

const OFFERS: &str = "/api/review-offers";

/// An offer with its owner and its claimant.
struct Offered {
    kim: Person,
    lee: Person,
    offer: String,
}

impl Offered {
    async fn with(server: &Server, capacity: u32) -> Self {
        let (kim, lee) = pair(server).await;
        let offer = create(server, &kim, capacity).await;
        Self { kim, lee, offer }
    }

    fn path(&self) -> String {
        format!("{OFFERS}/{}", self.offer)
    }
}

async fn create(server: &Server, who: &Person, capacity: u32) -> String {
    let body = json!({ "title": "첨삭", "capacity": capacity });
    id_of(&server.post(who, OFFERS, body).await.ok(201))
}

async fn claim(server: &Server, who: &Person, it: &Offered, status: u16) -> Value {
    let answer = server.post(who, &format!("{}/claims", it.path()), json!({})).await;
    assert_eq!(answer.status, status);
    answer.json
}

async fn free(server: &Server) -> Offered {
    Offered::with(server, 5).await
}

/// An offer with a claim, and the path of the claim.
async fn claimed(server: &Server) -> (Offered, String) {
    let it = free(server).await;
    let id = id_of(&claim(server, &it.lee, &it, 201).await);
    let path = format!("{}/claims/{id}", it.path());
    (it, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offers_and_claims_cost_a_fixed_number_of_statements_and_commands() {
    let mut counted = Counted::start().await;
    let offer = async |server: &Server, (kim, _): (Person, Person)| {
        create(server, &kim, 5).await;
    };
    counted.measure("an offer", pair, offer).await;
    let read = async |server: &Server, it: Offered| {
        server.get(&it.lee, &it.path()).await.ok(200);
    };
    counted.measure("a read of an offer", free, read).await;
    let owner = async |server: &Server| {
        let it = free(server).await;
        create(server, &it.kim, 3).await;
        create(server, &it.kim, 4).await;
        it.kim
    };
    counted.measure_get("a page of offers", "/api/review-offers?limit=2", owner).await;
    let close = async |server: &Server, it: Offered| {
        server.post(&it.kim, &format!("{}/close", it.path()), json!({})).await.ok(200);
    };
    counted.measure("the end of an offer", free, close).await;
    let take = async |server: &Server, it: Offered| {
        claim(server, &it.lee, &it, 201).await;
    };
    counted.measure("a claim", free, take).await;
    let sold_out = async |server: &Server| {
        let it = Offered::with(server, 1).await;
        let first = server.guest("Park").await;
        claim(server, &first, &it, 201).await;
        it
    };
    let refused = async |server: &Server, it: Offered| {
        claim(server, &it.lee, &it, 409).await;
    };
    counted.measure("a claim of a sold-out offer", sold_out, refused).await;
    let claims = async |server: &Server, (it, _): (Offered, String)| {
        server.get(&it.kim, &format!("{}/claims", it.path())).await.ok(200);
    };
    counted.measure("a page of claims", claimed, claims).await;
    let accept = async |server: &Server, (it, path): (Offered, String)| {
        server.post(&it.kim, &format!("{path}/accept"), json!({})).await.ok(200);
    };
    counted.measure("an acceptance of a claim", claimed, accept).await;
    let withdraw = async |server: &Server, (it, path): (Offered, String)| {
        assert_eq!(server.call(&it.lee, "DELETE", &path, None).await.status, 204);
    };
    counted.measure("a withdrawn claim", claimed, withdraw).await;
    let decline = async |server: &Server, (it, path): (Offered, String)| {
        assert_eq!(server.call(&it.kim, "DELETE", &path, None).await.status, 204);
    };
    counted.measure("a declined claim", claimed, decline).await;
    counted.cost(&[
        ("an offer", 7, 0),
        ("a read of an offer", 1, 0),
        ("a page of offers", 1, 0),
        ("the end of an offer", 4, 0),
        ("a claim", 7, 2),
        ("a claim of a sold-out offer", 1, 0),
        ("a page of claims", 2, 0),
        ("an acceptance of a claim", 6, 0),
        ("a withdrawn claim", 6, 0),
        ("a declined claim", 6, 0),
    ]);
}
