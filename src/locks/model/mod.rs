//! A model of the leases, driven through thousands of random schedules in virtual time.
//!
//! The model does no IO and never sleeps. Servers have drifting clocks; one backend stands for
//! Redis, with a clock that may step. The network delays and loses messages; processes pause, resume
//! and die. The backend restarts empty, with an older state, or as a lagging replica.
//!
//! The model runs the real code wherever it exists: the table of the memory backend
//! ([`crate::memory::table`]), which does what the scripts do; the guard state of a holder
//! ([`crate::client::guard_state`]); the fence ([`galley_domain::fence`]). A test of
//! `sessions` runs the model on the state of a session.
//!
//! | file | contents |
//! |---|---|
//! | [`plan`] | the schedule, generated from a seed |
//! | [`world`] | time, clocks, network |
//! | [`claimants`] [`holders`] | operations of sessions and their servers |
//! | [`deadlines`] | the holder's deadline: the real rule and wrong ones |
//! | [`backend`] [`database`] | the stores that sessions query |
//! | [`oracle`] [`checks`] | the expected results |
//!
//! Invariants, by their names in `src/ARCHITECTURE.md`:
//!
//! - **G1** Each reply of the backend agrees with the oracle's separate account of holders.
//! - **G2** Fences rise; the database rejects a write under a lower fence than it accepted before.
//! - **G3** No holder writes at or after its own deadline. Where the backend's lease expires, its
//!   holder has stopped before.
//! - **G4** No ended or silent session keeps a seat beyond its bound, and a claim acquires a free
//!   seat.
//! - **G5** The wait queue is served in order, a hand-over notifies one waiter, dead waiters are
//!   removed. No claimant overtakes a waiter, and no waiter waits for ever.
//! - **G6** A renewal never renews a lock that was released or granted to another session, and a
//!   release frees its own grant only.
//!
//! Besides, a backend that restarts empty or with an older state costs no seat of the last ratified
//! grant whose holder reasserts first.
//!
//! A failed run prints its seed, which `GALLEY_SEED=<seed> cargo test --lib model` replays. A run
//! that breaks a law prints a shortened plan that still breaks it. The tests of a restarted backend
//! use plans of their own, which are not shortened.

mod backend;
mod checks;
mod claimants;
mod database;
mod deadlines;
mod holders;
mod oracle;
mod plan;
mod world;

use std::env;
use std::fmt::Write as _;
use std::ops::AddAssign;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

pub use crate::model::deadlines::DeadlineRule;
use crate::model::plan::{SECOND, Step};
use crate::model::world::World;

/// The number of a session, in order of arrival.
pub(crate) type Number = usize;

/// A broken law, and the observation that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

pub(crate) type Lawful<T = ()> = Result<T, Breach>;

fn breach(law: &'static str, what: impl Into<String>) -> Breach {
    Breach { law, what: what.into() }
}

/// A deliberate fault: a test proves with it that the model detects the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The fence is the last fence plus one.
    BareCounter,
    /// A release frees the lock without comparing the value.
    ReleaseWithoutCompare,
    /// A renewal of a released lock returns `Reasserted`.
    RenewalRaisesReleased,
    /// A renewal of a vanished lock returns `Lost`.
    RestartForgets,
    /// An empty backend grants at once, without a reassert grace.
    NoGrace,
    /// A backend with an older state grants the locks in that state at once.
    GraceOfTheEmpty,
    /// A holder that finds another grant of its lock does not compare the fences.
    NoFenceComparison,
    /// A takeover does not compare the users.
    TakeoverByAnyUser,
    /// A new waiter enters the wait queue at its head.
    NewcomersFirst,
    /// The database accepts writes under any fence.
    UnfencedWrites,
}

/// Counts of events in runs: a rare event would make the test worthless.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    granted: u64,
    seated: u64,
    refused: u64,
    taken_over: u64,
    handed_over: u64,
    ran_out: u64,
    lost: u64,
    /// Lost seats of sessions that held them under the last ratified fence when the backend
    /// restarted.
    lost_to_a_restart: u64,
    reasserted: u64,
    /// Locks of released sessions that a late renewal set again.
    restored: u64,
    fences_refused: u64,
    written: u64,
    writes_refused: u64,
    doubted: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        self.granted += more.granted;
        self.seated += more.seated;
        self.refused += more.refused;
        self.taken_over += more.taken_over;
        self.handed_over += more.handed_over;
        self.ran_out += more.ran_out;
        self.lost += more.lost;
        self.lost_to_a_restart += more.lost_to_a_restart;
        self.reasserted += more.reasserted;
        self.restored += more.restored;
        self.fences_refused += more.fences_refused;
        self.written += more.written;
        self.writes_refused += more.writes_refused;
        self.doubted += more.doubted;
    }
}

