//! What it costs to have Galley between two people, against a relay that only copies bytes.
//!
//! - `galley`: the real server, a process of its own, with its defaults (SQLite on this disk, locks
//!   in memory) but for the limits on how often one may ask. Each keystroke is checked, relayed,
//!   committed to the database and reported as saved.
//! - `copy`: the limit. A process of its own too, which knows nobody, reads nothing and stores
//!   nothing ([`copy`]).
//!
//! Both stand between the same clients ([`pair`]): a writer sends the update of one Hangul syllable,
//! the reviewer waits for exactly those bytes. Measured are the time from before it is sent until
//! it is there, and what processor time the relay's process took for a keystroke, what it does
//! after the reviewer has it included.
//!
//! - `steady`: 100 pairs, each typing 10 times a second for 5 seconds.
//! - `full speed`: one pair, the next keystroke as soon as the last has arrived.
//!
//! They are run in turn, several times, and what is printed is of all turns together:
//!
//! ```text
//! cargo bench --bench relay
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[path = "relay/copy.rs"]
mod copy;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../it/desk.rs"]
mod desk;
#[path = "relay/pair.rs"]
mod pair;
#[allow(dead_code, clippy::disallowed_methods, reason = "shared with the tests, as they are")]
#[path = "../it/peer.rs"]
mod peer;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../it/process.rs"]
mod process;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../locks/server.rs"]
mod redis_server;

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use crate::pair::{Address, Pair};
use crate::process::Server;

/// How often each load is put on each relay.
const TURNS: usize = 3;
const PAIRS: u32 = 100;
const EVERY: Duration = Duration::from_millis(100);
const STEADY_KEYSTROKES: usize = 50;
const FULL_SPEED_KEYSTROKES: usize = 5_000;
/// Keystrokes of each pair before anything is measured.
const WARM_UP: usize = 5;
/// What a relay has left to do after the last keystroke has arrived is over by then.
const SETTLED: Duration = Duration::from_millis(250);
/// The unit of processor time in `/proc`, in all builds of Linux: 10 ms.
const TICK_MICROS: f64 = 10_000.0;
/// What is printed of a load.
const FIGURES: [&str; 3] = ["wait, p50", "wait, p99", "processor a keystroke"];
/// The argument that makes this program the relay that copies.
const COPY: &str = "--copy";

const LIMITS: &[(&str, &str)] = &[
    ("LIMITS__MESSAGES_PER_SECOND", "1000000"),
    ("LIMITS__MESSAGE_BURST", "1000000"),
    ("LIMITS__REQUESTS_PER_SECOND", "1000000"),
    ("LIMITS__REQUEST_BURST", "1000000"),
];

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    if std::env::args().any(|argument| argument == COPY) {
        runtime.block_on(copy::serve());
        return;
    }
    runtime.block_on(measure());
}

async fn measure() {
    let relays = [Relay::galley().await, Relay::copy().await];
    for load in [Load::Steady, Load::FullSpeed] {
        let mut taken = [Taken::default(), Taken::default()];
        for _ in 0..TURNS {
            for (relay, taken) in relays.iter().zip(&mut taken) {
                relay.bear(load, taken).await;
            }
        }
        let [galley, copy] = taken.map(Taken::figures);
        println!("\n{}: galley, copy, ratio", load.title());
        let figures = FIGURES.iter().zip(galley).zip(copy);
        for ((name, galley), copy) in figures {
            println!("{name:>22}: {galley:>8.1} us {copy:>8.1} us {:>6.2}", galley / copy);
        }
    }
}

#[derive(Clone, Copy)]
enum Load {
    Steady,
    FullSpeed,
}

impl Load {
    fn pairs(self) -> u32 {
        match self {
            Self::Steady => PAIRS,
            Self::FullSpeed => 1,
        }
    }

    fn keystrokes(self) -> usize {
        match self {
            Self::Steady => STEADY_KEYSTROKES,
            Self::FullSpeed => FULL_SPEED_KEYSTROKES,
        }
    }

    fn title(self) -> String {
        let keystrokes = self.keystrokes() * TURNS;
        match self {
            Self::Steady => {
                format!("{PAIRS} pairs at {EVERY:?} a keystroke, {keystrokes} keystrokes each")
            }
            Self::FullSpeed => format!("one pair at full speed, {keystrokes} keystrokes"),
        }
    }
}

