//! The labels of a file: its words besides those of its users, in the language of its text.
//!
//! The text decides the language, not the reader: so all members receive the same file.

use chrono::{DateTime, SecondsFormat, Utc};

use galley_domain::reminder::TimeZone;
use galley_domain::review::ReviewStatus;

/// The page uses the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    pub lang: &'static str,
    pub reviews: &'static str,
    suggestion: &'static str,
    deletion: &'static str,
    /// The heading of remarks on the whole text.
    pub whole: &'static str,
    /// The heading of reviews whose quote the text does not contain any more.
    pub lost: &'static str,
    accepted: &'static str,
    rejected: &'static str,
    resolved: &'static str,
    /// In the place of the name of a deleted user.
    pub deleted: &'static str,
    /// The zone of its times.
    pub zone: TimeZone,
}

const ENGLISH: Labels = Labels {
    lang: "en",
    reviews: "Comments",
    suggestion: "Suggestion",
    deletion: "Suggested deletion",
    whole: "Overall comment",
    lost: "Comments whose passage is gone",
    accepted: "accepted",
    rejected: "rejected",
    resolved: "resolved",
    deleted: "deleted user",
    zone: TimeZone::UTC,
};

const KOREAN: Labels = Labels {
    lang: "ko",
    reviews: "검토 의견",
    suggestion: "제안",
    deletion: "삭제 제안",
    whole: "총평",
    lost: "문장이 지워진 의견",
    accepted: "반영됨",
    rejected: "거절됨",
    resolved: "해결됨",
    deleted: "삭제된 사용자",
    zone: TimeZone::UTC,
};

impl Labels {
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let is_korean = texts.into_iter().any(|text| text.chars().any(is_hangul));
        if is_korean { KOREAN } else { ENGLISH }
    }

    pub fn status(&self, status: ReviewStatus) -> Option<&'static str> {
        match status {
            ReviewStatus::Open => None,
            ReviewStatus::Accepted => Some(self.accepted),
            ReviewStatus::Rejected => Some(self.rejected),
            ReviewStatus::Resolved => Some(self.resolved),
        }
    }

    pub fn suggested(&self, suggestion: &str) -> &'static str {
        if suggestion.is_empty() { self.deletion } else { self.suggestion }
    }

    /// A time for a reader, with the abbreviation or the offset of its zone.
    pub fn time(&self, at: DateTime<Utc>) -> String {
        self.zone.local(at).format("%Y-%m-%d %H:%M %Z").to_string()
    }

    /// A time for a program, with the offset of its zone (RFC 3339).
    pub fn date(&self, at: DateTime<Utc>) -> String {
        self.zone.local(at).to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{AC00}'..='\u{D7A3}' | '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_decides_the_language() {
        assert_eq!(Labels::of(["a", "가"]).lang, "ko");
        assert_eq!(Labels::of(["", "日本"]).lang, "en");
    }

    #[test]
    fn times_are_those_of_the_zone_with_its_abbreviation_or_offset() {
        let at = "2026-07-01T14:13:20Z".parse().expect("a time");
        for (zone, time, date) in [
            ("UTC", "2026-07-01 14:13 UTC", "2026-07-01T14:13:20Z"),
            ("Asia/Seoul", "2026-07-01 23:13 KST", "2026-07-01T23:13:20+09:00"),
            ("America/New_York", "2026-07-01 10:13 EDT", "2026-07-01T10:13:20-04:00"),
            ("America/Sao_Paulo", "2026-07-01 11:13 -03", "2026-07-01T11:13:20-03:00"),
        ] {
            let labels = Labels { zone: zone.parse().expect("a zone"), ..ENGLISH };
            assert_eq!((&*labels.time(at), &*labels.date(at)), (time, date), "{zone}");
        }
    }
}