impl Seen {
    /// The count of the rarest event.
    fn least(&self) -> u64 {
        let Self { granted, seated, refused, taken_over, handed_over, ran_out, .. } = *self;
        let Self { lost, reasserted, fences_refused, written, writes_refused, doubted, .. } = *self;
        let often = [granted, seated, refused, taken_over, handed_over, ran_out, lost, reasserted];
        let more = [fences_refused, written, writes_refused, doubted];
        often.into_iter().chain(more).min().unwrap_or_default()
    }
}

const SERVERS: usize = 3;
const USERS: usize = 3;
const KEYS: usize = 2;
/// The TTL of a seat, as in `config/default.toml`.
pub const TTL: Duration = Duration::from_secs(12);
/// In µs.
const RENEW_EVERY: u64 = 4 * SECOND;
const CLIENT_TIMEOUT: u64 = 10 * SECOND;
/// Steps of each schedule.
const STEPS: usize = 100;

/// The start of all clocks of the model: ahead of this process's clock by more than any test takes.
fn beginning() -> Instant {
    static BEGINNING: LazyLock<Instant> =
        LazyLock::new(|| Instant::now() + Duration::from_secs(24 * 60 * 60));
    *BEGINNING
}

/// Runs one plan from its first step until no call is pending.
pub(crate) fn run<B: DeadlineRule>(plan: &[Step], wrong: Option<Wrong>) -> Lawful<Seen> {
    let mut world = World::<B>::new(wrong);
    for step in plan {
        world.step(step)?;
    }
    world.finish()?;
    Ok(world.seen)
}

/// The first of `seeds` seeds whose run breaks a law.
pub(crate) fn find<B: DeadlineRule>(seeds: u64, wrong: Option<Wrong>) -> Option<(u64, Breach)> {
    let broken = |seed| run::<B>(&plan::plan(seed, STEPS), wrong).err().map(|it| (seed, it));
    (0..seeds).find_map(broken)
}

/// The seed in `GALLEY_SEED`.
fn env_seed() -> Option<u64> {
    env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok())
}

/// `seeds`, or only the seed in `GALLEY_SEED`.
fn wanted(seeds: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let env_seed = env_seed();
    seeds.map(move |seed| env_seed.unwrap_or(seed)).take(env_seed.map_or(usize::MAX, |_| 1))
}

/// Runs the schedules of `seeds`, or only that of `GALLEY_SEED`.
///
/// # Panics
///
/// When a run breaks a law: the message has the seed and the shortened plan.
#[track_caller]
pub fn check<B: DeadlineRule>(seeds: impl Iterator<Item = u64>) -> Seen {
    let mut seen = Seen::default();
    for seed in wanted(seeds) {
        let plan = plan::plan(seed, STEPS);
        match run::<B>(&plan, None) {
            Ok(more) => seen += more,
            Err(breach) => panic!("{}", report::<B>(seed, &plan, &breach)),
        }
    }
    seen
}

