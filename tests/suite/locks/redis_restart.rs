//! Redis restarts empty, or without its scripts, and no session loses its seat.

use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    Claim, Claimed, HeldLock, LockName, Locks, LocksError, Owner, ReclaimToken, Released,
    RenewalTiming, Takeover, Verdict,
};
use redis::Value;

use crate::locks::lease_holders::{RecordingHolder, registered};
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, refused, seat, seated, until,
};
use crate::support::redis_server::Server;

async fn start() -> (Server, Locks) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    // Renewals have their own connection, which must exist before the restart cuts it.
    let first = seated(&locks, &seat(), &kim(), LONG).await;
    assert_eq!(renewed(&locks, std::slice::from_ref(&first)).await, [Verdict::Renewed]);
    locks.release(&first.name, &first.value).await.expect("a reply");
    (server, locks)
}

/// Kills Redis and restarts it empty; returns when the locks reach it again.
async fn restart(server: &mut Server, locks: &Locks) {
    server.stop().await;
    server.start_again().await;
    until("it is detected", async || locks.check().await.is_ok()).await;
}

async fn renewed(locks: &Locks, held: &[HeldLock]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    until("renewals work", async || {
        let round = locks.renew(held, LONG).await;
        round.map(|round| verdicts = round.verdicts).is_ok()
    })
    .await;
    verdicts
}

#[tokio::test]
async fn g1_an_empty_redis_restart_loses_none_of_two_hundred_seats() {
    let (mut server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..200 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }

    restart(&mut server, &locks).await;

    assert_eq!(renewed(&locks, &all).await, [Verdict::Reasserted; 200]);
    assert_eq!(renewed(&locks, &all).await, [Verdict::Renewed; 200]);
    let seats = locks.seats().await.expect("a reply");
    assert_eq!(seats.len(), 200);
    for one in &all {
        let holder = locks.holder(&one.name).await.expect("a reply").expect("a holder");
        assert_eq!((holder.value, holder.owner), (one.value.clone(), one.owner.clone()));
        assert_eq!((holder.fence, holder.since), (one.fence, one.since));
        // The client rejects a new claim with the holder.
    }
    assert_eq!(refused(&locks, &claim(&all[0].name, &lee())).await.owner, all[0].owner);
}

/// A reassert restores the whole grant: the user of a seat reclaims it by its secret.
#[tokio::test]
async fn the_reclaim_token_of_a_seat_survives_an_empty_redis_restart() {
    let (mut server, locks) = start().await;
    let owner = Owner { pass: Some(ReclaimToken::of("secret")), ..kim() };
    let old = seated(&locks, &seat(), &owner, LONG).await;
    restart(&mut server, &locks).await;
    assert_eq!(renewed(&locks, std::slice::from_ref(&old)).await, [Verdict::Reasserted]);
    let wrong = Claim {
        over: Takeover::ReclaimToken(ReclaimToken::of("another")),
        ..claim(&old.name, &kim())
    };
    assert_eq!(refused(&locks, &wrong).await.value, old.value);
    let back = Claim {
        over: Takeover::ReclaimToken(ReclaimToken::of("secret")),
        ..claim(&old.name, &kim())
    };
    granted(&locks, &back).await;
}

#[tokio::test]
async fn g6_after_an_empty_restart_the_first_claimant_retains_the_seat() {
    let (mut server, locks) = start().await;
    let name = seat();
    let old = seated(&locks, &name, &kim(), LONG).await;
    restart(&mut server, &locks).await;
    let new = seated(&locks, &name, &lee(), LONG).await;
    let old = std::slice::from_ref(&old);
    assert_eq!(renewed(&locks, old).await, [Verdict::Lost]);
    // Nor after that holder's release.
    assert_eq!(locks.release(&name, &new.value).await, Ok(Released::Freed));
    assert_eq!(renewed(&locks, old).await, [Verdict::Lost]);
    assert_eq!(locks.holder(&name).await, Ok(None));
}

