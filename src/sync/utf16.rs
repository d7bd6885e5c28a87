//! Counting as the browser does: in UTF-16 code units.

/// How many UTF-16 units `text` has.
///
/// Counted from the bytes, since a character has as many units as its first byte says: one, or
/// two from `F0` on. The loop has no branches and is made into vector code.
pub(crate) fn length(text: &str) -> u32 {
    let units: usize =
        text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(0xF0 <= byte)).sum();
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// A place in a text, given in UTF-16 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the boundary of two characters, at this byte.
    At(usize),
    /// Inside the surrogate pair of the character that starts at this byte.
    Inside(usize),
    /// Behind the end.
    Beyond,
}

/// Where unit `units` of `text` is.
pub(crate) fn place(text: &str, units: u32) -> Place {
    let mut passed = 0;
    for (byte, character) in text.char_indices() {
        if passed == units {
            return Place::At(byte);
        }
        if units < passed {
            return Place::Beyond;
        }
        passed += if u32::from(character) < 0x1_0000 { 1 } else { 2 };
        if units < passed {
            return Place::Inside(byte);
        }
    }
    if passed == units { Place::At(text.len()) } else { Place::Beyond }
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
    fn a_text_is_as_long_as_the_browser_says() {
        for text in SAMPLES {
            let units = u32::try_from(text.encode_utf16().count()).unwrap();
            assert_eq!(length(text), units, "{text}");
        }
    }

    #[test]
    fn each_unit_is_found_and_the_middle_of_a_pair_is_called_that() {
        for text in SAMPLES {
            let mut places = Vec::new();
            for (byte, character) in text.char_indices() {
                places.push(Place::At(byte));
                places.extend((1..character.len_utf16()).map(|_| Place::Inside(byte)));
            }
            places.extend([Place::At(text.len()), Place::Beyond, Place::Beyond]);
            let found: Vec<Place> =
                (0..).map(|units| place(text, units)).take(places.len()).collect();
            assert_eq!(found, places, "{text}");
        }
    }
}
