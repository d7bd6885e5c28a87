//! The length of a text, and the rule for text from outside.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_segmentation::UnicodeSegmentation;

/// The number of characters as a reader counts them: extended grapheme clusters (UAX #29). A line
/// break is one, a space is one, 👩‍👩‍👧 is one, and so is 각 in every normalization.
#[must_use]
pub fn count_characters(text: &str) -> i64 {
    i64::try_from(text.graphemes(true).count()).unwrap_or(i64::MAX)
}

/// The rule for text that enters the system. The page has the same (`static/js/lib/incoming.ts`).
///
/// - A line break of any kind becomes a line feed: editors number positions in that form, Word's soft break
///   is U+000B.
/// - Further control characters go, but the tab; U+FEFF too, and U+FFFE and U+FFFF, which XML cannot hold.
/// - Letters are composed (NFC): the counts of forms, a search and Backspace expect 각 as one unit.
///
/// Joiners, direction marks and variation selectors stay: languages and emoji need them. The rule never
/// applies to a quote, which a server compares with the stored text.
#[must_use]
pub fn incoming(text: &str) -> String {
    let mut clean = IncomingText::default();
    clean.push(text);
    clean.finish()
}

/// A text that enters in pieces.
#[derive(Debug, Default)]
pub struct IncomingText {
    text: String,
    /// The last character was a carriage return, which a line feed may follow.
    is_after_return: bool,
}

impl IncomingText {
    /// Appends the next piece.
    pub fn push(&mut self, piece: &str) {
        for c in piece.chars() {
            let is_second = std::mem::replace(&mut self.is_after_return, c == '\r') && c == '\n';
            match c {
                '\n' if is_second => {}
                '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                    self.text.push('\n');
                }
                '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => {}
                c if c.is_control() && c != '\t' => {}
                c => self.text.push(c),
            }
        }
    }

    /// The bytes so far, before the composition, which makes few texts longer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The whole text.
    #[must_use]
    pub fn finish(self) -> String {
        match composed(&self.text) {
            Cow::Borrowed(_) => self.text,
            Cow::Owned(composed) => composed,
        }
    }
}

/// The text in NFC.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
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
    fn a_text_from_outside_follows_one_rule() {
        let table = include_str!("../../tests/data/incoming.json");
        let table: Vec<[String; 2]> = serde_json::from_str(table).expect("a table");
        for [from, to] in table {
            assert_eq!(incoming(&from), to, "{from:?}");
            assert_eq!(incoming(&to), to, "{to:?}");
            let mut pieces = IncomingText::default();
            from.split_inclusive(|_| true).for_each(|piece| pieces.push(piece));
            assert_eq!(pieces.finish(), to, "{from:?}");
        }
    }
}
