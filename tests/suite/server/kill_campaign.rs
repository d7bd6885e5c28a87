//! `kill -9` at random moments under load: of servers, of PostgreSQL and of the clients, alone and together,
//! `GALLEY_KILLS` times in all (20 if it is not set).
//!
//! In each round writers type marks as fast as they can, and reviewers attempt edits. Then the test kills a
//! victim. Before it restarts a server it compares the database with the writers' output. The database has
//! every mark that `document.saved` named and perhaps some later ones, each once and in order; it has nothing
//! of the reviewers. After the restart it also has every mark that a client retained, and the database, the
//! servers and a new client read the same text.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::error::StorageError;
use galley::yjs::log::UpdateLog;
use galley::yjs::text::Text;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::support::fixtures::{found, synced};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server;
use crate::support::rest_client::Desk;
use crate::support::rng::Random;
use crate::support::typing_clients::{REFUSED, Said, Typists};

/// Kills in all, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;
/// Documents with clients at the same time.
const DESKS: usize = 3;
/// The longest time of typing before a kill.
const TYPING_MS: usize = 300;
/// The longest time between two kills of one round.
const BETWEEN_MS: usize = 20;

/// The process that the test kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// A Galley server.
    Server(usize),
    /// The PostgreSQL backend that served Galley last.
    BackEnd,
    /// The parent process of all PostgreSQL backends.
    Postmaster,
    /// All clients.
    Clients,
    /// No process yet: the clients leave first, and the servers merge rows.
    Leaving,
}
use Victim::{BackEnd, Clients, Leaving, Postmaster, Server as OfServer};

/// Servers, their database, and its expected contents.
struct World {
    servers: Vec<Server>,
    postgres: Option<postgres_server::Server>,
    _redis: Option<redis_server::Server>,
    database: String,
    desks: Vec<Desk>,
    /// For each document, the text that the database is known to have.
    there: Vec<String>,
    marks: usize,
    denied: usize,
}

/// Prints how to replay the run if the test panics.
struct Witness {
    name: &'static str,
    seed: u64,
    round: usize,
    victims: Vec<Victim>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed, round, victims } = self;
            say(&format!("kills {name}: GALLEY_SEED={seed}, round {round}, of {victims:?}"));
        }
    }
}

/// Writes past the test harness, which captures the output of a passing test.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("the standard error is open");
}

/// The number of kills of a test, and its random moments: from `GALLEY_KILLS` and `GALLEY_SEED` if they
/// are set.
pub(crate) fn planned(name: &str, kills: usize) -> (usize, Random) {
    let given = |name: &str| std::env::var(name).ok().map(|value| value.parse().expect("a number"));
    let seed = given("GALLEY_SEED").unwrap_or_else(|| getrandom::u64().expect("random bits"));
    let kills = given("GALLEY_KILLS").map_or(kills, |kills| kills.try_into().expect("a number"));
    say(&format!("{name}: {kills} kills from GALLEY_SEED={seed} on"));
    (kills, Random::new(seed))
}

/// Goal: all text that a server with SQLite named in `document.saved` survives every kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_saved_text_survives_random_kills_on_sqlite() {
    let server = Server::start().await;
    let database = format!("sqlite://{}/data/galley.db", server.folder().display());
    let world = World::new(vec![server], None, None, database).await;
    let plans = [
        vec![OfServer(0)],
        vec![Clients],
        vec![OfServer(0), Clients],
        vec![Clients, OfServer(0)],
        vec![Leaving, OfServer(0)],
    ];
    world.survives("sqlite", &plans).await;
}

/// Goal: the same with two servers and PostgreSQL, of which the test kills a backend or the whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_saved_text_survives_random_kills_on_postgresql() {
    let (postgres, redis) = (postgres_server::Server::start(), redis_server::Server::start().await);
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let one = Server::in_folder(Arc::clone(&folder), &settings).await;
    let two = Server::in_folder(folder, &settings).await;
    let world = World::new(vec![one, two], Some(postgres), Some(redis), database).await;
    let plans = [
        vec![OfServer(0)],
        vec![BackEnd],
        vec![Postmaster],
        vec![Clients],
        vec![OfServer(0), BackEnd],
        vec![BackEnd, Clients],
        vec![OfServer(1), Clients],
        vec![Postmaster, OfServer(0), OfServer(1)],
        vec![Leaving, BackEnd, OfServer(1)],
        vec![OfServer(0), Postmaster, Clients, OfServer(1)],
    ];
    world.survives("postgresql", &plans).await;
}

impl World {
    async fn new(
        servers: Vec<Server>,
        postgres: Option<postgres_server::Server>,
        redis: Option<redis_server::Server>,
        database: String,
    ) -> Self {
        let mut desks = Vec::new();
        for _ in 0..DESKS {
            desks.push(servers[0].desk("").await);
        }
        let there = vec![String::new(); DESKS];
        Self { servers, postgres, _redis: redis, database, desks, there, marks: 0, denied: 0 }
    }

