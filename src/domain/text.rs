//! Rules of titles, and the length of a text.

use unicode_segmentation::UnicodeSegmentation;

use crate::domain::limits::TITLE_CHARS_MAX;
use crate::domain::printable::{Unprintable, check_line};

/// The text cannot be a document's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTitle {
    /// It has no visible character.
    #[error("a title needs a visible character")]
    Empty,
    /// Longer than [`TITLE_CHARS_MAX`].
    #[error("a title has at most {TITLE_CHARS_MAX} characters")]
    TooLong,
    /// Control characters, line breaks among them.
    #[error("a title is one line without control characters")]
    Control,
    /// It has invisible characters, or marks that change the writing direction.
    #[error("a title may not contain invisible characters or marks of writing direction")]
    Invisible,
}

/// Trims and checks a title.
///
/// # Errors
///
/// [`InvalidTitle`] when it is empty, too long, more than one line, or has invisible characters.
pub fn parse_title(text: &str) -> Result<String, InvalidTitle> {
    let title = text.trim();
    if title.is_empty() {
        return Err(InvalidTitle::Empty);
    }
    if TITLE_CHARS_MAX < title.chars().count() {
        return Err(InvalidTitle::TooLong);
    }
    match check_line(title) {
        Ok(()) => Ok(title.to_owned()),
        Err(Unprintable::Control) => Err(InvalidTitle::Control),
        Err(Unprintable::Invisible) => Err(InvalidTitle::Invisible),
        Err(Unprintable::Blank) => Err(InvalidTitle::Empty),
    }
}

/// The number of characters as a reader counts them: extended grapheme clusters (UAX #29). A line
/// break is one, a space is one, 👩‍👩‍👧 is one, and so is 각 in every normalization.
#[must_use]
pub fn count_characters(text: &str) -> i64 {
    i64::try_from(text.graphemes(true).count()).unwrap_or(i64::MAX)
}

/// The text with every line break as a line feed. Editors number positions in that form; a lone
/// carriage return would shift their positions against the server's.
#[must_use]
pub fn normalize_line_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_grapheme_clusters() {
        for (text, characters) in [
            ("", 0),
            ("a b\n", 4),
            ("각", 1),
            ("\u{1100}\u{1161}\u{11a8}", 1),
            ("👩‍👩‍👧🇰🇷", 2),
            ("e\u{301}", 1),
        ] {
            assert_eq!(count_characters(text), characters, "{text:?}");
        }
    }

    #[test]
    fn all_line_breaks_become_one_kind() {
        assert_eq!(normalize_line_breaks("a\r\nb\rc\nd\r\r\n"), "a\nb\nc\nd\n\n");
    }

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(parse_title(" 자기소개서 "), Ok("자기소개서".to_owned()));
        assert_eq!(parse_title(" "), Err(InvalidTitle::Empty));
        assert_eq!(parse_title("a\nb"), Err(InvalidTitle::Control));
        assert_eq!(parse_title("a\u{202E}b"), Err(InvalidTitle::Invisible));
        assert_eq!(parse_title("\u{200B}"), Err(InvalidTitle::Invisible));
        assert_eq!(parse_title(&"가".repeat(201)), Err(InvalidTitle::TooLong));
        assert!(parse_title(&"가".repeat(200)).is_ok());
    }
}
