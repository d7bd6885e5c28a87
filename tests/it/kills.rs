//! `kill -9` at random moments under load: of servers, of PostgreSQL and of the clients, alone and
//! together, `GALLEY_KILLS` times in all (20 if it is not set).
//!
//! In each round writers type marks as fast as they can, and reviewers try to. Then something is
//! killed. What stands in the database is compared with what the writers had said until then, before
//! any server is up again: all that was called saved, perhaps some that they typed after it, each
//! once and in order; of the reviewers' nothing. When all is up again, what outlived its server in
//! a client is there too, and the database, the servers and somebody new read the same.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::yjs::log::UpdateLog;
use galley::yjs::text::Text;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::desk::Desk;
use crate::peer::Peer;
use crate::postgres_server;
use crate::process::Server;
use crate::random::Random;
use crate::redis_server;
use crate::typist::{REFUSED, Said, Typists};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Kills in all, where `GALLEY_KILLS` does not say.
const KILLS: usize = 20;
/// Documents that are worked on at once.
const DESKS: usize = 3;
/// How long is typed before a kill, at most.
const TYPING_MS: usize = 300;
/// Between two kills of one round, at most.
const BETWEEN_MS: usize = 20;

/// What can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// One of Galley's servers.
    Server(usize),
    /// The process of PostgreSQL that has answered Galley last.
    BackEnd,
    /// The process of PostgreSQL that all others hang on.
    Postmaster,
    /// All clients.
    Clients,
    /// Nobody yet: the clients leave first, upon which servers merge.
    Leaving,
}
use Victim::{BackEnd, Clients, Leaving, Postmaster, Server as OfServer};

/// Servers, their database, and what stands in it.
struct World {
    servers: Vec<Server>,
    postgres: Option<postgres_server::Server>,
    _redis: Option<redis_server::Server>,
    database: String,
    desks: Vec<Desk>,
    /// Of each document, what is known to stand there.
    there: Vec<String>,
    marks: usize,
    denied: usize,
}

/// Says how to see it again, should the test panic.
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

/// Past the test harness, which keeps what a test prints if it passes.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("somebody listens");
}

/// Goal: what one server with SQLite called saved survives whatever is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_what_was_called_saved_survives_random_kills_on_sqlite() {
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

/// Goal: the same of two servers with PostgreSQL, which is killed too, whole or in part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_what_was_called_saved_survives_random_kills_on_postgresql() {
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

    /// Half of all kills, after each of these plans in turn.
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
        assert!(0 < denied, "nobody was ever refused");
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
                BackEnd => assert!(self.postgres().kill_back_end().await, "none was there"),
                Postmaster => self.postgres().kill(),
                Clients => last_words = Some(typists.kill().await),
                Leaving => last_words = Some(typists.finish().await),
            }
            sleep(Duration::from_millis(random.below(BETWEEN_MS) as u64)).await;
        }
        if victims.contains(&Postmaster) {
            self.postgres().start_again().await;
        }
        // What was saved by then, of what was typed until the database was read.
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

    /// What stands in the database, read without any server of Galley's.
    async fn database(&self) -> Vec<String> {
        let began = Instant::now();
        let storage = loop {
            match Storage::open(&self.database).await {
                Ok(storage) => break storage,
                // A back end was killed: all others are thrown out, and it recovers.
                Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
            }
            sleep(Duration::from_millis(20)).await;
        };
        let mut texts = Vec::new();
        for desk in &self.desks {
            let document: DocumentId = desk.document.parse().expect("an id");
            let log = storage.log(document).await.expect("readable").expect("it is there");
            let mut log = UpdateLog::open(log.parts).expect("it fits together");
            texts.push(Text::build(&log.merged()).expect("a text").content());
        }
        storage.close().await;
        texts
    }

    /// That a text is what was there, and the first of what was typed since: all that was saved at
    /// least, and nothing else. Says how many.
    fn holds(&self, said: &Said, number: usize, text: &str) -> usize {
        assert!(!text.contains(REFUSED), "what was refused is there");
        let (typed, saved) = (&said.typed[number], said.saved[number]);
        let there = &self.there[number];
        let new = text.strip_prefix(there.as_str());
        let new = new.unwrap_or_else(|| panic!("{there} is not there any more in {text}"));
        let ends = (0..=typed.len()).find(|count| typed[..*count].concat() == new);
        let count = ends.unwrap_or_else(|| panic!("{new} is not what was typed: {typed:?}"));
        assert!(saved <= count, "{saved} were saved, and {count} are there: {new}");
        count
    }

    /// Waits until a newcomer, both servers and the database read the same.
    async fn at_rest(&self, number: usize, random: &mut Random) -> String {
        let desk = &self.desks[number];
        let server = &self.servers[random.below(self.servers.len())];
        let reader = newcomer(server, desk).await;
        let began = Instant::now();
        loop {
            let stored = self.database().await.swap_remove(number);
            let mut texts = vec![reader.text()];
            for server in &self.servers {
                texts.push(server.text(&desk.writer, &desk.document).await);
            }
            if texts.iter().all(|text| *text == stored) {
                reader.leave().await;
                return stored;
            }
            assert!(began.elapsed() < PATIENCE, "{stored} is stored, {texts:?} are read");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Somebody who has nothing yet, in sync.
async fn newcomer(server: &Server, desk: &Desk) -> Peer {
    let began = Instant::now();
    loop {
        let peer = server.knock(desk, "reviewer", "events=1&takeover=1").await;
        if peer.becomes_synced().await {
            return peer;
        }
        assert!(began.elapsed() < PATIENCE, "nobody is let in");
        sleep(Duration::from_millis(20)).await;
    }
}
