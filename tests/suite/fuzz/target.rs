//! Runs a judge over mutations for its share of the time, and reports how to reproduce a failure.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::fuzz::mutate::mutate;
use crate::support::rng::Random;

/// Time for all targets together, without `GALLEY_FUZZ_SECONDS`.
const SECONDS: f64 = 60.0;
/// Growth of the peak of the process while a target runs, for all targets and the trace in parallel: about
/// 40 MB in practice. Other tests of the process have raised the peak before. A decoder that trusts a claimed
/// size allocates hundreds.
const PEAK_MAX: u64 = 128 * 1_024 * 1_024;
/// Executions between two reads of the clock.
const BATCH: u64 = 16;

/// Reports the input and its seed if the judge panics.
struct Witness<'a> {
    target: &'a str,
    seed: u64,
    input: &'a [u8],
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!(
                "fuzz {}: failed; GALLEY_SEED={} runs it first; the input: {}",
                self.target,
                self.seed,
                hex(self.input)
            ));
        }
    }
}

/// Passes mutations of `inputs` to `judge` for `percent` of the time. `judge` receives the index of
/// the original input, and returns whether the decoder accepted the mutation.
pub(crate) fn fuzz(
    target: &str,
    percent: f64,
    inputs: &[Vec<u8>],
    mut judge: impl FnMut(&[u8], usize) -> bool,
) {
    let first = first_seed();
    // Reported first: after a stack overflow no report follows.
    say(&format!("fuzz {target}: from GALLEY_SEED={first} on"));
    let time = Duration::from_secs_f64(seconds() * percent / 100.0);
    let before = peak();
    let began = Instant::now();
    let (mut executions, mut taken) = (0_u64, 0_u64);
    while executions == 0 || began.elapsed() < time {
        for _ in 0..BATCH {
            let seed = first.wrapping_add(executions);
            let mut random = Random::new(seed);
            let from = random.below(inputs.len());
            let other = random.below(inputs.len());
            let input = mutate(&mut random, &inputs[from], &inputs[other]);
            let _witness = Witness { target, seed, input: &input };
            taken += u64::from(judge(&input, from));
            executions += 1;
        }
    }
    let took = began.elapsed().as_secs_f64();
    say(&format!("fuzz {target}: {executions} executions in {took:.1} s, {taken} taken"));
    assert!(executions < 1_000 || 0 < taken, "the decoder accepted no mutation");
    let grown = peak() - before;
    assert!(grown < PEAK_MAX, "{target}: the peak of the memory grew by {grown} bytes");
}

/// The peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

fn seconds() -> f64 {
    env::var("GALLEY_FUZZ_SECONDS").map_or(SECONDS, |given| given.parse().expect("seconds"))
}

fn first_seed() -> u64 {
    match env::var("GALLEY_SEED") {
        Ok(given) => given.parse().expect("a seed"),
        Err(_) => getrandom::u64().expect("a random seed"),
    }
}

/// Writes past the test harness, which captures the output of passing tests.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("an open standard error");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("memory");
        out
    })
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks_exact(2);
    assert!(pairs.remainder().is_empty(), "half a byte");
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
