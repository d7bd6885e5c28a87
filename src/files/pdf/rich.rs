//! A paragraph with its inks: the input of the typesetter.

use std::ops::Range;

/// Spaces in place of a tab: a paragraph has no tab stops.
const TAB: &str = "    ";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Text,
    Soft,
    /// The number of a note behind its passage.
    Number,
    /// The number of a note at its head.
    Head,
    /// The new words of a suggestion.
    Added,
    /// The old words of a suggestion.
    Deleted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ink {
    pub(super) role: Role,
    /// A note is on it.
    pub(super) is_marked: bool,
}

impl From<Role> for Ink {
    fn from(role: Role) -> Self {
        Self { role, is_marked: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Rich {
    text: String,
    /// The inks with their ends, in order.
    spans: Vec<(usize, Ink)>,
    /// The notes whose number stands in the paragraph: its position, and the index of the note.
    notes: Vec<(usize, usize)>,
}

impl Rich {
    pub(super) fn of(text: &str, role: Role) -> Self {
        let mut rich = Self::default();
        rich.push(text, role.into());
        rich
    }

    /// Appends text. A control character has no glyph, and becomes U+FFFD.
    pub(super) fn push(&mut self, text: &str, ink: Ink) {
        for c in text.chars() {
            match c {
                '\t' => self.text.push_str(TAB),
                // The line feed behind it ends the paragraph.
                '\r' => {}
                c if c.is_control() => self.text.push('\u{FFFD}'),
                c => self.text.push(c),
            }
        }
        let end = self.text.len();
        match self.spans.last_mut() {
            Some(last) if last.1 == ink => last.0 = end,
            Some(last) if last.0 == end => {}
            None if end == 0 => {}
            _ => self.spans.push((end, ink)),
        }
    }

    pub(super) fn push_number(&mut self, index: usize) {
        self.notes.push((self.text.len(), index));
        self.push(&index.saturating_add(1).to_string(), Role::Number.into());
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn inks(&self, part: Range<usize>) -> impl Iterator<Item = (Range<usize>, Ink)> {
        let first = self.spans.partition_point(|(end, _)| *end <= part.start);
        let mut from = 0;
        self.spans.iter().skip(first).map_while(move |(end, ink)| {
            let to = (*end).min(part.end).saturating_sub(part.start);
            let range = std::mem::replace(&mut from, to)..to;
            (!range.is_empty()).then_some((range, *ink))
        })
    }

    pub(super) fn notes_in(&self, part: Range<usize>) -> impl Iterator<Item = usize> {
        let first = self.notes.partition_point(|(at, _)| *at < part.start);
        self.notes.iter().skip(first).take_while(move |(at, _)| *at < part.end).map(|(_, it)| *it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_are_cut_to_a_part_and_equal_ones_join() {
        let mut rich = Rich::default();
        let marked = Ink { role: Role::Text, is_marked: true };
        rich.push("", marked);
        rich.push("ab", Ink::default());
        rich.push("cd", Ink::default());
        rich.push("e\tf", marked);
        rich.push_number(11);
        assert_eq!(rich.text(), "abcde    f12");
        let inks = |part: Range<usize>| rich.inks(part).collect::<Vec<_>>();
        let number = Role::Number.into();
        let all = [(0..4, Ink::default()), (4..10, marked), (10..12, number)];
        assert_eq!(inks(0..12), all);
        assert_eq!(inks(3..11), [(0..1, Ink::default()), (1..7, marked), (7..8, number)]);
        assert_eq!(inks(4..4), []);
        assert_eq!(rich.notes_in(0..10).count(), 0);
        assert_eq!(rich.notes_in(4..11).collect::<Vec<_>>(), [11]);
        assert_eq!(rich.notes_in(11..12).count(), 0);
    }

    #[test]
    fn g12_control_characters_are_replaced() {
        assert_eq!(Rich::of("a\u{0}\r\u{1b}b", Role::Soft).text(), "a\u{FFFD}\u{FFFD}b");
    }
}
