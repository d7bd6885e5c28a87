//! The effect of a node's death on the locks of a Redis Cluster.

use std::time::Duration;

use galley::locks::{
    AcquireOptions, HeldLock, Lease, LockName, Locks, LocksError, Released, Verdict, Waiter,
};
use redis::Value;

use crate::locks::cluster::{locks_at, seats, verdicts};
use crate::locks::wait_queue::{SLACK, await_grant, enter};
use crate::support::fixtures::{LONG, claim, fit, kim, lee, seat, seated, until};
use crate::support::redis_cluster::{ClusterServer, FAILOVER_MAX};
use crate::support::redis_server::Server;
use crate::support::stopwatch::Stopwatch;

/// Every node serves its slots, even if another node is dead.
pub(crate) const HALF_IS_ENOUGH: [&str; 2] = ["--cluster-require-full-coverage", "no"];

/// The primary of each lock at the start.
async fn nodes_of(cluster: &ClusterServer, locks: &Locks, held: &[HeldLock]) -> Vec<usize> {
    let mut nodes_of = Vec::new();
    for held in held {
        nodes_of.push(cluster.at(cluster.slot(&locks.key_of(&held.name)).await));
    }
    nodes_of
}

#[tokio::test]
async fn a_dead_cluster_primary_affects_only_its_own_locks() {
    let mut cluster = ClusterServer::start_with(3, 0, &HALF_IS_ENOUGH).await;
    let locks = locks_at(&cluster).await;
    let all = seats(&locks, 60).await;
    let nodes_of = nodes_of(&cluster, &locks, &all).await;
    let (name, job) = (LockName::named("job:1"), LockName::named("job:2"));
    let at = |slot| cluster.at(slot);
    let jobs =
        [at(cluster.slot(&locks.key_of(&name)).await), at(cluster.slot(&locks.key_of(&job)).await)];
    let dead = nodes_of[0];
    // Frozen first: it receives requests and does not reply.
    cluster.nodes[dead].freeze().await;
    let began = Stopwatch::start();
    let round = locks.renew(&all, Duration::from_secs(3)).await.expect("a round");
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    for (verdict, node_index) in round.verdicts.iter().zip(&nodes_of) {
        assert_eq!(*verdict == Verdict::Unknown, *node_index == dead);
    }
    locks.renew(&all, LONG).await.expect("a round");
    cluster.nodes[dead].stop().await;

    let mut round = None;
    until("the loss is detected", async || {
        let began = Stopwatch::start();
        let Ok(answer) = locks.renew(&all, LONG).await else { return false };
        round = Some((answer, began.elapsed()));
        true
    })
    .await;
    let (round, took) = round.expect("a round");
    assert!(took < SLACK, "a dead node delays no claim: {took:?}");
    for (verdict, node_index) in round.verdicts.iter().zip(&nodes_of) {
        let expected = if *node_index == dead { Verdict::Unknown } else { Verdict::Renewed };
        assert_eq!(*verdict, expected, "{node_index}");
    }
    let Err(LocksError::Unavailable(why)) = locks.check().await else { panic!("it is not fit") };
    assert!(why.contains(&cluster.nodes[dead].port().to_string()), "{why}");

    // Guards too, with one or both locks elsewhere.
    let short = AcquireOptions::new(Lease::Renewed(Duration::from_secs(1)));
    for (name, node_index) in [name, job].iter().zip(jobs) {
        match locks.try_lock(name, &short).await {
            Ok(guard) => assert!(node_index != dead && guard.is_held()),
            Err(_) => assert_eq!(node_index, dead),
        }
    }
    let live =
        all.iter().zip(&nodes_of).find(|(_, node_index)| **node_index != dead).expect("one").0;
    assert_eq!(locks.release(&live.name, &live.value).await, Ok(Released::Freed));
    let gone = &all[0];
    let began = Stopwatch::start();
    assert!(locks.release(&gone.name, &gone.value).await.is_err());
    assert!(began.elapsed() < SLACK * 2, "{:?}", began.elapsed());

    // The node restarts empty under its old name.
    cluster.nodes[dead].start_again_in_cluster().await;
    let back = verdicts(&locks, &all[1..]).await;
    for (verdict, node_index) in back.iter().zip(&nodes_of[1..]) {
        match verdict {
            Verdict::Reasserted => assert_eq!(*node_index, dead),
            // The released one.
            Verdict::Lost | Verdict::Renewed => assert_ne!(*node_index, dead),
            Verdict::Unknown => panic!("no verdict"),
        }
    }
    assert_eq!(back.iter().filter(|verdict| **verdict == Verdict::Lost).count(), 1);
}

