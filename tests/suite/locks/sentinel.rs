//! Fail-over under Sentinel: the primary dies, and its replica replaces it.

use std::process::Stdio;
use std::time::Duration;

use galley::domain::ids::{DocumentId, NodeId};
use galley::locks::{Locks, LocksError, Released, Verdict};
use galley::pubsub::{Message, Pubsub, Signal, Topic};
use redis::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::locks::cluster::{seats, verdicts};
use crate::locks::pubsub::SECRET;
use crate::locks::wait_queue::{await_grant, enter};
use crate::support::fixtures::{LONG, kim};
use crate::support::fixtures::{claim, granted, lee, seat, seated, until};
use crate::support::redis_server::{Server, TEST_TIMEOUT, VALKEY, free_port};
use crate::support::stopwatch::Stopwatch;

/// How long until the replica is primary and the client uses it.
const FAILOVER_MAX: Duration = Duration::from_secs(10);

/// A primary, its replica, and a Sentinel with a password.
struct Watched {
    primary: Server,
    replica: Server,
    port: u16,
    // Killed on drop, before its folder is removed.
    _sentinel: Child,
    _folder: TempDir,
}

impl Watched {
    async fn start() -> Self {
        Self::start_as(&[]).await
    }

    /// Redis, or [`VALKEY`].
    async fn start_as(program: &[&str]) -> Self {
        let primary = [program, &["--repl-diskless-sync-delay", "0"]].concat();
        let primary = Server::start_with(&primary).await;
        let of = format!("127.0.0.1 {}", primary.port());
        let replica = Server::start_with(&[program, &["--replicaof", &of]].concat()).await;
        until("the replica follows", async || {
            let info: String = replica.run("INFO replication").await;
            info.contains("master_link_status:up")
        })
        .await;
        let folder = TempDir::new().expect("a folder");
        let (port, path) = (free_port(), folder.path().join("sentinel.conf"));
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nrequirepass secret\nsentinel monitor main {of} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
        );
        std::fs::write(&path, settings).expect("a file");
        let sentinel = Command::new(program.first().unwrap_or(&"redis-server"))
            .arg(&path)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("redis-server is installed");
        let watched = Self { primary, replica, port, _sentinel: sentinel, _folder: folder };
        until("the Sentinel knows the replica", async || {
            let reply = watched.query("SENTINEL REPLICAS main").await;
            reply.is_some_and(|reply| {
                format!("{reply:?}").contains(&watched.replica.port().to_string())
            })
        })
        .await;
        watched
    }

    fn url(&self) -> String {
        // The first Sentinel does not exist.
        format!("redis+sentinel://:secret@127.0.0.1:{},127.0.0.1:{}/main", free_port(), self.port)
    }

    async fn query(&self, command: &str) -> Option<Value> {
        let client = redis::Client::open(format!("redis://:secret@127.0.0.1:{}", self.port));
        let mut connection = client.ok()?.get_multiplexed_async_connection().await.ok()?;
        let mut words = command.split(' ');
        let mut request = redis::cmd(words.next()?);
        for word in words {
            request.arg(word);
        }
        request.query_async(&mut connection).await.ok()
    }
}

#[tokio::test]
async fn g6_seats_survive_a_sentinel_failover_and_a_late_old_primary() {
    for (program, comes_back) in [(&[][..], false), (&[], true), (&[VALKEY], false)] {
        let mut redis = Watched::start_as(program).await;
        let locks = Locks::connect(&redis.url()).await.expect("a good address");
        assert_eq!(locks.check().await, Ok(()));
        let servers = [connect(&redis).await, connect(&redis).await];
        let topic = Topic::Room(DocumentId::generate());
        let mut heard = servers[1].subscribe(topic);
        assert_eq!(timeout(TEST_TIMEOUT, heard.next()).await, Ok(Signal::Gap));
        let all = seats(&locks, 20).await;
        let (waiting, _at) = enter(&locks, &claim(&all[0].name, &lee())).await;
        until("the replica has all", async || redis.replica.run::<u64>("DBSIZE").await >= 43).await;

        if comes_back {
            redis.primary.freeze().await;
        } else {
            redis.primary.stop().await;
        }
        let died = Stopwatch::start();
        until("the replica is the primary", async || {
            // Sentinel ends all connections of the promoted replica, this one too.
            let info = redis.replica.try_run::<String>("INFO replication").await;
            info.is_ok_and(|info| info.contains("role:master"))
        })
        .await;
        if comes_back {
            // The old primary does not yet know of its demotion.
            redis.primary.thaw().await;
        }
        let new = seat();
        until("the replica is asked", async || {
            let claim = claim(&new, &lee());
            let _claimed = locks.claim(&claim).await;
            redis.replica.try_run::<u64>(&format!("EXISTS {new}")).await == Ok(1)
        })
        .await;
        let last = verdicts(&locks, &all).await;
        assert!(died.elapsed() < FAILOVER_MAX, "{:?}", died.elapsed());
        assert!(last.iter().all(|verdict| *verdict != Verdict::Lost), "{last:?}");
        assert_eq!(locks.release(&all[0].name, &all[0].value).await, Ok(Released::Freed));
        assert!(all[0].fence < await_grant(waiting).await.fence);
        assert!(seated(&locks, &seat(), &kim(), LONG).await.fence > all[19].fence);
        until("delivery resumes", async || {
            let _published = servers[0].publish(topic, &Message::Hello).await;
            let next = timeout(Duration::from_millis(50), heard.next()).await;
            matches!(next, Ok(Signal::Message { message: Message::Hello, .. }))
        })
        .await;
    }
}

async fn connect(redis: &Watched) -> Pubsub {
    Pubsub::connect(&redis.url(), NodeId::generate(), SECRET).await.expect("a good address")
}

#[tokio::test]
async fn an_unknown_sentinel_name_and_a_wrong_password_are_reported() {
    let redis = Watched::start().await;
    let wrong = [
        (redis.url().replace("/main", "/mian"), "no primary of that name"),
        (redis.url().replace("secret", "wrong"), "password"),
    ];
    for (url, said) in wrong {
        let locks = Locks::connect(&url).await.expect("a good address");
        let Err(LocksError::Misconfigured(why)) = locks.check().await else { panic!("passed") };
        assert!(why.contains(said) && !why.contains("wrong"), "{why}");
    }
    let locks = Locks::connect(&redis.url()).await.expect("a good address");
    granted(&locks, &claim(&seat(), &kim())).await;
}
