//! The cost of a claim and its release: pairs a second with 1, 64 and 1,024 tasks. Each task claims
//! and releases its own lock in a loop.
//!
//! - `claim`: [`Locks::claim`] and [`Locks::release`] in a private Redis on this machine.
//! - `guard`: the same with a [`Guard`]: [`Locks::try_lock`] and its release, with renewal.
//! - `redis-benchmark`: Redis's own tool with the same two scripts on the same kinds of names, a
//!   connection for each task. It runs one script at a time: first claims of free locks, then
//!   releases of held locks; a pair takes the time of one of each.
//! - `rslock`: the crate, `lock` and `unlock`: a `SET NX` and a script that compares and deletes,
//!   on one connection of the same client library. No fence, no owner, no queue.
//! - `redlock`: npm's, on node and ioredis: the same as two scripts.
//! - `memory`: claim and release inside the process.
//!
//! All contenders but `memory` use one Redis, which the benchmark empties between them. They take
//! turns, and a ratio is the median of the ratios of single rounds. `redlock` needs its packages,
//! which `peers/` pins; without them the benchmark skips it and prints a line:
//!
//! ```text
//! (cd tests/bench/peers && npm ci); cargo bench --bench claim
//! ```
//!
//! Names of contenders after a `--` select these only.
//!
//! [`Guard`]: galley::locks::Guard

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[path = "claim/contender.rs"]
mod contender;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "../support/mod.rs"]
mod support;
#[path = "claim/tool.rs"]
mod tool;

use tokio::runtime::Runtime;

use crate::contender::{Contender, contenders};
use crate::measure::{Bar, Table, median, ratio};
use crate::support::redis_server::Server;

/// Rounds of each contender.
const ROUNDS: usize = 9;
/// Tasks, and the pairs of all tasks together in a round.
const SIZES: [(usize, usize); 3] = [(1, 1_000), (64, 6_400), (1_024, 8_192)];

/// Pairs a second of one contender, by round.
type Rates = Vec<f64>;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::start().await;
        let wanted: Vec<_> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
        let mut contenders = contenders(&server).await;
        contenders.retain(|it| wanted.is_empty() || wanted.iter().any(|name| name == it.name()));
        let mut table = Table::new("Claims and releases a second; a ratio is of the speed");
        for (tasks, pairs) in SIZES {
            let rates = rounds(&server, &mut contenders, tasks, pairs).await;
            compare(&mut table, tasks, &contenders, &rates);
        }
        table.print();
        for contender in contenders {
            contender.stop().await;
        }
    });
}

async fn rounds(
    server: &Server,
    contenders: &mut [Contender],
    tasks: usize,
    pairs: usize,
) -> Vec<Rates> {
    let mut rates = vec![Rates::with_capacity(ROUNDS); contenders.len()];
    for round in 0..=ROUNDS {
        for (contender, rates) in contenders.iter_mut().zip(&mut rates) {
            let _: String = server.run("FLUSHDB SYNC").await;
            let rate = contender.run(tasks, pairs).await;
            // The first round warms up.
            if 0 < round {
                rates.push(rate);
            }
        }
    }
    rates
}

/// The other contenders are compared with the first.
fn compare(table: &mut Table, tasks: usize, contenders: &[Contender], rates: &[Rates]) {
    let ours = &rates[0];
    for (contender, theirs) in contenders.iter().zip(rates).skip(1) {
        let bar = match contender {
            Contender::RedisBenchmark(_) if tasks == 64 => Bar::AtLeast(0.9),
            Contender::Rslock(_) | Contender::Redlock(_) => Bar::AtLeast(1.0),
            _ => Bar::None,
        };
        let medians = (format!("{:.0}", median(ours)), format!("{:.0}", median(theirs)));
        let what = format!("{tasks} tasks, against {}", contender.name());
        table.row(what, medians, ratio(ours, theirs), bar);
    }
}
