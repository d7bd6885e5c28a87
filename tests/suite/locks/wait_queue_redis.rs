//! The wait queue in Redis: its failures, and its number of commands.

use std::time::Duration;

use galley::domain::ids::NodeId;
use galley::locks::{LockError, Locks, Verdict};
use redis::Value;
use tokio::time::timeout;

use crate::locks::wait_queue::{QUEUE_ENTRY_TTL, SHORT, SLACK, await_grant, enter};
use crate::support::fixtures::{
    LONG, apart, claim, fit, granted, granted_in_turn, kim, lee, refused, seat, seated, until,
};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    (server, locks)
}

/// All commands since the last count, including those of scripts, without this one.
async fn commands(server: &Server) -> u64 {
    let info: String = server.run("INFO commandstats").await;
    let counts = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
    counts
        .filter(|(name, _)| !["info", "config|resetstat", "hello", "client|setinfo"].contains(name))
        .filter_map(|(_, counts)| counts.strip_prefix("calls=")?.split(',').next()?.parse().ok())
        .map(|calls: u64| calls)
        .sum()
}

/// The cost of one hand-over with this many `waiters`: script calls, messages, and commands in all,
/// including those of scripts. A concurrent poll of a waiter does not belong to it, so the minimum
/// of some runs counts.
async fn cost_of_a_hand_over(server: &Server, locks: &Locks, waiters: usize) -> (u64, u64, u64) {
    let mut costs = Vec::new();
    while costs.len() < 10 {
        costs.extend(costs_in_one_line(server, locks, waiters).await);
    }
    costs.into_iter().min().expect("a hand-over")
}

/// The cost of each of the first hand-overs, in order of arrival.
async fn costs_in_one_line(server: &Server, locks: &Locks, waiters: usize) -> Vec<(u64, u64, u64)> {
    let mut costs = Vec::new();
    let name = seat();
    let mut holder = seated(locks, &name, &kim(), LONG).await.value;
    let mut line = std::collections::VecDeque::new();
    for _ in 0..waiters {
        let claim = claim(&name, &lee());
        let waiting = enter(locks, &claim).await.0;
        line.push_back((claim.value, apart(await_grant(waiting))));
    }
    for _ in 0..waiters.min(15) {
        let (value, waiting) = line.pop_front().expect("a waiter");
        server.forget_calls().await;
        locks.release(&name, &holder).await.expect("a reply");
        timeout(TEST_TIMEOUT, waiting).await.expect("in time").expect("no panic");
        let (calls, messages) = (server.calls("evalsha").await, server.calls("publish").await);
        costs.push((calls, messages, commands(server).await));
        holder = value;
    }
    line.into_iter().for_each(|(_, waiting)| waiting.abort());
    locks.release(&name, &holder).await.expect("a reply");
    costs
}

#[tokio::test]
async fn g5_a_hand_over_costs_the_same_for_any_number_of_waiters() {
    let (server, locks) = start().await;
    let one = cost_of_a_hand_over(&server, &locks, 1).await;
    assert_eq!((one.0, one.1), (2, 1), "a release, a poll, and one message: three in all");
    for waiters in [10, 100] {
        assert_eq!(cost_of_a_hand_over(&server, &locks, waiters).await, one, "{waiters} wait");
    }
}

#[tokio::test]
async fn g5_a_hand_over_notifies_the_waiters_own_server_alone() {
    let server = Server::start().await;
    let (one, other) = (NodeId::generate(), NodeId::generate());
    let at = async |node| Locks::connect_as(&server.url(), node).await.expect("a good address");
    let (one_locks, other_locks) = (at(one).await, at(other).await);
    let count = async |node: NodeId| -> u64 {
        let channel = format!("lock:release:{node}");
        let counts: Vec<Value> = server.run(&format!("PUBSUB NUMSUB {channel}")).await;
        redis::from_redis_value(counts[1].clone()).expect("a number")
    };
    until("both listen", async || count(one).await == 1 && count(other).await == 1).await;
    let name = seat();
    let held = seated(&one_locks, &name, &kim(), LONG).await;
    let mut line = Vec::new();
    for _ in 0..50 {
        line.push(enter(&other_locks, &claim(&name, &lee())).await);
    }
    let channels: Vec<String> = server.run("PUBSUB CHANNELS *").await;
    assert_eq!(channels.len(), 2, "{channels:?}");
    let mut subscriber =
        redis::Client::open(server.url()).expect("an address").get_async_pubsub().await;
    let subscriber = subscriber.as_mut().expect("a connection");
    subscriber.psubscribe("*").await.expect("a subscription");
    one_locks.release(&name, &held.value).await.expect("a reply");
    await_grant(line.remove(0).0).await;
    let message = {
        use futures_util::StreamExt as _;
        timeout(TEST_TIMEOUT, subscriber.on_message().next())
            .await
            .expect("in time")
            .expect("a message")
    };
    assert_eq!(message.get_channel_name(), format!("lock:release:{other}"));
}

