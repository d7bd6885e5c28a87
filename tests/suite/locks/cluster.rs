//! Additional behaviour on a Redis Cluster, with all nodes alive.

use std::time::Duration;

use galley::domain::seat::{Seat, peers_of};
use galley::locks::{
    AcquireOptions, Claim, Claimed, HeldLock, Lease, LockName, Locks, LocksError, Released, Verdict,
};
use redis::Value;
use tokio::time::Instant;

use crate::locks::wait_queue::{await_grant, enter};
use crate::support::fixtures::{LONG, claim, fit, granted, kim, lee, refused, seat, seated, until};
use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::Server;

pub(crate) async fn locks_at(cluster: &ClusterServer) -> Locks {
    let locks = Locks::connect(&cluster.url()).await.expect("a good address");
    fit(&locks).await;
    locks
}

/// Holds this many seats.
pub(crate) async fn seats(locks: &Locks, number: usize) -> Vec<HeldLock> {
    let mut all = Vec::new();
    for _ in 0..number {
        all.push(seated(locks, &seat(), &kim(), LONG).await);
    }
    all
}

/// Renews until every lock has a known verdict; records the first one of each.
pub(crate) async fn verdicts(locks: &Locks, held: &[HeldLock]) -> Vec<Verdict> {
    let mut first = vec![Verdict::Unknown; held.len()];
    until("each has a verdict", async || {
        let Ok(round) = locks.renew(held, LONG).await else { return false };
        for (first, verdict) in first.iter_mut().zip(&round.verdicts) {
            if *first == Verdict::Unknown {
                *first = *verdict;
            }
        }
        !round.verdicts.contains(&Verdict::Unknown)
    })
    .await;
    first
}

