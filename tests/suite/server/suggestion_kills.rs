//! Servers and PostgreSQL that are killed at random moments of a reviewer's typing: each suggestion that a server
//! acknowledged survives in that version or the next one, and none is stored twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::server::kill_campaign::{planned, say};
use crate::support::fixtures::{found, synced, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server;
use crate::support::rest_client::Desk;
use crate::support::rng::Random;

/// Kills of each engine, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;
/// Suggestions of the document, and of one batch.
const SUGGESTIONS: usize = 40;
const AT_ONCE: usize = 4;
/// The longest time of typing before a kill.
const TYPING_MS: usize = 250;

/// The acknowledged version of each suggestion, by its number.
type Versions = BTreeMap<usize, i64>;
type Acknowledged = Arc<Mutex<Versions>>;

struct World {
    server: Server,
    postgres: Option<postgres_server::Server>,
    _redis: Option<redis_server::Server>,
    desk: Desk,
    acknowledged: Acknowledged,
}

fn of(acknowledged: &Acknowledged) -> MutexGuard<'_, Versions> {
    acknowledged.lock().expect("no task panics with the lock")
}

fn id_of(number: usize) -> String {
    format!("typed-suggestion-{number:02}")
}

/// The text of each version is another one.
fn text_of(number: usize, version: i64) -> String {
    format!("{number}.{version} ")
}

/// Goal: no acknowledged suggestion is lost on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_acknowledged_suggestions_survive_random_kills_on_sqlite() {
    let server = Server::start().await;
    World::new(server, None, None).await.survives("suggestions, sqlite").await;
}

/// Goal: the same on PostgreSQL, which the test kills before, after or beside the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_acknowledged_suggestions_survive_random_kills_on_postgresql() {
    let (postgres, redis) = (postgres_server::Server::start(), redis_server::Server::start().await);
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let server = Server::in_folder(folder, &settings).await;
    let world = World::new(server, Some(postgres), Some(redis)).await;
    world.survives("suggestions, postgresql").await;
}

impl World {
    async fn new(
        server: Server,
        postgres: Option<postgres_server::Server>,
        redis: Option<redis_server::Server>,
    ) -> Self {
        let desk = server.desk(&"word ".repeat(SUGGESTIONS)).await;
        Self { server, postgres, _redis: redis, desk, acknowledged: Arc::default() }
    }

    async fn survives(mut self, name: &str) {
        let (kills, mut random) = planned(name, KILLS);
        let began = Instant::now();
        for kill in 0..kills {
            let before: i64 = of(&self.acknowledged).values().sum();
            self.round(&mut random, kill).await;
            let after: i64 = of(&self.acknowledged).values().sum();
            assert!(before < after, "nothing was acknowledged before kill {kill}");
        }
        let versions: i64 = of(&self.acknowledged).values().sum();
        let took = began.elapsed().as_secs();
        say(&format!(
            "{name}: {kills} kills in {took} s, {versions} versions acknowledged, 0 lost"
        ));
    }

    async fn round(&mut self, random: &mut Random, kill: usize) {
        let reviewer = synced(&self.server, &self.desk, "reviewer", "events=1&takeover=1").await;
        let first: i64 = of(&self.acknowledged).values().sum();
        let mut typing = JoinSet::new();
        typing.spawn(self.typing(random.below(SUGGESTIONS)));
        until("an acknowledged suggestion", async || {
            of(&self.acknowledged).values().sum::<i64>() != first
        })
        .await;
        sleep(Duration::from_millis(random.below(TYPING_MS) as u64)).await;
        // The database alone, the server alone, or both, in both orders.
        let (kills_database, is_first) =
            (self.postgres.is_some() && !kill.is_multiple_of(3), kill.is_multiple_of(2));
        let kills_server = !kills_database || kill % 3 != 1;
        if kills_database && is_first {
            self.postgres.as_ref().expect("PostgreSQL").kill();
        }
        if kills_server {
            self.server.kill().await;
        }
        if kills_database && !is_first {
            self.postgres.as_ref().expect("PostgreSQL").kill();
        }
        if kills_database {
            self.postgres.as_mut().expect("PostgreSQL").start_again().await;
        }
        // An answer that the task has received is recorded before it ends.
        typing.shutdown().await;
        if kills_server {
            self.server.start_again().await;
        }
        drop(reviewer);
        self.holds().await;
    }

    /// Types without end: batches of new and changed suggestions.
    fn typing(&self, first: usize) -> impl Future<Output = ()> + Send + 'static {
        let url = format!("{}/api/share-links/{}/suggestions", self.server.url, self.desk.link);
        let (http, token) = (self.server.http.clone(), self.desk.reviewer.token.clone());
        let acknowledged = Arc::clone(&self.acknowledged);
        async move {
            let mut next = first;
            loop {
                let numbers: Vec<_> =
                    (next..next + AT_ONCE).map(|number| number % SUGGESTIONS).collect();
                next = (next + AT_ONCE) % SUGGESTIONS;
                let items: Vec<_> =
                    numbers.iter().map(|number| item(*number, &acknowledged)).collect();
                let request = http.post(&url).bearer_auth(&token).json(&json!({ "put": items }));
                let answer: Option<Value> = match request.send().await {
                    Ok(answer) if answer.status() == 200 => answer.json().await.ok(),
                    _refused => None,
                };
                match answer {
                    Some(answer) => record(&numbers, &answer, &acknowledged),
                    None => sleep(Duration::from_millis(20)).await,
                }
            }
        }
    }

    /// Holds that the database has each acknowledged version, or the next one, whose answer was lost.
    async fn holds(&self) {
        let path = format!("/api/share-links/{}/reviews", self.desk.link);
        let list = found(async || {
            let answer = self.server.get(&self.desk.writer, &path).await;
            if answer.status == 200 { Ok(answer.json) } else { Err(answer.json) }
        });
        let list = list.await;
        let reviews = list["reviews"].as_array().expect("reviews");
        let mut stored = BTreeMap::new();
        for review in reviews {
            let version = review["version"].as_i64().expect("a version");
            let number = (0..SUGGESTIONS).find(|number| review["id"] == id_of(*number));
            let number = number.expect("a suggestion of the test");
            assert_eq!(review["suggestion"], text_of(number, version), "{review}");
            assert_eq!(stored.insert(number, version), None, "{number} is stored twice");
        }
        let mut acknowledged = of(&self.acknowledged);
        for (number, version) in &*acknowledged {
            let there = stored.get(number).copied().unwrap_or_default();
            assert!(
                there == *version || there == version + 1,
                "version {version} of {number} was acknowledged, and {there} is stored"
            );
        }
        *acknowledged = stored;
    }
}

fn item(number: usize, acknowledged: &Acknowledged) -> Value {
    let version = of(acknowledged).get(&number).copied();
    let text = text_of(number, version.unwrap_or_default() + 1);
    let parts = json!([{ "at": number * "word ".len(), "text": text }]);
    json!({ "id": id_of(number), "version": version, "parts": parts })
}

fn record(numbers: &[usize], answer: &Value, acknowledged: &Acknowledged) {
    let items = answer["items"].as_array().expect("items");
    for (number, item) in numbers.iter().zip(items) {
        assert_eq!(item["state"], "kept", "{item}");
        of(acknowledged).insert(*number, item["version"].as_i64().expect("a version"));
    }
}