fn report<B: DeadlineRule>(seed: u64, plan: &[Step], breach: &Breach) -> String {
    let fails = |plan: &[Step]| run::<B>(plan, None).is_err_and(|it| it.law == breach.law);
    let short = plan::shrunk(plan, fails);
    let last = run::<B>(&short, None).err();
    let mut text = format!("GALLEY_SEED={seed}: {breach:?}\ncut down to {last:?} by:\n");
    for step in short {
        let after = Duration::from_micros(step.after);
        let _ = writeln!(text, "  {after:?}: {:?} (luck {:#x})", step.what, step.luck);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::guard_state::GuardState;
    use crate::model::deadlines::{CountsFromReply, NeverDoubts};
    use crate::model::plan::{Manner, Network, What};

    /// Seeds that broke a law during the development of the model or since.
    const REGRESSIONS: &[u64] = &[112, 1_483, 20_261_121];

    #[test]
    fn g1_to_g6_hold_in_five_thousand_random_schedules() {
        let seen = check::<GuardState>(0..5_000);
        assert!(
            env_seed().is_some() || seen.least() > 100,
            "the schedules are worth little: {seen:?}"
        );
    }

    /// Runs schedules in which only restarts of the backend disturb the leases. No session with the
    /// last ratified fence loses its seat.
    #[track_caller]
    fn costs_no_seat(comes_back: What) {
        let mut seen = Seen::default();
        for seed in wanted(0..500) {
            let mut plan = plan::plan(seed, STEPS);
            let is_such = |it: &&mut Step| {
                matches!(it.what, What::Empties | What::GoesBack | What::FailsOver)
            };
            // Each restart is late enough that the holders have reasserted after the previous one.
            plan.iter_mut().filter(is_such).for_each(|step| {
                (step.what, step.after) = (comes_back, step.after + SECOND);
            });
            plan.retain(|step| match step.what {
                What::Comes(manner) => matches!(manner, Manner::Tries | Manner::Waits),
                What::Leaves | What::Writes | What::Saves | What::Copies => true,
                what => what == comes_back,
            });
            let more = run::<GuardState>(&plan, None)
                .unwrap_or_else(|it| panic!("GALLEY_SEED={seed}: {it:?}"));
            assert_eq!((more.lost_to_a_restart, more.doubted), (0, 0), "GALLEY_SEED={seed}");
            seen += more;
        }
        assert!(env_seed().is_some() || seen.reasserted > 300, "{seen:?}");
    }

    #[test]
    fn g6_an_empty_restart_of_the_backend_costs_no_seat() {
        costs_no_seat(What::Empties);
    }

    #[test]
    fn g6_a_restart_with_an_older_state_costs_no_seat_of_the_last_ratified_grant() {
        costs_no_seat(What::GoesBack);
    }

    #[test]
    fn g6_a_failover_to_a_lagging_replica_costs_no_seat_of_the_last_ratified_grant() {
        costs_no_seat(What::FailsOver);
    }

    /// Every fault of the backend empties it, and the network is slow.
    fn slow_and_emptied(what: What) -> What {
        match what {
            What::GoesBack | What::FailsOver | What::Pauses(_) => What::Empties,
            What::Network(_) => What::Network(Network::Slow),
            what => what,
        }
    }

    /// An empty backend stores the last released value, and no fence. So the release of a leaving waiter
    /// overwrites that of a holder, and a renewal of the holder that arrives after both sets its lock again.
    /// The laws hold: the session has ended and writes nothing (G3), no other one was granted the lock (G1),
    /// and the lock is free after one lease (G4).
    #[test]
    fn g4_a_released_lock_that_a_late_renewal_sets_again_is_free_after_one_lease() {
        let mut seen = Seen::default();
        for seed in wanted(0..2_000) {
            let mut plan = plan::plan(seed, STEPS);
            plan.retain(|step| {
                !matches!(step.what, What::Step(_) | What::Sleeps(_) | What::Dies | What::Outage(_))
            });
            plan.iter_mut().for_each(|step| step.what = slow_and_emptied(step.what));
            seen += run::<GuardState>(&plan, None)
                .unwrap_or_else(|it| panic!("GALLEY_SEED={seed}: {it:?}"));
        }
        assert!(env_seed().is_some() || seen.restored > 0, "{seen:?}");
    }

    #[test]
    fn g1_to_g6_hold_for_seeds_that_broke_them_once() {
        check::<GuardState>(REGRESSIONS.iter().copied());
    }

    /// Asserts that the model finds the fault `wrong`, and which law it breaks.
    #[track_caller]
    fn breaks<B: DeadlineRule>(wrong: Option<Wrong>, laws: &[&str]) {
        let found = find::<B>(300, wrong);
        let (seed, breach) = found.unwrap_or_else(|| panic!("{wrong:?} goes unnoticed"));
        assert!(laws.contains(&breach.law), "seed {seed}: {breach:?}");
    }

    #[test]
    fn the_model_finds_a_fence_from_a_bare_counter() {
        breaks::<GuardState>(Some(Wrong::BareCounter), &["G2"]);
    }

    #[test]
    fn the_model_finds_a_release_without_compare() {
        breaks::<GuardState>(Some(Wrong::ReleaseWithoutCompare), &["G6"]);
    }

    #[test]
    fn the_model_finds_a_renewal_that_sets_a_released_lock_again() {
        breaks::<GuardState>(Some(Wrong::RenewalRaisesReleased), &["G6"]);
    }

    #[test]
    fn the_model_finds_a_restart_that_costs_a_seat() {
        breaks::<GuardState>(Some(Wrong::RestartForgets), &["reassertion"]);
    }

    #[test]
    fn the_model_finds_an_empty_restart_without_reassert_grace() {
        breaks::<GuardState>(Some(Wrong::NoGrace), &["G1"]);
    }

    #[test]
    fn the_model_finds_an_older_state_without_reassert_grace() {
        breaks::<GuardState>(Some(Wrong::GraceOfTheEmpty), &["G1"]);
    }

    #[test]
    fn the_model_finds_a_holder_that_loses_its_seat_to_an_older_grant() {
        breaks::<GuardState>(Some(Wrong::NoFenceComparison), &["reassertion"]);
    }

    #[test]
    fn the_model_finds_a_takeover_by_another_user() {
        breaks::<GuardState>(Some(Wrong::TakeoverByAnyUser), &["G1"]);
    }

    #[test]
    fn the_model_finds_a_wait_queue_that_new_waiters_overtake() {
        breaks::<GuardState>(Some(Wrong::NewcomersFirst), &["G5"]);
    }

    #[test]
    fn the_model_finds_a_database_that_checks_no_fence() {
        breaks::<GuardState>(Some(Wrong::UnfencedWrites), &["G2"]);
    }

    #[test]
    fn the_model_finds_a_deadline_counted_from_the_reply() {
        breaks::<CountsFromReply>(None, &["G3"]);
    }

    #[test]
    fn the_model_finds_a_holder_without_a_deadline() {
        breaks::<NeverDoubts>(None, &["G3"]);
    }
}
