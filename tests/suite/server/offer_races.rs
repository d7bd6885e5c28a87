//! Races for the places of review offers, on one server and on several.

use std::time::Duration;

use futures_util::future::{join, join_all};
use galley::locks::{AcquireOptions, AlarmKind, Guard, Lease, LockName, Locks};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::server::kill_campaign::{planned, say};
use crate::server::offer_fixtures::{Fleet, an_offer, claim, claims, decided, numbers, offer};
use crate::support::fixtures::{apart, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::{Answer, Person, time};

/// Claimants of one offer.
const CLAIMANTS: usize = 500;
/// Kills of a server with claims in flight, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;
/// How long a claim waits for its grant, and what a busy machine adds to it.
const WAIT: Duration = Duration::from_secs(10);
const BUSY: Duration = Duration::from_secs(3);

/// Holds that the offer has as many claims as its places say, and returns them.
async fn audit(server: &Server, owner: &Person, id: &str) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let (seen, claims) = (offer(server, owner, id).await, claims(server, owner, id).await);
        let [capacity, remaining] =
            ["capacity", "remaining"].map(|field| seen[field].as_u64().expect("a number"));
        if capacity - remaining == claims.len() as u64 {
            return claims;
        }
        // A commit of a killed server between the two reads shows in the second one only.
        assert!(began.elapsed() < TEST_TIMEOUT, "{seen} has the claims {claims:?}");
    }
}

/// Splits answers into claims and refusals, and holds that each refusal has this name.
fn split(answers: Vec<Answer>, refusal: &str) -> Vec<Value> {
    let mut made = Vec::new();
    for answer in answers {
        match answer.status.as_u16() {
            201 => made.push(answer.json),
            _ => answer.problem(409, refusal),
        }
    }
    made
}

async fn five_hundred_claims_for_five_slots(fleet: &Fleet, rounds: usize) {
    let owner = fleet.server(0).guest("Kim").await;
    let guests = fleet.guests(CLAIMANTS).await;
    for _round in 0..rounds {
        let id = an_offer(fleet.server(0), &owner, 5).await;
        let made = split(fleet.claim_at_once(&guests, &id).await, "sold-out");
        assert_eq!(numbers(&made), [1, 2, 3, 4, 5]);
        let stored = audit(fleet.server(0), &owner, &id).await;
        assert_eq!(numbers(&stored), [1, 2, 3, 4, 5]);
        // The claim of a later grant begins later.
        let times: Vec<_> = stored.iter().map(|claim| time(&claim["created_at"])).collect();
        assert!(times.is_sorted(), "{times:?}");
        for server in &fleet.servers {
            let seen = offer(server, &owner, &id).await;
            assert_eq!((&seen["remaining"], &seen["state"]), (&json!(0), &json!("sold-out")));
        }
    }
}

/// Goal: of 500 simultaneous claims five take the five places, and all others get `sold-out`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_five_hundred_claims_for_five_slots_give_five_on_one_server() {
    five_hundred_claims_for_five_slots(&Fleet::alone().await, 2).await;
}

/// Goal: the same on three servers with Redis and PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_five_hundred_claims_for_five_slots_give_five_on_three_servers() {
    five_hundred_claims_for_five_slots(&Fleet::of(3).await, 2).await;
}

/// Goal: a claim that races the close of its offer is stored, or refused as `offer-closed`; after the
/// close there is no claim.
async fn a_close_among_claims(fleet: &Fleet) {
    let owner = fleet.server(0).guest("Kim").await;
    let latecomer = fleet.server(0).guest("Late").await;
    let guests = fleet.guests(30).await;
    for round in 0..4_u64 {
        let id = an_offer(fleet.server(0), &owner, 100).await;
        let close = format!("/api/review-offers/{id}/close");
        let closing = async {
            // The moment of the close, not a wait for an event.
            sleep(Duration::from_millis(5 * round * round)).await;
            let closed = fleet.server(1).post(&owner, &close, json!({})).await.ok(200);
            (closed, claim(fleet.server(2), &latecomer, &id).await)
        };
        let (answers, (closed, late)) = join(fleet.claim_at_once(&guests, &id), closing).await;
        late.problem(409, "offer-closed");
        let made = split(answers, "offer-closed");
        let stored = audit(fleet.server(0), &owner, &id).await;
        assert_eq!(numbers(&stored), numbers(&made));
        assert_eq!(offer(fleet.server(0), &owner, &id).await["closed_at"], closed["closed_at"]);
        say(&format!("a close after {} of 30 claims", made.len()));
    }
}

