//! What a round of renewals costs, against what it could cost at best and at worst.
//!
//! - `galley`: [`Locks::renew`], the real function.
//! - `bare_socket`: the limit. The same bytes written to a plain socket, and as many read back as
//!   the answer has: no client, no parsing, no verdicts. What remains is Redis and the kernel.
//!   That the bytes are the same is checked by Redis's own count of what came in.
//! - `one_by_one`: a compare-and-extend script for each lock, each waiting for the last, as
//!   published session locks do it. For 100 and 1,000 locks only.
//!
//! The Redis is a private one on this machine. After criterion's own figures, the three are run in
//! turn, round by round, so that whatever else the machine does falls on all alike, and the ratios
//! of their medians are printed:
//!
//! ```text
//! cargo bench --bench renewal
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

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use galley::locks::{Held, Locks};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::people::{LONG, kim, seat, seated};
use crate::server::Server;

/// As in `locks::scripts`; that it is, the count of bytes shows.
const LOCKS_PER_CALL: usize = 250;
/// Rounds of each kind for the ratios.
const ROUNDS: usize = 41;

fn renewals(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("renewal_round");
    group.sampling_mode(SamplingMode::Flat).sample_size(20);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1_500));
    let mut ratios = Vec::new();
    for seats in [100, 1_000, 10_000] {
        let bench = runtime.block_on(Bench::new(seats));
        group.throughput(Throughput::Elements(seats as u64));
        group.bench_function(BenchmarkId::new("galley", seats), |bencher| {
            bencher.to_async(&runtime).iter(|| bench.galley());
        });
        group.bench_function(BenchmarkId::new("bare_socket", seats), |bencher| {
            bencher.to_async(&runtime).iter(|| bench.bare_socket());
        });
        if seats <= 1_000 {
            group.bench_function(BenchmarkId::new("one_by_one", seats), |bencher| {
                bencher.to_async(&runtime).iter(|| bench.one_by_one());
            });
        }
        ratios.push(runtime.block_on(bench.ratios(seats)));
    }
    group.finish();
    println!("\nmedians of {ROUNDS} rounds, in turn");
    for line in ratios {
        println!("{line}");
    }
}

struct Bench {
    locks: Locks,
    held: Vec<Held>,
    /// The bytes of a round, and how many come back.
    request: Vec<u8>,
    reply_bytes: usize,
    socket: Mutex<TcpStream>,
    single: Vec<Cmd>,
    connection: MultiplexedConnection,
    _server: Server,
}

impl Bench {
    async fn new(seats: usize) -> Self {
        let server = Server::start().await;
        let locks = Locks::connect(&server.url()).await.expect("a good address");
        let mut held = Vec::with_capacity(seats);
        for _ in 0..seats {
            held.push(seated(&locks, &seat(), &kim(), LONG).await);
        }
        let request = request(&held);
        // `$40\r\n<hash>\r\n`, and for each call `$<n>\r\n<verdicts>\r\n`.
        let calls = held.chunks(LOCKS_PER_CALL).map(|chunk| bulk_bytes(chunk.len()));
        let reply_bytes = bulk_bytes(40) + calls.sum::<usize>();
        let socket = TcpStream::connect(("127.0.0.1", server.port())).await.expect("a socket");
        socket.set_nodelay(true).expect("a socket option");
        let socket = Mutex::new(socket);
        let connection = server.connection().await;
        let single = single(&held, connection.clone()).await;
        let bench =
            Self { locks, held, request, reply_bytes, socket, single, connection, _server: server };
        bench.check_bytes().await;
        bench
    }

    async fn galley(&self) {
        let round = self.locks.renew(&self.held, LONG).await.expect("an answer");
        assert_eq!(round.verdicts.len(), self.held.len());
    }

    async fn bare_socket(&self) {
        let mut socket = self.socket.lock().await;
        let (mut reading, mut writing) = socket.split();
        let mut reply = vec![0; self.reply_bytes];
        // Both at once, or a large round would fill both directions and stand still.
        let wrote = writing.write_all(&self.request);
        let (wrote, read) = tokio::join!(wrote, reading.read_exact(&mut reply));
        wrote.expect("it writes");
        read.expect("it reads");
        assert!(reply.starts_with(b"$40\r\n") && reply.ends_with(b"1\r\n"));
    }

    async fn one_by_one(&self) {
        for call in &self.single {
            let kept: u8 = call.query_async(&mut self.connection.clone()).await.expect("an answer");
            assert_eq!(kept, 1);
        }
    }

    /// The bare socket sends what the real round sends.
    async fn check_bytes(&self) {
        let before = self.bytes_in().await;
        self.galley().await;
        let between = self.bytes_in().await;
        self.bare_socket().await;
        let after = self.bytes_in().await;
        assert_eq!(between - before, after - between);
    }

    async fn bytes_in(&self) -> u64 {
        let mut info = redis::cmd("INFO");
        let info: String =
            info.arg("stats").query_async(&mut self.connection.clone()).await.expect("an answer");
        let field = info.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
        field.expect("the field").trim().parse().expect("a number")
    }

    async fn ratios(&self, seats: usize) -> String {
        let (mut galley, mut bare, mut single) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            galley.push(timed(self.galley()).await);
            bare.push(timed(self.bare_socket()).await);
            if seats <= 1_000 {
                single.push(timed(self.one_by_one()).await);
            }
        }
        let (galley, bare) = (median(galley), median(bare));
        let mut line = format!(
            "{seats:>6} seats: galley {galley:>7.3} ms, bare socket {bare:>7.3} ms: {:.2} of its \
             speed",
            bare / galley
        );
        if seats <= 1_000 {
            let single = median(single);
            line += &format!("; one by one {single:>8.3} ms: {:.1} times faster", single / galley);
        }
        line
    }
}

/// The bytes of a round.
fn request(held: &[Held]) -> Vec<u8> {
    let source = include_str!("../../src/locks/renew.lua");
    let script = Script::new(source);
    let mut pipeline = redis::pipe();
    pipeline.cmd("SCRIPT").arg("LOAD").arg(source);
    for chunk in held.chunks(LOCKS_PER_CALL) {
        pipeline.cmd("EVALSHA").arg(script.get_hash()).arg(chunk.len());
        for held in chunk {
            pipeline.arg(held.name.key());
        }
        pipeline.arg(u64::try_from(LONG.as_millis()).expect("not that long"));
        for held in chunk {
            pipeline.arg(&held.value);
        }
    }
    pipeline.get_packed_pipeline()
}

/// A call for each lock, of the script that everybody has.
async fn single(held: &[Held], mut connection: MultiplexedConnection) -> Vec<Cmd> {
    let source = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                  return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
    let script = Script::new(source);
    let mut load = redis::cmd("SCRIPT");
    let _: String =
        load.arg("LOAD").arg(source).query_async(&mut connection).await.expect("a hash");
    let call = |held: &Held| {
        let mut call = redis::cmd("EVALSHA");
        call.arg(script.get_hash()).arg(1).arg(held.name.key()).arg(&held.value);
        call.arg(u64::try_from(LONG.as_millis()).expect("not that long"));
        call
    };
    held.iter().map(call).collect()
}

/// Bytes of a bulk string on the wire.
fn bulk_bytes(length: usize) -> usize {
    1 + length.to_string().len() + 2 + length + 2
}

async fn timed(round: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    round.await;
    began.elapsed()
}

/// In milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

criterion_group!(benches, renewals);
criterion_main!(benches);
