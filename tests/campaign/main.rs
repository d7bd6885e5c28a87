//! The campaign: three servers under random faults, a history of every observation, and a checker
//! that judges G1–G8, G10, G14 and G15 over it.
//!
//! `cargo test --test campaign` runs a short trial. `GALLEY_CAMPAIGN_SECONDS=3600` runs an hour, in
//! rounds of two minutes: Redis persists in every second one. Each round prints its seed.
//! `GALLEY_SEED` repeats the order of its acts; `GALLEY_CAMPAIGN_FAULTS` names the only faults. A
//! violation prints the events about it and retains the whole history. A run without enough events
//! fails as well ([`judge::vacuous`]).

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
#[path = "../support/mod.rs"]
mod support;
mod tab;
mod world;

use std::io::Write as _;
use std::path::Path;

use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

use crate::acts::Acts;
use crate::desks::{Desks, Order};
use crate::history::{Event, Recorder};
use crate::judge::vacuous::{self, Counts, KINDS};
use crate::judge::{Violation, judge, mentions};
use crate::replica::Replica;
use crate::support::rng::Random;
use crate::tab::Tab;
use crate::world::World;

/// Defaults, without settings in the environment.
const TRIAL_SECONDS: u64 = 45;
const ROUND_SECONDS: u64 = 120;
const DESKS: usize = 3;
const WRITERS: usize = 2;
/// Without faults, before anything else.
const WARM_UP: Duration = Duration::from_secs(8);
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
    let rounds = seconds.div_ceil(ROUND_SECONDS);
    let mut counts = Counts::default();
    for round in 0..rounds {
        let seed = first + round;
        let length = Duration::from_secs(seconds / rounds);
        say(&format!("campaign: round {} of {rounds}, GALLEY_SEED={seed}", round + 1));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("campaign-{seed}.jsonl"));
        let recorder = Recorder::to(&path);
        run(&recorder, seed, length).await;
        let events = recorder.events();
        counts.add(&events);
        let violations = judge(&events);
        report(&events, &violations);
        assert!(violations.is_empty(), "GALLEY_SEED={seed}; the history is {}", path.display());
        recorder.forget();
    }
    say(&format!("campaign: {seconds} s, {:?}", counts.0));
    let complaints = vacuous::complaints(&counts, seconds);
    assert!(complaints.is_empty(), "the run proves nothing: {complaints:#?}");
}

/// One round: a new world, its tabs, its acts, and the rest that follows.
async fn run(recorder: &Recorder, seed: u64, length: Duration) {
    let mut random = Random::new(seed);
    let mut world = World::start(recorder.clone(), seed % 2 == 1).await;
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
            let (unsaved, secret, has_lost) = (None, None, false);
            tabs.spawn(Tab { desks, desk, role, random, number, unsaved, secret, has_lost }.work());
        }
    }
    let until = Instant::now() + length;
    sleep(WARM_UP.min(length / 3)).await;
    let only = std::env::var("GALLEY_CAMPAIGN_FAULTS").unwrap_or_default();
    let only = KINDS.iter().copied().filter(|kind| only.split(',').any(|it| it == *kind)).collect();
    let mut acts = Acts { world: &mut world, desks: &desks, random, only };
    acts.without_faults().await;
    acts.play(until).await;
    acts.last().await;
    desks.order.send_replace(Order::Finish);
    let unsaved: Vec<Replica> = tabs.join_all().await.into_iter().flatten().collect();
    at_rest::all(&desks, &world, unsaved).await;
    world.database.record(recorder).await;
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
