//! What a claim and its release cost, against what the network alone costs.
//!
//! - `memory`: claim and release inside the process.
//! - `redis`: claim and release in a private Redis on this machine: two round trips, two scripts.
//! - `two_pings`: two round trips that ask for nothing, on a connection of the same client
//!   library: what is left after this is the scripts.
//! - `set_nx_del`: the least that could be called a lock, without fence, holder or comparison.
//!
//! Each also with 64 at a time, where round trips overlap and the work itself shows. After
//! criterion's own figures, they are run in turn and the ratios of their medians are printed:
//!
//! ```text
//! cargo bench --bench claim
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../locks/people.rs"]
mod people;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../locks/server.rs"]
mod server;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use galley::locks::{Locks, Released};
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::people::{claim, granted, kim, seat};
use crate::server::Server;

/// Rounds of each kind for the ratios.
const ROUNDS: usize = 201;

#[derive(Clone)]
enum Kind {
    Locks(Locks),
    Pings(MultiplexedConnection),
    SetNxDel(MultiplexedConnection),
}

impl Kind {
    async fn once(&mut self) {
        match self {
            Self::Locks(locks) => {
                let wish = claim(&seat(), &kim());
                granted(locks, &wish).await;
                assert_eq!(locks.release(&wish.name, &wish.value).await, Ok(Released::Freed));
            }
            Self::Pings(connection) => {
                for _ in 0..2 {
                    let _: Value = redis::cmd("PING").query_async(connection).await.expect("pong");
                }
            }
            Self::SetNxDel(connection) => {
                let wish = claim(&seat(), &kim());
                let mut set = redis::cmd("SET");
                set.arg(wish.name.key()).arg(&wish.value).arg("NX").arg("PX").arg(12_000);
                let _: Value = set.query_async(connection).await.expect("an answer");
                let mut del = redis::cmd("DEL");
                let freed: u8 =
                    del.arg(wish.name.key()).query_async(connection).await.expect("an answer");
                assert_eq!(freed, 1);
            }
        }
    }

    async fn at_a_time(&self, tasks: usize) {
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            let mut kind = self.clone();
            all.spawn(async move { kind.once().await });
        }
        all.join_all().await;
    }
}

fn claims(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (_server, kinds) = runtime.block_on(kinds());
    let mut group = c.benchmark_group("claim_and_release");
    group.sample_size(20).warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_millis(1_500));
    for tasks in [1, 64] {
        group.throughput(Throughput::Elements(tasks as u64));
        for (name, kind) in &kinds {
            group.bench_function(BenchmarkId::new(*name, tasks), |bencher| {
                bencher.to_async(&runtime).iter(|| kind.at_a_time(tasks));
            });
        }
    }
    group.finish();
    for tasks in [1, 64] {
        runtime.block_on(ratios(&kinds, tasks));
    }
}

async fn kinds() -> (Server, Vec<(&'static str, Kind)>) {
    let server = Server::start().await;
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    locks.check().await.expect("a fit Redis");
    let connection = server.connection().await;
    let kinds = vec![
        ("memory", Kind::Locks(Locks::memory())),
        ("redis", Kind::Locks(locks)),
        ("two_pings", Kind::Pings(connection.clone())),
        ("set_nx_del", Kind::SetNxDel(connection)),
    ];
    (server, kinds)
}

async fn ratios(kinds: &[(&'static str, Kind)], tasks: usize) {
    let mut times = vec![Vec::with_capacity(ROUNDS); kinds.len()];
    for _ in 0..ROUNDS {
        for ((_name, kind), times) in kinds.iter().zip(&mut times) {
            let began = Instant::now();
            kind.at_a_time(tasks).await;
            times.push(began.elapsed());
        }
    }
    let medians: Vec<_> = times.into_iter().map(median).collect();
    println!("\nmedians of {ROUNDS} rounds in turn, {tasks} at a time");
    for ((name, _kind), micros) in kinds.iter().zip(&medians) {
        let ratio = micros / medians[1];
        println!("{name:>12}: {micros:>9.1} us, {ratio:.2} of the time of `redis`");
    }
}

/// In microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000_000.0
}

criterion_group!(benches, claims);
criterion_main!(benches);