/// What a load took of a relay.
#[derive(Default)]
struct Taken {
    waits: Vec<Duration>,
    processor_ticks: u64,
}

impl Taken {
    /// [`FIGURES`], in microseconds.
    fn figures(mut self) -> [f64; 3] {
        self.waits.sort_unstable();
        let wait = |share: usize| {
            self.waits[(self.waits.len() - 1) * share / 100].as_secs_f64() * 1_000_000.0
        };
        let processor = self.processor_ticks as f64 * TICK_MICROS / self.waits.len() as f64;
        [wait(50), wait(99), processor]
    }
}

enum Relay {
    Galley(Server),
    Copy { process: Child, url: String },
}

impl Relay {
    async fn galley() -> Self {
        // Not in the system's folder for such things, which may be no disk at all.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self::Galley(Server::in_folder(Arc::new(folder), LIMITS).await)
    }

    async fn copy() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let command = command.arg(COPY).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let url = lines.next_line().await.expect("readable").expect("its address");
        Self::Copy { process, url }
    }

    /// Puts a load on it, in rooms that were never used.
    async fn bear(&self, load: Load, taken: &mut Taken) {
        let tasks = TaskTracker::new();
        let mut pairs = Vec::new();
        for address in self.rooms(load.pairs()).await {
            let mut pair = Pair::seated(&address, WARM_UP + load.keystrokes(), &tasks).await;
            for _ in 0..WARM_UP {
                pair.keystroke().await;
            }
            pairs.push(pair);
        }
        sleep(SETTLED).await;
        let before = self.processor_ticks();
        let mut typing = JoinSet::new();
        let began = Instant::now();
        for (pair, number) in pairs.into_iter().zip(0..) {
            // Not all at once: they are as many people.
            typing.spawn(work(pair, load, began + EVERY * number / load.pairs()));
        }
        let (mut idle, mut waits) = (Vec::new(), Vec::new());
        for (pair, waited) in typing.join_all().await {
            idle.push(pair);
            waits.extend(waited);
        }
        sleep(SETTLED).await;
        taken.processor_ticks += self.processor_ticks() - before;
        assert_eq!(waits.len(), load.keystrokes() * load.pairs() as usize);
        taken.waits.append(&mut waits);
        for pair in idle {
            pair.leave().await;
        }
    }

    async fn rooms(&self, count: u32) -> Vec<Address> {
        let mut rooms = Vec::new();
        match self {
            Self::Galley(server) => {
                let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
                for _ in 0..count {
                    let desk = server.desk_of(kim.clone(), lee.clone(), "").await;
                    rooms.push(Address {
                        url: server.url.clone(),
                        link: desk.link,
                        writer_token: desk.writer.token,
                        reviewer_token: desk.reviewer.token,
                    });
                }
            }
            Self::Copy { url, .. } => rooms.extend((0..count).map(|number| Address {
                url: url.clone(),
                link: number.to_string(),
                writer_token: String::new(),
                reviewer_token: String::new(),
            })),
        }
        rooms
    }

    /// What the process has had of the processors, in its own name and the kernel's.
    fn processor_ticks(&self) -> u64 {
        let id = match self {
            Self::Galley(server) => server.id(),
            Self::Copy { process, .. } => process.id().expect("it runs"),
        };
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("Linux");
        // The name of the program may contain anything; it ends at the last parenthesis.
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let field = |at| fields.split(' ').nth(at).and_then(|field| field.parse::<u64>().ok());
        field(11).zip(field(12)).map(|(user, system)| user + system).expect("two times")
    }
}

/// Types what there is to type; returns how long each keystroke took to arrive.
async fn work(mut pair: Pair, load: Load, first: Instant) -> (Pair, Vec<Duration>) {
    let mut waits = Vec::with_capacity(load.keystrokes());
    let mut due = first;
    for _ in 0..load.keystrokes() {
        if let Load::Steady = load {
            sleep_until(due).await;
            due += EVERY;
        }
        waits.push(pair.keystroke().await);
    }
    (pair, waits)
}
