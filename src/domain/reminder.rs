//! Reminders: their kinds, and the settings of a user.
//!
//! Quiet hours are times of day in the user's time zone. Each instant has one time of day there, also
//! when a clock is set forward (some times of day do not occur) or back (some occur twice).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Timelike as _, Utc};
use chrono_tz::Tz;
use strum::{IntoStaticStr, VariantArray};

/// The reason of a reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ReminderKind {
    /// Reviews of the user's document have no answer.
    ReviewUnanswered,
    /// A seat became free after the user had left its wait queue.
    SeatFree,
    /// A request of another user has no answer.
    RequestUnanswered,
}

impl ReminderKind {
    /// Every kind.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name in JSON, in metrics and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The text is no time of day like `08:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time of day is written like 08:30, from 00:00 to 23:59")]
pub struct InvalidTimeOfDay;

/// A time of day in whole minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// The time that is this number of minutes after midnight.
    #[must_use]
    pub fn from_minutes(minutes: i64) -> Option<Self> {
        u16::try_from(minutes).ok().filter(|minutes| *minutes < 24 * 60).map(Self)
    }

    /// Minutes since midnight.
    #[must_use]
    pub fn minutes(self) -> i64 {
        self.0.into()
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl FromStr for TimeOfDay {
    type Err = InvalidTimeOfDay;

    fn from_str(text: &str) -> Result<Self, InvalidTimeOfDay> {
        let two_digits = |digits: &str, end: u16| -> Option<u16> {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = if is_number { digits.parse().ok() } else { None };
            number.filter(|number: &u16| *number < end)
        };
        let parts = text.split_once(':').and_then(|(hours, minutes)| {
            Some(two_digits(hours, 24)? * 60 + two_digits(minutes, 60)?)
        });
        parts.map(Self).ok_or(InvalidTimeOfDay)
    }
}

/// The hours of a day in which the user gets no reminder: from `from` on, before `to`. They may
/// include midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: TimeOfDay,
    to: TimeOfDay,
}

impl QuietHours {
    /// The hours between two times. `None` for equal times: they could mean no hour or all.
    #[must_use]
    pub fn new(from: TimeOfDay, to: TimeOfDay) -> Option<Self> {
        (from != to).then_some(Self { from, to })
    }

    /// The first minute.
    #[must_use]
    pub fn from(self) -> TimeOfDay {
        self.from
    }

    /// The minute after the last one.
    #[must_use]
    pub fn to(self) -> TimeOfDay {
        self.to
    }

    fn contain(self, time: TimeOfDay) -> bool {
        if self.from < self.to {
            self.from <= time && time < self.to
        } else {
            self.from <= time || time < self.to
        }
    }
}

/// The text is no name of the IANA time zone database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no time zone of the IANA database, like Asia/Seoul")]
pub struct InvalidTimeZone;

/// A time zone of the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeZone(Tz);

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The date and time of day there.
    #[must_use]
    pub fn local(self, at: DateTime<Utc>) -> DateTime<Tz> {
        at.with_timezone(&self.0)
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self::UTC
    }
}

impl FromStr for TimeZone {
    type Err = InvalidTimeZone;

    fn from_str(name: &str) -> Result<Self, InvalidTimeZone> {
        name.parse().map(Self).map_err(|_error| InvalidTimeZone)
    }
}

/// The quiet hours of a user, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// The hours, if the user has any.
    pub hours: Option<QuietHours>,
    /// The time zone. `None`: UTC.
    pub time_zone: Option<TimeZone>,
}

impl Quiet {
    /// Whether `now` lies in the quiet hours.
    #[must_use]
    pub fn contains(&self, now: DateTime<Utc>) -> bool {
        let Some(hours) = self.hours else { return false };
        let local = self.time_zone.unwrap_or_default().local(now);
        let time = TimeOfDay::from_minutes(i64::from(local.hour() * 60 + local.minute()));
        time.is_some_and(|time| hours.contain(time))
    }

    /// The time from `now` until the next quiet hours begin. A clock that is set meanwhile moves their
    /// beginning by its step. `None`: the user has none.
    #[must_use]
    pub fn begins_in(&self, now: DateTime<Utc>) -> Option<Duration> {
        let hours = self.hours?;
        let local = self.time_zone.unwrap_or_default().local(now);
        let time = i64::from(local.num_seconds_from_midnight());
        let left = (hours.from().minutes() * 60 - time).rem_euclid(24 * 60 * 60);
        Some(Duration::from_secs(left.unsigned_abs()))
    }
}

/// The settings of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReminderSettings {
    /// Reminders of reviews without answer.
    pub review_unanswered: bool,
    /// Reminders of a seat that became free.
    pub seat_free: bool,
    /// Reminders of requests without answer.
    pub request_unanswered: bool,
    /// When reminders are postponed.
    pub quiet: Quiet,
}

