//! The registry and its sessions under `shuttle`: each test runs thousands of interleavings of its
//! threads.
//!
//! The module compiles the two files a second time, with primitives that yield to a scheduler at
//! each step. The map is one lock instead of many shards; that permits no fewer interleavings. A
//! failing test prints its schedule and its seed. `GALLEY_SEED=<seed> cargo test --lib
//! shuttle_tests` repeats it.
//!
//! The tests cover **R1** and **R2** of the registry, **S1** and **S2** of sessions.

#[allow(clippy::duplicate_mod, dead_code, unreachable_pub, reason = "built again, of other parts")]
#[path = "registry.rs"]
mod registry;
#[allow(clippy::duplicate_mod, dead_code, unreachable_pub, reason = "built again, of other parts")]
#[path = "session.rs"]
mod session;

/// The primitives of [`crate::sessions::shuttle_shim`], under `shuttle`.
mod shuttle_shim {
    pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use shuttle_dashmap::{DashMap, Entry};
    pub(crate) use std::sync::PoisonError;
}

use std::env;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::{Config, Runner, thread};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::outbox::close::LostReason;
use crate::outbox::outbox;
use crate::sessions::shuttle_tests::registry::Registry;
use crate::sessions::shuttle_tests::session::{Session, SessionIdentity, SessionState};

/// Random schedules for each test. As many again preempt few threads, at the worst moments.
const ORDERS: usize = 1_500;
/// Preemptions in one such schedule.
const DEPTH: usize = 3;

const LEASE: Duration = Duration::from_secs(10);

fn in_all_orders(what: impl Fn() + Send + Sync + 'static) {
    let replayed = env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = replayed.unwrap_or(20_261_121);
    #[expect(clippy::print_stdout, reason = "shown if it fails")]
    {
        println!("GALLEY_SEED={seed}");
    }
    let what = Arc::new(what);
    let again = Arc::clone(&what);
    let random = RandomScheduler::new_from_seed(seed, ORDERS);
    Runner::new(random, Config::new()).run(move || what());
    let put_off = PctScheduler::new_from_seed(seed, DEPTH, ORDERS);
    Runner::new(put_off, Config::new()).run(move || again());
}

/// One seat and the sessions that claim it.
#[derive(Clone)]
struct Scene {
    registry: Registry,
    seat: Seat,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
        Self { registry: Registry::default(), seat, now: Instant::now() }
    }

    /// A session that is about to claim its seat (R1).
    fn enters(&self, user: &str) -> Arc<Session> {
        let identity = SessionIdentity {
            session: SessionId::generate(),
            seat: self.seat,
            document: DocumentId::generate(),
            user: User { id: id(user), name: String::new() },
            resume: String::new(),
            wants_events: false,
            store_budget: None,
        };
        let session = Arc::new(Session::claiming(identity, outbox(1_000).0));
        self.registry.enter(Arc::clone(&session));
        session
    }

    /// The session acquires the key: `Seats::flush_previous_session`, then `Seats::granted`.
    fn acquires(&self, session: &Session, fence: u64) -> usize {
        session.set_pending_fence(Fence(fence));
        let former = self.registry.insert_seat(session);
        let ended = former.is_some_and(|former| former.lose(LostReason::TakenOver));
        session.granted(Fence(fence), Utc::now(), self.now + LEASE);
        usize::from(ended)
    }

    /// As `Seats::release_seat`: true if a release is due.
    fn leaves(&self, session: &Session) -> bool {
        session.end();
        self.registry.leave(session).is_some()
    }

    fn seated(&self, user: &str, fence: u64) -> Arc<Session> {
        let session = self.enters(user);
        self.acquires(&session, fence);
        session
    }

    fn holds(&self, user: &str) -> Option<Fence> {
        self.registry.holds(&id(user), self.seat, self.now)
    }

    /// R2, at rest: the session of the seat is registered and has not ended.
    fn assert_sound(&self) {
        let all = self.registry.all();
        match self.registry.seated_in(self.seat) {
            Some(holder) => {
                assert_ne!(
                    holder.state(),
                    SessionState::Ended,
                    "a seat names a session that has ended"
                );
                assert!(all.iter().any(|it| Arc::ptr_eq(it, &holder)));
            }
            None => assert!(
                all.iter().all(|it| it.state() != SessionState::Held),
                "held, and not registered"
            ),
        }
    }
}

