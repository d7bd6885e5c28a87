//! A clock for upper bounds: a busy machine slows it as it slows the tests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long the thread of the clock sleeps for a tick. On an idle machine a tick takes little longer.
const TICK: Duration = Duration::from_millis(2);

/// Measures a duration in the ticks of a thread. Other load delays its wake-ups as it delays those of the test, of
/// its servers and of Redis, so a bound is a ratio to that delay.
pub(crate) struct Stopwatch {
    began: Instant,
    at: u32,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), at: ticks().load(Ordering::Relaxed) }
    }

    /// At most the time of the wall, for an upper bound.
    pub(crate) fn elapsed(&self) -> Duration {
        TICK * (ticks().load(Ordering::Relaxed) - self.at)
    }

    /// By the clock on the wall, for a lower bound.
    pub(crate) fn real(&self) -> Duration {
        self.began.elapsed()
    }
}

fn ticks() -> &'static AtomicU32 {
    static TICKS: AtomicU32 = AtomicU32::new(0);
    static THREAD: OnceLock<()> = OnceLock::new();
    THREAD.get_or_init(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(TICK);
                TICKS.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    &TICKS
}
