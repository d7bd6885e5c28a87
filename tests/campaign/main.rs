//! The campaign: three servers under random faults, a history of every observation, and a checker
//! that judges G1–G8, G10, G14 and G15 over it. Reviewers type suggestions and writers decide them meanwhile.
//!
//! `cargo test --test campaign` runs a short trial. `GALLEY_CAMPAIGN_SECONDS=3600` runs an hour, in
//! rounds of 90 seconds: each deals one deck of acts out to several worlds, which run beside each
//! other; Redis persists in every second one. Each round prints its seed. `GALLEY_SEED` repeats its
//! deck and the order of its acts; `GALLEY_CAMPAIGN_FAULTS` names the only faults. A violation prints
//! the events about it and retains the whole history. A run without enough events fails as well
//! ([`judge::vacuous`]).

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an unexpected state fails the test"
)]

mod acts;
mod alone;
mod at_rest;
mod database;
mod desks;
mod history;
mod judge;
mod replica;
mod requests;
mod suggesting;
#[path = "../support/mod.rs"]
mod support;
mod tab;
mod world;

use std::io::Write as _;
use std::path::Path;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

use crate::acts::{Act, Acts, deal};
use crate::desks::{Desks, Order};
use crate::history::{Event, Recorder};
use crate::judge::vacuous::{self, Counts, KINDS, ROUND_SECONDS};
use crate::judge::{Violation, judge, mentions};
use crate::replica::Replica;
use crate::suggesting::Typing;
use crate::support::rng::Random;
use crate::tab::Tab;
use crate::world::World;

/// Defaults, without settings in the environment.
const TRIAL_SECONDS: u64 = 45;
/// Beside each other: a world mostly waits for leases, time-outs and restarts.
const WORLDS: usize = 4;
const DESKS: usize = 3;
const WRITERS: usize = 2;
/// Without faults, before anything else.
const WARM_UP: Duration = Duration::from_secs(5);
/// The last events about one violation that are printed.
const EVENTS_SHOWN: usize = 40;

/// Writes past the test harness, which hides the output of a passing test.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("an open standard error");
}

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_to_g15_hold_in_a_campaign_of_random_faults() {
    let seconds = number("GALLEY_CAMPAIGN_SECONDS").unwrap_or(TRIAL_SECONDS);
    let first = number("GALLEY_SEED").unwrap_or_else(|| getrandom::u64().expect("a seed") >> 16);
    let only = std::env::var("GALLEY_CAMPAIGN_FAULTS").unwrap_or_default();
    let only = KINDS.iter().copied().filter(|kind| only.split(',').any(|it| it == *kind));
    let only: Vec<_> = only.collect();
    let rounds = seconds.div_ceil(ROUND_SECONDS);
    let length = Duration::from_secs(seconds / rounds);
    let mut counts = Counts::default();
    for round in 0..rounds {
        let seed = first + round;
        say(&format!("campaign: round {} of {rounds}, GALLEY_SEED={seed}", round + 1));
        let mut random = Random::new(seed);
        let whole = only.is_empty() && ROUND_SECONDS <= seconds;
        let hands = deal(&mut random, &only, WORLDS);
        let worlds = hands.into_iter().enumerate().map(|(number, hand)| {
            let path = format!("campaign-{seed}-{}-{number}.jsonl", std::process::id());
            let recorder = Recorder::to(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(path));
            let random = Random::new(random.below(usize::MAX) as u64);
            run(recorder, number % 2 == 1, random, Round { hand, length, whole })
        });
        let recorders = join_all(worlds.collect::<Vec<_>>()).await;
        let violations: usize = recorders.iter().map(|it| conclude(it, &mut counts)).sum();
        assert!(violations == 0, "GALLEY_SEED={seed}: {violations} violations");
    }
    say(&format!("campaign: {seconds} s, {:?}", counts.0));
    let complaints = vacuous::complaints(&counts, seconds);
    assert!(complaints.is_empty(), "the run proves nothing: {complaints:#?}");
}

/// Judges the history of a world and counts its events. Returns the number of violations, and
/// retains the file of a history with one.
fn conclude(recorder: &Recorder, counts: &mut Counts) -> usize {
    let events = recorder.events();
    counts.add(&events);
    let violations = judge(&events);
    report(&events, &violations);
    if violations.is_empty() {
        recorder.forget();
    } else {
        say(&format!("the history is {}", recorder.path().display()));
    }
    violations.len()
}

/// The acts of one world in one round.
struct Round {
    hand: Vec<Act>,
    length: Duration,
    /// Whether the hand is played to its end.
    whole: bool,
}

/// A new world, its tabs, its acts, and the rest that follows. Returns the recorder of its history.
async fn run(recorder: Recorder, persists: bool, mut random: Random, round: Round) -> Recorder {
    let Round { hand, length, whole } = round;
    let mut world = World::start(recorder.clone(), persists).await;
    let mut all = Vec::new();
    for _ in 0..DESKS {
        all.push(world.servers[0].desk("").await);
    }
    let desks = Desks::new(recorder.clone(), world.urls(), all);
    let mut tabs = JoinSet::new();
    for desk in 0..DESKS {
        let roles = std::iter::repeat_n("writer", WRITERS).chain(["reviewer"]);
        for role in roles {
            let random = Random::new(random.below(usize::MAX) as u64);
            let (desks, number) = (desks.clone(), desks.next());
            let (unsaved, secret, has_lost, typing) = (None, None, false, Typing::default());
            let tab = Tab { desks, desk, role, random, number, unsaved, secret, has_lost, typing };
            tabs.spawn(tab.work());
        }
    }
    let until = Instant::now() + length;
    sleep(WARM_UP.min(length / 3)).await;
    let mut acts = Acts { world: &mut world, desks: &desks, random };
    acts.without_faults().await;
    acts.play(hand, until, whole).await;
    acts.last().await;
    desks.order.send_replace(Order::Finish);
    let unsaved: Vec<Replica> = tabs.join_all().await.into_iter().flatten().collect();
    at_rest::all(&desks, &world, unsaved).await;
    world.database.record(&recorder).await;
    recorder
}

/// Prints each violation with the events about it.
fn report(events: &[Event], violations: &[Violation]) {
    for violation in violations {
        say(&format!("violated: {violation}"));
        let about = mentions(events, &violation.about);
        for event in about.iter().rev().take(EVENTS_SHOWN).rev() {
            say(&format!("    {}", serde_json::to_string(event).expect("JSON")));
        }
    }
}
