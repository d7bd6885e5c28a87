//! Redis comes back with an older state: an RDB or AOF file, or a replica that lagged. The holder
//! of the last ratified grant keeps its seat, and a new claimant waits for it.

use std::sync::Arc;
use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    Claim, Claimed, HeldLock, Holder, LockName, Locks, Owner, Registration, Released,
    RenewalTiming, Takeover, Verdict,
};
use redis::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::locks::lease_holders::{Notification, RecordingHolder};
use crate::locks::wait_queue::{SLACK, await_grant, enter};
use crate::support::fixtures::{
    LONG, apart, claim, fit, granted, held, kim, lee, refused, seat, seated, until,
};
use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::stopwatch::Stopwatch;

/// How long a Redis that came back reserves locks for their previous holders.
const GRACE: Duration = Duration::from_secs(2);
/// Seats of each kind.
const SEATS: usize = 5;

async fn connect(server: &Server) -> Locks {
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    fit(&locks).await;
    let first = seated(&locks, &seat(), &kim(), LONG).await;
    locks.renew(std::slice::from_ref(&first), LONG).await.expect("a reply");
    locks.release(&first.name, &first.value).await.expect("a reply");
    locks
}

/// A session that holds its seat, and its last grant.
struct Session {
    held: HeldLock,
    lease_holder: Arc<RecordingHolder>,
    _registration: Registration,
}

impl Session {
    fn of(locks: &Locks, claim: &Claim, grant: &galley::locks::Grant) -> Self {
        let (held, lease_holder) = (held(claim, grant), RecordingHolder::new());
        let timing = RenewalTiming::new(claim.ttl, claim.ttl / 3);
        let shared_holder = Arc::<RecordingHolder>::clone(&lease_holder);
        let registration = locks.register(held.clone(), timing, grant.sent_at, shared_holder);
        Self { held, lease_holder, _registration: registration.expect("not closed") }
    }

    async fn begin(locks: &Locks, claim: &Claim) -> Self {
        Self::of(locks, claim, &granted(locks, claim).await)
    }

    async fn came_back(&self) {
        until("it is renewed", async || !self.lease_holder.notified().is_empty()).await;
        let notified = self.lease_holder.notified();
        assert!(
            matches!(notified[0], Notification::Renewed(..)),
            "{}: {notified:?}",
            self.held.name
        );
        assert!(
            !notified.iter().any(|notified| matches!(notified, Notification::Lost(_))),
            "{notified:?}"
        );
    }
}

/// A seat claim: for 12 s, above the fence that the database ratified.
fn claim_of(name: &LockName, owner: &Owner, floor: Fence) -> Claim {
    Claim { ttl: Duration::from_secs(12), floor, ..claim(name, owner) }
}