#[tokio::test]
async fn g6_after_an_empty_restart_a_late_renewal_does_not_restore_a_released_lock() {
    let (mut server, locks) = start().await;
    let (name, other) = (seat(), seat());
    let mine = seated(&locks, &name, &kim(), LONG).await;
    let theirs = seated(&locks, &other, &lee(), LONG).await;
    restart(&mut server, &locks).await;

    assert_eq!(locks.release(&name, &mine.value).await, Ok(Released::NotHeld));
    // A stranger's release does not cost the holder its lock.
    assert_eq!(locks.release(&other, "ses_stranger").await, Ok(Released::NotHeld));

    let verdicts = renewed(&locks, &[mine, theirs]).await;
    assert_eq!(verdicts, [Verdict::Lost, Verdict::Reasserted]);
}

#[tokio::test]
async fn g2_the_fence_rises_through_an_empty_restart() {
    let (mut server, locks) = start().await;
    let (by_clock, by_floor) = (seat(), seat());
    let first = seated(&locks, &by_clock, &kim(), LONG).await;
    // As if the clock had been a century ahead at this grant.
    let ahead = Fence(9_000_000_000_000_000 / 2);
    let high = Claim { floor: ahead, ..claim(&by_floor, &kim()) };
    let high = granted(&locks, &high).await;

    restart(&mut server, &locks).await;

    assert!(first.fence < seated(&locks, &by_clock, &lee(), LONG).await.fence);
    let next = Claim { floor: high.fence, ..claim(&by_floor, &lee()) };
    assert!(high.fence < granted(&locks, &next).await.fence);
}

#[tokio::test]
async fn g2_the_fence_rises_when_the_clock_steps_back() {
    let (server, locks) = start().await;
    let name = seat();
    let first = seated(&locks, &name, &kim(), LONG).await;
    locks.release(&name, &first.value).await.expect("a reply");
    // The test cannot set Redis's clock; a last fence from the future has the same effect.
    let grant_key = name.key().replace("share-link:lock:", "share-link:grant:");
    let _: i64 = server.run(&format!("HSET {grant_key} fence 4500000000000000")).await;
    let next = seated(&locks, &name, &kim(), LONG).await;
    assert_eq!(next.fence, Fence(4_500_000_000_000_001));
}

/// A double cannot count further: the next fence would equal the last one.
#[tokio::test]
async fn g2_a_fence_that_cannot_rise_is_rejected_with_the_reason() {
    let (server, locks) = start().await;
    let last = Fence((1 << 53) - 1);
    let beyond = async |what: Result<Claimed, LocksError>| {
        let Err(LocksError::Misconfigured(why)) = what else { panic!("{what:?}") };
        assert!(why.contains("2^53"), "{why}");
    };
    // By the grant, by the floor, and by the grant of a held lock.
    let name = seat();
    let grant_key = name.key().replace("share-link:lock:", "share-link:grant:");
    let _: i64 = server.run(&format!("HSET {grant_key} fence {last}")).await;
    beyond(locks.claim(&claim(&name, &kim())).await).await;
    assert_eq!(locks.holder(&name).await, Ok(None), "nothing stays behind");
    beyond(locks.claim(&Claim { floor: last, ..claim(&seat(), &kim()) }).await).await;
    let held = seated(&locks, &seat(), &kim(), LONG).await;
    let grant_key = held.name.key().replace("share-link:lock:", "share-link:grant:");
    let _: i64 = server.run(&format!("HSET {grant_key} fence {last}")).await;
    let take_over = Claim { over: Takeover::SameOwner, ..claim(&held.name, &kim()) };
    beyond(locks.claim(&take_over).await).await;
    // The last possible fence, and another claim of the same call.
    let (name, beside) = (seat(), claim(&seat(), &kim()));
    let floor = Fence(last.0 - 1);
    let high = Claim { floor, ..claim(&name, &kim()) };
    let refused = Claim { floor: last, ..claim(&seat(), &kim()) };
    let (one, other, third) =
        tokio::join!(locks.claim(&high), locks.claim(&refused), locks.claim(&beside));
    assert!(matches!(one, Ok(Claimed::Granted(grant)) if grant.fence == last));
    beyond(other).await;
    assert!(matches!(third, Ok(Claimed::Granted(_))), "{third:?}");
}

