//! Preflight and health checks of Redis: an unfit Redis grants no lock. The client detects a silent
//! subscription, warns, and reopens it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use galley::locks::{LockError, Locks, LocksError, Released, Verdict};
use redis::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::locks::wait_queue::{await_grant, enter};
use crate::support::fixtures::{
    LONG, apart, claim, fit, granted, granted_in_turn, kim, lee, seat, seated, until,
};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

/// Longer than a waiter's poll interval, with slack.
const BY_TIMER: Duration = Duration::from_secs(5);
/// After a good check, the next regular one is at least this far away.
const REGULAR_LOOK: Duration = Duration::from_secs(15);

async fn allow(server: &Server, rights: &str) {
    let _: Value = server.run(&format!("ACL SETUSER galley on >right {rights}")).await;
}

async fn as_galley(port: u16) -> Locks {
    let url = format!("redis://galley:right@127.0.0.1:{port}");
    Locks::connect(&url).await.expect("a good address")
}

#[tokio::test]
async fn an_unfit_redis_grants_nothing_and_still_renews() {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    let (waiting, _at) = enter(&locks, &claim(&one.name, &lee())).await;
    let _: Value = server.run("CONFIG SET maxmemory-policy allkeys-lru").await;
    let Err(LocksError::Misconfigured(said)) = locks.check().await else { panic!("it is fit") };
    let options = claim(&seat(), &kim());
    server.forget_calls().await;
    for _claim in 0..10 {
        let refused = locks.claim(&options).await;
        assert_eq!(refused, Err(LocksError::Misconfigured(said.clone())));
    }
    assert_eq!(server.calls("info").await, 0, "a claim uses the last check");
    let waited =
        timeout(TEST_TIMEOUT, granted_in_turn(waiting)).await.expect("it does not wait for ever");
    assert_eq!(waited, Err(LockError::Unavailable(LocksError::Misconfigured(said))));
    let round = locks.renew(std::slice::from_ref(&one), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Renewed]);
    assert_eq!(locks.release(&one.name, &one.value).await, Ok(Released::Freed));
    let _: Value = server.run("CONFIG SET maxmemory-policy noeviction").await;
    // The locks' own periodic check finds it; the test requests none.
    until("it is found fit again", async || locks.claim(&options).await.is_ok()).await;
}

/// Goal: a Redis that became unfit between two checks grants nothing from the next connection on.
/// The next regular check is far away, and the test requests none.
#[tokio::test]
async fn an_unfit_redis_is_found_at_the_start_and_after_each_new_connection() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]).await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    let claimed = async || locks.claim(&claim(&seat(), &kim())).await;
    let is_found = async |since: Instant| {
        let is_unfit = async || matches!(claimed().await, Err(LocksError::Misconfigured(_)));
        let found = until("it is found unfit", is_unfit).await;
        assert!(found - since < REGULAR_LOOK, "found by the timer: {:?}", found - since);
    };
    is_found(Instant::now()).await;
    let _: Value = server.run("CONFIG SET maxmemory-policy noeviction").await;
    until("it is found fit", async || claimed().await.is_ok()).await;
    let looked_at = Instant::now();
    let _: Value = server.run("CONFIG SET maxmemory-policy allkeys-lru").await;
    let _: Value = server.run("CLIENT KILL TYPE normal SKIPME yes").await;
    is_found(looked_at).await;
}

#[tokio::test]
async fn clock_skew_above_five_seconds_is_a_warning_that_names_ntp() {
    let server = Server::start().await;
    let proxy = Proxy::before(&server).await;
    let locks = proxy.locks().await;
    // The check credits the duration of the exchange to the clock.
    for (seconds, is_off) in [(4, false), (15, true), (0, false), (-15, true), (-4, false)] {
        proxy.clock_ahead.store(seconds, Ordering::Relaxed);
        assert_eq!(locks.check().await, Ok(()), "locks are as good");
        let warnings = locks.warnings();
        let named = warnings.iter().any(|it| it.contains("clock") && it.contains("NTP"));
        assert_eq!(named, is_off, "{seconds} s: {warnings:?}");
        let off_by = locks.clock_ahead() - TimeDelta::seconds(seconds);
        assert!(off_by.abs() < TimeDelta::seconds(3), "{seconds} s: {off_by}");
    }
}

#[tokio::test]
async fn without_the_right_to_channels_the_check_names_them() {
    let server = Server::start().await;
    allow(&server, "~share-link:* ~lock:* resetchannels +@all").await;
    let locks = as_galley(server.port()).await;
    let Err(LocksError::Misconfigured(why)) = locks.check().await else { panic!("it is fit") };
    assert!(why.contains("&*") && why.lines().count() == 1, "{why}");
    assert!(matches!(
        locks.claim(&claim(&seat(), &kim())).await,
        Err(LocksError::Misconfigured(_))
    ));
}

