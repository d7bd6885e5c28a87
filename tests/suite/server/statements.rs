//! The statements to the database and the scripts to Redis of each operation, counted.
//!
//! `pg_stat_statements` counts every statement, `BEGIN` and `COMMIT` included. The periodic tasks of the
//! server can only add to a count, so the smallest of some repetitions is that of the operation alone.

use std::time::Duration;

use galley::locks::Locks;
use galley::storage::Storage;
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::jobs::jobs_of;
use crate::server::exports::download;
use crate::server::reminder_fixtures::{browser, review};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::push_service::PushService;
use crate::support::redis_server;
use crate::support::rest_client::{Desk, Person};

/// Repetitions of each operation.
const TIMES: usize = 5;

/// A server whose statements and scripts are counted.
struct Counted {
    redis: redis_server::Server,
    _postgres: postgres_server::Server,
    database: PgConnection,
    url: String,
    server: Server,
}

/// The smallest counts of an operation.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    statements: i64,
    scripts: u64,
}

impl Counted {
    async fn start() -> Self {
        let redis = redis_server::Server::start().await;
        let postgres = postgres_server::Server::counting();
        let url = postgres.url(&postgres.empty().await);
        let locks = redis.url();
        let settings = [
            ("LOCKS__URL", locks.as_str()),
            ("DATABASE__URL", url.as_str()),
            ("PUSH__ALLOW_PRIVATE", "true"),
        ];
        let server = Server::with(&settings).await;
        let mut database = postgres_server::stranger(&url).await;
        let counts = "CREATE EXTENSION pg_stat_statements";
        sqlx::raw_sql(counts).execute(&mut database).await.expect("the extension");
        Self { redis, _postgres: postgres, database, url, server }
    }

    async fn forget(&mut self) {
        self.redis.forget_calls().await;
        let forget = "SELECT pg_stat_statements_reset()";
        sqlx::raw_sql(forget).execute(&mut self.database).await.expect("forgotten");
    }

    /// The counts, once the last task of the operation has ended.
    async fn cost(&mut self) -> Cost {
        let mut cost = self.cost_now().await;
        loop {
            sleep(Duration::from_millis(100)).await;
            let next = self.cost_now().await;
            if cost == next {
                return cost;
            }
            cost = next;
        }
    }

    async fn cost_now(&mut self) -> Cost {
        let statements: i64 = sqlx::query_scalar(
            "SELECT COALESCE(SUM(calls), 0)::bigint FROM pg_stat_statements \
             WHERE query NOT LIKE '%pg_stat_statements%'",
        )
        .fetch_one(&mut self.database)
        .await
        .expect("a count");
        Cost { statements, scripts: self.redis.calls("evalsha").await }
    }

    /// Holds that the operation costs this much. `begin` prepares each repetition and is not counted.
    async fn costs<B>(
        &mut self,
        what: &str,
        (statements, scripts): (i64, u64),
        begin: impl AsyncFn(&Server) -> B,
        run: impl AsyncFn(&Server, B),
    ) {
        let mut least: Option<Cost> = None;
        for _time in 0..TIMES {
            let prepared = begin(&self.server).await;
            self.forget().await;
            run(&self.server, prepared).await;
            let cost = self.cost().await;
            least = Some(match least {
                Some(least) => Cost {
                    statements: least.statements.min(cost.statements),
                    scripts: least.scripts.min(cost.scripts),
                },
                None => cost,
            });
        }
        assert_eq!(least, Some(Cost { statements, scripts }), "{what}");
    }
}

fn id_of(json: &Value) -> String {
    json["id"].as_str().expect("an id").to_owned()
}

async fn pair(server: &Server) -> (Person, Person) {
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    // A user with a personal link can be named by their id.
    server.get(&lee, "/api/me/address").await.ok(200);
    (kim, lee)
}

/// Two users, and a request of the first to the second.
async fn requested(server: &Server) -> (Person, Person, String) {
    let (kim, lee) = pair(server).await;
    let id = id_of(&send_request(server, &kim, &lee).await);
    (kim, lee, id)
}

async fn send_request(server: &Server, kim: &Person, lee: &Person) -> Value {
    let body = json!({ "to": lee.id, "as": "writer", "message": "봐 주세요." });
    server.post(kim, "/api/review-requests", body).await.ok(201)
}

/// The owner and the claimant of an offer with this many places.
async fn offered(server: &Server, capacity: u32) -> (Person, Person, String) {
    let (kim, lee) = pair(server).await;
    let body = json!({ "title": "첨삭", "capacity": capacity });
    let offer = server.post(&kim, "/api/review-offers", body).await.ok(201);
    (kim, lee, id_of(&offer))
}

