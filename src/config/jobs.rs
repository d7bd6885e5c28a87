//! `[jobs]`: the tick, and how long something waits before its user is reminded.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::parse::Reader;
use crate::domain::limits::JOB_TICKS;

/// How long something waits before a reminder.
const WAITS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(30 * 24);

section! {
    "jobs" JobSettings, reader;
    /// The interval of the ticks.
    tick: Duration = duration(JOB_TICKS.0..=JOB_TICKS.1);
    /// How long a review waits for an answer before its writer is reminded.
    review_unanswered_after: Duration = duration(WAITS);
    /// How long a request waits for an answer before its receiver is reminded.
    request_unanswered_after: Duration = duration(WAITS);
}
