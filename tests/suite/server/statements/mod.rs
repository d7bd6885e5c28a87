//! The statements to the database and the commands to Redis of each operation, counted.
//!
//! `pg_stat_statements` counts every statement, `BEGIN` and `COMMIT` included. `MONITOR` shows every command
//! of a client of Redis; those inside of a script cost no round trip, and do not count. No seat tick falls into
//! a test (`NO_TICK`). A rarer periodic task adds to a count, and on a busy machine the last task of an operation
//! may be late for it, so an operation is repeated until one count leads all others by `LEAD`.

mod batches;
mod exports;
mod offers;
mod people;
mod reviews;
mod servers;
mod webhooks;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::sleep;

use crate::support::fixtures::NO_TICK;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_monitor::Monitor;
use crate::support::redis_server;
use crate::support::rest_client::Person;
use crate::support::ws_client::Peer;

/// The most frequent count of an operation is its cost once it was found so many times more than any other.
const LEAD: usize = 3;
/// Repetitions of an operation without such a count.
const TIMES_MAX: usize = 30;
/// The interval of two equal counts after which an operation has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// An operation with its statements and its commands.
type Cost = (&'static str, i64, usize);

/// Sessions that end after the count. One whose socket breaks would keep its seat for a while; these leave.
trait Sessions {
    fn sessions(self) -> Vec<Peer>;
}

impl Sessions for () {
    fn sessions(self) -> Vec<Peer> {
        Vec::new()
    }
}

impl Sessions for Peer {
    fn sessions(self) -> Vec<Peer> {
        vec![self]
    }
}

impl Sessions for Vec<Peer> {
    fn sessions(self) -> Vec<Peer> {
        self
    }
}

/// A server whose statements and commands are counted.
struct Counted {
    redis: redis_server::Server,
    monitor: Monitor,
    _postgres: postgres_server::Server,
    database: PgConnection,
    url: String,
    server: Server,
    costs: Vec<Cost>,
}

impl Counted {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    async fn with(more: &[(&str, &str)]) -> Self {
        let redis = redis_server::Server::start().await;
        let postgres = postgres_server::Server::counting();
        let url = postgres.url(&postgres.empty().await);
        let locks = redis.url();
        let settings = [
            ("LOCKS__URL", locks.as_str()),
            ("DATABASE__URL", url.as_str()),
            ("PUSH__ALLOW_PRIVATE", "true"),
        ];
        let server = Server::with(&[&settings, NO_TICK.as_slice(), more].concat()).await;
        let monitor = Monitor::of(&redis).await;
        let mut database = postgres_server::stranger(&url).await;
        let counts = "CREATE EXTENSION pg_stat_statements";
        sqlx::raw_sql(counts).execute(&mut database).await.expect("the extension");
        let costs = Vec::new();
        Self { redis, monitor, _postgres: postgres, database, url, server, costs }
    }

    async fn forget(&mut self) {
        let forget = "SELECT pg_stat_statements_reset()";
        sqlx::raw_sql(forget).execute(&mut self.database).await.expect("forgotten");
        self.monitor.forget();
    }

    /// The counts, once the last task of the operation has ended: no statement runs, no transaction is open,
    /// and the counts are equal after a pause in which the server answered.
    async fn count(&mut self) -> (i64, usize) {
        let mut counts = self.count_now().await;
        loop {
            sleep(PAUSE).await;
            // Not its metrics: they look at the database and Redis.
            let health = format!("{}/healthz", self.server.url);
            assert_eq!(self.server.http.get(health).send().await.expect("an answer").status(), 200);
            let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                        AND pid <> pg_backend_pid() AND state <> 'idle'";
            let open: i64 =
                sqlx::query_scalar(open).fetch_one(&mut self.database).await.expect("a count");
            let next = self.count_now().await;
            if counts == next && open == 0 {
                return counts;
            }
            counts = next;
        }
    }

    async fn count_now(&mut self) -> (i64, usize) {
        let statements = self.sum("calls", "%").await;
        (statements, self.monitor.commands())
    }

    /// The sum of a column of the statements whose text is like this.
    async fn sum(&mut self, column: &str, like: &str) -> i64 {
        let sum = format!(
            "SELECT COALESCE(SUM({column}), 0)::bigint FROM pg_stat_statements \
             WHERE query LIKE '{like}' AND query NOT LIKE '%pg_stat_%' \
             AND query NOT LIKE '%FROM revocations%'"
        );
        let sum = sqlx::query_scalar(AssertSqlSafe(sum));
        sum.fetch_one(&mut self.database).await.expect("a sum")
    }

    /// Measures an operation. `begin` prepares each repetition and is not counted, and nor is the end of
    /// the sessions that `run` returns.
    async fn measure<B, R: Sessions>(
        &mut self,
        what: &'static str,
        begin: impl AsyncFn(&Server) -> B,
        run: impl AsyncFn(&Server, B) -> R,
    ) {
        let mut counts: HashMap<(i64, usize), usize> = HashMap::new();
        for _time in 0..TIMES_MAX {
            let before = self.seats().await;
            let prepared = begin(&self.server).await;
            // The preparation may have tasks that run on.
            self.count().await;
            self.forget().await;
            let ended_later = run(&self.server, prepared).await;
            *counts.entry(self.count().await).or_default() += 1;
            let sessions = ended_later.sessions();
            let is_seated = !sessions.is_empty();
            for session in sessions {
                session.leave().await;
            }
            // A release some repetitions later would count as theirs.
            while is_seated && before < self.seats().await {
                sleep(PAUSE).await;
            }
            let mut found: Vec<_> = counts.iter().map(|(&count, &times)| (times, count)).collect();
            found.sort_unstable();
            let (most, (statements, commands)) = found.pop().expect("a count");
            if found.last().is_none_or(|&(times, _)| times + LEAD <= most) && LEAD <= most {
                return self.costs.push((what, statements, commands));
            }
        }
        panic!("no count of {what} leads the others: {counts:?}");
    }

    /// The number of seats' locks in Redis.
    async fn seats(&self) -> usize {
        self.redis.run::<Vec<String>>("KEYS share-link:lock:*").await.len()
    }

    /// The failure names the first cost that differs in its first line, which is the one that a report shows.
    fn cost(&self, wanted: &[Cost]) {
        for (found, wanted) in self.costs.iter().zip(wanted) {
            assert!(found == wanted, "{found:?} instead of {wanted:?}, of {:?}", self.costs);
        }
        assert_eq!(self.costs.len(), wanted.len(), "{:?}", self.costs);
    }

    /// Measures a request of the user whom `begin` names.
    async fn measure_get(
        &mut self,
        what: &'static str,
        path: &str,
        begin: impl AsyncFn(&Server) -> Person,
    ) {
        let get = async |server: &Server, who: Person| {
            server.get(&who, path).await.ok(200);
        };
        self.measure(what, begin, get).await;
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
