//! The contenders: each claims and releases with its own implementation.

use std::process::Stdio;
use std::time::Duration;

use galley::locks::{AcquireOptions, Lease, LockName, Locks, Owner, Released};
use rslock::LockManager;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::fixtures::{claim, granted, owner};
use crate::support::redis_server::Server;
use crate::tool::Tool;

const LEASE: Duration = Duration::from_secs(12);

pub(crate) enum Contender {
    Claim(Locks),
    Guard(Locks),
    RedisBenchmark(Tool),
    Rslock(LockManager),
    Redlock(Box<Redlock>),
    Memory(Locks),
}

/// Galley is the first.
pub(crate) async fn contenders(server: &Server) -> Vec<Contender> {
    let locks = Locks::connect(&server.url()).await.expect("a good address");
    locks.check().await.expect("a fit Redis");
    let mut all = vec![
        Contender::Claim(locks.clone()),
        Contender::Guard(locks.clone()),
        Contender::RedisBenchmark(Tool::new(server, &locks).await),
        Contender::Rslock(LockManager::new(vec![server.url()])),
    ];
    match Redlock::start(server.port()).await {
        Some(redlock) => all.push(Contender::Redlock(Box::new(redlock))),
        None => println!("redlock is left out: (cd tests/bench/peers && npm ci)"),
    }
    all.push(Contender::Memory(Locks::memory()));
    all
}

impl Contender {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Guard(_) => "guard",
            Self::RedisBenchmark(_) => "redis-benchmark",
            Self::Rslock(_) => "rslock",
            Self::Redlock(_) => "redlock",
            Self::Memory(_) => "memory",
        }
    }

    /// Claims and releases `pairs` locks, `tasks` at a time; returns the pairs a second.
    pub(crate) async fn run(&mut self, tasks: usize, pairs: usize) -> f64 {
        let each = pairs / tasks;
        match self {
            Self::Claim(locks) | Self::Memory(locks) => {
                by_tasks(tasks, pairs, |task| claims(locks.clone(), task, each)).await
            }
            Self::Guard(locks) => {
                by_tasks(tasks, pairs, |task| guards(locks.clone(), task, each)).await
            }
            Self::Rslock(locks) => {
                by_tasks(tasks, pairs, |task| rslocks(locks.clone(), task, each)).await
            }
            Self::RedisBenchmark(tool) => tool.run(tasks, pairs).await,
            Self::Redlock(redlock) => redlock.run(tasks, pairs).await,
        }
    }

    pub(crate) async fn stop(self) {
        match self {
            Self::Claim(locks) | Self::Memory(locks) => locks.close().await,
            Self::Redlock(mut redlock) => redlock.process.kill().await.expect("it can be killed"),
            Self::Guard(_) | Self::RedisBenchmark(_) | Self::Rslock(_) => {}
        }
    }
}

async fn by_tasks<F>(tasks: usize, pairs: usize, task: impl Fn(usize) -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let all: JoinSet<()> = (0..tasks).map(task).collect();
    all.join_all().await;
    pairs as f64 / began.elapsed().as_secs_f64()
}

async fn claims(locks: Locks, task: usize, times: usize) {
    let (name, owner) = (LockName::named(&name(task)), bench());
    for _ in 0..times {
        let options = claim(&name, &owner);
        granted(&locks, &options).await;
        assert_eq!(locks.release(&options.name, &options.value).await, Ok(Released::Freed));
    }
}

async fn guards(locks: Locks, task: usize, times: usize) {
    let name = LockName::named(&name(task));
    let options = AcquireOptions::new(Lease::Renewed(LEASE));
    for _ in 0..times {
        let guard = locks.try_lock(&name, &options).await.expect("a free lock");
        assert_eq!(guard.release().await, Ok(Released::Freed));
    }
}

async fn rslocks(locks: LockManager, task: usize, times: usize) {
    let name = format!("lock:{}", name(task));
    for _ in 0..times {
        let lock = locks.lock(name.as_bytes(), LEASE).await.expect("a free lock");
        locks.unlock(&lock).await;
    }
}

fn name(task: usize) -> String {
    format!("bench:{task}")
}

pub(crate) fn bench() -> Owner {
    owner("usr_0123456789abcdef0123456789abcdef", "Kim")
}

/// npm's `redlock`, in a separate process that reads commands line by line.
pub(crate) struct Redlock {
    process: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Redlock {
    /// `None` if its packages are not installed.
    async fn start(port: u16) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/peers");
        let mut process = Command::new("node")
            .args(["redlock.mjs", &port.to_string()])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let input = process.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let ready = answers.next_line().await.expect("a readable answer");
        ready.map(|_ready| Self { process, input, answers })
    }

    async fn run(&mut self, tasks: usize, pairs: usize) -> f64 {
        self.input.write_all(format!("{tasks} {pairs}\n").as_bytes()).await.expect("it listens");
        let answer = self.answers.next_line().await.expect("a readable answer");
        answer.expect("it lives").parse().expect("a number")
    }
}