/// A waiter whose last poll is almost a queue deadline ago is dead, and receives the lock. It holds
/// the lock for the rest of its queue deadline, and no longer.
async fn a_hand_over_to_a_dead_waiter(is_released: bool) {
    let (server, locks) = start().await;
    let name = seat();
    let held = seated(&locks, &name, &kim(), LONG).await;
    let next = claim(&name, &lee());
    let (_waiting, _at) = enter(&locks, &next).await;
    let now: Vec<u64> = server.run("TIME").await;
    let due = now[0] * 1_000 + now[1] / 1_000 + 3_000;
    let key = name.key().replace("lock:", "due:");
    let _: i64 = server.run(&format!("ZADD {key} {due} {}", next.value)).await;
    if is_released {
        locks.release(&name, &held.value).await.expect("a reply");
    } else {
        let _: i64 = server.run(&format!("DEL {name}")).await;
        refused(&locks, &claim(&name, &kim())).await;
    }
    let holder = locks.holder(&name).await.expect("a reply").expect("a grant");
    assert_eq!(holder.value, next.value);
    assert!(holder.ttl <= Duration::from_secs(3), "{:?}", holder.ttl);
}

#[tokio::test]
async fn g4_a_hand_over_from_a_release_lasts_for_the_rest_of_the_queue_deadline() {
    a_hand_over_to_a_dead_waiter(true).await;
}

#[tokio::test]
async fn g4_a_hand_over_from_a_poll_lasts_for_the_rest_of_the_queue_deadline() {
    a_hand_over_to_a_dead_waiter(false).await;
}

#[tokio::test]
async fn g5_without_messages_a_hand_over_is_found_within_half_a_queue_deadline() {
    let (server, locks) = start().await;
    let _: Value = server.run("ACL SETUSER deaf on >deaf ~* &* +@all -subscribe").await;
    let url = format!("redis://deaf:deaf@127.0.0.1:{}", server.port());
    let deaf = Locks::connect(&url).await.expect("a good address");
    let name = seat();
    let mut holder = seated(&locks, &name, &kim(), LONG).await.value;
    for _ in 0..3 {
        let next = claim(&name, &lee());
        let (waiting, _at) = enter(&deaf, &next).await;
        locks.release(&name, &holder).await.expect("a reply");
        let released = Stopwatch::start();
        await_grant(waiting).await;
        assert!(released.elapsed() < QUEUE_ENTRY_TTL / 2 + SLACK, "{:?}", released.elapsed());
        holder = next.value;
    }
}

#[tokio::test]
async fn g5_a_repeatedly_cut_subscription_loses_no_hand_over() {
    let (server, locks) = start().await;
    let name = seat();
    let mut holder = seated(&locks, &name, &kim(), LONG).await.value;
    for _ in 0..20 {
        let next = claim(&name, &lee());
        let (waiting, _at) = enter(&locks, &next).await;
        let released = Stopwatch::start();
        let _: u64 = server.run("CLIENT KILL TYPE pubsub").await;
        locks.release(&name, &holder).await.expect("a reply");
        await_grant(waiting).await;
        assert!(released.elapsed() < SLACK, "its return is told: {:?}", released.elapsed());
        holder = next.value;
    }
}

