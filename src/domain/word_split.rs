//! The split of a text into words, for a comparison that a person reads.
//!
//! English splits at words, Korean at eojeols: the text between spaces, a noun with its particle or
//! a verb with its ending. The page splits by the same rules in `static/js/reviews/word_diff.ts`;
//! `tests/data/word_diff.json` tests both.

use unicode_segmentation::UnicodeSegmentation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Letters and digits: a run is one piece.
    Word,
    /// White space within a line: a run is one piece.
    Space,
    /// A line break, a mark, a character of a script without spaces: a piece each.
    Single,
}

/// The words, spaces and marks of a text, in order and without a gap. No split cuts a grapheme.
#[must_use]
pub fn words_of(text: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before = Kind::Single;
    for (at, grapheme) in text.grapheme_indices(true) {
        let kind = kind_of(grapheme);
        if kind == before && kind != Kind::Single {
            ends.pop();
        }
        ends.push(at + grapheme.len());
        before = kind;
    }
    pieces(text, &ends)
}

/// The paragraphs of a text, each with its line break.
#[must_use]
pub fn paragraphs_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Cuts a text at byte offsets that rise.
fn pieces<'a>(text: &'a str, ends: &[usize]) -> Vec<&'a str> {
    let mut start = 0;
    let cut = |&end: &usize| {
        let piece = text.get(start..end).unwrap_or_default();
        start = end;
        piece
    };
    ends.iter().map(cut).collect()
}

fn kind_of(grapheme: &str) -> Kind {
    match grapheme.chars().next() {
        Some(c) if is_break(c) || is_without_spaces(c) => Kind::Single,
        Some(c) if c.is_whitespace() => Kind::Space,
        Some(c) if c.is_alphanumeric() || matches!(c, '\'' | '’') => Kind::Word,
        _ => Kind::Single,
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

/// Han, Hiragana, Katakana: a script without spaces has no word boundaries.
fn is_without_spaces(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_spaces_and_marks_are_separate_pieces() {
        assert_eq!(words_of("Yes, don't  go."), ["Yes", ",", " ", "don't", "  ", "go", "."]);
        assert_eq!(words_of("학교는 좋다!\n\n끝"), ["학교는", " ", "좋다", "!", "\n", "\n", "끝"]);
        assert_eq!(words_of("日本の"), ["日", "本", "の"]);
        assert_eq!(words_of("👩‍👩‍👧🙂"), ["👩‍👩‍👧", "🙂"]);
        assert_eq!(words_of(""), Vec::<&str>::new());
    }

    #[test]
    fn the_pieces_spell_the_text_and_cut_no_grapheme() {
        let text = "e\u{301}t\u{e9}  \u{1112}\u{1161}\u{11ab}글은\r\n👨‍👩‍👧‍👦!, 3개를";
        assert_eq!(words_of(text).concat(), text);
        let boundaries: Vec<_> = text.grapheme_indices(true).map(|(at, _)| at).collect();
        let mut at = 0;
        for word in words_of(text) {
            assert!(boundaries.contains(&at), "{word:?} begins inside a grapheme");
            at += word.len();
        }
    }
}
