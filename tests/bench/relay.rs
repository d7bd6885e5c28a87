//! The cost of Galley between two clients, against a relay that only copies bytes.
//!
//! - `galley`: the real server in a separate process, with its defaults (SQLite on this disk, locks
//!   in memory) except for the rate limits. It validates, relays and commits each keystroke.
//! - `copy`: the limit, also in a separate process: it authenticates no client, decodes nothing and
//!   stores nothing ([`copy`]).
//!
//! Both serve the same clients ([`pair`]), which are this process: a writer sends the update of one
//! Hangul syllable, and the reviewer waits for exactly those bytes. The benchmark measures the time
//! from the send until the arrival. It also measures the processor time of the relay's process for
//! a keystroke, including its work after the arrival. The contenders take turns, and a ratio is the
//! median of the ratios of single turns.
//!
//! - `alone`: one pair; the writer sends the next keystroke when the last has arrived.
//! - `steady`: a thousand pairs, each typing 5 times a second.
//! - `told`: the same with `events=1`, as on the page, which receives `document.saved`. Runs only
//!   if named.
//! - `most`: a thousand pairs type faster and faster, regardless of arrivals. A rate is sustained
//!   if no keystroke is lost and 99 of 100 arrive within 50 ms of their due time. The benchmark
//!   tries a rate that is not sustained once more.
//! - `peers`: the same search for the servers of npm ([`npm`]), which store nothing, and then for
//!   Galley. Runs only if named.
//! - `sockets`: as many sockets as the limits of the machine permit, on Redis and PostgreSQL
//!   ([`sockets`]). Runs only if named, and alone.
//!
//! ```text
//! cargo bench --bench relay
//! cargo bench --bench relay -- steady
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "relay/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "relay/contender.rs"]
mod contender;
#[path = "relay/copy.rs"]
mod copy;
#[path = "relay/crowd.rs"]
mod crowd;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "relay/npm.rs"]
mod npm;
#[path = "relay/pair.rs"]
mod pair;
#[path = "relay/sockets.rs"]
mod sockets;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::client::EVENTS;
use crate::contender::{COPY, Relay};
use crate::crowd::{Crowd, Taken};
use crate::measure::{Bar, Table, median, ratio};

const ALONE: &str = "alone";
const STEADY: &str = "steady";
const NOTIFIED: &str = "told";
const MOST: &str = "most";
const PEERS: &str = "peers";
const SOCKETS: &str = "sockets";
const LOADS: [&str; 5] = [ALONE, STEADY, NOTIFIED, MOST, PEERS];
/// The loads that run only if named.
const ASIDE: [&str; 2] = [NOTIFIED, PEERS];
/// Turns of each load on each relay.
const TURNS: usize = 3;
const PAIRS: u32 = 1_000;
/// Keystrokes of all pairs.
const STEADY_A_SECOND: u32 = 5_000;
const STEADY_LASTS: Duration = Duration::from_secs(5);
const ALONE_KEYSTROKES: u32 = 5_000;
/// The first rate of the search, and the next ones.
const MOST_FROM: f64 = 4_000.0;
const FASTER: f64 = 1.25;
/// The first rate of a server of npm, and the bar: Galley's rate as a multiple of its rate.
const PEERS_FROM: f64 = 1_000.0;
const PEERS_BAR: f64 = 3.0;
const MOST_LASTS: Duration = Duration::from_secs(2);
/// The bound for 99 of 100 keystrokes, in µs.
const SUSTAINED: f64 = 50_000.0;
const TRIES: usize = 2;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == COPY) {
        runtime.block_on(copy::serve());
        return;
    }
    let is_named = |load: &str| arguments.iter().any(|argument| argument == load);
    if is_named(SOCKETS) {
        return runtime.block_on(sockets::measure());
    }
    let is_any_named = LOADS.into_iter().any(is_named);
    runtime.block_on(measure(|load| is_named(load) || !(is_any_named || ASIDE.contains(&load))));
}

async fn measure(is_wanted: impl Fn(&str) -> bool) {
    let galley = Arc::new(Relay::galley().await);
    let copy = Arc::new(Relay::copy().await);
    let mut table = Table::new("An edit on its way to the other one, and onto the disk");
    if is_wanted(ALONE) {
        let mut two = [Crowd::connect(&galley, 1, "").await, Crowd::connect(&copy, 1, "").await];
        alone(&mut two, &mut table).await;
        leave(two).await;
    }
    if is_wanted(NOTIFIED) {
        let notified = Crowd::connect(&galley, PAIRS, EVENTS).await;
        let mut two = [notified, Crowd::connect(&copy, PAIRS, "").await];
        steady(&mut two, &mut table).await;
        leave(two).await;
    }
    if is_wanted(STEADY) || is_wanted(MOST) {
        let mut two =
            [Crowd::connect(&galley, PAIRS, "").await, Crowd::connect(&copy, PAIRS, "").await];
        if is_wanted(STEADY) {
            steady(&mut two, &mut table).await;
        }
        if is_wanted(MOST) {
            most(&mut two, &mut table).await;
        }
        leave(two).await;
    }
    if is_wanted(PEERS) {
        peers(&galley, &mut table).await;
    }
    table.print();
}

