//! Versions of a text: the reasons to store one, and the retention rules.
//!
//! The server stores automatic versions during the work and thins them out with age: a user reads
//! the last day step by step and the last year day by day. A named version is never removed.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::invalid;
use crate::limits::{NAMED_BYTES_MAX, NAMED_VERSIONS_MAX, VERSION_BYTES_MAX, VERSIONS_MAX};

const EVERY_ONE_FOR: TimeDelta = TimeDelta::hours(24);
/// How long the server retains the last version of each hour; after that, of each day.
const HOURLY_FOR: TimeDelta = TimeDelta::days(30);

/// Why the server stored a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = InvalidKind, parse_err_fn = invalid)]
pub enum VersionKind {
    /// The writer paused, or another operation was about to change the text.
    Pause,
    /// The session released the writer's seat or lost it: the text at that moment.
    Seat,
    /// The writer decided about a suggestion.
    Decision,
    /// A user named it.
    Named,
    /// The writer restored an older version: the text after that.
    Restore,
}

impl VersionKind {
    /// All kinds.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The kind in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the server stored it without a user's request. Such a version belongs to one point of
    /// the log, and each point has at most one.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        match self {
            Self::Pause | Self::Seat | Self::Decision => true,
            Self::Named | Self::Restore => false,
        }
    }
}

/// The text is no kind of version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("not a kind of version")]
pub struct InvalidKind;

/// The attributes of a stored version that decide about its retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionMark {
    /// Its number among the document's versions.
    pub number: i64,
    /// Why the server stored it.
    pub kind: VersionKind,
    /// When the server stored it.
    pub created_at: DateTime<Utc>,
    /// Compressed size of its text. Each version counts, though equal texts are stored once.
    pub bytes: i64,
}

/// Whether the document may have another named version of `bytes`.
#[must_use]
pub fn may_name(marks: &[VersionMark], bytes: i64) -> bool {
    let named = || marks.iter().filter(|mark| mark.kind == VersionKind::Named);
    let taken: i64 = named().map(|mark| mark.bytes).sum();
    named().count() < NAMED_VERSIONS_MAX && taken.saturating_add(bytes) <= NAMED_BYTES_MAX
}

/// The numbers of the versions to delete, given all versions of a document, oldest first. The newest
/// version and the named versions stay.
#[must_use]
pub fn surplus(marks: &[VersionMark], now: DateTime<Utc>) -> Vec<i64> {
    let mut gone = thinned(marks, now);
    let stays = |mark: &&VersionMark, gone: &HashSet<i64>| !gone.contains(&mark.number);
    let mut count = marks.iter().filter(|mark| stays(mark, &gone)).count();
    let remaining_bytes = marks.iter().filter(|mark| stays(mark, &gone)).map(|mark| mark.bytes);
    let mut bytes: i64 = remaining_bytes.sum();
    let newest = marks.last().map(|mark| mark.number);
    for mark in marks {
        if count <= VERSIONS_MAX && bytes <= VERSION_BYTES_MAX {
            break;
        }
        let may_go = mark.kind != VersionKind::Named && Some(mark.number) != newest;
        if may_go && gone.insert(mark.number) {
            count -= 1;
            bytes -= mark.bytes;
        }
    }
    let numbers = marks.iter().map(|mark| mark.number);
    numbers.filter(|number| gone.contains(number)).collect()
}

