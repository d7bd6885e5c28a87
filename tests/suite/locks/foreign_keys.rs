//! Keys that another program, or an operator, writes or deletes under the names of locks.

use galley::locks::{Locks, LocksError, Verdict};
use redis::Value;

use crate::locks::cluster::{locks_at, verdicts};
use crate::support::fixtures::{claim, fit, granted, held, kim, lee, seat};
use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::Server;

/// Goal: the error of a claim names the key at fault, whichever of the lock's it is, alone and on a Cluster.
#[tokio::test]
async fn a_key_of_another_type_is_named() {
    let (single, cluster) = (Server::start().await, ClusterServer::start().await);
    let alone = Locks::connect(&single.url()).await.expect("a good address");
    fit(&alone).await;
    for locks in [alone, locks_at(&cluster).await] {
        for kind in ["lock", "grant", "line"] {
            let name = seat();
            let lock = locks.key_of(&name);
            let redis = if lock.contains('{') { cluster.node_of(&lock).await } else { &single };
            let key = lock.replacen("lock", kind, 1);
            let _: Value = redis.run(&format!("LPUSH {key} x")).await;
            let refused = locks.claim(&claim(&name, &lee())).await;
            let Err(LocksError::Unavailable(why)) = refused else { panic!("{key}: {refused:?}") };
            assert!(why.contains(&format!("the list {key}: delete it")), "{why}");
            let _: Value = redis.run(&format!("DEL {key}")).await;
            granted(&locks, &claim(&name, &lee())).await;
        }
    }
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
