//! Typed suggestions: the items of a batch, and why the server refuses one.

use strum::IntoStaticStr;

use crate::anchor::PartRequest;
use crate::ids::ReviewId;
use crate::limits::{
    PARTS_PER_SUGGESTION_MAX, QUOTE_UTF16_MAX, REVIEW_BODY_BYTES_MAX, REVIEW_BYTES_MAX,
    SUGGESTION_BYTES_MAX,
};
use crate::text::incoming;

/// Why the server refuses an item of a batch. The other items are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Refusal {
    /// The text of a range differs from its quote.
    QuoteChanged,
    /// The suggestion has another version, or the server has none of that id.
    Version,
    /// The writer has decided it, or its author has withdrawn it: its id is spent.
    Decided,
    /// A part overlaps a part of another open suggestion of the author that stands.
    Overlaps,
    /// The share link has as many or as long suggestions as it may have.
    Full,
    /// The suggestion, a quote or a text of it exceeds its limit.
    TooLong,
    /// Another user, or another share link, has a review of that id.
    NotYours,
    /// A position is not in this document.
    Position,
    /// The suggestion is malformed.
    Malformed,
}

impl Refusal {
    /// The reason in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A part of a suggestion as its author sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPart {
    /// The range or the gap.
    pub at: PartRequest,
    /// The replacement of the quote, or the text at the gap.
    pub text: String,
}

/// A new suggestion, or a new version of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSuggestion {
    /// Its id.
    pub id: ReviewId,
    /// The version that its author has read. `None`: it is new.
    pub version: Option<i64>,
    /// Its parts, at least one.
    pub parts: Vec<NewPart>,
    /// The remark of its author. `None`: it stays.
    pub body: Option<String>,
}

impl NewSuggestion {
    /// The suggestion with clean texts. Its quotes stay: the server compares them with the stored text.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`]: no part, an insertion of nothing, an empty quote.
    /// [`Refusal::TooLong`]: it, a quote or a text is longer than it may be.
    pub fn check(self) -> Result<Self, Refusal> {
        let body = self.body.as_deref().map(incoming);
        let part = |NewPart { at, text }| NewPart { at, text: incoming(&text) };
        let checked = Self { body, parts: self.parts.into_iter().map(part).collect(), ..self };
        checked.parts.iter().try_for_each(check_part)?;
        if checked.parts.is_empty() {
            return Err(Refusal::Malformed);
        }
        let is_long = checked.parts.len() > PARTS_PER_SUGGESTION_MAX
            || checked.body.as_ref().is_some_and(|body| body.len() > REVIEW_BODY_BYTES_MAX)
            || i64::try_from(checked.bytes()).unwrap_or(i64::MAX) > REVIEW_BYTES_MAX;
        if is_long { Err(Refusal::TooLong) } else { Ok(checked) }
    }

    /// The bytes of its quotes and texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let part = |part: &NewPart| part.text.len() + quote_of(&part.at).map_or(0, str::len);
        let body = self.body.as_ref().map_or(0, String::len);
        self.parts.iter().map(part).sum::<usize>() + body
    }
}

fn quote_of(at: &PartRequest) -> Option<&str> {
    match at {
        PartRequest::Range { quote, .. } => Some(quote),
        PartRequest::Gap(_) => None,
    }
}

fn check_part(part: &NewPart) -> Result<(), Refusal> {
    let quote = quote_of(&part.at);
    if part.text.len() > SUGGESTION_BYTES_MAX || quote.is_some_and(is_long) {
        return Err(Refusal::TooLong);
    }
    let is_nothing = quote.map_or(part.text.is_empty(), str::is_empty);
    if is_nothing { Err(Refusal::Malformed) } else { Ok(()) }
}

fn is_long(quote: &str) -> bool {
    let max = usize::try_from(QUOTE_UTF16_MAX).unwrap_or(usize::MAX);
    max < quote.len() && max < quote.encode_utf16().count()
}

/// An item of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchItem {
    /// Create the suggestion, or replace its parts.
    Put(NewSuggestion),
    /// Withdraw a suggestion in the version that its author has read.
    Withdraw {
        /// Its id.
        id: ReviewId,
        /// The version.
        version: i64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::Position;

    fn suggestion(quote: Option<&str>, text: &str) -> NewSuggestion {
        let (start, end) = (Position::Offset(0), Position::Offset(1));
        let at = match quote {
            Some(quote) => PartRequest::Range { start, end, quote: quote.to_owned() },
            None => PartRequest::Gap(start),
        };
        let parts = vec![NewPart { at, text: text.to_owned() }];
        NewSuggestion { id: ReviewId::generate(), version: None, parts, body: None }
    }

    fn refusal(suggestion: NewSuggestion) -> Option<Refusal> {
        suggestion.check().err()
    }

    #[test]
    fn a_suggestion_replaces_deletes_or_inserts() {
        assert_eq!(refusal(suggestion(Some("a"), "b")), None);
        assert_eq!(refusal(suggestion(Some("a"), "")), None);
        assert_eq!(refusal(suggestion(None, "b")), None);
        for nothing in [suggestion(None, ""), suggestion(Some(""), "b")] {
            assert_eq!(refusal(nothing), Some(Refusal::Malformed));
        }
        let none = NewSuggestion { parts: Vec::new(), ..suggestion(None, "b") };
        assert_eq!(refusal(none), Some(Refusal::Malformed));
        assert_eq!(refusal(suggestion(None, "\u{0}\u{FEFF}")), Some(Refusal::Malformed));
        let quote = "\u{1100}\u{1161}\u{B}";
        let checked = suggestion(Some(quote), "a\u{B}\u{1100}\u{1161}\u{0}b").check();
        let part = checked.expect("a suggestion").parts.remove(0);
        assert_eq!((quote_of(&part.at), part.text.as_str()), (Some(quote), "a\n가b"));
    }

    #[test]
    fn g13_a_suggestion_has_a_largest_size() {
        let long = "가".repeat(20_001);
        assert_eq!(refusal(suggestion(Some(&long), "")), Some(Refusal::TooLong));
        let long = "a".repeat(SUGGESTION_BYTES_MAX + 1);
        assert_eq!(refusal(suggestion(None, &long)), Some(Refusal::TooLong));
        let one = suggestion(Some("a"), "b");
        let parts = vec![one.parts[0].clone(); PARTS_PER_SUGGESTION_MAX + 1];
        assert_eq!(refusal(NewSuggestion { parts, ..one.clone() }), Some(Refusal::TooLong));
        let body = Some("a".repeat(REVIEW_BODY_BYTES_MAX + 1));
        assert_eq!(refusal(NewSuggestion { body, ..one }), Some(Refusal::TooLong));
    }
}