/// Withdraws a claim at two servers at once. One of them succeeds.
async fn withdraw_twice(servers: [&Server; 2], guest: &Person, offer: &str, claim: &Value) {
    let claim = claim["id"].as_str().expect("an id");
    let path = format!("/api/review-offers/{offer}/claims/{claim}");
    let [one, two] = servers.map(|server| server.call(guest, "DELETE", &path, None));
    let (one, two) = join(one, two).await;
    let ended = [one, two].into_iter().filter(|answer| answer.status == 204).count();
    assert_eq!(ended, 1, "a claim ends once");
}

/// Claims a place some times, and withdraws each claim but the last.
async fn claim_and_withdraw(servers: [&Server; 2], guest: &Person, offer: &str) -> Option<Value> {
    let mut last = None;
    for _time in 0..4 {
        if let Some(claim) = &last {
            withdraw_twice(servers, guest, offer, claim).await;
        }
        let answer = decided(servers[0], guest, offer).await;
        last = split(vec![answer], "sold-out").pop();
    }
    last
}

/// Goal: places that are claimed, withdrawn and claimed again are never more than there are.
async fn claims_and_withdrawals(fleet: &Fleet) {
    let owner = fleet.server(0).guest("Kim").await;
    let guests = fleet.guests(12).await;
    let id = an_offer(fleet.server(0), &owner, 3).await;
    let works = guests.iter().enumerate().map(|(index, guest)| {
        claim_and_withdraw([fleet.server(index), fleet.server(index + 1)], guest, &id)
    });
    let left: Vec<_> = join_all(works).await.into_iter().flatten().collect();
    assert!(left.len() <= 3, "{left:?}");
    assert_eq!(numbers(&audit(fleet.server(0), &owner, &id).await), numbers(&left));
}

