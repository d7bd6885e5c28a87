//! `[jobs]`: the tick, and how long something waits before its user is reminded.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::JobSettings;
use crate::config::parse::Reader;
use crate::domain::limits::JOB_TICKS;

/// How long something waits before a reminder.
const WAITS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(30 * 24);

/// Reads and checks the section.
pub(super) fn settings(reader: &mut Reader) -> Option<JobSettings> {
    let tick = reader.duration("jobs.tick", JOB_TICKS.0..=JOB_TICKS.1);
    let reviews = reader.duration("jobs.review_unanswered_after", WAITS);
    let requests = reader.duration("jobs.request_unanswered_after", WAITS);
    Some(JobSettings {
        tick: tick?,
        review_unanswered_after: reviews?,
        request_unanswered_after: requests?,
    })
}