impl Default for ReminderSettings {
    fn default() -> Self {
        let quiet = Quiet::default();
        Self { review_unanswered: true, seat_free: true, request_unanswered: true, quiet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(from: &str, to: &str, zone: Option<&str>) -> Quiet {
        let time = |text: &str| text.parse().expect("a time of day");
        let hours = QuietHours::new(time(from), time(to));
        Quiet { hours, time_zone: zone.map(|name| name.parse().expect("a zone")) }
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn a_time_of_day_has_two_digits_for_each_part() {
        for text in ["00:00", "08:30", "23:59"] {
            assert_eq!(text.parse::<TimeOfDay>().map(|time| time.to_string()).as_deref(), Ok(text));
        }
        for text in
            ["", ":", "8:30", "08:3", "24:00", "23:60", "+8:30", "08:+3", "０8:30", "08:30:00"]
        {
            assert_eq!(text.parse::<TimeOfDay>(), Err(InvalidTimeOfDay), "{text}");
        }
        assert_eq!(TimeOfDay::from_minutes(1_440), None);
        assert_eq!(TimeOfDay::from_minutes(-1), None);
    }

    #[test]
    fn a_zone_has_a_name_of_the_iana_database() {
        for name in ["Asia/Seoul", "Europe/Berlin", "America/New_York", "UTC", "Asia/Calcutta"] {
            assert_eq!(name.parse::<TimeZone>().map(TimeZone::name), Ok(name));
        }
        for name in ["", "Seoul", "asia/seoul", "UTC+9", "+09:00", "../etc/passwd"] {
            assert_eq!(name.parse::<TimeZone>(), Err(InvalidTimeZone), "{name}");
        }
    }

    #[test]
    fn quiet_hours_include_their_first_minute_and_not_their_end() {
        let night = quiet("12:00", "13:30", None);
        for (time, is_quiet) in
            [("11:59:59", false), ("12:00:00", true), ("13:29:59", true), ("13:30:00", false)]
        {
            assert_eq!(night.contains(at(&format!("2026-11-23T{time}Z"))), is_quiet, "{time}");
        }
        assert!(!Quiet::default().contains(at("2026-11-23T03:00:00Z")));
        let same = "08:00".parse().expect("a time of day");
        assert_eq!(QuietHours::new(same, same), None);
    }

    #[test]
    fn the_time_until_quiet_hours_crosses_midnight() {
        let seoul = quiet("22:00", "08:00", Some("Asia/Seoul"));
        let left = |time: &str| seoul.begins_in(at(time)).map(|left| left.as_secs());
        assert_eq!(left("2026-11-23T12:59:30Z"), Some(30));
        assert_eq!(left("2026-11-23T23:00:00Z"), Some(14 * 60 * 60));
        assert_eq!(Quiet::default().begins_in(at("2026-11-23T12:59:30Z")), None);
    }

    #[test]
    fn quiet_hours_may_include_midnight() {
        let seoul = quiet("22:00", "08:00", Some("Asia/Seoul"));
        for (time, is_quiet) in [
            ("12:59:59", false),
            ("13:00:00", true),
            ("15:00:00", true),
            ("22:59:59", true),
            ("23:00:00", false),
        ] {
            assert_eq!(seoul.contains(at(&format!("2026-11-23T{time}Z"))), is_quiet, "{time}");
        }
    }

    #[test]
    fn quiet_hours_keep_the_time_of_day_when_a_clock_is_set_forward() {
        // 2027-03-28: 01:59:59 is followed by 03:00.
        let berlin = quiet("22:00", "07:00", Some("Europe/Berlin"));
        assert!(berlin.contains(at("2027-03-28T04:59:59Z")), "06:59 in summer time");
        assert!(!berlin.contains(at("2027-03-28T05:00:00Z")), "07:00 in summer time");
        assert!(berlin.contains(at("2027-03-27T05:59:59Z")), "06:59 in winter time");
        // Hours that do not occur that night, and hours that begin in the gap.
        let in_gap = quiet("02:00", "02:59", Some("Europe/Berlin"));
        assert!(!in_gap.contains(at("2027-03-28T00:59:59Z")));
        assert!(!in_gap.contains(at("2027-03-28T01:00:00Z")));
        let from_gap = quiet("02:30", "04:00", Some("Europe/Berlin"));
        assert!(from_gap.contains(at("2027-03-28T01:00:00Z")), "03:00, the first minute after it");
        assert!(!from_gap.contains(at("2027-03-28T02:00:00Z")), "04:00");
        // 2027-03-14 in New York.
        let york = quiet("22:00", "07:00", Some("America/New_York"));
        assert!(
            york.contains(at("2027-03-14T10:59:59Z")) && !york.contains(at("2027-03-14T11:00:00Z"))
        );
        assert!(
            york.contains(at("2027-03-13T11:59:59Z")) && !york.contains(at("2027-03-13T12:00:00Z"))
        );
    }

    #[test]
    fn quiet_hours_contain_both_runs_of_an_hour_that_a_clock_repeats() {
        // 2026-10-25: 02:00 to 02:59 occur twice.
        let berlin = quiet("02:00", "03:00", Some("Europe/Berlin"));
        for (time, is_quiet) in [
            ("23:59:59", false),
            ("00:00:00", true),
            ("00:59:59", true),
            ("01:00:00", true),
            ("01:59:59", true),
            ("02:00:00", false),
        ] {
            let day = if time.starts_with("23") { 24 } else { 25 };
            assert_eq!(berlin.contains(at(&format!("2026-10-{day}T{time}Z"))), is_quiet, "{time}");
        }
        // 2026-11-01 in New York: 01:30 occurs at 05:30 and at 06:30 UTC.
        let york = quiet("01:15", "01:45", Some("America/New_York"));
        for time in ["05:30", "06:30"] {
            assert!(york.contains(at(&format!("2026-11-01T{time}:00Z"))), "{time}");
        }
        for time in ["05:00", "05:50", "06:50", "07:30"] {
            assert!(!york.contains(at(&format!("2026-11-01T{time}:00Z"))), "{time}");
        }
    }
}
