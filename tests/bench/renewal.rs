//! The cost of a renewal round, against its best and its worst case, and the delay of other clients
//! of Redis meanwhile.
//!
//! - `galley`: [`Locks::renew`], the real function.
//! - `bare socket`: the limit. The same bytes written to a plain socket, and as many read back as
//!   the reply has: no client, no parsing, no verdicts. Only Redis and the kernel remain. Redis's
//!   own count of input bytes checks that the bytes are the same.
//! - `one by one`: a compare-and-extend script for each lock, each waiting for the last, as
//!   published session locks do it. Not for 100,000.
//!
//! Redis is a private process on this machine. The contenders take turns, and a ratio is the median
//! of the ratios of single rounds. Then a separate thread sends `PING`s on a plain socket, one
//! after the other, while Redis is idle and during consecutive rounds: the difference is the delay
//! that a round causes. Beside it stands the duration of single script calls by Redis's own count
//! (`INFO latencystats`).
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

#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "renewal/pings.rs"]
mod pings;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use galley::locks::{HeldLock, Locks};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::measure::{Bar, Table, median, quantile, ratio};
use crate::pings::Pings;
use crate::support::fixtures::{LONG, kim, seat, seated};
use crate::support::redis_server::Server;

/// As in `locks::scripts`; the count of bytes verifies it.
const LOCKS_PER_CALL: usize = 250;
/// Locks, rounds, and how many of these rounds also run one by one.
const SIZES: [(usize, usize, usize); 4] =
    [(100, 201, 41), (1_000, 101, 21), (10_000, 41, 5), (100_000, 7, 0)];
/// The time for which `PING`s are sent.
const PINGED_FOR: Duration = Duration::from_secs(2);
/// The bar for the delay of other clients, in µs.
const HELD_MAX: f64 = 2_000.0;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut table = Table::new("A round of renewals, in ms; a ratio is of the speed");
        let mut held_up =
            Table::new("Others meanwhile, in µs; what is held to the bar is the time");
        for (locks, rounds, singles) in SIZES {
            let bench = Bench::new(locks).await;
            bench.compare(&mut table, rounds, singles).await;
            if 10_000 <= locks {
                bench.hold_up(&mut held_up).await;
            }
        }
        table.print();
        held_up.print();
    });
}

struct Bench {
    locks: Locks,
    held: Vec<HeldLock>,
    /// The bytes of a round, and the length of its reply.
    request: Vec<u8>,
    reply_bytes: usize,
    socket: Mutex<TcpStream>,
    single: Vec<Cmd>,
    connection: MultiplexedConnection,
    server: Server,
}

