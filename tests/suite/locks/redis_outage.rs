//! Redis does not reply, or is unfit: typed errors in bounded time, and no key stays behind.

use std::time::Duration;

use futures_util::future::join_all;
use galley::locks::{HeldLock, LockName, Locks, LocksError, Released, Takeover};
use redis::Value;
use tokio::time::{Instant, timeout};

use crate::support::fixtures::{
    LONG, claim, fit, granted, kim, lee, refused, seat, seated, until, until_free,
};
use crate::support::redis_server::Server;
use crate::support::stopwatch::Stopwatch;

/// Longer than any single reply may take, shorter than two.
const BOUND: Duration = Duration::from_millis(2_500);
/// How soon after Redis resumes the client has retried its pending releases.
const SOON: Duration = Duration::from_secs(2);

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    server.forget_calls().await;
    (server, locks)
}

/// The value that a release of the seat named last.
async fn last_released(server: &Server, name: &LockName) -> String {
    let grant = name.key().replace("share-link:lock:", "share-link:grant:");
    let released: Option<String> = server.run(&format!("HGET {grant} released")).await;
    released.unwrap_or_default()
}

#[track_caller]
fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, LocksError>) {
    assert!(matches!(answer, Err(LocksError::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_frozen_redis_is_unavailable_in_bounded_time_and_a_zombie_claim_is_released() {
    let (server, locks) = start().await;
    let other = Locks::connect(&server.url()).await.expect("a good address");
    let (name, held_before) = (seat(), seated(&locks, &seat(), &kim(), LONG).await);
    fit(&other).await;
    let zombie = claim(&name, &kim());
    server.freeze().await;

    let began = Stopwatch::start();
    is_unavailable(&locks.claim(&zombie).await);
    assert!(began.elapsed() < BOUND);
    let began = Stopwatch::start();
    is_unavailable(&locks.renew(std::slice::from_ref(&held_before), LONG).await);
    assert!(began.elapsed() < BOUND);
    // The claim's value is spent while its release may still be in flight.
    is_unavailable(&locks.claim(&zombie).await);

    server.thaw().await;
    let thawed = Stopwatch::start();
    // Redis executes the claim, which precedes this one on its connection, and then the release.
    until("it is released", async || last_released(&server, &name).await == zombie.value).await;
    assert_eq!(other.holder(&name).await, Ok(None));
    assert!(thawed.elapsed() < SOON, "{:?}", thawed.elapsed());
    granted(&other, &claim(&name, &lee())).await;
    // Earlier sessions still hold their seats.
    assert_eq!(refused(&other, &claim(&held_before.name, &lee())).await.value, held_before.value);
}

#[tokio::test]
async fn a_zombie_claim_is_released_even_after_its_connection_was_dropped() {
    let (server, locks) = start().await;
    let name = seat();
    server.freeze().await;
    let began = Instant::now();
    // Until the client gives up the connection after its silence limit.
    while began.elapsed() < Duration::from_secs(4) {
        is_unavailable(&locks.claim(&claim(&name, &kim())).await);
    }
    server.thaw().await;
    let thawed = Stopwatch::start();
    let mut free_for = 0;
    until("the seat is free and stays so", async || {
        match locks.holder(&name).await {
            Ok(None) => free_for += 1,
            Ok(Some(_)) | Err(_) => free_for = 0,
        }
        free_for == 20
    })
    .await;
    assert!(thawed.elapsed() < SOON, "{:?}", thawed.elapsed());
    granted(&locks, &claim(&name, &lee())).await;
}

#[tokio::test]
async fn a_claim_dropped_in_flight_is_released() {
    let (server, locks) = start().await;
    let name = seat();
    let dropped = claim(&name, &kim());
    server.freeze().await;
    assert!(timeout(Duration::from_millis(50), locks.claim(&dropped)).await.is_err());
    server.thaw().await;
    let is_released = async || last_released(&server, &name).await == dropped.value;
    until("it is executed and released", is_released).await;
    assert_eq!(locks.holder(&name).await, Ok(None));
}

/// Releases without a reply: Redis rejects writes, and then drops the pending ones.
async fn release_in_vain(server: &Server, locks: &Locks, held: &HeldLock) {
    let _: Value = server.run("CLIENT PAUSE 60000 WRITE").await;
    is_unavailable(&locks.release(&held.name, &held.value).await);
    let _: u64 = server.run("CLIENT KILL TYPE normal SKIPME yes").await;
    let _: Value = server.run("CLIENT UNPAUSE").await;
}

#[tokio::test]
async fn a_pending_release_is_retried_after_an_outage() {
    let (server, locks) = start().await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    release_in_vain(&server, &locks, &one).await;
    let healed = Stopwatch::start();
    until_free(&locks, &one.name).await;
    assert!(healed.elapsed() < SOON, "{:?}", healed.elapsed());
}

#[tokio::test]
async fn pending_releases_are_retried_before_the_locks_close() {
    let (server, locks) = start().await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    release_in_vain(&server, &locks, &one).await;
    locks.close().await;
    let left: u64 = server.run(&format!("EXISTS {}", one.name)).await;
    assert_eq!(left, 0);
    is_unavailable(&locks.holder(&one.name).await);
}

#[tokio::test]
async fn an_unreachable_redis_is_unavailable_in_bounded_time() {
    let (mut server, locks) = start().await;
    server.stop().await;
    let began = Stopwatch::start();
    is_unavailable(&locks.claim(&claim(&seat(), &kim())).await);
    is_unavailable(&locks.check().await);
    assert!(began.elapsed() < 2 * BOUND);
}

#[tokio::test]
async fn a_redis_that_may_evict_is_misconfigured() {
    let (server, locks) = start().await;
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let _: Value = server.run(&format!("CONFIG SET maxmemory-policy {policy}")).await;
        let Err(LocksError::Misconfigured(why)) = locks.check().await else { panic!("{policy}") };
        assert!(why.contains(policy) && why.contains("noeviction") && why.lines().count() == 1);
    }
    let _: Value = server.run("CONFIG SET maxmemory-policy noeviction").await;
    assert_eq!(locks.check().await, Ok(()));
}

#[tokio::test]
async fn a_replica_is_misconfigured_and_grants_nothing() {
    let (server, locks) = start().await;
    let primary = Server::start().await;
    let _: Value = server.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port())).await;
    for answer in [locks.check().await, locks.claim(&claim(&seat(), &kim())).await.map(drop)] {
        let Err(LocksError::Misconfigured(why)) = answer else { panic!("{answer:?}") };
        assert!(why.contains("replica") && why.contains("primary") && why.lines().count() == 1);
    }
    let _: Value = server.run("REPLICAOF NO ONE").await;
    until("it is fit again", async || locks.check().await.is_ok()).await;
    granted(&locks, &claim(&seat(), &kim())).await;
}

#[tokio::test]
async fn a_wrong_password_and_a_missing_permission_are_misconfigured() {
    let server = Server::start().await;
    let _: Value = server.run("ACL SETUSER galley on >right ~lock:* &* +@all").await;
    let at = |user: &str| format!("redis://{user}@127.0.0.1:{}", server.port());
    let wrong = Locks::connect(&at("galley:wrong")).await.expect("a good address");
    let right = Locks::connect(&at("galley:right")).await.expect("a good address");
    let options = claim(&seat(), &kim());
    for answer in [wrong.check().await, right.claim(&options).await.map(drop)] {
        let Err(LocksError::Misconfigured(why)) = answer else { panic!("{answer:?}") };
        assert_eq!(why.lines().count(), 1);
        assert!(!why.contains("wrong"), "{why}");
    }
    // With the keys of the contract it works.
    let _: Value = server.run("ACL SETUSER galley ~share-link:*").await;
    until("it is found fit", async || right.check().await.is_ok()).await;
    granted(&right, &options).await;
}

#[tokio::test]
async fn a_client_without_the_right_to_client_kill_still_reconnects() {
    let server = Server::start().await;
    let may = "~share-link:* ~lock:* &* +@all -@dangerous +info";
    let _: Value = server.run(&format!("ACL SETUSER galley on >right {may}")).await;
    let url = format!("redis://galley:right@127.0.0.1:{}", server.port());
    let locks = Locks::connect(&url).await.expect("a good address");
    for right in ["", " +client|kill"] {
        let _: Value = server.run(&format!("ACL SETUSER galley{right}")).await;
        fit(&locks).await;
        let one = seated(&locks, &seat(), &kim(), LONG).await;
        let _: u64 = server.run("CLIENT KILL TYPE normal SKIPME yes").await;
        until("claims work", async || locks.claim(&claim(&seat(), &kim())).await.is_ok()).await;
        assert_eq!(locks.release(&one.name, &one.value).await, Ok(Released::Freed));
    }
}

#[tokio::test]
async fn a_full_redis_rejects_claims_and_still_renews_and_releases() {
    let (server, locks) = start().await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    let _: Value = server.run("CONFIG SET maxmemory 1").await;
    is_unavailable(&locks.claim(&claim(&seat(), &kim())).await);
    let round = locks.renew(std::slice::from_ref(&one), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [galley::locks::Verdict::Renewed]);
    assert_eq!(locks.release(&one.name, &one.value).await, Ok(Released::Freed));
}

#[tokio::test]
async fn a_key_set_by_hand_has_an_unknown_holder() {
    let (server, locks) = start().await;
    let name = seat();
    let _: Value = server.run(&format!("SET {name} intruder")).await;
    let mut options = claim(&name, &kim());
    options.over = Takeover::SameOwner;
    let holder = refused(&locks, &options).await;
    assert_eq!((holder.value.as_str(), holder.owner.name.as_str()), ("intruder", ""));
    assert_ne!(holder.owner.id, options.owner.id);
    // The administrator's release.
    assert_eq!(locks.release(&name, "intruder").await, Ok(Released::Freed));
    granted(&locks, &options).await;
}

#[tokio::test]
async fn the_preflight_finds_a_missing_permission_in_advance() {
    let server = Server::start().await;
    let _: Value = server.run("ACL SETUSER galley on >right ~share-link:* ~lock:* &* +@all").await;
    let url = format!("redis://galley:right@127.0.0.1:{}", server.port());
    let locks = Locks::connect(&url).await.expect("a good address");
    assert_eq!(locks.check().await, Ok(()));
    for (taken, given) in [
        ("-publish", "+publish"),
        ("-zrangebyscore", "+zrangebyscore"),
        ("-evalsha", "+evalsha"),
        ("-script|load", "+script|load"),
        ("resetkeys", "~share-link:* ~lock:*"),
        ("resetchannels", "&*"),
    ] {
        let _: Value = server.run(&format!("ACL SETUSER galley {taken}")).await;
        until("the connection is back", async || {
            !matches!(locks.check().await, Err(LocksError::Unavailable(_)))
        })
        .await;
        let checked = locks.check().await;
        let Err(LocksError::Misconfigured(why)) = checked else { panic!("{taken}: {checked:?}") };
        assert!(why.lines().count() == 1 && why.contains("allow the user"), "{why}");
        let _: Value = server.run(&format!("ACL SETUSER galley {given}")).await;
        until("it is fit again", async || locks.check().await.is_ok()).await;
    }
    let left: Vec<String> = server.run("KEYS *").await;
    assert_eq!(left, Vec::<String>::new());
}

/// A storm of claims meets a hung Redis. When Redis resumes it executes the sent claims, and each
/// costs a release. The client does not send a claim after its time-out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_claims_that_timed_out_behind_a_hung_redis_are_not_sent() {
    const STORM: usize = 2_000;
    // Those in flight, and two after the silence.
    const SENT: u64 = 130;
    let (server, locks) = start().await;
    let before: u64 = server.run("DBSIZE").await;
    server.freeze().await;
    let storm: Vec<_> = (0..STORM).map(|_| claim(&seat(), &kim())).collect();
    let answers = join_all(storm.iter().map(|claim| locks.claim(claim))).await;
    answers.iter().for_each(is_unavailable);
    server.thaw().await;
    // Retries each pending release; an executed one deletes a key.
    locks.close().await;
    let after: u64 = server.run("DBSIZE").await;
    assert!(after - before <= SENT, "{} claims were sent", after - before);
}
