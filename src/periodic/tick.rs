//! The tick: the same moment on every server, by the wall clock.
//!
//! A tick is due at each whole multiple of its interval since 1970: a minute begins on every server at
//! the same time, as far as their clocks agree. The loop looks at the clock again every few seconds. So it
//! follows a clock that steps: after a step forward the tick is due at once, after a step back the next
//! tick is that of the new time. No job depends on the number of ticks: it reads from the database what
//! is due, and claims it there.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::periodic::{Job, Jobs, count};

/// Shortest and longest interval of the ticks of jobs.
pub(crate) const JOB_TICKS: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(60 * 60));
/// The longest sleep: a step of the clock is noticed after it.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[must_use]
pub fn next_tick(now: DateTime<Utc>, tick: Duration) -> DateTime<Utc> {
    let tick = milliseconds(tick);
    let now = now.timestamp_millis();
    let next = now.saturating_sub(now.rem_euclid(tick)).saturating_add(tick);
    DateTime::from_timestamp_millis(next).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Run,
    Sleep(Duration),
    /// The clock was set back: `due` belongs to the time before.
    Align,
}

fn next(now: DateTime<Utc>, due: DateTime<Utc>, tick: Duration) -> Next {
    // The first tick of a server is up to two intervals away.
    let farthest = TimeDelta::milliseconds(milliseconds(tick).saturating_mul(2));
    match (due - now).to_std() {
        Err(_past) => Next::Run,
        Ok(Duration::ZERO) => Next::Run,
        Ok(_) if farthest < due - now => Next::Align,
        Ok(left) => Next::Sleep(left.min(LOOK_EVERY)),
    }
}

impl Jobs {
    /// Runs each job at its ticks, until `stop`. A run under way then ends before its next step.
    pub async fn run_ticks(self, stop: CancellationToken) {
        join_all(self.0.jobs.iter().map(|job| self.run_ticks_of(job.as_ref(), &stop))).await;
    }

    async fn run_ticks_of(&self, job: &dyn Job, stop: &CancellationToken) {
        let tick = job.tick();
        // Clients of a server that has just started connect again within the first interval.
        let mut due = next_tick(next_tick(Utc::now(), tick), tick);
        while !stop.is_cancelled() {
            match next(Utc::now(), due, tick) {
                Next::Run => {
                    self.run_or_log(job, stop).await;
                    due = next_tick(Utc::now(), tick);
                }
                Next::Align => due = next_tick(Utc::now(), tick),
                Next::Sleep(pause) => {
                    stop.run_until_cancelled(sleep(pause)).await;
                }
            }
        }
    }
}

impl Jobs {
    /// A panic ends this run alone: the seats of the server do not depend on a job.
    async fn run_or_log(&self, job: &dyn Job, stop: &CancellationToken) {
        let span = tracing::debug_span!("periodic", work = job.name());
        let run = AssertUnwindSafe(self.run_job(job, stop).instrument(span)).catch_unwind();
        let reason = match run.await {
            Ok(Ok(_run)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_logged) => {
                count(job, "failed", 1);
                "a panic, which the log has before this line".to_owned()
            }
        };
        tracing::warn!(%reason, job = job.name(), "a job did not run; the next tick tries again");
    }
}

/// A tick in whole milliseconds, within its bounds.
fn milliseconds(tick: Duration) -> i64 {
    let tick = tick.clamp(JOB_TICKS.0, JOB_TICKS.1);
    i64::try_from(tick.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn a_tick_is_due_at_each_full_minute() {
        for (now, due) in [
            ("2026-11-23T18:00:00Z", "2026-11-23T18:01:00Z"),
            ("2026-11-23T18:00:00.001Z", "2026-11-23T18:01:00Z"),
            ("2026-11-23T18:00:59.999Z", "2026-11-23T18:01:00Z"),
            ("1969-12-31T23:59:30Z", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(next_tick(at(now), MINUTE), at(due), "{now}");
        }
        let fifth = Duration::from_millis(200);
        assert_eq!(next_tick(at("2026-11-23T18:00:00.3Z"), fifth), at("2026-11-23T18:00:00.4Z"));
        assert!(at("2026-11-23T18:00:00Z") < next_tick(at("2026-11-23T18:00:00Z"), Duration::ZERO));
    }

    #[test]
    fn a_clock_that_steps_is_followed() {
        let due = at("2026-11-23T18:01:00Z");
        let next = |now: &str| next(at(now), due, MINUTE);
        assert_eq!(next("2026-11-23T18:00:57Z"), Next::Sleep(Duration::from_secs(3)));
        assert_eq!(next("2026-11-23T18:00:10Z"), Next::Sleep(LOOK_EVERY));
        assert_eq!(next("2026-11-23T17:59:10Z"), Next::Sleep(LOOK_EVERY), "the first tick");
        assert_eq!(next("2026-11-23T18:01:00Z"), Next::Run);
        assert_eq!(next("2026-11-23T21:00:00Z"), Next::Run, "the clock was set forward");
        assert_eq!(next("2026-11-23T17:58:59Z"), Next::Align, "the clock was set back");
        assert_eq!(next("2020-01-01T00:00:00Z"), Next::Align);
    }
}
