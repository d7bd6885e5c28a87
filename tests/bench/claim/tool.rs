//! `redis-benchmark` with the scripts that Galley calls.
//!
//! The benchmark records a claim and a release with Redis's own `MONITOR`. It replaces the number
//! in their name and value by the placeholder for which the tool inserts a random one. The tool
//! draws one for each placeholder, so the keys of one lock do not belong together; for the scripts
//! that makes no difference.
//!
//! Claims are of locks without a grant. Releases need held locks: the benchmark creates them once
//! by the same claims in another database, and copies them from there before each round. As the
//! numbers are random, some releases find a free lock, which costs Redis less; so the tool's result
//! is slightly too good.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use futures_util::StreamExt as _;
use galley::locks::{Claim, LockName, Locks};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::process::Command;
use tokio::time::timeout;

use crate::contender::bench;
use crate::support::fixtures::{claim, granted};
use crate::support::redis_server::{Server, TEST_TIMEOUT};

/// The placeholder that the tool replaces by a number of the same length.
const MARK: &str = "__rand_int__";
/// The number that becomes the placeholder.
const NUMBER: &str = "123456789012";
/// The value that holds all locks that the tool releases; as long as a session's id.
const HOLDER: &str = "ses_0123456789abcdef0123456789abcdef";
/// Held locks before the releases.
const HELD: usize = 50_000;
/// Longer than the benchmark.
const LEASE: Duration = Duration::from_secs(60 * 60);
/// Copies the current database into the first.
const BRING: &str =
    "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 0) end";

pub(crate) struct Tool {
    port: u16,
    claim: Vec<Vec<u8>>,
    release: Vec<Vec<u8>>,
    /// In the other database.
    store: MultiplexedConnection,
}

impl Tool {
    pub(crate) async fn new(server: &Server, locks: &Locks) -> Self {
        let value = format!("ses_01234567890123456789{NUMBER}");
        let [claim, release] = overhear(server, locks, &value).await;
        let mut store = server.connection().await;
        let _: Value =
            redis::cmd("SELECT").arg(1).query_async(&mut store).await.expect("an answer");
        hold(&mut store, &claim, &value).await;
        let marked = |word: &Vec<u8>| replaced(word, NUMBER, MARK);
        let release = release.iter().map(|word| marked(&replaced(word, &value, HOLDER)));
        let (claim, release) = (claim.iter().map(marked).collect(), release.collect());
        Self { port: server.port(), claim, release, store }
    }

    /// Pairs a second, by as many connections as there are tasks.
    pub(crate) async fn run(&mut self, tasks: usize, pairs: usize) -> f64 {
        let claims = self.call(tasks, pairs, i32::MAX as usize, &self.claim).await;
        let mut bring = redis::cmd("EVAL");
        let _: Value =
            bring.arg(BRING).arg(0).query_async(&mut self.store).await.expect("an answer");
        let releases = self.call(tasks, pairs, HELD, &self.release).await;
        1.0 / (1.0 / claims + 1.0 / releases)
    }

    /// Runs one command that often; returns how often a second.
    async fn call(&self, tasks: usize, times: usize, numbers: usize, words: &[Vec<u8>]) -> f64 {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "-c", &tasks.to_string(), "-P", "1", "--csv"])
            .args(["-n", &times.to_string(), "-r", &numbers.to_string()])
            .args(words.iter().map(|word| OsStr::from_bytes(word)))
            .output()
            .await
            .expect("redis-benchmark is installed");
        let output = String::from_utf8_lossy(&output.stdout);
        // The last line is `"the command","times a second",` and six more values.
        let rate = output.trim_end().rsplit('"').nth(13).expect("eight columns");
        rate.parse().expect("a number")
    }
}

/// The arguments of a claim and of a release by `value`, as Redis receives them.
async fn overhear(server: &Server, locks: &Locks, value: &str) -> [Vec<Vec<u8>>; 2] {
    let client = redis::Client::open(server.url()).expect("a good address");
    let mut monitor = client.get_async_monitor().await.expect("a connection");
    let name = LockName::named(&format!("bench:{NUMBER}"));
    let options = Claim { ttl: LEASE, value: value.to_owned(), ..claim(&name, &bench()) };
    granted(locks, &options).await;
    locks.release(&name, value).await.expect("an answer");
    let scripts = monitor.on_message::<String>().filter_map(async |line| {
        let words = words(&line);
        (words.first()? == b"EVALSHA" && line.contains(NUMBER)).then_some(words)
    });
    let heard = timeout(TEST_TIMEOUT, scripts.take(2).collect::<Vec<_>>()).await.expect("in time");
    heard.try_into().expect("two scripts")
}

/// The quoted words of a line of `MONITOR`, with unprintable bytes unescaped.
fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut letters) = (Vec::new(), None, line.bytes());
    while let Some(letter) = letters.next() {
        match (letter, &mut word) {
            (b'"', None) => word = Some(Vec::new()),
            (b'"', Some(_)) => words.extend(word.take()),
            (b'\\', Some(word)) => word.push(spelled(&mut letters)),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words
}

/// The byte of an escape after a `\`.
fn spelled(letters: &mut impl Iterator<Item = u8>) -> u8 {
    let mut next = || letters.next().expect("no end within a word");
    match next() {
        b'x' => {
            let digits = [next(), next()];
            let digits = std::str::from_utf8(&digits).expect("two digits");
            u8::from_str_radix(digits, 16).expect("two digits")
        }
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        letter => letter,
    }
}

/// Replaces a text by one of the same length, so that lengths stay valid.
fn replaced(word: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut word = word.to_vec();
    let from = from.as_bytes();
    let offsets: Vec<_> = (0..word.len()).filter(|at| word[*at..].starts_with(from)).collect();
    for at in offsets {
        word[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    word
}

/// Creates the held locks.
async fn hold(store: &mut MultiplexedConnection, claim: &[Vec<u8>], value: &str) {
    for first in (0..HELD).step_by(1_000) {
        let mut pipeline = redis::pipe();
        for number in first..first + 1_000 {
            let number = format!("{number:012}");
            pipeline.cmd("EVALSHA");
            for word in &claim[1..] {
                pipeline.arg(replaced(&replaced(word, value, HOLDER), NUMBER, &number));
            }
            pipeline.ignore();
        }
        let made: RedisResult<()> = pipeline.exec_async(store).await;
        assert!(made.is_ok(), "a recorded claim does not work");
    }
}