fn id(user: &str) -> UserId {
    user.parse().expect("an id")
}

#[test]
fn r2_of_two_claims_for_one_seat_the_later_grant_holds_and_the_other_session_ends_once() {
    in_all_orders(|| {
        let scene = Scene::new();
        let (one, other) = (scene.enters("kim"), scene.enters("lee"));
        let taking = [(&one, 1), (&other, 2)].map(|(session, fence)| {
            let (scene, session) = (scene.clone(), Arc::clone(session));
            thread::spawn(move || scene.acquires(&session, fence))
        });
        let replaced: usize = taking.map(|it| it.join().expect("no panic")).into_iter().sum();
        assert_eq!(replaced, 1, "one of the two sessions ends as taken over");
        let holder = scene.registry.seated_in(scene.seat).expect("a session holds the seat");
        assert!(Arc::ptr_eq(&holder, &other), "the later grant's, in any order of registration");
        let (winner, loser) = (&other, &one);
        assert_eq!((winner.state(), loser.state()), (SessionState::Held, SessionState::Ended));
        assert_eq!((loser.lost_reason(), scene.registry.len()), (Some(LostReason::TakenOver), 1));
        assert!(!loser.may_write(scene.now));
        scene.assert_sound();
    });
}

#[test]
fn r2_a_leaving_session_removes_only_its_own_seat_and_is_released_once() {
    in_all_orders(|| {
        let scene = Scene::new();
        let (old, new) = (scene.seated("kim", 1), scene.enters("kim"));
        let leaving = {
            let (scene, old) = (scene.clone(), Arc::clone(&old));
            // The socket task and the scheduler, concurrently.
            let twice = [(); 2].map(|()| {
                let (scene, old) = (scene.clone(), Arc::clone(&old));
                thread::spawn(move || scene.leaves(&old))
            });
            move || twice.map(|it| usize::from(it.join().expect("no panic"))).into_iter().sum()
        };
        let replaced = scene.acquires(&new, 2);
        let releases: usize = leaving();
        assert!(releases <= 1 && replaced <= 1, "{releases} releases");
        assert_eq!(scene.holds("kim"), Some(Fence(2)));
        assert!(Arc::ptr_eq(&scene.registry.seated_in(scene.seat).expect("the new one"), &new));
        assert_eq!((scene.registry.len(), old.state()), (1, SessionState::Ended));
        scene.assert_sound();
    });
}

#[test]
fn r2_the_registry_confirms_no_ended_session_and_no_older_fence() {
    in_all_orders(|| {
        let scene = Scene::new();
        let (old, new) = (scene.seated("kim", 1), scene.enters("kim"));
        let is_over = Arc::new(AtomicUsize::new(0));
        let taking = {
            let (scene, is_over) = (scene.clone(), Arc::clone(&is_over));
            thread::spawn(move || {
                scene.acquires(&new, 2);
                is_over.store(1, Ordering::SeqCst);
                scene.leaves(&new);
                is_over.store(2, Ordering::SeqCst);
            })
        };
        let renewing = {
            let (old, until) = (Arc::clone(&old), scene.now + LEASE * 2);
            thread::spawn(move || old.renewed(until))
        };
        for _ in 0..3 {
            let over = is_over.load(Ordering::SeqCst);
            let fence = scene.holds("kim");
            match over {
                0 => assert!(fence.is_none_or(|it| it == Fence(1) || it == Fence(2)), "{fence:?}"),
                1 => assert!(fence.is_none_or(|it| it == Fence(2)), "{fence:?}"),
                _ => assert_eq!(fence, None),
            }
            assert_eq!(scene.holds("lee"), None);
        }
        taking.join().expect("no panic");
        renewing.join().expect("no panic");
        assert_eq!((scene.holds("kim"), scene.registry.len()), (None, 0));
        scene.assert_sound();
    });
}

