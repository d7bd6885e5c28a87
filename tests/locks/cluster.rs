//! What holds on a Redis Cluster beside what holds everywhere: whose slots move, and whose nodes die.

use std::time::Duration;

use galley::locks::{
    Claim, Claimed, Held, Lease, LockName, Locks, LocksError, Released, Verdict, Wish,
};
use redis::Value;
use tokio::time::{Instant, timeout};

use crate::cluster_server::{ClusterServer, FAILOVER_MAX};
use crate::line::{SLACK, enter, turn};
use crate::people::{LONG, apart, claim, granted, kim, lee, refused, seat, seated, until};
use crate::server::{PATIENCE, Server};

/// Every node serves what it has, even if another one is dead.
const HALF_IS_ENOUGH: [&str; 2] = ["--cluster-require-full-coverage", "no"];

async fn locks_at(cluster: &ClusterServer) -> Locks {
    let locks = Locks::connect(&cluster.url()).await.expect("a good address");
    locks.check().await.expect("a fit Cluster");
    locks
}

/// Holds so many seats.
async fn seats(locks: &Locks, number: usize) -> Vec<Held> {
    let mut all = Vec::new();
    for _ in 0..number {
        all.push(seated(locks, &seat(), &kim(), LONG).await);
    }
    all
}

/// At which primary each of these was in the beginning.
async fn places(cluster: &ClusterServer, locks: &Locks, held: &[Held]) -> Vec<usize> {
    let mut places = Vec::new();
    for held in held {
        places.push(cluster.at(cluster.slot(&locks.key_of(&held.name)).await));
    }
    places
}