#[tokio::test]
async fn a_script_flush_between_renewals_loses_nothing() {
    let (server, locks) = start().await;
    let mut all = Vec::new();
    for _ in 0..1_000 {
        all.push(seated(&locks, &seat(), &kim(), LONG).await);
    }
    for _round in 0..3 {
        let _: Value = server.run("SCRIPT FLUSH").await;
        assert_eq!(renewed(&locks, &all).await, [Verdict::Renewed; 1_000]);
    }
}

#[tokio::test]
async fn single_calls_load_their_script_again_after_a_script_flush() {
    let (server, locks) = start().await;
    let _: Value = server.run("SCRIPT FLUSH").await;
    let next = claim(&seat(), &lee());
    let next = held(&next, &granted(&locks, &next).await);
    let _: Value = server.run("SCRIPT FLUSH").await;
    assert_eq!(locks.release(&next.name, &next.value).await, Ok(Released::Freed));
    let _: Value = server.run("SCRIPT FLUSH").await;
    assert_eq!(locks.holder(&next.name).await, Ok(None));
}

/// Each lock counts its own hours. The guard is in no round of the seat when an hour of the seat
/// ends.
#[tokio::test]
async fn g2_the_grant_of_a_long_lease_is_stored_beside_a_short_one() {
    const MINUTE: Duration = Duration::from_secs(60);
    let (server, locks) = start().await;
    let (short, long) = (RecordingHolder::new(), RecordingHolder::new());
    let (seat, job) = (seat(), LockName::named("job:1"));
    let every_20_minutes = RenewalTiming::new(60 * MINUTE, 20 * MINUTE);
    let _long = registered(&locks, &job, every_20_minutes, &long).await;
    // The seat starts a minute later, so the guard is not due when an hour of the seat ends.
    let every_4_s = RenewalTiming::new(Duration::from_secs(12), Duration::from_secs(4));
    let _short = registered(&locks, &seat, every_4_s, &short).await;
    let keys = [
        seat.key().replace("share-link:lock:", "share-link:grant:"),
        job.key().replace("lock:", "lock:grant:"),
    ];
    for key in &keys {
        let _: i64 = server.run(&format!("PEXPIRE {key} 600000")).await;
    }
    for (minutes, is_long_due) in [(21, true), (21, true), (19, false), (3, true)] {
        let notified = (short.notified().len(), long.notified().len());
        tokio::time::pause();
        tokio::time::advance(minutes * MINUTE).await;
        tokio::time::resume();
        short.until_notified(notified.0 + 1).await;
        if is_long_due {
            long.until_notified(notified.1 + 1).await;
        } else {
            assert_eq!(long.notified().len(), notified.1, "it is in a round of its own");
        }
    }
    for key in &keys {
        let left: u64 = server.run(&format!("PTTL {key}")).await;
        assert!(23 * 60 * 60 * 1_000 < left, "{key}: {left}");
    }
}

#[tokio::test]
async fn a_cut_connection_is_replaced_at_once() {
    let (server, locks) = start().await;
    let one = seated(&locks, &seat(), &kim(), LONG).await;
    let one = std::slice::from_ref(&one);
    let _: u64 = server.run("CLIENT KILL TYPE normal SKIPME yes").await;
    assert_eq!(renewed(&locks, one).await, [Verdict::Renewed]);
    until("claims work too", async || locks.holder(&one[0].name).await.is_ok()).await;
}

#[tokio::test]
async fn locks_that_start_before_redis_work_when_redis_is_up() {
    let mut server = Server::start().await;
    server.stop().await;
    let locks = Locks::connect(&server.url()).await.expect("it does not wait for Redis");
    let early = claim(&seat(), &kim());
    assert!(locks.claim(&early).await.is_err());
    server.start_again().await;
    until("they work", async || locks.check().await.is_ok()).await;
    granted(&locks, &early).await;
}
