//! The signs of fonts that have signs at the places of letters, in Unicode.

/// A font a line: its name, a tab, and its signs from 0x21 on.
const FONTS: &str = include_str!("word_symbols.txt");
/// Word writes a byte of such a font as a private character.
const PRIVATE: u32 = 0xF000;

/// The sign with this hexadecimal number. `None`: Unicode or this table lacks it.
pub(super) fn symbol(font: &str, number: &str) -> Option<char> {
    let number = u32::from_str_radix(number, 16).ok()?;
    let signs = FONTS.lines().filter_map(|line| line.split_once('\t'));
    let signs = signs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(font));
    let sign = match (signs, number) {
        (Some((_, signs)), 0x21..=0xFF | 0xF021..=0xF0FF) => {
            signs.chars().nth(usize::try_from((number & 0xFF) - 0x21).ok()?)?
        }
        // Another font has its letters there.
        (None, 0xF020..=0xF07E) => char::from_u32(number - PRIVATE)?,
        _ => char::from_u32(number)?,
    };
    let is_private = ('\u{E000}'..='\u{F8FF}').contains(&sign);
    (sign != '\u{FFFD}' && !is_private).then_some(sign)
}