/// Renews until every lock has a verdict, noting for each the first one it had.
async fn verdicts(locks: &Locks, held: &[Held]) -> Vec<Verdict> {
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
async fn a_locks_keys_are_tagged_share_a_slot_and_are_found_by_the_key_that_is_told() {
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
        locks.held().await.expect("an answer").into_iter().map(|(name, _)| name).collect();
    all.sort();
    assert_eq!(all, [job, seat]);
    // What was checked left nothing behind that lasts.
    for node in cluster.primaries() {
        let left: Vec<String> = node.run("KEYS *check*").await;
        assert_eq!(left, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_round_of_a_thousand_is_one_pipeline_to_each_primary_and_a_call_for_each_slot() {
    let cluster = ClusterServer::start().await;
    let locks = locks_at(&cluster).await;
    let mut all = seats(&locks, 996).await;
    // And two that share a slot twice.
    for held in all[..4].to_vec() {
        let seat = held.name.as_seat().expect("a seat");
        let other = galley::domain::seat::Seat::new(seat.link, seat.role.other());
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
    let round = locks.renew(&all, LONG).await.expect("an answer");
    assert_eq!(round.verdicts, vec![Verdict::Renewed; 1_000]);
    let mut renewed = 0;
    for (node, slots) in cluster.primaries().iter().zip(slots) {
        assert_eq!(node.calls("script|load").await, 1);
        assert_eq!(node.calls("evalsha").await, slots.len() as u64);
        renewed += node.calls("pexpire").await;
    }
    assert_eq!(renewed, 1_000);
}

/// A slot on its way to another node, while half of its keys are here and half are there.
#[tokio::test]
async fn a_slot_that_moves_takes_its_locks_along() {
    let cluster = ClusterServer::start().await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let writer = seated(&locks, &seat(), &kim(), LONG).await;
    let place = writer.name.as_seat().expect("a seat");
    let place = galley::domain::seat::Seat::new(place.link, place.role.other());
    let reviewer = seated(&locks, &LockName::seat(place), &lee(), LONG).await;
    let both = [writer.clone(), reviewer.clone()];
    let slot = cluster.slot(&locks.key_of(&writer.name)).await;
    let waiter = claim(&writer.name, &lee());
    let (waiting, _at) = enter(&other, &waiter).await;

    let mut way = (cluster.at(slot), (cluster.at(slot) + 1) % 3);
    // There and back, each time with another part of the keys moved half-way.
    for keys in 0..6 {
        let meanwhile = async || {
            let round = locks.renew(&both, LONG).await.expect("an answer");
            assert_eq!(round.verdicts, [Verdict::Renewed; 2], "{keys}");
            // A claim needs all keys in one place: it waits for that, and then there is no telling.
            match other.claim(&claim(&reviewer.name, &kim())).await {
                Err(LocksError::Unavailable(_)) | Ok(Claimed::Busy(_)) => {}
                granted => panic!("{granted:?}"),
            }
        };
        cluster.move_slot(slot, way, keys, meanwhile).await;
        way = (way.1, way.0);
        assert_eq!(refused(&other, &claim(&reviewer.name, &kim())).await.value, reviewer.value);
    }

    assert_eq!(verdicts(&locks, &both).await, [Verdict::Renewed; 2]);
    let fence = writer.fence;
    assert_eq!(locks.release(&writer.name, &writer.value).await, Ok(Released::Freed));
    let grant = turn(waiting).await;
    assert!(fence < grant.fence);
    assert_eq!(verdicts(&locks, &both).await, [Verdict::Lost, Verdict::Renewed]);
}

#[tokio::test]
async fn a_dead_primary_spoils_only_its_own_locks() {
    let mut cluster = ClusterServer::start_with(3, 0, &HALF_IS_ENOUGH).await;
    let locks = locks_at(&cluster).await;
    let all = seats(&locks, 60).await;
    let places = places(&cluster, &locks, &all).await;
    let (name, job) = (LockName::named("job:1"), LockName::named("job:2"));
    let at = |slot| cluster.at(slot);
    let jobs =
        [at(cluster.slot(&locks.key_of(&name)).await), at(cluster.slot(&locks.key_of(&job)).await)];
    let dead = places[0];
    cluster.nodes[dead].stop().await;

    let mut round = None;
    until("the loss is noticed", async || {
        let began = Instant::now();
        let Ok(answer) = locks.renew(&all, LONG).await else { return false };
        round = Some((answer, began.elapsed()));
        true
    })
    .await;
    let (round, took) = round.expect("a round");
    assert!(took < SLACK, "a dead node holds nobody up: {took:?}");
    for (verdict, place) in round.verdicts.iter().zip(&places) {
        let expected = if *place == dead { Verdict::Unknown } else { Verdict::Renewed };
        assert_eq!(*verdict, expected, "{place}");
    }
    let Err(LocksError::Unavailable(why)) = locks.check().await else { panic!("it is not fit") };
    assert!(why.contains(&cluster.nodes[dead].port().to_string()), "{why}");

    // Guards too, of which one or both are elsewhere.
    let short = Wish::new(Lease::KeptAlive(Duration::from_secs(1)));
    for (name, place) in [name, job].iter().zip(jobs) {
        match locks.try_lock(name, &short).await {
            Ok(guard) => assert!(place != dead && guard.is_held()),
            Err(_) => assert_eq!(place, dead),
        }
    }
    let live = all.iter().zip(&places).find(|(_, place)| **place != dead).expect("one").0;
    assert_eq!(locks.release(&live.name, &live.value).await, Ok(Released::Freed));
    let gone = &all[0];
    let began = Instant::now();
    assert!(locks.release(&gone.name, &gone.value).await.is_err());
    assert!(began.elapsed() < SLACK * 2, "{:?}", began.elapsed());

    // It comes back, as empty as it went, under its old name.
    cluster.nodes[dead].start_again_in_cluster().await;
    timeout(PATIENCE, locks.reconnected()).await.expect("it is told");
    let back = verdicts(&locks, &all[1..]).await;
    for (verdict, place) in back.iter().zip(&places[1..]) {
        match verdict {
            Verdict::Reasserted => assert_eq!(*place, dead),
            // The one that was released.
            Verdict::Lost | Verdict::Renewed => assert_ne!(*place, dead),
            Verdict::Unknown => panic!("no verdict"),
        }
    }
    assert_eq!(back.iter().filter(|verdict| **verdict == Verdict::Lost).count(), 1);
}

/// Some of what the dead primary knew, its replica never heard: it was frozen then.
#[tokio::test]
async fn g6_no_seat_is_lost_when_a_replica_takes_over() {
    let mut cluster = ClusterServer::start_with(3, 1, &[]).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let known = seats(&locks, 60).await;
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
    // What is sent to a frozen one waits in its socket.
    let _: Value = cluster.nodes[0].run("CLIENT KILL TYPE replica").await;
    let unknown = seats(&locks, 60).await;
    let all = [known.clone(), unknown, vec![old.clone()]].concat();
    let places = places(&cluster, &locks, &all).await;

    cluster.nodes[0].stop().await;
    let died = Instant::now();
    cluster.nodes[3].thaw().await;
    let claimed = apart({
        let (locks, name) = (locks.clone(), short);
        async move {
            loop {
                if let Ok(claimed) = locks.claim(&claim(&name, &lee())).await {
                    return (Instant::now(), claimed);
                }
            }
        }
    });
    let verdicts = verdicts(&locks, &all).await;
    assert!(died.elapsed() < FAILOVER_MAX, "{:?}", died.elapsed());
    for (at, (verdict, place)) in verdicts.iter().zip(&places).enumerate() {
        let is_new = (known.len()..known.len() + 60).contains(&at);
        let expected = if *place == 0 && is_new { Verdict::Reasserted } else { Verdict::Renewed };
        assert_eq!(*verdict, expected, "{at} at {place}");
    }
    let (at, _claimed) = claimed.await.expect("no panic");
    assert!(at < died + FAILOVER_MAX);

    // The line came along, and the fence rises.
    assert_eq!(locks.release(&old.name, &old.value).await, Ok(Released::Freed));
    let grant = turn(waiting).await;
    assert!(old.fence < grant.fence);
    for held in all.iter().filter(|held| held.name != old.name).take(70) {
        assert_eq!(locks.release(&held.name, &held.value).await, Ok(Released::Freed));
        assert!(held.fence < seated(&other, &held.name, &lee(), LONG).await.fence);
    }
    locks.check().await.expect("a fit Cluster again");
}

/// Names of locks that the first primary has.
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
async fn g5_hand_overs_are_heard_after_the_node_died_on_which_they_were() {
    let mut cluster = ClusterServer::start_with(3, 0, &HALF_IS_ENOUGH).await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let mut names = Vec::new();
    while names.len() < 4 {
        let name = seat();
        if cluster.at(cluster.slot(&locks.key_of(&name)).await) == 2 {
            names.push(name);
        }
    }
    // Whichever of the others it is on.
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
        until("somebody listens to both again", async || {
            let mut listening = 0;
            for node in &cluster.nodes[node + 1..] {
                let channels: Vec<String> = node.run("PUBSUB CHANNELS lock:release:*").await;
                listening += channels.len();
            }
            listening == 2
        })
        .await;
        assert_handed_over(&locks, second).await;
    }
}

async fn assert_handed_over(locks: &Locks, (held, waiting): (Held, galley::locks::Waiting)) {
    let released = Instant::now();
    assert_eq!(locks.release(&held.name, &held.value).await, Ok(Released::Freed));
    turn(waiting).await;
    assert!(released.elapsed() < SLACK, "told, not found out: {:?}", released.elapsed());
}

#[tokio::test]
async fn an_account_needs_no_other_right_than_on_a_single_redis() {
    let user = "galley on >secret ~share-link:* ~lock:* &* +@all -@dangerous +info";
    let mut arguments = vec!["--user"];
    arguments.extend(user.split(' '));
    let cluster = ClusterServer::start_with(3, 0, &arguments).await;
    let url = cluster.url_as("galley:secret@");
    let locks = Locks::connect(&url).await.expect("a good address");
    assert_eq!(locks.check().await, Ok(()));
    let all = seats(&locks, 30).await;
    let (waiting, _at) = enter(&locks, &claim(&all[0].name, &lee())).await;
    let round = locks.renew(&all, LONG).await.expect("an answer");
    assert_eq!(round.verdicts, vec![Verdict::Renewed; 30]);
    assert_eq!(locks.seats().await.expect("an answer").len(), 30);
    locks.release(&all[0].name, &all[0].value).await.expect("an answer");
    turn(waiting).await;
    let wrong = Locks::connect(&cluster.url_as("galley:wrong@")).await.expect("a good address");
    let Err(LocksError::Misconfigured(why)) = wrong.check().await else { panic!("it was let in") };
    assert!(why.contains("password") && !why.contains("wrong@"), "{why}");
}

#[tokio::test]
async fn what_is_not_fit_is_said_with_its_node() {
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
async fn guards_are_kept_on_all_nodes_and_closed_there() {
    let cluster = ClusterServer::start().await;
    let (locks, other) = (locks_at(&cluster).await, locks_at(&cluster).await);
    let names: Vec<_> = (0..30).map(|at| LockName::named(&format!("job:{at}"))).collect();
    let lease = Duration::from_millis(600);
    let wish = Wish::new(Lease::KeptAlive(lease));
    let guards = locks.lock_all(&names, &wish).await.expect("free locks");
    let until_then = Instant::now() + lease * 2;
    until("the first lease is long over", async || until_then < Instant::now()).await;
    assert!(guards.are_held());
    for name in &names {
        assert!(other.holder(name).await.expect("an answer").is_some());
    }
    locks.close().await;
    for name in &names {
        granted(&other, &claim(name, &lee())).await;
    }
}