async fn leave(crowds: impl IntoIterator<Item = Crowd>) {
    for crowd in crowds {
        crowd.leaves().await;
    }
}

async fn steady(crowds: &mut [Crowd; 2], table: &mut Table) {
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (crowd, taken) in crowds.iter_mut().zip(&mut taken) {
            let one = crowd.types(STEADY_A_SECOND, STEADY_LASTS).await;
            assert_eq!(one.lost, 0, "a keystroke is lost at this load");
            taken.push(one);
        }
    }
    let [ours, theirs] = &taken;
    let what = format!("{PAIRS} pairs, {STEADY_A_SECOND} edits a second");
    compare(table, &format!("{what}: wait, p50"), (ours, theirs), |taken| taken.p50, Bar::None);
    let bar = Bar::AtMost(4.0);
    compare(table, &format!("{what}: wait, p99"), (ours, theirs), |taken| taken.p99, bar);
    let bar = Bar::AtMost(1.5);
    compare(table, "processor an edit", (ours, theirs), |taken| taken.processor, bar);
}

async fn alone(crowds: &mut [Crowd; 2], table: &mut Table) {
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (crowd, taken) in crowds.iter_mut().zip(&mut taken) {
            taken.push(crowd.one_at_full_speed(ALONE_KEYSTROKES).await);
        }
    }
    let [ours, theirs] = &taken;
    let what = "one pair at full speed";
    compare(table, &format!("{what}: wait, p50"), (ours, theirs), |taken| taken.p50, Bar::None);
    compare(table, &format!("{what}: wait, p99"), (ours, theirs), |taken| taken.p99, Bar::None);
    compare(table, "processor an edit", (ours, theirs), |taken| taken.processor, Bar::None);
}

/// One line of the table, in µs.
fn compare(
    table: &mut Table,
    what: &str,
    (ours, theirs): (&[Taken], &[Taken]),
    measurement: fn(&Taken) -> f64,
    bar: Bar,
) {
    let of = |taken: &[Taken]| -> Vec<f64> { taken.iter().map(measurement).collect() };
    let (ours, theirs) = (of(ours), of(theirs));
    let shown = |values: &[f64]| format!("{:.0} µs", median(values));
    table.row(what, (shown(&ours), shown(&theirs)), ratio(&ours, &theirs), bar);
}

/// In turns, each up to its highest rate.
async fn most(crowds: &mut [Crowd; 2], table: &mut Table) {
    let mut runners = crowds.each_mut().map(|crowd| (crowd, 0.0, true));
    let mut rate = MOST_FROM;
    while runners.iter().any(|(.., goes_on)| *goes_on) {
        for (crowd, sustained, goes_on) in runners.iter_mut().filter(|(.., goes_on)| *goes_on) {
            *goes_on = sustains(crowd, rate).await;
            if *goes_on {
                *sustained = rate;
            }
        }
        rate *= FASTER;
    }
    let [ours, theirs] = runners.map(|(_, sustained, _)| sustained);
    let shown = |rate: f64| format!("{rate:.0}");
    let what = "most edits a second, p99 below 50 ms";
    table.row(what, (shown(ours), shown(theirs)), ours / theirs, Bar::AtLeast(0.5));
}

/// Each alone, up to its highest rate; Galley comes last.
async fn peers(galley: &Arc<Relay>, table: &mut Table) {
    let mut crowd = Crowd::connect(galley, PAIRS, "").await;
    let ours = crowd.types(STEADY_A_SECOND, STEADY_LASTS).await.processor;
    // A session that is silent while the others have their turns would lose its seat.
    leave([crowd]).await;
    let mut sustained = Vec::new();
    for (name, relay) in npm::peers().await {
        let mut crowd = Crowd::connect(&relay, PAIRS, "").await;
        let steady = crowd.types(STEADY_A_SECOND, STEADY_LASTS).await;
        let processor = (format!("{ours:.0} µs"), format!("{:.0} µs: {name}", steady.processor));
        table.row("processor an edit", processor, ours / steady.processor, Bar::None);
        sustained.push((name, climb(&mut crowd, PEERS_FROM).await));
        leave([crowd]).await;
    }
    let mut crowd = Crowd::connect(galley, PAIRS, "").await;
    let ours = climb(&mut crowd, MOST_FROM).await;
    leave([crowd]).await;
    for (name, theirs) in sustained {
        let shown = (format!("{ours:.0}"), format!("{theirs:.0}: {name}"));
        let what = "most edits a second, p99 below 50 ms";
        table.row(what, shown, ours / theirs, Bar::AtLeast(PEERS_BAR));
    }
}

/// The highest rate that is sustained, from `rate` on; 0 if not even that is.
async fn climb(crowd: &mut Crowd, mut rate: f64) -> f64 {
    let mut sustained = 0.0;
    while sustains(crowd, rate).await {
        sustained = rate;
        rate *= FASTER;
    }
    sustained
}

async fn sustains(crowd: &mut Crowd, rate: f64) -> bool {
    for _ in 0..TRIES {
        let taken = crowd.types(rate as u32, MOST_LASTS).await;
        if taken.lost == 0 && taken.p99_since_due < SUSTAINED {
            return true;
        }
    }
    false
}
