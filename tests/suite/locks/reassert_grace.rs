//! The reassert grace: after an empty restart of Redis, previous holders come before new claimants.

use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    AcquireOptions, Claim, Claimed, Guard, HeldLock, Holder, Lease, LockName, Locks, Released,
};
use redis::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::locks::cluster::locks_at;
use crate::locks::cluster_failures::HALF_IS_ENOUGH;
use crate::locks::wait_queue::{SLACK, await_grant, enter};
use crate::support::fixtures::{
    LONG, apart, claim, fit, granted, granted_in_turn, kim, lee, seat, seated, until,
};
use crate::support::redis_cluster::{ClusterServer, FAILOVER_MAX};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

/// How long an empty Redis reserves locks for their previous holders.
const GRACE: Duration = Duration::from_secs(2);

async fn connect(server: &Server) -> Locks {
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    locks
}

async fn auto_renewed(locks: &Locks, name: &LockName) -> Guard {
    let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
    locks.try_lock(name, &options).await.expect("a free lock")
}

/// Claims repeatedly, from before Redis runs until Redis reports the holder.
fn newcomer(locks: &Locks, name: &LockName, floor: Fence) -> JoinHandle<Holder> {
    let (locks, name) = (locks.clone(), name.clone());
    apart(async move {
        loop {
            match locks.claim(&Claim { floor, ..claim(&name, &lee()) }).await {
                Ok(Claimed::Busy(holder)) if floor <= holder.fence => return holder,
                Ok(Claimed::Granted(grant)) => panic!("taken from its holder: {grant:?}"),
                Ok(Claimed::Busy(_)) | Err(_) => tokio::task::yield_now().await,
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_the_holder_reasserts_before_new_claims_after_an_empty_redis_restart() {
    let mut server = Server::start().await;
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let name = LockName::named("job:1");
    let guard = auto_renewed(&locks, &name).await;
    for round in 0..20 {
        server.stop().await;
        let newcomers =
            [newcomer(&other, &name, Fence::ZERO), newcomer(&locks, &name, Fence::ZERO)];
        server.start_again().await;
        for newcomer in newcomers {
            let holder = timeout(TEST_TIMEOUT, newcomer).await.expect("in time").expect("no panic");
            assert_eq!(holder.fence, guard.fence(), "round {round}");
        }
        assert!(guard.is_held());
    }
    assert_eq!(guard.release().await, Ok(Released::Freed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_after_a_simultaneous_restart_a_ratified_seat_waits_for_its_holder() {
    let mut server = Server::start().await;
    let locks = connect(&server).await;
    let guard = auto_renewed(&locks, &LockName::named("job:1")).await;
    server.stop().await;
    // Reconnects before Redis runs, as often as the holder does.
    let new = Locks::connect(&server.url()).await.expect("a good address");
    let newcomer = newcomer(&new, guard.name(), guard.fence());
    server.start_again().await;
    let holder = timeout(TEST_TIMEOUT, newcomer).await.expect("in time").expect("no panic");
    assert_eq!(holder.fence, guard.fence());
    // A lock without an earlier grant has no previous holder.
    let began = Stopwatch::start();
    granted(&new, &claim(&seat(), &lee())).await;
    assert!(began.elapsed() < GRACE / 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_lock_without_a_returning_holder_is_free_after_the_grace_and_not_before() {
    let mut server = Server::start().await;
    let locks = connect(&server).await;
    let began = Stopwatch::start();
    granted(&locks, &claim(&seat(), &lee())).await;
    assert!(began.elapsed() < GRACE / 2, "a first start waits for nobody: {:?}", began.elapsed());
    server.stop().await;
    server.start_again().await;
    let back = Stopwatch::start();
    until("it is free", async || locks.claim(&claim(&seat(), &lee())).await.is_ok()).await;
    assert!(GRACE / 2 < back.real() && back.elapsed() < GRACE + SLACK, "{:?}", back.real());
    // From now on there is no grace.
    let began = Stopwatch::start();
    granted(&locks, &claim(&seat(), &lee())).await;
    assert!(began.elapsed() < GRACE / 2, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_the_holder_reasserts_before_new_claims_after_an_empty_node_restart() {
    let mut cluster = ClusterServer::start_with(3, 0, &HALF_IS_ENOUGH).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let guard = auto_renewed(&locks, &LockName::named("job:1")).await;
    let at = cluster.at(cluster.slot(&locks.key_of(guard.name())).await);
    for round in 0..3 {
        cluster.nodes[at].stop().await;
        let newcomers = [&other, &locks].map(|locks| newcomer(locks, guard.name(), Fence::ZERO));
        cluster.nodes[at].start_again_in_cluster().await;
        for newcomer in newcomers {
            let holder = timeout(TEST_TIMEOUT, newcomer).await.expect("in time").expect("no panic");
            assert_eq!(holder.fence, guard.fence(), "round {round}");
        }
        assert!(guard.is_held());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_the_holder_reasserts_before_new_claims_after_a_failover_to_a_replica_without_it() {
    let mut cluster = ClusterServer::start_with(3, 1, &[]).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let name = name_at_the_first(&cluster, &locks).await;
    cluster.nodes[3].freeze().await;
    // A frozen node's requests wait in its socket.
    let _: Value = cluster.nodes[0].run("CLIENT KILL TYPE replica").await;
    let guard = auto_renewed(&locks, &name).await;
    cluster.nodes[0].stop().await;
    let newcomers = [&other, &locks].map(|locks| newcomer(locks, &name, Fence::ZERO));
    cluster.nodes[3].thaw().await;
    for newcomer in newcomers {
        let holder = timeout(FAILOVER_MAX, newcomer).await.expect("in time").expect("no panic");
        assert_eq!(holder.fence, guard.fence());
    }
    assert!(guard.is_held());
}

/// The replica has an older state: the holder before, and its release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_failover_to_a_lagging_replica_loses_no_lock() {
    let mut cluster = ClusterServer::start_with(3, 1, &[]).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let name = name_at_the_first(&cluster, &locks).await;
    let before = auto_renewed(&locks, &name).await;
    let key = locks.key_of(&name);
    until("the replica has it", async || on_replica(&cluster.nodes[3], &key).await.is_some()).await;
    cluster.nodes[3].freeze().await;
    let _: Value = cluster.nodes[0].run("CLIENT KILL TYPE replica").await;
    assert_eq!(before.release().await, Ok(Released::Freed));
    let guard = auto_renewed(&locks, &name).await;
    cluster.nodes[0].stop().await;
    let newcomers = [&other, &locks].map(|locks| newcomer(locks, &name, guard.fence()));
    cluster.nodes[3].thaw().await;
    for newcomer in newcomers {
        let holder = timeout(FAILOVER_MAX, newcomer).await.expect("in time").expect("no panic");
        assert_eq!(holder.fence, guard.fence());
    }
    assert!(guard.is_held());
}

/// The value of a key on a replica.
async fn on_replica(replica: &Server, key: &str) -> Option<String> {
    let mut connection = replica.connection().await;
    let _: Value = redis::cmd("READONLY").query_async(&mut connection).await.expect("no error");
    redis::cmd("GET").arg(key).query_async(&mut connection).await.ok()?
}

/// The name of a lock on the first node.
async fn name_at_the_first(cluster: &ClusterServer, locks: &Locks) -> LockName {
    for number in 0.. {
        let name = LockName::named(&format!("job:{number}"));
        if cluster.at(cluster.slot(&locks.key_of(&name)).await) == 0 {
            return name;
        }
    }
    unreachable!("each node has slots")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_after_an_empty_restart_the_queue_returns_in_order_behind_the_holder() {
    let mut server = Server::start().await;
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let name = seat();
    let old = seated(&locks, &name, &kim(), LONG).await;
    locks.renew(std::slice::from_ref(&old), LONG).await.expect("a reply");
    let claims = [(); 3].map(|()| claim(&name, &lee()));
    let mut line = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        let locks = if at % 2 == 0 { &locks } else { &other };
        line.push((claim.value.clone(), enter(locks, claim).await.0));
    }
    let mut grants = Vec::new();
    for (value, waiting) in line {
        grants.push((value, apart(await_grant(waiting))));
    }
    server.stop().await;
    // One plain claim and one waiter arrive before any holder has reasserted.
    let plain = newcomer(&other, &name, Fence::ZERO);
    server.start_again().await;
    let last = claim(&name, &kim());
    let (late, options) = (other.clone(), last.clone());
    let late =
        apart(
            async move { timeout(TEST_TIMEOUT, granted_in_turn(late.wait(&options, LONG))).await },
        );
    renewed(&locks, &old).await;
    let holder = timeout(TEST_TIMEOUT, plain).await.expect("in time").expect("no panic");
    assert_eq!(holder.value, old.value);
    let length = format!("ZCARD {}", name.key().replace("lock:", "line:"));
    until("all are in the queue", async || server.run::<u64>(&length).await == 4).await;

    let mut holder = old.value;
    for (value, grant) in grants {
        locks.release(&name, &holder).await.expect("a reply");
        grant.await.expect("the grants follow the old order");
        holder = value;
    }
    locks.release(&name, &holder).await.expect("a reply");
    late.await.expect("no panic").expect("in time").expect("a grant");
}

/// Renews as soon as Redis is reachable.
async fn renewed(locks: &Locks, held: &HeldLock) {
    let one = std::slice::from_ref(held);
    until("it is renewed", async || locks.renew(one, LONG).await.is_ok()).await;
}