/// Goal: of an acceptance and a withdrawal at once one succeeds.
async fn acceptances_and_withdrawals(fleet: &Fleet) {
    let owner = fleet.server(0).guest("Kim").await;
    let guests = fleet.guests(8).await;
    let id = an_offer(fleet.server(0), &owner, 8).await;
    let made = split(fleet.claim_at_once(&guests, &id).await, "sold-out");
    let mut accepted = 0;
    for claim in made {
        let claimant = guests.iter().find(|guest| claim["user"]["id"] == guest.id);
        let path =
            format!("/api/review-offers/{id}/claims/{}", claim["id"].as_str().expect("an id"));
        let accept = format!("{path}/accept");
        let (ended, done) = join(
            fleet.server(1).call(claimant.expect("a guest"), "DELETE", &path, None),
            fleet.server(2).post(&owner, &accept, json!({})),
        )
        .await;
        if done.status == 200 {
            ended.problem(409, "claim-accepted");
            accepted += 1;
        } else {
            done.problem(404, "not-found");
            assert_eq!(ended.status, 204, "{}", ended.json);
        }
    }
    let stored = audit(fleet.server(0), &owner, &id).await;
    assert_eq!(stored.len(), accepted);
    assert!(stored.iter().all(|claim| claim["state"] == "accepted"), "{stored:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_closes_withdrawals_and_acceptances_among_claims_give_no_slot_twice_on_one_server() {
    let fleet = Fleet::alone().await;
    a_close_among_claims(&fleet).await;
    claims_and_withdrawals(&fleet).await;
    acceptances_and_withdrawals(&fleet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_closes_withdrawals_and_acceptances_among_claims_give_no_slot_twice_on_three_servers() {
    let fleet = Fleet::of(3).await;
    a_close_among_claims(&fleet).await;
    claims_and_withdrawals(&fleet).await;
    acceptances_and_withdrawals(&fleet).await;
}

/// The length of the wait queue of an offer.
async fn queued(fleet: &Fleet, id: &str) -> usize {
    let redis = fleet.redis.as_ref().expect("a Redis");
    redis.run(&format!("ZCARD lock:line:offer:{id}")).await
}

async fn becomes_queued(fleet: &Fleet, id: &str, expected: usize) {
    let what = format!("{expected} claims in the queue");
    until(&what, async || queued(fleet, id).await == expected).await;
}

/// Sends a claim. Dropping the returned stream ends the connection.
async fn send_claim(server: &Server, who: &Person, id: &str) -> TcpStream {
    let address = server.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST /api/review-offers/{id}/claims HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
        who.token
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    socket
}

/// Goal: behind a held lock each claim gets `lock-wait-timeout` within its limit and nothing is stored.
/// A client that disconnects leaves the queue. A closed offer answers its waiting claims at once. The waits
/// and the hold raise alarms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_held_lock_gives_lock_wait_timeout_and_a_client_that_disconnects_leaves_the_queue() {
    let fleet = Fleet::of(2).await;
    let owner = fleet.server(0).guest("Kim").await;
    let guests = fleet.guests(100).await;
    let (held, closed) =
        (an_offer(fleet.server(0), &owner, 5).await, an_offer(fleet.server(0), &owner, 5).await);
    let locks = Locks::connect(&fleet.redis.as_ref().expect("a Redis").url()).await.expect("locks");
    let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
    let mut guards = Vec::new();
    for id in [&held, &closed] {
        let name = LockName::named(&format!("offer:{id}"));
        guards.push(locks.try_lock(&name, &options).await.expect("a free lock"));
    }
    let mut sockets = Vec::new();
    for (index, guest) in guests[..10].iter().enumerate() {
        sockets.push(send_claim(fleet.server(index), guest, &held).await);
    }
    becomes_queued(&fleet, &held, 10).await;
    sockets.clear();
    becomes_queued(&fleet, &held, 0).await;

    let before = fleet.server(0).resident();
    let waiting = guests.iter().enumerate();
    let waiting = join_all(waiting.map(async |(index, guest)| {
        let began = Instant::now();
        (claim(fleet.server(index), guest, &held).await, began.elapsed())
    }));
    let at_one = guests.iter().take(10).map(|guest| claim(fleet.server(0), guest, &closed));
    let closing = async {
        becomes_queued(&fleet, &closed, 10).await;
        becomes_queued(&fleet, &held, 100).await;
        let waits = fleet.server(0).resident().saturating_sub(before) / 60 / 1_024;
        say(&format!("a waiting claim takes {waits} KiB of its server"));
        let path = format!("/api/review-offers/{closed}/close");
        fleet.server(0).post(&owner, &path, json!({})).await.ok(200);
    };
    let answered = async {
        let answers = join_all(at_one).await;
        assert!(split(answers, "offer-closed").is_empty());
        // The claims of the other offer still wait.
        assert!(0 < queued(&fleet, &held).await);
    };
    let (late, ((), ())) = join(waiting, join(closing, answered)).await;
    for (answer, waited) in late {
        answer.problem(503, "lock-wait-timeout");
        assert!((WAIT..WAIT + BUSY).contains(&waited), "a claim waits {waited:?}");
    }
    for server in &fleet.servers {
        for alarm in ["wait", "failures"] {
            server.has(&format!("galley_lock_alarm{{class=\"offer\",alarm=\"{alarm}\"}}"), 1).await;
        }
    }
    let holds: Vec<_> = locks.alarms().into_iter().map(|alarm| (alarm.class, alarm.kind)).collect();
    assert_eq!(holds, [("offer".to_owned(), AlarmKind::Hold)]);
    becomes_queued(&fleet, &held, 0).await;
    assert!(guards.iter().all(Guard::is_held));
    drop(guards);
    assert!(audit(fleet.server(0), &owner, &held).await.is_empty());
    claim(fleet.server(1), &guests[0], &held).await.ok(201);
    locks.close().await;
}

/// Goal: a server dies with the lock, in the middle of its transaction. Nothing of its claim is stored,
/// and a claim that waits at another server takes the place when the lease ends.
#[tokio::test]
async fn g16_the_next_claim_follows_within_the_lease_of_a_killed_claimant() {
    let mut fleet = Fleet::of(2).await;
    let owner = fleet.server(1).guest("Kim").await;
    let guests = fleet.guests(2).await;
    let id = an_offer(fleet.server(1), &owner, 1).await;
    let url = fleet.database.as_ref().expect("a database").url();
    let mut blocked = postgres_server::stranger(&url).await;
    sqlx::raw_sql("BEGIN").execute(&mut blocked).await.expect("a transaction");
    sqlx::query("SELECT 1 FROM review_offers WHERE id = $1 FOR UPDATE")
        .bind(&id)
        .execute(&mut blocked)
        .await
        .expect("the lock of the row");
    let _dies = send_claim(fleet.server(0), &guests[0], &id).await;
    let redis = fleet.redis.as_ref().expect("a Redis");
    until("the claim acquires the lock", async || {
        redis.run::<Option<String>>(&format!("GET lock:offer:{id}")).await.is_some()
    })
    .await;
    let (server, guest, offer) = (fleet.servers.remove(1), guests[1].clone(), id.clone());
    let next = apart(async move {
        let answer = claim(&server, &guest, &offer).await;
        (server, answer)
    });
    becomes_queued(&fleet, &id, 1).await;
    fleet.servers[0].kill().await;
    sqlx::raw_sql("ROLLBACK").execute(&mut blocked).await.expect("the end");
    // Sent once: a claim that waits longer than its limit gets 503.
    let (server, answer) = next.await.expect("an answer");
    assert_eq!(answer.ok(201)["number"], 1);
    assert_eq!(audit(&server, &owner, &id).await.len(), 1);
}

/// Goal: a server is killed at a random moment of many claims. There are never more claims than places,
/// each answered claim is stored, and later claims take the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_after_a_kill_at_a_random_moment_there_are_never_six_claims_for_five_slots() {
    let (kills, mut random) = planned("offers", KILLS);
    let mut fleet = Fleet::of(2).await;
    let mut latency = Duration::from_millis(200);
    for round in 0..kills {
        let owner = fleet.server(1).guest("Kim").await;
        let guests = fleet.guests(30).await;
        let id = an_offer(fleet.server(1), &owner, 5).await;
        let began = Instant::now();
        let sockets =
            join_all(guests[..15].iter().map(|guest| send_claim(fleet.server(0), guest, &id)));
        let mut sockets = sockets.await;
        // The moment of the kill, not a wait for an event.
        let moment = random.below(usize::try_from(latency.as_micros()).unwrap());
        let others =
            join_all(guests[15..].iter().map(|guest| decided(&fleet.servers[1], guest, &id)));
        let killing = async {
            sleep(Duration::from_micros(moment.try_into().unwrap())).await;
            fleet.servers[0].signal("-KILL").await;
        };
        let (answers, ()) = join(others, killing).await;
        latency = latency.min(began.elapsed().max(Duration::from_millis(20)));
        sockets.clear();
        let made = split(answers, "sold-out");
        let mut stored = audit(&fleet.servers[1], &owner, &id).await;
        let by = |claims: &[Value], made: &Value| claims.iter().any(|it| it["id"] == made["id"]);
        assert!(made.iter().all(|made| by(&stored, made)), "{made:?} of {stored:?}");
        assert!(stored.len() <= 5, "{stored:?}");
        let killed = stored.len() - made.len();
        // Claims of the killed server's guests take the rest.
        let mut waiting = guests[..15].iter();
        while stored.len() < 5 {
            let guest = waiting.next().expect("a guest without a place");
            let answer = decided(&fleet.servers[1], guest, &id).await;
            let refused = answer.json["type"].as_str().unwrap_or_default();
            let may_be = ["/problems/already-claimed", "/problems/sold-out"];
            assert!(answer.status == 201 || may_be.contains(&refused), "{}", answer.json);
            stored = audit(&fleet.servers[1], &owner, &id).await;
        }
        assert_eq!(stored.len(), 5);
        claim(&fleet.servers[1], &fleet.servers[1].guest("Last").await, &id)
            .await
            .problem(409, "sold-out");
        say(&format!("offers: kill {round} after {moment} µs: {killed} of the killed server"));
        fleet.servers[0].kill().await;
        fleet.servers[0].start_again().await;
    }
}