    /// Half of all kills, cycling through these plans.
    async fn survives(mut self, name: &'static str, plans: &[Vec<Victim>]) {
        let seed = match std::env::var("GALLEY_SEED") {
            Ok(given) => given.parse().expect("a seed"),
            Err(_) => getrandom::u64().expect("a random seed"),
        };
        let kills = std::env::var("GALLEY_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
        let rounds = kills.div_ceil(2);
        say(&format!("kills {name}: {rounds} from GALLEY_SEED={seed} on"));
        let mut random = Random::new(seed);
        let first = random.below(plans.len());
        let began = Instant::now();
        for round in 0..rounds {
            let victims = plans[(first + round) % plans.len()].clone();
            let _witness = Witness { name, seed, round, victims: victims.clone() };
            self.round(&mut random, round, &victims).await;
        }
        let (marks, denied, took) = (self.marks, self.denied, began.elapsed().as_secs());
        say(&format!("kills {name}: {rounds} in {took} s, {marks} marks saved, {denied} denied"));
        assert!(0 < denied, "no reviewer's edit was refused");
    }

    async fn round(&mut self, random: &mut Random, round: usize, victims: &[Victim]) {
        let seed = random.below(usize::MAX) as u64;
        let mut typists = Typists::start(&round.to_string(), seed, &self.urls(), &self.desks);
        typists.are_at_work().await;
        sleep(Duration::from_millis(random.below(TYPING_MS) as u64)).await;
        let mut last_words = None;
        for victim in victims {
            match victim {
                OfServer(number) => self.servers[*number].kill().await,
                BackEnd => assert!(self.postgres().kill_back_end().await, "no backend was found"),
                Postmaster => self.postgres().kill(),
                Clients => last_words = Some(typists.kill().await),
                Leaving => last_words = Some(typists.finish().await),
            }
            sleep(Duration::from_millis(random.below(BETWEEN_MS) as u64)).await;
        }
        if victims.contains(&Postmaster) {
            self.postgres().start_again().await;
        }
        // The marks saved before the test read the database, out of all that were typed.
        let saved = typists.said().saved;
        let texts = self.database().await;
        let said = Said { saved, ..typists.said() };
        for (number, text) in texts.iter().enumerate() {
            self.holds(&said, number, text);
        }
        for victim in victims {
            if let OfServer(number) = victim {
                self.servers[*number].start_again().await;
            }
        }
        let said = match last_words {
            Some(said) => said,
            None => {
                typists.find(&self.urls()).await;
                typists.finish().await
            }
        };
        drop(typists);
        for number in 0..DESKS {
            let text = self.at_rest(number, random).await;
            self.marks += self.holds(&said, number, &text);
            self.there[number] = text;
        }
        self.denied += said.denied;
    }

    fn urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.url.clone()).collect()
    }

    fn postgres(&self) -> &postgres_server::Server {
        self.postgres.as_ref().expect("a plan for PostgreSQL")
    }

    /// The contents of the database, read without a Galley server.
    async fn database(&self) -> Vec<String> {
        // A killed backend makes PostgreSQL end all others and recover.
        found(async || self.texts_in_database().await).await
    }

    async fn texts_in_database(&self) -> Result<Vec<String>, StorageError> {
        let storage = Storage::open(&self.database).await?;
        let mut texts = Vec::new();
        for desk in &self.desks {
            let document: DocumentId = desk.document.parse().expect("an id");
            let log = storage.log(document).await?.expect("the document exists");
            let mut log = UpdateLog::open(log.parts).expect("it fits together");
            texts.push(Text::build(&log.merged()).expect("a text").content());
        }
        storage.close().await;
        Ok(texts)
    }

    /// Holds that a text is its former text and a prefix of the marks typed since: at least every saved mark,
    /// and nothing else. Returns the number of marks.
    fn holds(&self, said: &Said, number: usize, text: &str) -> usize {
        assert!(!text.contains(REFUSED), "a rejected edit is in the text");
        let (typed, saved) = (&said.typed[number], said.saved[number]);
        let there = &self.there[number];
        let new = text.strip_prefix(there.as_str());
        let new = new.unwrap_or_else(|| panic!("{there} is missing in {text}"));
        let ends = (0..=typed.len()).find(|count| typed[..*count].concat() == new);
        let count = ends.unwrap_or_else(|| panic!("{new} is not what was typed: {typed:?}"));
        assert!(saved <= count, "{saved} were saved, and {count} are there: {new}");
        count
    }

    /// Waits until a new client, both servers and the database read the same text.
    async fn at_rest(&self, number: usize, random: &mut Random) -> String {
        let desk = &self.desks[number];
        let server = &self.servers[random.below(self.servers.len())];
        let reader = synced(server, desk, "reviewer", "events=1&takeover=1").await;
        let stored = found(async || {
            let stored = self.database().await.swap_remove(number);
            let mut texts = vec![reader.text()];
            for server in &self.servers {
                texts.push(server.text(&desk.writer, &desk.document).await);
            }
            let is_one = texts.iter().all(|text| *text == stored);
            if is_one { Ok(stored) } else { Err((stored, texts)) }
        });
        let stored = stored.await;
        reader.leave().await;
        stored
    }
}