#[tokio::test]
async fn g1_waiters_let_the_holder_reassert_in_an_empty_redis_and_retain_their_order() {
    let (mut server, locks) = start().await;
    let name = seat();
    let old = seated(&locks, &name, &kim(), LONG).await;
    locks.renew(std::slice::from_ref(&old), LONG).await.expect("a reply");
    let (one, two) = (claim(&name, &lee()), claim(&name, &lee()));
    let (first, _at) = enter(&locks, &one).await;
    let (second, _at) = enter(&locks, &two).await;
    // The second waiter polls first.
    let mut line = vec![(two.value, apart(await_grant(second)))];
    server.stop().await;
    server.start_again().await;
    let gone = format!("EXISTS {}", name.key().replace("lock:", "line:"));
    until("the second is back in the queue", async || server.run::<u64>(&gone).await == 1).await;
    line.insert(0, (one.value, apart(await_grant(first))));
    until("both are", async || {
        let length = gone.replace("EXISTS", "ZCARD");
        server.run::<u64>(&length).await == 2
    })
    .await;
    assert_eq!(locks.holder(&name).await, Ok(None), "no claim acquired it");

    let mut verdicts = Vec::new();
    until("the holder is back", async || {
        let round = locks.renew(std::slice::from_ref(&old), LONG).await;
        verdicts = round.map(|round| round.verdicts).unwrap_or_default();
        !verdicts.is_empty()
    })
    .await;
    assert_eq!(verdicts, [Verdict::Reasserted]);
    let mut holder = old.value;
    for (value, grant) in line {
        locks.release(&name, &holder).await.expect("a reply");
        grant.await.expect("the grants follow the old order");
        holder = value;
    }
}

#[tokio::test]
async fn a_wait_without_redis_is_bounded_and_an_outage_retains_the_position() {
    let (server, locks) = start().await;
    let name = seat();
    let old = seated(&locks, &name, &kim(), LONG).await;
    let (waiting, _at) = enter(&locks, &claim(&name, &lee())).await;
    server.freeze().await;
    let began = Stopwatch::start();
    let refused = granted_in_turn(locks.wait(&claim(&name, &lee()), LONG)).await;
    assert!(matches!(refused, Err(LockError::Unavailable(_))), "{refused:?}");
    assert!(began.elapsed() < Duration::from_millis(2_500));
    let grant = apart(await_grant(waiting));
    server.thaw().await;
    locks.release(&name, &old.value).await.expect("a reply");
    grant.await.expect("no panic");
}

#[tokio::test]
async fn g13_the_wait_queue_is_bounded() {
    let (server, locks) = start().await;
    let name = seat();
    seated(&locks, &name, &kim(), LONG).await;
    let key = |what: &str| name.key().replace("lock:", &format!("{what}:"));
    let mut crowd = redis::pipe();
    let late = i64::MAX / 1_000_000;
    for at in 0..1_000 {
        crowd.cmd("ZADD").arg(key("line")).arg(at).arg(format!("w{at}")).ignore();
        crowd.cmd("ZADD").arg(key("due")).arg(late).arg(format!("w{at}")).ignore();
    }
    crowd.exec_async(&mut server.connection().await).await.expect("a reply");
    let full = granted_in_turn(locks.wait(&claim(&name, &lee()), LONG)).await;
    let Err(LockError::Busy(at)) = full else { panic!("{full:?}") };
    assert_eq!((at.position, at.holder.waiting), (1_001, 1_000));
}

#[tokio::test]
async fn an_ended_wait_queue_leaves_no_key() {
    let (server, locks) = start().await;
    let name = seat();
    let old = seated(&locks, &name, &kim(), SHORT).await;
    let (first, second) = (claim(&name, &lee()), claim(&name, &lee()));
    let (waiting, _at) = enter(&locks, &first).await;
    let (leaves, _at) = enter(&locks, &second).await;
    locks.release(&name, &old.value).await.expect("a reply");
    await_grant(waiting).await;
    drop(leaves);
    let keys = async || -> Vec<String> {
        let mut keys: Vec<String> = server.run("KEYS *").await;
        keys.sort();
        keys
    };
    let left = [name.key().replace("lock:", "grant:"), name.key().to_owned()];
    until("the queue is gone", async || keys().await == left).await;
    locks.release(&name, &first.value).await.expect("a reply");
    assert_eq!(keys().await, left[..1]);
    granted(&locks, &claim(&name, &kim())).await;
}