/// The versions for which a later one of the same hour, or of the same day, stays.
fn thinned(marks: &[VersionMark], now: DateTime<Utc>) -> HashSet<i64> {
    let mut spans = HashSet::new();
    let mut gone = HashSet::new();
    // The last version of each span stays: the text at the end of the hour.
    for mark in marks.iter().rev() {
        let age = now.signed_duration_since(mark.created_at);
        if mark.kind == VersionKind::Named || age <= EVERY_ONE_FOR {
            continue;
        }
        let seconds = if age <= HOURLY_FOR { 3_600 } else { 86_400 };
        let span = (seconds, mark.created_at.timestamp().div_euclid(seconds));
        if !spans.insert(span) {
            gone.insert(mark.number);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + minutes * 60, 0).unwrap()
    }

    fn mark(number: i64, minutes: i64) -> VersionMark {
        VersionMark { number, kind: VersionKind::Pause, created_at: at(minutes), bytes: 1_000 }
    }

    fn left(marks: &[VersionMark], now: DateTime<Utc>) -> Vec<i64> {
        let gone = surplus(marks, now);
        let numbers = marks.iter().map(|mark| mark.number);
        numbers.filter(|number| !gone.contains(number)).collect()
    }

    #[test]
    fn a_version_kind_round_trips_through_text() {
        for kind in VersionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
        }
        assert_eq!("Pause".parse::<VersionKind>(), Err(InvalidKind));
    }

    #[test]
    fn all_versions_of_the_last_day_stay() {
        let marks: Vec<_> = (0..500).map(|n| mark(n, n)).collect();
        assert_eq!(surplus(&marks, at(500)), Vec::<i64>::new());
    }

    #[test]
    fn after_a_day_one_version_an_hour_stays_and_after_a_month_one_a_day() {
        // One version every ten minutes, for two days.
        let marks: Vec<_> = (0..288).map(|n| mark(n, n * 10)).collect();
        let two_days_later = left(&marks, at(288 * 10 + 2 * 1_440));
        assert!((48..=49).contains(&two_days_later.len()), "{two_days_later:?}");
        let hours: HashSet<_> =
            two_days_later.iter().map(|n| at(n * 10).timestamp() / 3_600).collect();
        assert_eq!(hours.len(), two_days_later.len());
        assert_eq!(two_days_later.last(), Some(&287), "the newest stays");
        let later = left(&marks, at(60 * 1_440));
        assert!((2..=4).contains(&later.len()), "{later:?}");
    }

    #[test]
    fn thinning_again_at_once_removes_no_version() {
        let marks: Vec<_> = (0..288).map(|n| mark(n, n * 10)).collect();
        let now = at(288 * 10 + 2 * 1_440);
        let remaining = left(&marks, now);
        let marks: Vec<_> = marks.into_iter().filter(|m| remaining.contains(&m.number)).collect();
        assert_eq!(surplus(&marks, now), Vec::<i64>::new());
    }

    #[test]
    fn a_named_version_stays_however_old_it_is() {
        let mut marks: Vec<_> = (0..60).map(|n| mark(n, n)).collect();
        for index in [3, 4, 17] {
            marks[index].kind = VersionKind::Named;
        }
        let remaining = left(&marks, at(1_440 * 400));
        for number in [3, 4, 17, 59] {
            assert!(remaining.contains(&number), "{remaining:?}");
        }
        assert!(remaining.len() <= 6, "{remaining:?}");
    }

    #[test]
    fn g13_versions_of_a_document_are_bounded_in_number_and_bytes() {
        let marks: Vec<_> =
            (0..1_100).map(|n| VersionMark { created_at: at(0), ..mark(n, 0) }).collect();
        let remaining = left(&marks, at(1));
        assert_eq!(remaining.len(), VERSIONS_MAX);
        assert_eq!(remaining.first(), Some(&100), "the oldest go");
        let large = VersionMark { bytes: VERSION_BYTES_MAX / 10, ..mark(0, 0) };
        let marks: Vec<_> = (0..20).map(|number| VersionMark { number, ..large }).collect();
        assert_eq!(left(&marks, at(1)).len(), 10);
        let huge = [VersionMark { bytes: VERSION_BYTES_MAX * 2, ..mark(1, 0) }];
        assert_eq!(left(&huge, at(1)), [1], "the newest stays");
    }

    #[test]
    fn g13_named_versions_are_bounded_in_number_and_bytes() {
        let named = VersionMark { kind: VersionKind::Named, ..mark(1, 0) };
        assert!(may_name(&[], 10));
        assert!(may_name(&vec![named; NAMED_VERSIONS_MAX - 1], 10));
        assert!(!may_name(&vec![named; NAMED_VERSIONS_MAX], 10));
        assert!(!may_name(&[VersionMark { bytes: NAMED_BYTES_MAX, ..named }], 1));
    }
}
