//! The number of Redis commands of each operation.

use galley::locks::{Claim, Locks, Owner, ReclaimToken, Takeover, Verdict};
use redis::aio::MultiplexedConnection;

use crate::locks::wait_queue::enter;
use crate::support::fixtures::{LONG, claim, fit, granted, kim, lee, refused, seat, seated, until};
use crate::support::proxy::{Proxy, Way};
use crate::support::redis_server::Server;

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    (server, locks)
}

#[tokio::test]
async fn a_claim_a_refusal_a_takeover_and_a_release_cost_one_script_each() {
    let (server, locks) = start().await;
    let (name, free) = (seat(), seat());
    let one = claim(&name, &kim());
    server.forget_calls().await;
    granted(&locks, &one).await;
    assert_eq!(server.calls("evalsha").await, 1);
    refused(&locks, &claim(&name, &lee())).await;
    assert_eq!(server.calls("evalsha").await, 2);
    let same_user = Claim { over: Takeover::SameOwner, ..claim(&name, &kim()) };
    let pass = ReclaimToken::of("a secret");
    let same_user = Claim { owner: Owner { pass: Some(pass.clone()), ..kim() }, ..same_user };
    assert_eq!(granted(&locks, &same_user).await.replaced.map(|it| it.value), Some(one.value));
    assert_eq!(server.calls("evalsha").await, 3, "a takeover is one");
    let resumed = Claim { over: Takeover::ReclaimToken(pass), ..claim(&name, &kim()) };
    let replaced = granted(&locks, &resumed).await.replaced.map(|it| it.value);
    assert_eq!(replaced, Some(same_user.value));
    assert_eq!(server.calls("evalsha").await, 4, "by a secret too");
    locks.release(&name, &resumed.value).await.expect("a reply");
    assert_eq!(server.calls("evalsha").await, 5);
    locks.holders(&[name, free]).await.expect("a reply");
    assert_eq!(server.calls("evalsha").await, 6);
    assert_eq!((server.calls("eval").await, server.calls("keys").await), (0, 0));
    assert_eq!((server.calls("scan").await, server.calls("publish").await), (0, 0));
}

#[tokio::test]
async fn a_renewal_round_is_one_pipeline_for_any_number() {
    let (server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..1_001 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    for (number, scripts) in [(1, 1), (249, 1), (250, 1), (251, 2), (1_001, 5)] {
        server.forget_calls().await;
        let round = locks.renew(&all[..number], LONG).await.expect("a reply");
        assert_eq!(round.verdicts, vec![Verdict::Renewed; number]);
        assert_eq!(server.calls("evalsha").await, scripts, "{number}");
        assert_eq!(server.calls("script|load").await, 1);
        assert_eq!(server.calls("mget").await, scripts);
        assert_eq!(server.calls("pexpire").await, number as u64);
    }
}

/// Goal: a round costs Redis one read and one write of the socket. 30 locks fit its read buffer.
#[tokio::test]
async fn a_renewal_round_costs_redis_one_read_and_one_write_of_the_socket() {
    let (server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..30 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    let mut observer = server.connection().await;
    for number in [1, 30] {
        let mut least = (u64::MAX, u64::MAX);
        // The connection of the first round and the health check after it add to the counts.
        for _round in 0..10 {
            let before = reads_and_writes(&mut observer).await;
            let round = locks.renew(&all[..number], LONG).await.expect("a reply");
            assert_eq!(round.verdicts, vec![Verdict::Renewed; number]);
            let after = reads_and_writes(&mut observer).await;
            least = least.min((after.0 - before.0, after.1 - before.1));
        }
        // One of each is the observer's own.
        assert_eq!(least, (2, 2), "{number} locks");
    }
}

/// Goal: the client sends a whole round of 500 locks before it has a reply.
#[tokio::test]
async fn a_renewal_round_waits_for_redis_once() {
    let server = Server::start().await;
    let proxy = Proxy::to(&server).await;
    let locks = Locks::connect(&proxy.url()).await.expect("a good address");
    fit(&locks).await;
    let mut all = Vec::new();
    for _ in 0..500 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    locks.renew(&all, LONG).await.expect("a reply");
    server.forget_calls().await;
    proxy.hold(Way::ToClient);
    let arrived = async {
        until("the whole round", async || server.calls("pexpire").await == 500).await;
        proxy.heal();
    };
    let (round, ()) = tokio::join!(locks.renew(&all, LONG), arrived);
    assert_eq!(round.expect("a reply").verdicts, vec![Verdict::Renewed; 500]);
    assert_eq!((server.calls("evalsha").await, server.calls("pexpire").await), (2, 500));
}

/// The reads and writes of all sockets of Redis, up to this request.
async fn reads_and_writes(observer: &mut MultiplexedConnection) -> (u64, u64) {
    let info: String = redis::cmd("INFO").arg("stats").query_async(observer).await.expect("text");
    let count = |name: &str| -> u64 {
        let mut values = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.next().expect("a count").parse().expect("a number")
    };
    (count("total_reads_processed"), count("total_writes_processed"))
}

#[tokio::test]
async fn only_vanished_keys_cost_a_reassert() {
    let (server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..300 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    for gone in [3, 299] {
        let _: u64 = server.run(&format!("DEL {}", all[gone].name)).await;
    }
    server.forget_calls().await;
    let round = locks.renew(&all, LONG).await.expect("a reply");
    let back = round.verdicts.iter().filter(|verdict| **verdict == Verdict::Reasserted).count();
    assert_eq!(back, 2);
    assert_eq!(
        (round.verdicts[3], round.verdicts[299]),
        (Verdict::Reasserted, Verdict::Reasserted)
    );
    assert_eq!((server.calls("evalsha").await, server.calls("script|load").await), (3, 2));
    assert_eq!(server.calls("hset").await, 2);
}

#[tokio::test]
async fn three_connections_serve_any_number_of_claims() {
    let (server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..50 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    locks.renew(&all, LONG).await.expect("a reply");
    // Waiters share one connection for messages.
    let _line = enter(&locks, &claim(&all[0].name, &lee())).await;
    until("all are there", async || {
        let clients: String = server.run("CLIENT LIST").await;
        // And the test's own.
        clients.lines().count() == 4
    })
    .await;
}