impl Bench {
    async fn new(seats: usize) -> Self {
        let server = Server::start().await;
        let locks = Locks::connect(&server.url()).await.expect("a good address");
        let mut held = Vec::with_capacity(seats);
        // A hundred at a time: a hundred thousand in sequence take longer than the rest of the
        // benchmark.
        for some in (0..seats).step_by(100) {
            let seating = (some..seats.min(some + 100)).map(|_| sit(locks.clone()));
            held.append(&mut seating.collect::<JoinSet<_>>().join_all().await);
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
        let bench = Self { locks, held, request, reply_bytes, socket, single, connection, server };
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
        // Reads and writes at once, otherwise a large round fills both directions and blocks.
        let wrote = writing.write_all(&self.request);
        let (wrote, read) = tokio::join!(wrote, reading.read_exact(&mut reply));
        wrote.expect("it writes");
        read.expect("it reads");
        assert!(reply.starts_with(b"$40\r\n") && reply.ends_with(b"1\r\n"));
    }

    async fn one_by_one(&self) {
        for call in &self.single {
            let renewed: u8 =
                call.query_async(&mut self.connection.clone()).await.expect("an answer");
            assert_eq!(renewed, 1);
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

    async fn compare(&self, table: &mut Table, rounds: usize, singles: usize) {
        let (mut galley, mut bare, mut single) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            galley.push(timed(self.galley()).await);
            bare.push(timed(self.bare_socket()).await);
            if round < singles {
                single.push(timed(self.one_by_one()).await);
            }
        }
        let medians =
            |theirs: &[f64]| (format!("{:.3}", median(&galley)), format!("{:.3}", median(theirs)));
        let locks = self.held.len();
        let bar = if locks == 10_000 { Bar::AtLeast(0.9) } else { Bar::None };
        let what = format!("{locks} locks, against a bare socket");
        table.row(what, medians(&bare), ratio(&bare, &galley), bar);
        if 0 < singles {
            let what = format!("{locks} locks, against one by one");
            table.row(what, medians(&single), ratio(&single, &galley), Bar::AtLeast(10.0));
        }
    }

    /// The delay of other clients during rounds, and without them.
    async fn hold_up(&self, table: &mut Table) {
        let pings = Pings::begin(self.server.port());
        tokio::time::sleep(PINGED_FOR).await;
        let idle = pings.end();
        self.server.forget_calls().await;
        let pings = Pings::begin(self.server.port());
        let began = Instant::now();
        while began.elapsed() < PINGED_FOR {
            self.galley().await;
        }
        let meanwhile = pings.end();
        let locks = self.held.len();
        for (name, q, bar) in
            [("p50", 0.5, Bar::None), ("p99", 0.99, Bar::AtMost(HELD_MAX)), ("max", 1.0, Bar::None)]
        {
            let (ours, idle) = (quantile(&meanwhile, q), quantile(&idle, q));
            let what = format!("{locks} locks: {name} of a PING, and how much longer than idle");
            table.row(what, (format!("{ours:.0}"), format!("{idle:.0}")), ours - idle, bar);
        }
        let script = self.scripts_took().await;
        for (name, took, bar) in [
            ("mean", script.0, Bar::None),
            ("p99", script.1, Bar::AtMost(HELD_MAX)),
            ("p99.9", script.2, Bar::None),
        ] {
            let what = format!("{locks} locks: {name} of a call of the script");
            table.row(what, (format!("{took:.0}"), ""), took, bar);
        }
    }

    /// The duration of script calls by Redis's own count: mean, p99 and p99.9, in µs.
    async fn scripts_took(&self) -> (f64, f64, f64) {
        let mean: String = self.server.run("INFO commandstats").await;
        let share: String = self.server.run("INFO latencystats").await;
        let statistic = |text: &str, line: &str, field: &str| -> f64 {
            let line = text.lines().find_map(|it| it.strip_prefix(line)).expect("the line");
            let field = line.split(',').find_map(|it| it.strip_prefix(field)).expect("the field");
            field.trim().parse().expect("a number")
        };
        (
            statistic(&mean, "cmdstat_evalsha:", "usec_per_call="),
            statistic(&share, "latency_percentiles_usec_evalsha:", "p99="),
            statistic(&share, "latency_percentiles_usec_evalsha:", "p99.9="),
        )
    }
}

async fn sit(locks: Locks) -> HeldLock {
    seated(&locks, &seat(), &kim(), LONG).await
}

/// The bytes of a round.
fn request(held: &[HeldLock]) -> Vec<u8> {
    // As the server loads it: without comments and blank lines.
    let source = include_str!("../../src/locks/redis/lua/renew.lua").lines();
    let is_code = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("--");
    let source = source.filter(is_code).collect::<Vec<_>>().join("\n");
    let script = Script::new(&source);
    let mut pipeline = redis::pipe();
    pipeline.cmd("SCRIPT").arg("LOAD").arg(&source);
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

/// A call of the usual compare-and-extend script for each lock.
async fn single(held: &[HeldLock], mut connection: MultiplexedConnection) -> Vec<Cmd> {
    let source = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                  return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
    let script = Script::new(source);
    let mut load = redis::cmd("SCRIPT");
    let _: String =
        load.arg("LOAD").arg(source).query_async(&mut connection).await.expect("a hash");
    let call = |held: &HeldLock| {
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

/// In milliseconds.
async fn timed(round: impl Future<Output = ()>) -> f64 {
    let began = Instant::now();
    round.await;
    began.elapsed().as_secs_f64() * 1_000.0
}
