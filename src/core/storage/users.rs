//! Users: an id and a name for each.

use chrono::{DateTime, Utc};

use crate::domain::limits::NAME_TIME_STEP_SECONDS;

/// Whether a token from `issued_at` with this name changes the row. `stored`: the stored name, and
/// the time of its token.
#[must_use]
pub fn changes(
    stored: Option<(&str, DateTime<Utc>)>,
    name: &str,
    issued_at: DateTime<Utc>,
) -> bool {
    let Some((stored, since)) = stored else { return true };
    let newer_by = issued_at.timestamp_millis() - since.timestamp_millis();
    if stored == name { newer_by > NAME_TIME_STEP_SECONDS * 1_000 } else { newer_by >= 0 }
}
