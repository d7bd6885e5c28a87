//! Durations as a whole number and a unit.

use std::time::Duration;

/// The expected form, for the line that reports a fault.
pub(super) const EXPECTED: &str =
    "a duration with its unit, like \"250ms\", \"12s\", \"30m\", \"1h\" or \"30d\"";

const DAY_SECONDS: u64 = 24 * 3_600;

/// Parses `"250ms"`, `"12s"`, `"30m"`, `"1h"` or `"30d"`. A number without a unit is rejected.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3_600).map(Duration::from_secs),
        "d" => number.checked_mul(DAY_SECONDS).map(Duration::from_secs),
        _ => None,
    }
}

/// The shortest form that [`parse`] reads back.
pub(super) fn show(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    if millis != 0 {
        return format!("{}ms", duration.as_millis());
    }
    match seconds {
        0 => "0s".to_owned(),
        // One day stays "24h", as the file of the defaults has it.
        days if days % DAY_SECONDS == 0 && DAY_SECONDS < days => {
            format!("{}d", days / DAY_SECONDS)
        }
        hours if hours % 3_600 == 0 => format!("{}h", hours / 3_600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("12s"), Some(Duration::from_secs(12)));
        assert_eq!(parse("30m"), Some(Duration::from_secs(1_800)));
        assert_eq!(parse("1h"), Some(Duration::from_secs(3_600)));
        assert_eq!(parse("30d"), Some(Duration::from_secs(2_592_000)));
        assert_eq!(parse("0s"), Some(Duration::ZERO));
    }

    #[test]
    fn anything_else_is_refused() {
        let (huge, long) = (format!("{}h", u64::MAX), format!("{}d", u64::MAX));
        for text in ["", "12", "s", "-1s", "1.5s", "12 s", "12S", "12sec", "1m30s", &huge, &long] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_shown_duration_parses_back() {
        for text in ["250ms", "12s", "90s", "30m", "1h", "24h", "30d", "0s"] {
            assert_eq!(parse(text).map(show).as_deref(), Some(text));
        }
    }
}
