//! Detects a clock of Redis that steps back, by repeated readings. No IO.
//!
//! All TTLs in Redis follow its clock. A step back prolongs the keys of dead servers, dead waiters
//! and hand-overs by the same time. A fence does not depend on the clock (K2), and neither does a
//! holder's own deadline, so a step costs time and no lock.
//!
//! The server logs and counts each step, and does not shorten the TTLs that the step prolongs. A
//! script that did so would also shorten the leases of living holders, because it cannot tell their
//! renewals from those of dead servers. The wait ends in other ways: the seat's own user takes it
//! over or resumes at once, and an administrator ends a session by its fence. NTP slews a small
//! error and steps at most once after a boot.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// A smaller step is not reported: two clocks drift apart by less than this between two readings.
const STEP_MIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<Option<Reading>>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    showed: DateTime<Utc>,
    answered_at: Instant,
}

impl Clock {
    /// Stores a reading with the times of its request and its reply. Returns the least step back
    /// since the last reading; each step is returned once.
    pub(crate) fn seen(
        &self,
        showed: DateTime<Utc>,
        sent_at: Instant,
        answered_at: Instant,
    ) -> Option<Duration> {
        let reading = Reading { showed, answered_at };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.replace(reading)?;
        let passed = sent_at.saturating_duration_since(last.answered_at);
        let back = (last.showed + passed - showed).to_std().ok()?;
        (back >= STEP_MIN).then_some(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_step_back_is_reported_once_and_by_its_certain_part() {
        let (clock, began) = (Clock::default(), Instant::now());
        let (at, ms) = (|ms| began + Duration::from_millis(ms), Duration::from_millis);
        let shows =
            |ms: i64| DateTime::from_timestamp_millis(1_700_000_000_000 + ms).expect("a time");
        assert_eq!(clock.seen(shows(0), at(0), at(10)), None);
        assert_eq!(clock.seen(shows(30_000), at(30_000), at(30_010)), None);
        // A slow reply, and a clock that runs slightly slow.
        assert_eq!(clock.seen(shows(59_100), at(60_000), at(63_000)), None);
        assert_eq!(clock.seen(shows(60_000), at(90_000), at(90_010)), Some(ms(26_100)));
        assert_eq!(clock.seen(shows(61_000), at(91_000), at(91_010)), None);
        assert_eq!(clock.seen(shows(600_000), at(92_000), at(92_010)), None, "forward");
    }
}
