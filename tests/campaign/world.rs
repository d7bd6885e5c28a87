//! The system under test: three servers of the debug build, each with its own wire to Redis and to
//! PostgreSQL, and the faults that the acts inject into them.

use std::sync::Arc;

use tempfile::TempDir;
use tokio::time::{Duration, Instant, sleep};

use crate::database::Database;
use crate::history::{Recorder, What};
use crate::support::galley_process::Server;
use crate::support::rng::Random;
use crate::support::shifted_redis::Redis;
use crate::support::wire::{Mode, Target, Wire};

pub(crate) const SERVERS: usize = 3;
/// G15: a server delivers the effect of a commit within two seconds or one tick, which is one
/// second here (`SEATS__RENEW_EVERY`). The sum leaves a busy machine the shorter of the two.
const PROMISE: Duration = Duration::from_secs(2 + 1);
/// The promise holds between connected parts. After a fault a server first reconnects to Redis and
/// PostgreSQL, with back-offs of up to two seconds, then receives the gap and reads the missed
/// updates. A killed server also loads its rooms.
const AFTER_FAULT: Duration = Duration::from_secs(8);
/// Short terms, so that many leases and timeouts end in one campaign. The client timeout is long
/// enough for a busy machine.
const TERMS: [(&str, &str); 6] = [
    ("SEATS__LEASE", "3s"),
    ("SEATS__RENEW_EVERY", "1s"),
    ("SEATS__CLIENT_TIMEOUT", "6s"),
    ("SEATS__RESUME_GRACE", "2s"),
    ("SERVER__DRAIN", "0s"),
    ("LOG__LEVEL", "info"),
];

/// One injected fault, and how to end it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: &'static str,
    /// The server of the fault, if it has one.
    server: usize,
}

pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    pub(crate) database: Database,
    redis: Redis,
    to_redis: Vec<Wire>,
    to_postgres: Vec<Wire>,
    recorder: Recorder,
    /// The end of the last fault.
    healed_at: Option<Instant>,
}

impl World {
    pub(crate) async fn start(recorder: Recorder, persists: bool) -> Self {
        let (redis, database) = (Redis::start(persists).await, Database::start().await);
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let (mut servers, mut to_redis, mut to_postgres) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SERVERS {
            let redis_wire = Wire::to(Target::Tcp(redis.port)).await;
            let postgres_wire = Wire::to(Target::Unix(database.socket())).await;
            let locks = format!("redis://127.0.0.1:{}", redis_wire.port);
            let url = format!(
                "postgres://galley@127.0.0.1:{}/{}?sslmode=disable",
                postgres_wire.port, database.name
            );
            let mut settings =
                vec![("LOCKS__URL", locks.as_str()), ("DATABASE__URL", url.as_str())];
            settings.extend(TERMS);
            servers.push(Server::in_folder(Arc::clone(&folder), &settings).await);
            to_redis.push(redis_wire);
            to_postgres.push(postgres_wire);
        }
        let healed_at = None;
        Self { servers, database, redis, to_redis, to_postgres, recorder, healed_at }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.url.clone()).collect()
    }

    /// Injects a fault of that kind.
    pub(crate) async fn inject(&mut self, kind: &'static str, random: &mut Random) -> Fault {
        let server = random.below(SERVERS);
        match kind {
            "redis-old" => return self.back_to_a_snapshot(random).await,
            "redis-clock" => {
                let by = i64::try_from(random.below(36_000)).expect("small") - 18_000;
                self.redis.shift_clock(by);
            }
            _ => {}
        }
        self.inject_at(kind, server).await
    }

    /// Injects a fault of that kind, at that server if it is one of a server.
    pub(crate) async fn inject_at(&mut self, kind: &'static str, server: usize) -> Fault {
        let fault = Fault { kind, server };
        let (kind, target) = (kind.to_owned(), fault.target());
        self.recorder.note(What::Fault { kind, target });
        let redis = &mut self.redis;
        match fault.kind {
            "server-frozen" => self.servers[server].freeze().await,
            "server-killed" => self.servers[server].kill().await,
            "server-restarted" => drop(self.servers[server].stop().await),
            "redis-frozen" => redis.signal("-STOP").await,
            "redis-restarted" => {
                redis.kill().await;
                redis.forget();
            }
            "redis-old" => redis.kill().await,
            // Shifted already.
            "redis-clock" => {}
            "redis-cut" => self.to_redis[server].set(Mode::Cut),
            "redis-swallowed" => self.to_redis[server].set(Mode::Swallow),
            "redis-flushed" => drop(redis.run::<()>("FLUSHALL").await),
            "scripts-flushed" => drop(redis.run::<()>("SCRIPT FLUSH").await),
            "postgres-cut" => self.to_postgres[server].set(Mode::Cut),
            "postgres-swallowed" => self.to_postgres[server].set(Mode::Swallow),
            "postgres-restarted" => self.database.postgres.kill(),
            "backends-terminated" => self.database.terminate_back_ends().await,
            other => panic!("no fault is called {other}"),
        }
        fault
    }

    /// Ends a fault.
    pub(crate) async fn heal(&mut self, fault: Fault) {
        let Fault { kind, server } = fault;
        match kind {
            "server-frozen" => self.servers[server].thaw().await,
            "server-killed" | "server-restarted" => self.servers[server].start_again().await,
            "redis-frozen" => self.redis.signal("-CONT").await,
            "redis-restarted" | "redis-old" => self.redis.start_again().await,
            "redis-cut" | "redis-swallowed" => self.to_redis[server].set(Mode::Pass),
            "postgres-cut" | "postgres-swallowed" => self.to_postgres[server].set(Mode::Pass),
            "postgres-restarted" => self.database.postgres.start_again().await,
            // Over at once.
            _ => {}
        }
        let (kind, target) = (kind.to_owned(), fault.target());
        self.recorder.note(What::Healed { kind, target });
        self.healed_at = Some(Instant::now());
    }

    /// When the effects of a commit at this moment are due, without an active fault.
    pub(crate) fn due(&self) -> Instant {
        let promised = Instant::now() + PROMISE;
        self.healed_at.map_or(promised, |healed_at| promised.max(healed_at + AFTER_FAULT))
    }

    /// Saves a snapshot, lets the state move on, and kills Redis. Its next start loads the snapshot,
    /// or the whole append-only file where it persists.
    async fn back_to_a_snapshot(&mut self, random: &mut Random) -> Fault {
        self.save_redis().await;
        sleep(Duration::from_millis(500 + random.below(2_500) as u64)).await;
        self.inject_at("redis-old", 0).await
    }

    /// Saves the snapshot that the next `redis-old` restores.
    pub(crate) async fn save_redis(&self) {
        self.redis.run::<()>("SAVE").await.expect("a snapshot");
    }

    /// Before the final checks: the clock of Redis is right again.
    pub(crate) fn reset_redis_clock(&self) {
        self.redis.shift_clock(0);
    }
}

impl Fault {
    fn target(self) -> String {
        match self.kind {
            "server-frozen" | "server-killed" | "server-restarted" | "redis-cut"
            | "redis-swallowed" | "postgres-cut" | "postgres-swallowed" => {
                format!("server {}", self.server)
            }
            _ => "all".to_owned(),
        }
    }
}
