//! The effect of one user's attack on the work of others.
//!
//! Each attack of [`attacks`] runs for a minute against its own server with default settings,
//! SQLite and locks in memory. Beside it an honest pair works: the writer types five keys a second,
//! and each second one REST call reads the text and one creates a review ([`honest`]). Attackers
//! connect from 127.0.0.2, those with many addresses from 127.0.10.1 on, and the honest pair from
//! 127.0.0.1, so limits by address can distinguish them.
//!
//! A row shows the pair's times: from a key to the other editor (relay), from a key to the
//! `document.saved` that covers it (saved), and of a REST call; and the peak memory of the server.
//! Attackers, pair and server share the machine, so times are upper bounds. The row *nothing* is
//! the same pair without an attack: the machine's own share. Attackers run on a separate runtime:
//! the pair's tasks do not wait behind the attackers' tasks, which encode megabytes.
//!
//! ```text
//! cargo bench --bench hostile                          # all attacks, a minute each
//! cargo bench --bench hostile -- --seconds 5 H1 M4     # two of them, shortly
//! GALLEY_BIN=path/to/galley cargo bench --bench hostile    # another version of the server
//! ```
//!
//! All traffic stays on loopback; each attack has bounds on time and connections.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/attacks.rs"]
mod attacks;
#[path = "hostile/edge.rs"]
mod edge;
#[path = "hostile/files.rs"]
mod files;
#[path = "hostile/honest.rs"]
mod honest;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "hostile/people.rs"]
mod people;
#[path = "hostile/reviews.rs"]
mod reviews;
#[path = "../support/mod.rs"]
mod support;
#[path = "hostile/updates.rs"]
mod updates;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};
use tokio::time::timeout;

use crate::attacks::{ATTACKS, Attack};
use crate::honest::Seen;
use crate::support::galley_process::Server;

/// The length of an attack without `--seconds`.
const SECONDS: u64 = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let (seconds, names) = parse(&arguments);
    let (runtime, attackers) = (Runtime::new(), Runtime::new());
    let (runtime, attackers) = (runtime.expect("a runtime"), attackers.expect("a runtime"));
    println!("| attack | relay p50 | p99 | saved p50 | p99 | REST p99 | failed | memory | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let is_selected = |attack: &&Attack| names.is_empty() || names.contains(&attack.name);
    for attack in ATTACKS.iter().filter(is_selected) {
        let seen = runtime.block_on(run(attack, Duration::from_secs(seconds), attackers.handle()));
        println!("{}", seen.row(attack.title));
    }
    attackers.shutdown_background();
}

/// The length of an attack, and the selected attacks (none: all).
fn parse(arguments: &[String]) -> (u64, Vec<&str>) {
    let (mut seconds, mut names) = (SECONDS, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let given = rest.next().and_then(|given| given.parse().ok());
            seconds = given.expect("--seconds takes a whole number");
        } else {
            names.push(argument.as_str());
        }
    }
    (seconds, names)
}

/// One attack beside one honest pair, on a server of its own.
async fn run(attack: &Attack, length: Duration, attackers: &Handle) -> Seen {
    // On a disk: the system's folder for temporary files may be memory.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let server = Arc::new(Server::in_folder(Arc::new(folder), attack.settings).await);
    let pair = honest::Pair::seated(&server).await;
    let attacker = Arc::new(attacker::Attacker::new(&server));
    #[expect(clippy::disallowed_methods, reason = "one, on the threads of the attackers")]
    let attack = attackers.spawn(timeout(length, (attack.run)(attacker)));
    let (seen, _ended) = tokio::join!(pair.work(length), attack);
    seen
}
