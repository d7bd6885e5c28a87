//! Counting in UTF-16 code units, as the browser does.

/// The number of UTF-16 units of `text`.
///
/// The first byte of a character gives its units: two from `F0` on, otherwise one. The loop has no
/// branches, so the compiler vectorizes it.
pub(crate) fn length(text: &str) -> u32 {
    let units: usize =
        text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(0xF0 <= byte)).sum();
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// A position in a text, given in UTF-16 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Utf16Position {
    /// Between two characters, at this byte.
    At(usize),
    /// Inside the surrogate pair of the character that starts at this byte.
    Inside(usize),
    /// After the end.
    Beyond,
}

pub(crate) fn position(text: &str, units: u32) -> Utf16Position {
    let mut passed = 0;
    for (byte, character) in text.char_indices() {
        if passed == units {
            return Utf16Position::At(byte);
        }
        if units < passed {
            return Utf16Position::Beyond;
        }
        passed += if u32::from(character) < 0x1_0000 { 1 } else { 2 };
        if units < passed {
            return Utf16Position::Inside(byte);
        }
    }
    if passed == units { Utf16Position::At(text.len()) } else { Utf16Position::Beyond }
}

/// Stored positions of a text: the unit and the byte of a character about every [`INDEX_EVERY`]
/// bytes. So a look-up walks at most that far in a text of any length.
#[derive(Debug)]
pub(crate) struct Index {
    marks: Vec<(u32, usize)>,
}

const INDEX_EVERY: usize = 1_024;

impl Index {
    pub(crate) fn of(text: &str) -> Self {
        let (mut units, mut from) = (0_u32, 0);
        let mut marks = Vec::with_capacity(text.len() / INDEX_EVERY + 1);
        marks.push((0, 0));
        while let Some(rest) = text.get(from..).filter(|rest| rest.len() > INDEX_EVERY) {
            let (passed, _) = rest.split_at(rest.floor_char_boundary(INDEX_EVERY));
            units = units.saturating_add(length(passed));
            from = from.saturating_add(passed.len());
            marks.push((units, from));
        }
        Self { marks }
    }

    pub(crate) fn position(&self, text: &str, units: u32) -> Utf16Position {
        let (passed, from) = self.mark(|(mark, _)| *mark <= units);
        match position(text.get(from..).unwrap_or_default(), units.saturating_sub(passed)) {
            Utf16Position::At(byte) => Utf16Position::At(byte.saturating_add(from)),
            Utf16Position::Inside(byte) => Utf16Position::Inside(byte.saturating_add(from)),
            Utf16Position::Beyond => Utf16Position::Beyond,
        }
    }

    pub(crate) fn units(&self, text: &str, byte: usize) -> u32 {
        let (passed, from) = self.mark(|(_, mark)| *mark <= byte);
        passed.saturating_add(length(text.get(from..byte).unwrap_or_default()))
    }

    fn mark(&self, is_before: impl Fn(&(u32, usize)) -> bool) -> (u32, usize) {
        let behind = self.marks.partition_point(is_before);
        behind.checked_sub(1).and_then(|at| self.marks.get(at)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hangul, the same in decomposed jamo, a family joined by ZWJ, combining marks.
    const SAMPLES: [&str; 6] = [
        "",
        "plain",
        "한국어",
        "\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}",
        "a\u{1F469}\u{200D}\u{1F467}b",
        "e\u{301}\u{323}x\u{1F600}",
    ];

    #[test]
    fn a_length_equals_the_length_in_the_browser() {
        for text in SAMPLES {
            let units = u32::try_from(text.encode_utf16().count()).unwrap();
            assert_eq!(length(text), units, "{text}");
        }
    }

    #[test]
    fn each_unit_is_found_and_the_middle_of_a_pair_is_reported() {
        for text in SAMPLES {
            let mut positions = Vec::new();
            for (byte, character) in text.char_indices() {
                positions.push(Utf16Position::At(byte));
                positions.extend((1..character.len_utf16()).map(|_| Utf16Position::Inside(byte)));
            }
            positions.extend([
                Utf16Position::At(text.len()),
                Utf16Position::Beyond,
                Utf16Position::Beyond,
            ]);
            let found: Vec<Utf16Position> =
                (0..).map(|units| position(text, units)).take(positions.len()).collect();
            assert_eq!(found, positions, "{text}");
        }
    }

    #[test]
    fn an_index_finds_the_same_position_as_a_walk() {
        let text = SAMPLES.concat().repeat(100);
        let index = Index::of(&text);
        assert!(index.marks.len() > 2);
        for units in (0..length(&text) + 3).step_by(7) {
            let found = index.position(&text, units);
            assert_eq!(found, position(&text, units), "{units}");
            if let Utf16Position::At(byte) = found {
                assert_eq!(index.units(&text, byte), units);
            }
        }
    }
}