#[tokio::test]
async fn a_locks_keys_have_a_hash_tag_and_share_a_slot() {
    let cluster = ClusterServer::start().await;
    let locks = locks_at(&cluster).await;
    let (seat, job) = (seat(), LockName::named("export:doc_1"));
    let id = seat.as_seat().expect("a seat").link;
    for name in [&seat, &job] {
        seated(&locks, name, &kim(), LONG).await;
    }
    let keys = [
        (&seat, format!("share-link:lock:{{{id}}}:writer")),
        (&job, "lock:{export:doc_1}".to_owned()),
    ];
    for (name, key) in keys {
        assert_eq!(locks.key_of(name), key);
        let grant = key.replacen("lock:", "grant:", 1).replacen("grant:{e", "lock:grant:{e", 1);
        assert_eq!(cluster.slot(&key).await, cluster.slot(&grant).await);
        assert_eq!(cluster.run_at::<u64>(&key, &format!("EXISTS {key} {grant}")).await, 2);
    }
    let mut all: Vec<_> =
        locks.held().await.expect("a reply").into_iter().map(|(name, _)| name).collect();
    all.sort();
    assert_eq!(all, [job, seat]);
    // The check leaves no lasting key.
    for node in cluster.primaries() {
        let left: Vec<String> = node.run("KEYS *check*").await;
        assert_eq!(left, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_round_of_a_thousand_is_one_pipeline_a_primary_and_one_call_a_slot() {
    let cluster = ClusterServer::start().await;
    let locks = locks_at(&cluster).await;
    let mut all = seats(&locks, 996).await;
    // And two locks that share a slot, twice.
    for at in 0..4 {
        let seat = all[at].name.as_seat().expect("a seat");
        let other = Seat::new(seat.link, peers_of(seat.role)[0]);
        all.push(seated(&locks, &LockName::seat(other), &lee(), LONG).await);
    }
    let mut slots = vec![std::collections::BTreeSet::new(); 3];
    for held in &all {
        let slot = cluster.slot(&locks.key_of(&held.name)).await;
        slots[cluster.at(slot)].insert(slot);
    }
    for node in cluster.primaries() {
        node.forget_calls().await;
    }
    let round = locks.renew(&all, LONG).await.expect("a reply");
    assert_eq!(round.verdicts, vec![Verdict::Renewed; 1_000]);
    let mut renewed = 0;
    for (node, slots) in cluster.primaries().iter().zip(slots) {
        assert_eq!(node.calls("script|load").await, 1);
        assert_eq!(node.calls("evalsha").await, slots.len() as u64);
        renewed += node.calls("pexpire").await;
    }
    assert_eq!(renewed, 1_000);
}

/// A slot in migration to another node, with half of its keys on each.
#[tokio::test]
async fn a_slot_migration_moves_its_locks() {
    let cluster = ClusterServer::start().await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let writer = seated(&locks, &seat(), &kim(), LONG).await;
    let seat_of_writer = writer.name.as_seat().expect("a seat");
    let seat_of_writer = Seat::new(seat_of_writer.link, peers_of(seat_of_writer.role)[0]);
    let reviewer = seated(&locks, &LockName::seat(seat_of_writer), &lee(), LONG).await;
    let both = [writer.clone(), reviewer.clone()];
    let slot = cluster.slot(&locks.key_of(&writer.name)).await;
    let waiter = claim(&writer.name, &lee());
    let (waiting, _at) = enter(&other, &waiter).await;

    let mut way = (cluster.at(slot), (cluster.at(slot) + 1) % 3);
    // Forth and back, each time with another part of the keys moved.
    for keys in 0..6 {
        let meanwhile = async || {
            let round = locks.renew(&both, LONG).await.expect("a reply");
            assert_eq!(round.verdicts, [Verdict::Renewed; 2], "{keys}");
            // A claim needs all keys on one node: it retries until then, and ends without a reply.
            let claimed = other.claim(&claim(&reviewer.name, &kim())).await;
            let is_refused =
                matches!(claimed, Err(LocksError::Unavailable(_)) | Ok(Claimed::Busy(_)));
            assert!(is_refused, "{claimed:?}");
        };
        cluster.move_slot(slot, way, keys, meanwhile).await;
        way = (way.1, way.0);
        assert_eq!(refused(&other, &claim(&reviewer.name, &kim())).await.value, reviewer.value);
    }

    assert_eq!(verdicts(&locks, &both).await, [Verdict::Renewed; 2]);
    let fence = writer.fence;
    assert_eq!(locks.release(&writer.name, &writer.value).await, Ok(Released::Freed));
    let grant = await_grant(waiting).await;
    assert!(fence < grant.fence);
    assert_eq!(verdicts(&locks, &both).await, [Verdict::Lost, Verdict::Renewed]);
}

#[tokio::test]
async fn a_cluster_account_needs_the_same_permissions_as_a_single_redis() {
    let user = "galley on >secret ~share-link:* ~lock:* &* +@all -@dangerous +info +client|kill";
    let mut arguments = vec!["--user"];
    arguments.extend(user.split(' '));
    let cluster = ClusterServer::start_with(3, 0, &arguments).await;
    let url = cluster.url_as("galley:secret@");
    let locks = Locks::connect(&url).await.expect("a good address");
    fit(&locks).await;
    let all = seats(&locks, 30).await;
    let (waiting, _at) = enter(&locks, &claim(&all[0].name, &lee())).await;
    let round = locks.renew(&all, LONG).await.expect("a reply");
    assert_eq!(round.verdicts, vec![Verdict::Renewed; 30]);
    assert_eq!(locks.seats().await.expect("a reply").len(), 30);
    locks.release(&all[0].name, &all[0].value).await.expect("a reply");
    await_grant(waiting).await;
    let wrong = Locks::connect(&cluster.url_as("galley:wrong@")).await.expect("a good address");
    let Err(LocksError::Misconfigured(why)) = wrong.check().await else { panic!("it was let in") };
    assert!(why.contains("password") && !why.contains("wrong@"), "{why}");
}

#[tokio::test]
async fn an_unfit_cluster_node_is_reported_by_name() {
    let cluster = ClusterServer::start().await;
    let locks = locks_at(&cluster).await;
    let _: Value = cluster.nodes[2].run("CONFIG SET maxmemory-policy allkeys-lru").await;
    let Err(LocksError::Misconfigured(why)) = locks.check().await else { panic!("it is not fit") };
    let port = cluster.nodes[2].port();
    assert!(why.contains(&port.to_string()) && why.contains("noeviction"), "{why}");

    let one_node = Locks::connect(&cluster.nodes[0].url()).await.expect("a good address");
    let Err(LocksError::Misconfigured(why)) = one_node.check().await else { panic!("passed") };
    assert!(why.contains("redis+cluster://"), "{why}");
    let Err(LocksError::Misconfigured(why)) = one_node.claim(&claim(&seat(), &kim())).await else {
        // One slot in three is there.
        return;
    };
    assert!(why.contains("redis+cluster://"), "{why}");

    let single = Server::start().await;
    let url = single.url().replace("redis://", "redis+cluster://");
    let locks = Locks::connect(&url).await.expect("a good address");
    let Err(LocksError::Misconfigured(why)) = locks.check().await else { panic!("passed") };
    assert!(why.contains("write redis://"), "{why}");
    let refused = locks.claim(&Claim { ..claim(&seat(), &kim()) }).await;
    assert!(matches!(refused, Err(LocksError::Misconfigured(_))), "{refused:?}");
}

#[tokio::test]
async fn guards_are_renewed_and_released_on_all_cluster_nodes() {
    let cluster = ClusterServer::start().await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let names: Vec<_> = (0..30).map(|at| LockName::named(&format!("job:{at}"))).collect();
    let lease = Duration::from_millis(2_400);
    let options = AcquireOptions::new(Lease::Renewed(lease));
    let guards = locks.lock_all(&names, &options).await.expect("free locks");
    let until_then = Instant::now() + lease * 2;
    until("the first lease is long over", async || until_then < Instant::now()).await;
    assert!(guards.are_held());
    for name in &names {
        assert!(other.holder(name).await.expect("a reply").is_some());
    }
    locks.close().await;
    for name in &names {
        granted(&other, &claim(name, &lee())).await;
    }
}
