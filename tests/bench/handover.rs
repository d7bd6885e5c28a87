//! The time from a release until the next waiter has the lock, and the Redis commands for it.
//!
//! - `guard`: [`Guard::release`] in one [`Locks`], until a task that waits in [`Locks::lock`] of
//!   another, as on another server, has its guard.
//! - `publish`: the limit. A bare `PUBLISH` on a connection, until a task that waits for it has the
//!   message from another connection: the same client library, the same number of tasks.
//! - `look`: as `guard`, but by [`Waiter::next`], which polls before it accepts; seats use it.
//! - `polling`: as `guard`, but the waiter tries every 50 ms.
//!
//! Redis is a private process on this machine. The contenders take turns, and a ratio is the median
//! of the ratios of single rounds. Then 100 tasks wait for one lock, and each releases it as soon
//! as it has it: the commands of Redis in that time are divided by the hand-overs. A published
//! message counts too, although only a script sends it.
//!
//! ```text
//! cargo bench --bench handover
//! ```
//!
//! [`Guard::release`]: galley::locks::Guard::release
//! [`Waiter::next`]: galley::locks::Waiter::next

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use galley::locks::{AcquireOptions, Guard, Lease, LockName, Locks};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::measure::{Bar, Table, median, quantile, ratio};
use crate::support::fixtures::{apart, claim, granted_in_turn, lee, queued, seat, seated, until};
use crate::support::redis_server::Server;

const ROUNDS: usize = 600;
/// Each round takes some 25 ms.
const POLLING_ROUNDS: usize = 100;
const POLLED_EVERY: Duration = Duration::from_millis(50);
/// Waiters of one lock, and the number of counts: a waiter's own poll in that time is not part of a
/// hand-over.
const WAITERS: usize = 100;
const COUNTS: usize = 5;
const LEASE: Duration = Duration::from_secs(12);

struct Bench {
    one: Locks,
    other: Locks,
    name: LockName,
    publishes: MultiplexedConnection,
    messages: UnboundedReceiver<PushInfo>,
    _listens: MultiplexedConnection,
    server: Server,
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut bench = Bench::new().await;
        let (mut guard, mut publish, mut look) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS + 20 {
            let times = (bench.guard().await, bench.publish().await, bench.look().await);
            // The first rounds warm up.
            if 20 <= round {
                guard.push(times.0);
                publish.push(times.1);
                look.push(times.2);
            }
        }
        let mut polling = Vec::new();
        for _ in 0..POLLING_ROUNDS {
            polling.push(bench.polling().await);
        }
        let mut table =
            Table::new("From a release to the next guard, in µs; a ratio is of the time");
        let mut compare = |what: &str, theirs: &[f64], q: f64, ratio: f64, bar: Bar| {
            let [ours, theirs] = [&guard[..], theirs].map(|it| format!("{:.0}", quantile(it, q)));
            table.row(what, (ours, theirs), ratio, bar);
        };
        let p99 = quantile(&guard, 0.99) / quantile(&publish, 0.99);
        compare("p50, against publish", &publish, 0.5, ratio(&guard, &publish), Bar::AtMost(1.5));
        compare("p99, against publish", &publish, 0.99, p99, Bar::None);
        compare("p50, against a look", &look, 0.5, ratio(&guard, &look), Bar::None);
        let shorter = median(&guard) / median(&polling);
        compare("p50, against polling", &polling, 0.5, shorter, Bar::AtMost(1.0));
        let shorter = quantile(&guard, 0.99) / quantile(&polling, 0.99);
        compare("p99, against polling", &polling, 0.99, shorter, Bar::AtMost(1.0));
        let mut commands = f64::INFINITY;
        for _ in 0..COUNTS {
            commands = commands.min(bench.commands().await);
        }
        let what = "commands a hand-over, 100 wait";
        table.row(what, (format!("{commands:.2}"), "3"), commands, Bar::AtMost(3.0));
        table.print();
        bench.one.close().await;
        bench.other.close().await;
    });
}

impl Bench {
    async fn new() -> Self {
        let server = Server::start().await;
        let connect = async || {
            let locks = Locks::connect(&server.url()).await.expect("a good address");
            locks.check().await.expect("a fit Redis");
            locks
        };
        let (one, other) = (connect().await, connect().await);
        let (sender, messages) = unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        // Like Galley's: RESP3 pushes the messages.
        let client = redis::Client::open(format!("{}/?protocol=resp3", server.url()));
        let client = client.expect("a good address");
        let listens = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut listens = listens.expect("a connection");
        listens.subscribe("bench").await.expect("a subscription");
        let publishes = server.connection().await;
        let name = LockName::named("bench:1");
        Self { one, other, name, publishes, messages, _listens: listens, server }
    }

