//! `[jobs]`

use serde::{Deserialize, Serialize};

use crate::periodic::tick::JOB_TICKS;
use crate::reminders::ReminderTerms;
use crate::setting::{DAY, HOUR, Lasting};

/// The range of `jobs.tick`.
const _: () = assert!(JOB_TICKS.0.as_millis() == 100 && JOB_TICKS.1.as_millis() == HOUR as u128);

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobSettings {
    pub tick: Lasting<100, HOUR>,
    pub review_unanswered_after: Lasting<100, { 30 * DAY }>,
    pub request_unanswered_after: Lasting<100, { 30 * DAY }>,
}

impl JobSettings {
    pub(crate) fn terms(&self) -> ReminderTerms {
        let (reviews, requests) = (*self.review_unanswered_after, *self.request_unanswered_after);
        ReminderTerms::new(*self.tick, reviews, requests)
    }
}
