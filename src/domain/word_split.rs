//! The split of a text into words, for a comparison that a person reads.
//!
//! English splits at words, Korean at eojeols: the text between spaces, a noun with its particle or
//! a verb with its ending. Where one eojeol replaces another, the diff omits their common head or
//! tail, so `학교는 → 학교가` shows `는 → 가`. The page applies the same rules in
//! `static/js/reviews/word_diff.js`; `tests/data/word_diff.json` tests both.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Particles that split off a noun of one syllable: `나는 → 나를` shows `는 → 를`, but `대학 → 대회` shows
/// both words whole.
const PARTICLES: &[&str] = &[
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "도",
    "로",
    "와",
    "과",
    "만",
    "에서",
    "에게",
    "으로",
    "부터",
    "까지",
    "처럼",
    "보다",
    "이다",
    "입니다",
];

/// The class of a grapheme.
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

/// Whether the text is only white space within one line.
#[must_use]
pub fn is_space(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_whitespace() && !is_break(c))
}

/// The differing range of two words where the new one replaces the old one, in bytes of each.
/// `None`: the diff shows both words whole, as it does with all but Korean words.
#[must_use]
pub fn narrowed(old: &str, new: &str) -> Option<(Range<usize>, Range<usize>)> {
    if !is_eojeol(old) || !is_eojeol(new) {
        return None;
    }
    let (from, to): (Vec<_>, Vec<_>) =
        (old.graphemes(true).collect(), new.graphemes(true).collect());
    let shorter = from.len().min(to.len());
    let longer = from.len().max(to.len());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let mut head = from.iter().zip(&to).take_while(same).count();
    let rest = |word: &[&str], head: usize| word.iter().skip(head).copied().collect::<String>();
    // One syllable is a stem only if the rest of both words is a particle.
    if head == 1 && !(is_particle(&rest(&from, 1)) && is_particle(&rest(&to, 1))) {
        head = 0;
    }
    let backwards = from.iter().rev().zip(to.iter().rev());
    let mut tail = backwards.take(shorter - head).take_while(same).count();
    // A common ending of one syllable is often no ending.
    if tail < 2 {
        tail = 0;
    }
    // Without a common stem, the common tail must be at least half of the longer word, so that the
    // diff stays readable.
    if head == 0 && tail * 2 < longer {
        tail = 0;
    }
    if head == 0 && tail == 0 {
        return None;
    }
    Some((between(&from, head, tail), between(&to, head, tail)))
}

/// The bytes from after the first `head` to before the last `tail` pieces.
fn between(pieces: &[&str], head: usize, tail: usize) -> Range<usize> {
    let bytes = |pieces: &mut dyn Iterator<Item = &&str>| pieces.map(|piece| piece.len()).sum();
    let start: usize = bytes(&mut pieces.iter().take(head));
    let end: usize = bytes(&mut pieces.iter().take(pieces.len() - tail));
    start..end
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

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}'
        | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}')
}

/// Whether the text is one word with Hangul in it.
fn is_eojeol(text: &str) -> bool {
    text.chars().any(is_hangul) && words_of(text).len() == 1
}

fn is_particle(text: &str) -> bool {
    text.is_empty() || PARTICLES.contains(&text)
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

    /// The deleted and the inserted part, as the page shows them.
    fn shown<'a>(old: &'a str, new: &'a str) -> Option<(&'a str, &'a str)> {
        narrowed(old, new).map(|(from, to)| (&old[from], &new[to]))
    }

    #[test]
    fn a_korean_word_shows_its_changed_part() {
        assert_eq!(shown("학교는", "학교가"), Some(("는", "가")));
        assert_eq!(shown("나는", "나를"), Some(("는", "를")));
        assert_eq!(shown("갔습니다", "왔습니다"), Some(("갔", "왔")));
        assert_eq!(shown("회사에서", "학교에서"), Some(("회사", "학교")));
        assert_eq!(shown("3개를", "4개를"), Some(("3", "4")));
        assert_eq!(shown("Galley를", "Galley가"), Some(("를", "가")));
        assert_eq!(shown("성장했고", "성장했고요"), Some(("", "요")));
    }

    #[test]
    fn words_that_only_begin_or_end_alike_are_shown_whole() {
        for (old, new) in [
            ("대학에서", "대기업으로"),
            ("대학", "대회"),
            ("생각합니다", "느낍니다"),
            ("working", "worked"),
            ("학교", "school"),
            ("학교는 좋다", "학교가 좋다"),
        ] {
            assert_eq!(shown(old, new), None, "{old} → {new}");
        }
    }

    #[test]
    fn decomposed_hangul_is_not_cut_within_a_syllable() {
        // 학교는 and 학교늘, in jamo: they differ in the last jamo only.
        let old = "\u{1112}\u{1161}\u{11a8}\u{1100}\u{116d}\u{1102}\u{1173}\u{11ab}";
        let new = "\u{1112}\u{1161}\u{11a8}\u{1100}\u{116d}\u{1102}\u{1173}\u{11af}";
        let syllable = ("\u{1102}\u{1173}\u{11ab}", "\u{1102}\u{1173}\u{11af}");
        assert_eq!(shown(old, new), Some(syllable));
    }
}