    /// Acquires the lock here and waits for it there; returns the guard when both are done.
    async fn hold(&self) -> Guard {
        let guard = self.one.try_lock(&self.name, &options()).await;
        guard.expect("a free lock")
    }

    async fn is_waited_for(&self, waiters: usize) {
        until("they wait", async || {
            let holder = self.one.holder(&self.name).await.expect("an answer");
            holder.is_some_and(|holder| holder.waiting == waiters)
        })
        .await;
    }

    async fn guard(&mut self) -> f64 {
        let held = self.hold().await;
        let (other, name) = (self.other.clone(), self.name.clone());
        let waits = apart(async move {
            let guard = other.lock(&name, &options().with(queued(LEASE))).await.expect("the lock");
            (Instant::now(), guard)
        });
        self.is_waited_for(1).await;
        let began = Instant::now();
        let released = held.release();
        let (_released, had) = tokio::join!(released, waits);
        let (at, guard) = had.expect("no panic");
        guard.release().await.expect("an answer");
        micros(at - began)
    }

    async fn publish(&mut self) -> f64 {
        while self.messages.try_recv().is_ok() {}
        let began = Instant::now();
        let mut publish = redis::cmd("PUBLISH");
        publish.arg("bench").arg("1763703000000000 1763703000000000 acq_0123456789abcdef");
        let mut publishes = self.publishes.clone();
        // In its own task, like the waiter.
        let mut messages = std::mem::replace(&mut self.messages, unbounded_channel().1);
        let waits = apart(async move {
            while messages.recv().await.is_some_and(|push| push.kind != PushKind::Message) {}
            (Instant::now(), messages)
        });
        let (receivers, heard) = tokio::join!(publish.query_async::<u8>(&mut publishes), waits);
        assert_eq!(receivers, Ok(1));
        let (at, messages) = heard.expect("no panic");
        self.messages = messages;
        micros(at - began)
    }

    async fn look(&mut self) -> f64 {
        let (name, other) = (seat(), self.other.clone());
        let held = seated(&self.one, &name, &lee(), LEASE).await;
        let options = claim(&name, &lee());
        let waiting = other.wait(&options, LEASE);
        let waits = apart(async move {
            granted_in_turn(waiting).await.expect("the lock");
            Instant::now()
        });
        until("it waits", async || {
            let holder = self.one.holder(&name).await.expect("an answer");
            holder.is_some_and(|holder| holder.waiting == 1)
        })
        .await;
        let began = Instant::now();
        let (_released, had) = tokio::join!(self.one.release(&name, &held.value), waits);
        let at = had.expect("no panic");
        self.one.release(&name, &options.value).await.expect("an answer");
        micros(at - began)
    }

    async fn polling(&mut self) -> f64 {
        let held = self.hold().await;
        let (other, name) = (self.other.clone(), self.name.clone());
        let polls = apart(async move {
            let mut tick = interval(POLLED_EVERY);
            let mut tried = other.try_lock(&name, &options()).await;
            while tried.is_err() {
                tick.tick().await;
                tried = other.try_lock(&name, &options()).await;
            }
            (Instant::now(), tried.expect("the lock"))
        });
        // At a random time between two ticks.
        let random = f64::from(getrandom::u32().expect("randomness")) / f64::from(u32::MAX);
        sleep(POLLED_EVERY.mul_f64(1.0 + random)).await;
        let began = Instant::now();
        let (_released, had) = tokio::join!(held.release(), polls);
        let (at, guard) = had.expect("no panic");
        guard.release().await.expect("an answer");
        micros(at - began)
    }

    /// Commands for each hand-over while many wait.
    async fn commands(&mut self) -> f64 {
        let held = self.hold().await;
        let mut waits = JoinSet::new();
        for _ in 0..WAITERS {
            let (other, name) = (self.other.clone(), self.name.clone());
            waits.spawn(async move {
                let guard =
                    other.lock(&name, &options().with(queued(LEASE))).await.expect("the lock");
                guard.release().await.expect("an answer");
            });
        }
        self.is_waited_for(WAITERS).await;
        self.server.forget_calls().await;
        held.release().await.expect("an answer");
        waits.join_all().await;
        let mut commands = 0;
        for command in ["evalsha", "publish", "script|load", "eval"] {
            commands += self.server.calls(command).await;
        }
        // The last release hands it over to no waiter.
        (commands - 1) as f64 / WAITERS as f64
    }
}

fn options() -> AcquireOptions {
    AcquireOptions::new(Lease::Renewed(LEASE))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}
