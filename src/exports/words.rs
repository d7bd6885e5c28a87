//! The words of a file besides those of its users, in the language of its text.
//!
//! The text decides the language, not the reader: so all members receive the same file.

use chrono::{DateTime, Utc};

use crate::domain::review::ReviewStatus;

/// The words of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// The language tag.
    pub(crate) lang: &'static str,
    /// The heading of all reviews.
    pub(crate) reviews: &'static str,
    /// The label of a replacement.
    pub(crate) suggestion: &'static str,
    /// The label of a replacement by nothing.
    pub(crate) deletion: &'static str,
    /// The heading of remarks on the whole text.
    pub(crate) whole: &'static str,
    /// The heading of reviews whose quote the text does not contain any more.
    pub(crate) lost: &'static str,
    accepted: &'static str,
    rejected: &'static str,
    resolved: &'static str,
}

const ENGLISH: Words = Words {
    lang: "en",
    reviews: "Reviews",
    suggestion: "Suggestion",
    deletion: "Suggested deletion",
    whole: "On the whole text",
    lost: "Reviews whose place is gone from the text",
    accepted: "accepted",
    rejected: "rejected",
    resolved: "resolved",
};

const KOREAN: Words = Words {
    lang: "ko",
    reviews: "의견",
    suggestion: "제안",
    deletion: "삭제 제안",
    whole: "글 전체에 대한 의견",
    lost: "본문에서 자리를 찾을 수 없는 의견",
    accepted: "수락됨",
    rejected: "거절됨",
    resolved: "해결됨",
};

impl Words {
    /// The words for a file that contains these texts.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> &'static Self {
        let is_korean = texts.into_iter().any(|text| text.chars().any(is_hangul));
        if is_korean { &KOREAN } else { &ENGLISH }
    }

    /// The label of a decided review.
    pub(crate) fn status(&self, status: ReviewStatus) -> Option<&'static str> {
        match status {
            ReviewStatus::Open => None,
            ReviewStatus::Accepted => Some(self.accepted),
            ReviewStatus::Rejected => Some(self.rejected),
            ReviewStatus::Resolved => Some(self.resolved),
        }
    }

    /// The label of a suggestion.
    pub(crate) fn suggested(&self, suggestion: &str) -> &'static str {
        if suggestion.is_empty() { self.deletion } else { self.suggestion }
    }
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{AC00}'..='\u{D7A3}' | '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}')
}

/// A time for readers in any time zone.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_decides_the_language() {
        assert_eq!(Words::of(["a", "가"]).lang, "ko");
        assert_eq!(Words::of(["", "日本"]).lang, "en");
    }
}
