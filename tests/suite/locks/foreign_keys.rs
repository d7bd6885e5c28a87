//! Keys that another program, or an operator, writes or deletes under the names of locks.

use galley::locks::{LockName, Locks, LocksError, Verdict};
use redis::Value;

use crate::locks::cluster::{locks_at, verdicts};
use crate::support::fixtures::{claim, fit, granted, held, kim, lee, seat};
use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::Server;

/// Goal: the error of a claim names the key at fault, whichever of the lock's it is.
async fn a_list_under_the_name_of_a_lock_is_named(locks: &Locks, redis: &Server, lock: &LockName) {
    for kind in ["lock", "grant", "line"] {
        let key = locks.key_of(lock).replacen("lock", kind, 1);
        let _: Value = redis.run(&format!("LPUSH {key} x")).await;
        let refused = locks.claim(&claim(lock, &lee())).await;
        let named = format!("the list {key}: delete it");
        let is_named =
            matches!(&refused, Err(LocksError::Unavailable(why)) if why.contains(&named));
        assert!(is_named, "{named}: {refused:?}");
        let _: Value = redis.run(&format!("DEL {key}")).await;
    }
    granted(locks, &claim(lock, &lee())).await;
}

#[tokio::test]
async fn a_key_of_another_type_is_named() {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    a_list_under_the_name_of_a_lock_is_named(&locks, &server, &seat()).await;
}

#[tokio::test]
async fn a_key_of_another_type_is_named_on_a_cluster() {
    let cluster = ClusterServer::start().await;
    let (locks, lock) = (locks_at(&cluster).await, seat());
    let node = cluster.node_of(&locks.key_of(&lock)).await;
    a_list_under_the_name_of_a_lock_is_named(&locks, node, &lock).await;
}

/// Goal: a running Redis that loses its keys is no restart, so the next claimant gets the lock at once (K1); its
/// fence is higher, and the former holder learns of it by its next renewal.
#[tokio::test]
async fn after_flushall_the_next_claimant_has_the_higher_fence() {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    let first = claim(&seat(), &kim());
    let former = held(&first, &granted(&locks, &first).await);
    let _: Value = server.run("FLUSHALL").await;
    let later = granted(&locks, &claim(&first.name, &lee())).await;
    assert!(former.fence < later.fence);
    assert_eq!(verdicts(&locks, std::slice::from_ref(&former)).await, [Verdict::Lost]);
}
