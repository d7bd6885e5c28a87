//! `redis-benchmark` with the scripts that Galley calls.
//!
//! Which commands those are is not written down here: a claim and a release are overheard by
//! Redis's own `MONITOR`, and the number in their name and value is replaced by the mark for which
//! the tool puts a random one. It draws one for each mark, so the keys of one lock do not belong
//! together; to the scripts that makes no difference.
//!
//! Claims are of locks that nobody ever had. For releases there have to be locks that are held:
//! they are made once by the same claims, in another database, and copied from there before each
//! round. As the numbers are random, some releases find a lock that is free by then, which costs
//! Redis less; so the tool comes off a little too well.

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
use crate::people::{claim, granted};
use crate::server::{PATIENCE, Server};

/// What the tool replaces by a number of as many digits.
const MARK: &str = "__rand_int__";
/// The number before it is the mark.
const NUMBER: &str = "123456789012";
/// What all locks are held by that the tool releases; as long as a session's id.
const HOLDER: &str = "ses_0123456789abcdef0123456789abcdef";
/// Locks that are held when releases begin.
const HELD: usize = 50_000;
/// Longer than the benchmark.
const LEASE: Duration = Duration::from_secs(60 * 60);
/// Copies all that the present database has into the first.
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

    /// Runs one command that often; gives how often that was a second.
    async fn call(&self, tasks: usize, times: usize, numbers: usize, words: &[Vec<u8>]) -> f64 {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "-c", &tasks.to_string(), "-P", "1", "--csv"])
            .args(["-n", &times.to_string(), "-r", &numbers.to_string()])
            .args(words.iter().map(|word| OsStr::from_bytes(word)))
            .output()
            .await
            .expect("redis-benchmark is installed");
        let output = String::from_utf8_lossy(&output.stdout);
        // The last line is `"the command","times a second",` and six more figures.
        let rate = output.trim_end().rsplit('"').nth(13).expect("eight columns");
        rate.parse().expect("a number")
    }
}

/// The words of a claim and of a release by `value`, as Redis hears them.
async fn overhear(server: &Server, locks: &Locks, value: &str) -> [Vec<Vec<u8>>; 2] {
    let client = redis::Client::open(server.url()).expect("a good address");
    let mut monitor = client.get_async_monitor().await.expect("a connection");
    let name = LockName::named(&format!("bench:{NUMBER}"));
    let wish = Claim { ttl: LEASE, value: value.to_owned(), ..claim(&name, &bench()) };
    granted(locks, &wish).await;
    locks.release(&name, value).await.expect("an answer");
    let scripts = monitor.on_message::<String>().filter_map(async |line| {
        let words = words(&line);
        (words.first()? == b"EVALSHA" && line.contains(NUMBER)).then_some(words)
    });
    let heard = timeout(PATIENCE, scripts.take(2).collect::<Vec<_>>()).await.expect("in time");
    heard.try_into().expect("two scripts")
}

/// What stands in quotes in a line of `MONITOR`, where what cannot be printed is spelled.
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

/// The byte that is spelled after a `\`.
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

/// Replaces a text by one of the same length, so that lengths stay true.
fn replaced(word: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut word = word.to_vec();
    let from = from.as_bytes();
    let places: Vec<_> = (0..word.len()).filter(|at| word[*at..].starts_with(from)).collect();
    for at in places {
        word[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    word
}

/// Makes the locks that are held.
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
        assert!(made.is_ok(), "a claim that was overheard does not work");
    }
}