async fn claim(server: &Server, who: &Person, offer: &str, status: u16) -> Value {
    let path = format!("/api/review-offers/{offer}/claims");
    let answer = server.post(who, &path, json!({})).await;
    assert_eq!(answer.status, status);
    answer.json
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_offers_cost_a_fixed_number_of_statements_and_scripts() {
    let mut counted = Counted::start().await;
    let decide = async |server: &Server, who: &Person, id: &str, decision: &str| {
        let path = format!("/api/review-requests/{id}/{decision}");
        server.post(who, &path, json!({})).await.ok(200);
    };
    let make = async |server: &Server, (kim, lee): (Person, Person)| {
        send_request(server, &kim, &lee).await;
    };
    // The last one reads the browsers of the other user, for the push.
    counted.costs("a request", (9, 2), pair, make).await;
    let accept = async |server: &Server, (_, lee, id): (Person, Person, String)| {
        decide(server, &lee, &id, "accept").await;
    };
    counted.costs("an acceptance", (9, 2), requested, accept).await;
    let partners = async |server: &Server| {
        let (kim, lee, id) = requested(server).await;
        decide(server, &lee, &id, "accept").await;
        (kim, lee)
    };
    let part = async |server: &Server, (kim, lee): (Person, Person)| {
        let path = format!("/api/partners/{}", lee.id);
        assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, 204);
    };
    counted.costs("the end of a partnership", (7, 0), partners, part).await;
    let decline = async |server: &Server, (_, lee, id): (Person, Person, String)| {
        decide(server, &lee, &id, "decline").await;
    };
    counted.costs("a refusal", (5, 0), requested, decline).await;
    let free = async |server: &Server| offered(server, 5).await;
    let claims = async |server: &Server, (_, lee, offer): (Person, Person, String)| {
        claim(server, &lee, &offer, 201).await;
    };
    counted.costs("a claim", (7, 2), free, claims).await;
    let sold_out = async |server: &Server| {
        let (kim, lee, offer) = offered(server, 1).await;
        let first = server.guest("Park").await;
        claim(server, &first, &offer, 201).await;
        (kim, lee, offer)
    };
    let refused = async |server: &Server, (_, lee, offer): (Person, Person, String)| {
        claim(server, &lee, &offer, 409).await;
    };
    counted.costs("a claim of a sold-out offer", (1, 0), sold_out, refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_costs_a_fixed_number_of_statements_and_scripts() {
    let mut counted = Counted::start().await;
    let desk = async |server: &Server| server.desk("글").await;
    let export = async |server: &Server, desk: Desk| {
        let file = download(server, &desk.writer, &desk, "format=txt").await;
        assert_eq!(file.status, 200);
    };
    counted.costs("a build", (13, 2), desk, export).await;
    let built = async |server: &Server| {
        let desk = server.desk("글").await;
        download(server, &desk.writer, &desk, "format=txt").await;
        server.has("galley_exports_held", 0).await;
        desk
    };
    counted.costs("a stored file", (2, 0), built, export).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_and_each_reminder_cost_a_fixed_number_of_statements_and_scripts() {
    let (mut counted, service) = (Counted::start().await, PushService::start().await);
    let storage = Storage::open(&counted.url).await.expect("the database");
    let locks = Locks::connect(&counted.redis.url()).await.expect("a good address");
    let jobs = jobs_of(&storage, &locks, Duration::from_millis(1));
    let run = async |count: u64| {
        let run = jobs.run(&CancellationToken::new()).await.expect("a run").expect("a run");
        assert_eq!(run.counts["sent"], count, "{run:?}");
    };
    let nothing = async |_: &Server| {};
    counted.costs("an empty batch", (15, 2), nothing, async |_, ()| run(0).await).await;
    let waiting = async |server: &Server, documents: usize| {
        for _ in 0..documents {
            let desk = server.desk("text").await;
            browser(server, &desk.writer, &service).await;
            let reviewer = server.reviewer(&desk).await;
            review(server, &desk).await;
            reviewer.leave().await;
        }
        sleep(Duration::from_millis(300)).await;
    };
    let one = async |server: &Server| waiting(server, 1).await;
    counted.costs("a reminder", (20, 3), one, async |_, ()| run(1).await).await;
    let three = async |server: &Server| waiting(server, 3).await;
    counted.costs("three reminders", (30, 3), three, async |_, ()| run(3).await).await;
}