#[tokio::test]
async fn without_the_right_to_subscribe_waiters_are_served_by_their_polls() {
    let server = Server::start().await;
    allow(&server, "~share-link:* ~lock:* &* +@all -subscribe").await;
    let locks = as_galley(server.port()).await;
    assert_eq!(locks.check().await, Ok(()), "locks are as good without");
    let warnings = locks.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("do not arrive") && warnings[0].contains("&*"), "{warnings:?}");
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    let (waiting, _at) = enter(&locks, &claim(&one.name, &lee())).await;
    locks.release(&one.name, &one.value).await.expect("a reply");
    let freed_at = Stopwatch::start();
    await_grant(waiting).await;
    assert!(freed_at.elapsed() < BY_TIMER, "{:?}", freed_at.elapsed());
    allow(&server, "+subscribe").await;
    until("it receives messages", async || {
        locks.check().await.is_ok() && locks.warnings().is_empty()
    })
    .await;
}

#[tokio::test]
async fn waiters_are_served_under_a_repeatedly_killed_subscription() {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    for _round in 0..5 {
        let one = seated(&locks, &seat(), &kim(), LONG).await;
        let (waiting, _at) = enter(&locks, &claim(&one.name, &lee())).await;
        let killed: u64 = server.run("CLIENT KILL TYPE pubsub").await;
        assert_eq!(killed, 1, "one subscription for any waiters");
        locks.release(&one.name, &one.value).await.expect("a reply");
        let freed_at = Stopwatch::start();
        await_grant(waiting).await;
        assert!(freed_at.elapsed() < BY_TIMER, "{:?}", freed_at.elapsed());
        until("it receives messages", async || {
            locks.check().await.is_ok() && locks.warnings().is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_silent_subscription_is_detected_and_reopened() {
    let server = Server::start().await;
    let proxy = Proxy::before(&server).await;
    let locks = proxy.locks().await;
    fit(&locks).await;
    assert_eq!(locks.warnings(), Vec::<&str>::new());
    let opened = proxy.subscriptions.load(Ordering::Relaxed);
    proxy.swallows.store(true, Ordering::Relaxed);
    assert_eq!(locks.check().await, Ok(()));
    assert_eq!(locks.warnings().len(), 1);
    granted(&locks, &claim(&seat(), &kim())).await;
    proxy.swallows.store(false, Ordering::Relaxed);
    // The client reopens it without a request.
    until("it receives messages again", async || locks.warnings().is_empty()).await;
    assert!(opened < proxy.subscriptions.load(Ordering::Relaxed), "on another connection");
}

/// Forwards all data and shifts the reported time; in silent mode it drops the data of connections
/// that subscribe.
#[derive(Clone)]
struct Proxy {
    port: u16,
    target: u16,
    swallows: Arc<AtomicBool>,
    subscriptions: Arc<AtomicUsize>,
    /// The shift in seconds.
    clock_ahead: Arc<AtomicI64>,
}

impl Proxy {
    async fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (swallows, subscriptions, clock_ahead) = Default::default();
        let target = server.port();
        let proxy = Self { port, target, swallows, subscriptions, clock_ahead };
        apart(proxy.clone().run(listener));
        proxy
    }

    /// Locks behind the proxy.
    async fn locks(&self) -> Locks {
        let url = format!("redis://127.0.0.1:{}", self.port);
        Locks::connect(&url).await.expect("a good address")
    }

    async fn run(self, listener: TcpListener) {
        while let Ok((client, _from)) = listener.accept().await {
            let redis = TcpStream::connect(("127.0.0.1", self.target)).await.expect("Redis");
            self.join(client, redis);
        }
    }

    fn join(&self, client: TcpStream, redis: TcpStream) {
        let (from_client, to_client) = client.into_split();
        let (from_redis, to_redis) = redis.into_split();
        let listens = Arc::new(AtomicBool::new(false));
        let (seen, subscriptions) = (Arc::clone(&listens), Arc::clone(&self.subscriptions));
        apart(pump(from_client, to_redis, move |bytes| {
            let subscribes = bytes.windows(9).any(|word| word == b"SUBSCRIBE");
            if subscribes && !seen.swap(true, Ordering::Relaxed) {
                subscriptions.fetch_add(1, Ordering::Relaxed);
            }
            true
        }));
        let (swallows, clock_ahead) = (Arc::clone(&self.swallows), Arc::clone(&self.clock_ahead));
        apart(pump(from_redis, to_client, move |bytes| {
            advance_clock(bytes, clock_ahead.load(Ordering::Relaxed));
            !(swallows.load(Ordering::Relaxed) && listens.load(Ordering::Relaxed))
        }));
    }
}

/// Shifts the time in the reply to the check: µs, sixteen digits.
fn advance_clock(answer: &mut [u8], seconds: i64) {
    const BEFORE: &[u8] = b"$16\r\n";
    let Some(at) = answer.windows(BEFORE.len()).position(|part| part == BEFORE) else { return };
    let time = &mut answer[at + BEFORE.len()..][..16];
    let micros: i64 = str::from_utf8(time).expect("digits").parse().expect("a number");
    time.copy_from_slice((micros + seconds * 1_000_000).to_string().as_bytes());
}

/// Forwards data that `passes` accepts.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    passes: impl Fn(&mut [u8]) -> bool + Send,
) {
    let mut buffer = vec![0; 64 * 1_024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let bytes = &mut buffer[..read];
        if passes(bytes) && to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