#[test]
fn r1_a_renewal_round_covers_every_holder_and_revives_no_ended_session() {
    in_all_orders(|| {
        let scene = Scene::new();
        let has_key = Arc::new(AtomicBool::new(false));
        let session = scene.enters("kim");
        let living = {
            let (scene, has_key, session) =
                (scene.clone(), Arc::clone(&has_key), Arc::clone(&session));
            thread::spawn(move || {
                scene.acquires(&session, 1);
                has_key.store(true, Ordering::SeqCst);
                // The session leaves the registry before its release is sent.
                has_key.store(false, Ordering::SeqCst);
                scene.leaves(&session);
            })
        };
        let had_key = has_key.load(Ordering::SeqCst);
        let round = scene.registry.seated();
        let still = has_key.load(Ordering::SeqCst);
        assert!(!(had_key && still) || round.len() == 1, "a key that no round renews");
        for one in round {
            one.renewed(scene.now + LEASE * 2);
        }
        living.join().expect("no panic");
        assert!(!session.may_write(scene.now) && !session.renewed(scene.now + LEASE * 3));
        assert_eq!((session.state(), scene.registry.len()), (SessionState::Ended, 0));
    });
}

#[test]
fn s2_of_concurrent_ends_the_first_wins_and_every_reader_sees_its_reason() {
    in_all_orders(|| {
        let scene = Scene::new();
        let session = scene.seated("kim", 1);
        let reasons = [LostReason::Evicted, LostReason::Idle, LostReason::Revoked];
        let losing = reasons.map(|reason| {
            let session = Arc::clone(&session);
            thread::spawn(move || session.lose(reason).then_some(reason))
        });
        let granted = {
            let (session, scene) = (Arc::clone(&session), scene.clone());
            // A grant in flight, and a renewal.
            thread::spawn(move || {
                session.granted(Fence(2), Utc::now(), scene.now + LEASE);
                session.renewed(scene.now + LEASE * 2)
            })
        };
        if session.state() == SessionState::Ended {
            assert!(session.lost_reason().is_some(), "it has ended without a reason");
        }
        let won: Vec<_> =
            losing.into_iter().filter_map(|it| it.join().expect("no panic")).collect();
        assert!(!granted.join().expect("no panic"), "it was never uncertain");
        assert_eq!(won.len(), 1);
        assert_eq!(session.lost_reason(), Some(won[0]));
        assert!(!session.may_write(scene.now) && session.state() == SessionState::Ended);
    });
}

#[test]
fn s1_a_renewed_session_does_not_become_uncertain() {
    in_all_orders(|| {
        let scene = Scene::new();
        let session = scene.seated("kim", 1);
        let late = scene.now + LEASE;
        let looking = {
            let session = Arc::clone(&session);
            thread::spawn(move || session.check_deadline(late))
        };
        session.renewed(late + LEASE);
        looking.join().expect("no panic");
        assert!(session.may_write(late));
        assert_eq!(session.state(), SessionState::Held, "renewed, and still uncertain");
    });
}

#[test]
fn s1_a_deadline_never_moves_back_and_a_write_sees_the_fence_of_its_grant() {
    in_all_orders(|| {
        let scene = Scene::new();
        let session = scene.enters("kim");
        let granting = {
            let (scene, session) = (scene.clone(), Arc::clone(&session));
            thread::spawn(move || scene.acquires(&session, 7))
        };
        let renewing = [3, 2].map(|leases| {
            let (session, until) = (Arc::clone(&session), scene.now + LEASE * leases);
            thread::spawn(move || {
                (session.state() == SessionState::Held) && !session.renewed(until)
            })
        });
        if session.may_write(scene.now) {
            assert_eq!(session.fence(), Fence(7));
        }
        granting.join().expect("no panic");
        let [longest, _shorter] = renewing.map(|it| it.join().expect("no panic"));
        assert!(session.may_write(scene.now + LEASE - Duration::from_micros(1)));
        assert_eq!(session.may_write(scene.now + LEASE * 2), longest);
    });
}
