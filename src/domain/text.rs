//! The length of a text, and its line breaks.

use unicode_segmentation::UnicodeSegmentation;

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
}