/// The replica lacks part of the dead primary's data: it was frozen at that time.
#[tokio::test]
async fn g6_a_failover_to_a_replica_loses_no_seat() {
    let mut cluster = ClusterServer::start_with(3, 1, &[]).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let old_seats = seats(&locks, 60).await;
    let (name, short) = at_first(&cluster, &locks).await;
    let old = seated(&locks, &name, &kim(), LONG).await;
    let waiter = claim(&name, &lee());
    let (waiting, _at) = enter(&other, &waiter).await;
    until("the replica has all", async || {
        let info: String = cluster.nodes[0].run("INFO replication").await;
        let offset =
            |line: &str| line.rsplit("offset=").next()?.split(',').next()?.parse::<u64>().ok();
        let ours = info
            .lines()
            .find_map(|line| line.strip_prefix("master_repl_offset:")?.trim().parse::<u64>().ok());
        let theirs = info.lines().find(|line| line.starts_with("slave0:")).and_then(offset);
        theirs == ours
    })
    .await;
    cluster.nodes[3].freeze().await;
    // A frozen node's requests wait in its socket.
    let _: Value = cluster.nodes[0].run("CLIENT KILL TYPE replica").await;
    let unknown = seats(&locks, 60).await;
    let all = [old_seats.clone(), unknown, vec![old.clone()]].concat();
    let nodes_of = nodes_of(&cluster, &locks, &all).await;

    cluster.nodes[0].stop().await;
    let died = Stopwatch::start();
    cluster.nodes[3].thaw().await;
    let claimed =
        until("a claim gets a reply", async || locks.claim(&claim(&short, &lee())).await.is_ok());
    let (_, verdicts) = tokio::join!(claimed, verdicts(&locks, &all));
    assert!(died.elapsed() < FAILOVER_MAX, "{:?}", died.elapsed());
    for (at, (verdict, node_index)) in verdicts.iter().zip(&nodes_of).enumerate() {
        let is_new = (old_seats.len()..old_seats.len() + 60).contains(&at);
        let expected =
            if *node_index == 0 && is_new { Verdict::Reasserted } else { Verdict::Renewed };
        assert_eq!(*verdict, expected, "{at} at {node_index}");
    }

    // The replica has the queue too, and the fence rises.
    assert_eq!(locks.release(&old.name, &old.value).await, Ok(Released::Freed));
    let grant = await_grant(waiting).await;
    assert!(old.fence < grant.fence);
    for held in all.iter().filter(|held| held.name != old.name).take(70) {
        assert_eq!(locks.release(&held.name, &held.value).await, Ok(Released::Freed));
        assert!(held.fence < seated(&other, &held.name, &lee(), LONG).await.fence);
    }
    fit(&locks).await;
}

/// An operator swaps a replica and its primary.
#[tokio::test]
async fn a_manual_failover_loses_no_lock() {
    let cluster = ClusterServer::start_with(3, 1, &[]).await;
    let locks = locks_at(&cluster).await;
    let all = seats(&locks, 30).await;
    let (name, _other) = at_first(&cluster, &locks).await;
    for (primary, next) in [(0, 3), (3, 0)] {
        let (primary, port) = (&cluster.nodes[primary], cluster.nodes[next].port().to_string());
        let id: String = primary.run("CLUSTER MYID").await;
        until("the replica follows, and its primary knows it", async || {
            let info: String = cluster.nodes[next].run("INFO replication").await;
            let old_seats: Vec<String> = primary.run(&format!("CLUSTER REPLICAS {id}")).await;
            info.contains("master_link_status:up") && old_seats.concat().contains(&port)
        })
        .await;
        let _: Value = cluster.nodes[next].run("CLUSTER FAILOVER").await;
        until("they have swapped roles", async || {
            let checked = locks.check().await;
            assert!(!matches!(checked, Err(LocksError::Misconfigured(_))), "{checked:?}");
            let info: String = cluster.nodes[next].run("INFO replication").await;
            info.contains("role:master") && checked.is_ok()
        })
        .await;
        assert_eq!(verdicts(&locks, &all).await, vec![Verdict::Renewed; 30]);
        let held = seated(&locks, &name, &kim(), LONG).await;
        assert_eq!(locks.release(&name, &held.value).await, Ok(Released::Freed));
    }
}

/// Names of locks on the first primary.
async fn at_first(cluster: &ClusterServer, locks: &Locks) -> (LockName, LockName) {
    let mut found = Vec::new();
    while found.len() < 2 {
        let name = seat();
        if cluster.at(cluster.slot(&locks.key_of(&name)).await) == 0 {
            found.push(name);
        }
    }
    (found.remove(0), found.remove(0))
}

#[tokio::test]
async fn g5_hand_overs_arrive_after_the_node_of_the_subscription_died() {
    let mut cluster = ClusterServer::start_with(3, 0, &HALF_IS_ENOUGH).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let mut names = Vec::new();
    while names.len() < 4 {
        let name = seat();
        if cluster.at(cluster.slot(&locks.key_of(&name)).await) == 2 {
            names.push(name);
        }
    }
    // On each of the other nodes.
    for (node, names) in names.chunks(2).enumerate() {
        let mut lines = Vec::new();
        for name in names {
            let held = seated(&locks, name, &kim(), LONG).await;
            let (waiting, _at) = enter(&other, &claim(name, &lee())).await;
            lines.push((held, waiting));
        }
        let (first, second) = (lines.remove(0), lines.remove(0));
        assert_handed_over(&locks, first).await;
        cluster.nodes[node].stop().await;
        until("both have a listener again", async || {
            listening(&cluster.nodes[node + 1..]).await == 2
        })
        .await;
        assert_handed_over(&locks, second).await;
    }
}

/// How many servers are subscribed on these nodes.
async fn listening(nodes: &[Server]) -> usize {
    let mut listening = 0;
    for node in nodes {
        listening += node.run::<Vec<String>>("PUBSUB CHANNELS lock:release:*").await.len();
    }
    listening
}

async fn assert_handed_over(locks: &Locks, (held, waiting): (HeldLock, Waiter)) {
    let released = Stopwatch::start();
    assert_eq!(locks.release(&held.name, &held.value).await, Ok(Released::Freed));
    await_grant(waiting).await;
    assert!(released.elapsed() < SLACK, "told, not found out: {:?}", released.elapsed());
}