/// Claims a seat repeatedly, from before Redis runs until Redis reports the holder.
fn newcomer(locks: &Locks, last: &HeldLock) -> JoinHandle<Holder> {
    let (locks, name, floor) = (locks.clone(), last.name.clone(), last.fence);
    apart(async move {
        let mut over = Takeover::None;
        loop {
            let claim = Claim { over: over.clone(), ..claim_of(&name, &kim(), floor) };
            match locks.claim(&claim).await {
                // As the claim of a seat: a session of the same user that its server does not know.
                Ok(Claimed::Busy(holder)) if holder.fence < floor => {
                    over = Takeover::Value(holder.value);
                }
                Ok(Claimed::Busy(holder)) => return holder,
                Ok(Claimed::Granted(grant)) => panic!("{name} is taken from its holder: {grant:?}"),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
}

/// Stores a state of Redis, lets sessions leave and join, and restores the state.
async fn no_seat_is_lost(arguments: &[&str]) {
    let mut server = Server::start_with(arguments).await;
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let names: Vec<_> = (0..5 * SEATS).map(|_| seat()).collect();
    let (mut firsts, mut line) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate().filter(|(at, _)| at % 5 != 4) {
        firsts.push((at, seated(&locks, name, &kim(), Duration::from_secs(12)).await));
        if at % 5 == 2 {
            let next = claim_of(name, &kim(), Fence::ZERO);
            line.push((next.clone(), enter(&locks, &next).await.0));
        }
        if at % 5 == 1 {
            let (_, first) = firsts.last().expect("a seat");
            locks.release(name, &first.value).await.expect("a reply");
        }
    }
    // The state: held, released, held with a queue, held before a takeover, never granted.
    let state = server.stored().await;
    let mut sessions = Vec::new();
    for (at, first) in &firsts {
        match at % 5 {
            3 => {
                let next = claim_of(&first.name, &kim(), first.fence);
                let next = Claim { over: Takeover::SameOwner, ..next };
                sessions.push(Session::begin(&locks, &next).await);
                continue;
            }
            0 | 2 => drop(locks.release(&first.name, &first.value).await.expect("a reply")),
            _ => {}
        }
        if at % 5 != 2 {
            let next = claim_of(&first.name, &kim(), first.fence);
            sessions.push(Session::begin(&locks, &next).await);
        }
    }
    for (claim, waiting) in line {
        sessions.push(Session::of(&locks, &claim, &await_grant(waiting).await));
    }
    for name in names.iter().skip(4).step_by(5) {
        sessions.push(Session::begin(&locks, &claim_of(name, &kim(), Fence::ZERO)).await);
    }
    assert_eq!(sessions.len(), 5 * SEATS);

    server.stop().await;
    let newcomers: Vec<_> = sessions.iter().map(|it| newcomer(&other, &it.held)).collect();
    server.start_again_with(&state).await;

    for (session, newcomer) in sessions.iter().zip(newcomers) {
        session.came_back().await;
        let holder = timeout(TEST_TIMEOUT, newcomer).await.expect("in time").expect("no panic");
        let notified = (holder.value, holder.fence, holder.waiting);
        assert_eq!(notified, (session.held.value.clone(), session.held.fence, 0));
    }
    for session in &sessions {
        let HeldLock { name, value, .. } = &session.held;
        assert_eq!(locks.release(name, value).await, Ok(Released::Freed));
        // The lock is not granted to a waiter of the restored queue.
        assert_eq!(locks.holder(name).await, Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_redis_restart_with_an_older_rdb_loses_no_seat() {
    no_seat_is_lost(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_redis_restart_with_an_older_aof_loses_no_seat() {
    no_seat_is_lost(&["--appendonly", "yes"]).await;
}

/// The two keys of a lock, for a restore.
async fn dumped(server: &Server, name: &LockName) -> [(String, Vec<u8>); 2] {
    let grant = name.key().replace("share-link:lock:", "share-link:grant:");
    let mut dumps = Vec::new();
    for key in [name.key().to_owned(), grant] {
        let dump: Vec<u8> = server.run(&format!("DUMP {key}")).await;
        dumps.push((key, dump));
    }
    dumps.try_into().expect("two keys")
}

/// As on a promoted replica that did not receive the later writes.
async fn restored(server: &Server, dumps: &[(String, Vec<u8>); 2]) {
    let mut connection = server.connection().await;
    for (key, dump) in dumps {
        let mut restore = redis::cmd("RESTORE");
        restore.arg(key).arg(12_000).arg(dump).arg("REPLACE");
        let _: Value = restore.query_async(&mut connection).await.expect("no error");
    }
}

#[tokio::test]
async fn g6_a_holder_reasserts_its_lock_over_an_older_grant_and_never_over_a_newer_one() {
    let server = Server::start().await;
    let locks = connect(&server).await;
    let name = seat();
    let first = seated(&locks, &name, &kim(), LONG).await;
    let older = dumped(&server, &name).await;
    let take_over = Claim { over: Takeover::SameOwner, ..claim_of(&name, &kim(), first.fence) };
    let last = held(&take_over, &granted(&locks, &take_over).await);
    let both = [first.clone(), last.clone()];
    let beside = seated(&locks, &seat(), &lee(), LONG).await;
    let renewed =
        async |held: &[HeldLock]| locks.renew(held, LONG).await.expect("a reply").verdicts;
    for _round in 0..5 {
        restored(&server, &older).await;
        assert_eq!(locks.holder(&name).await.expect("a reply").expect("held").fence, first.fence);
        let round = [last.clone(), beside.clone()];
        assert_eq!(renewed(&round).await, [Verdict::Reasserted, Verdict::Renewed]);
        let holder = locks.holder(&name).await.expect("a reply").expect("held");
        assert_eq!((&holder.value, holder.fence), (&last.value, last.fence));
        assert_eq!(renewed(&both).await, [Verdict::Lost, Verdict::Renewed]);
    }
    // A lock that the older state shows as free.
    locks.release(&name, &last.value).await.expect("a reply");
    let again = seated(&locks, &name, &kim(), LONG).await;
    let free = dumped(&server, &name).await;
    locks.release(&name, &again.value).await.expect("a reply");
    let newer = seated(&locks, &name, &lee(), LONG).await;
    restored(&server, &free).await;
    let _: u64 = server.run(&format!("DEL {name}")).await;
    assert_eq!(renewed(&[newer, again]).await, [Verdict::Reasserted, Verdict::Lost]);
}

/// Keys of the lock that an operator set by hand prove no older grant.
#[tokio::test]
async fn g6_a_reassert_never_replaces_a_key_set_by_hand() {
    let server = Server::start().await;
    let locks = connect(&server).await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    let grant = one.name.key().replace("share-link:lock:", "share-link:grant:");
    let one = std::slice::from_ref(&one);
    for by_hand in [
        format!("SET {} by-hand", one[0].name),
        format!("HSET {grant} fence 1"),
        format!("HSET {grant} fence none"),
        format!("DEL {grant}"),
    ] {
        let _: Value = server.run(&by_hand).await;
        let round = locks.renew(one, LONG).await.expect("a reply");
        assert_eq!(round.verdicts, [Verdict::Lost], "{by_hand}");
    }
}

/// A server without an earlier Redis detects the older state by the floor of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_claim_with_a_floor_above_the_grant_waits_for_the_holder() {
    let server = Server::start().await;
    let (locks, new) = (connect(&server).await, connect(&server).await);
    for is_free in [false, true] {
        let name = seat();
        let first = seated(&locks, &name, &kim(), LONG).await;
        let older = dumped(&server, &name).await;
        locks.release(&name, &first.value).await.expect("a reply");
        let last = seated(&locks, &name, &kim(), LONG).await;
        restored(&server, &older).await;
        if is_free {
            let _: u64 = server.run(&format!("DEL {name}")).await;
        }
        let newcomer = newcomer(&new, &last);
        until("the sign is seen", async || {
            let grant = name.key().replace("share-link:lock:", "share-link:grant:");
            server.run::<bool>(&format!("HEXISTS {grant} older")).await
        })
        .await;
        let round = locks.renew(std::slice::from_ref(&last), LONG).await.expect("a reply");
        assert_eq!(round.verdicts, [Verdict::Reasserted]);
        let holder = timeout(TEST_TIMEOUT, newcomer).await.expect("in time").expect("no panic");
        assert_eq!((holder.value, holder.fence), (last.value, last.fence));
        // Redis knows the claim above the floor; a refusal names the holder at once.
        let began = Stopwatch::start();
        refused(&new, &claim_of(&name, &lee(), last.fence)).await;
        assert!(began.elapsed() < GRACE / 2, "{:?}", began.elapsed());
    }
}

/// Goal: a lock whose holder does not reassert it is free after the grace.
#[tokio::test]
async fn g4_a_lock_of_an_older_state_without_a_returning_holder_is_free_after_the_grace() {
    let mut server = Server::start().await;
    let locks = connect(&server).await;
    let (name, lost) = (seat(), seat());
    let first = seated(&locks, &name, &kim(), LONG).await;
    locks.release(&name, &first.value).await.expect("a reply");
    let state = server.stored().await;
    let last = seated(&locks, &name, &kim(), LONG).await;
    server.stop().await;
    server.start_again_with(&state).await;
    let back = Stopwatch::start();
    let mut fence = Fence::ZERO;
    let options = claim_of(&name, &lee(), last.fence);
    until("it is granted", async || {
        let options = Claim { value: seat().to_string(), ..options.clone() };
        match locks.claim(&options).await {
            Ok(Claimed::Granted(grant)) => fence = grant.fence,
            Ok(Claimed::Busy(holder)) => panic!("{holder:?}"),
            Err(_) => {}
        }
        fence != Fence::ZERO
    })
    .await;
    assert!(GRACE / 2 < back.real(), "{:?}", back.elapsed());
    assert!(back.elapsed() < 2 * GRACE + SLACK, "{:?}", back.elapsed());
    assert!(last.fence < fence);
    // From now on a claim is granted at once.
    let began = Stopwatch::start();
    granted(&locks, &claim_of(&lost, &lee(), Fence::ZERO)).await;
    assert!(began.elapsed() < GRACE / 2, "{:?}", began.elapsed());
    // The late holder receives the loss.
    let round = locks.renew(std::slice::from_ref(&last), LONG).await.expect("a reply");
    assert_eq!(round.verdicts, [Verdict::Lost]);
}

/// Whether a script detected an older state, which makes a claim wait.
async fn shows_an_older_state(server: &Server, name: &LockName) -> bool {
    let grant = name.key().replace("share-link:lock:", "share-link:grant:");
    server.run(&format!("HEXISTS {grant} older")).await
}

/// Goal: an eviction makes the floor one higher than the fence of the grant. That is no older
/// state. The next claim is granted at once: after the release, and as a takeover before it.
#[tokio::test]
async fn g6_after_an_eviction_the_next_claim_does_not_wait() {
    let server = Server::start().await;
    let locks = connect(&server).await;
    for (owner, is_released) in [(kim(), true), (lee(), true), (kim(), false)] {
        let name = seat();
        let evicted = seated(&locks, &name, &kim(), LONG).await;
        let Fence(fence) = evicted.fence;
        let floor = Fence(fence + 1);
        let mut next = claim_of(&name, &owner, floor);
        if is_released {
            locks.release(&name, &evicted.value).await.expect("a reply");
        } else {
            next.over = Takeover::SameOwner;
        }
        assert!(floor < granted(&locks, &next).await.fence);
        assert!(!shows_an_older_state(&server, &name).await, "{is_released}");
    }
}

/// Goal: while the clock of Redis is behind the last fence, a later grant also has a fence one
/// higher. Then Redis reserves the lock for the holder of that grant.
#[tokio::test]
async fn g6_a_floor_one_higher_is_an_older_state_while_the_clock_is_behind() {
    let server = Server::start().await;
    let locks = connect(&server).await;
    let name = seat();
    let first = seated(&locks, &name, &kim(), LONG).await;
    locks.release(&name, &first.value).await.expect("a reply");
    let grant = name.key().replace("share-link:lock:", "share-link:grant:");
    let _: i64 = server.run(&format!("HSET {grant} fence 4500000000000000")).await;
    let floor = Fence(4_500_000_000_000_001);
    assert!(floor < granted(&locks, &claim_of(&name, &lee(), floor)).await.fence);
    assert!(shows_an_older_state(&server, &name).await);
}
