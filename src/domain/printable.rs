//! Characters that a name, a title or a label may contain.
//!
//! The page shows these texts beside each other, so two texts that look alike mislead a user. The
//! rule rejects every character that a browser draws as nothing, and every mark that changes the
//! writing direction. It accepts an invisible character only where a script needs it. Such are a
//! joiner inside a word of a joining script or inside an emoji, and a variation selector after a
//! character that has variants. Comments and suggestions follow `text::incoming` alone.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFault {
    /// It has a control character or a line break.
    Control,
    /// It has an invisible character, or a mark that turns the writing direction.
    Invisible,
    /// It has no visible character.
    Blank,
    TooLong,
}

const ZERO_WIDTH_NON_JOINER: char = '\u{200C}';
const ZERO_WIDTH_JOINER: char = '\u{200D}';
/// A letter that a browser draws as a space (So, not white space by its class).
const BRAILLE_BLANK: char = '\u{2800}';

pub(super) fn check_line(text: &str) -> Result<(), LineFault> {
    let mut characters = text.chars().peekable();
    // The preceding character, and the last character that is no variation selector.
    let (mut before, mut base) = (None, None);
    let mut is_blank = true;
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        if is_control(c) {
            return Err(LineFault::Control);
        }
        if is_ignorable(c) {
            let is_needed = match c {
                ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER => {
                    base.is_some_and(is_joining) && next.is_some_and(is_joining)
                }
                _ => before.is_some_and(|before| has_variant(before, c, next)),
            };
            if !is_needed {
                return Err(LineFault::Invisible);
            }
        } else {
            is_blank &= c.is_whitespace() || c == BRAILLE_BLANK;
            base = Some(c);
        }
        before = Some(c);
    }
    if is_blank { Err(LineFault::Blank) } else { Ok(()) }
}

fn is_control(c: char) -> bool {
    // The two separators break a line as a line feed does.
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// `Default_Ignorable_Code_Point` of Unicode 16, and the three marks of interlinear annotation.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether an adjacent joiner changes the drawing of this character: joining scripts from Hebrew to
/// Mongolian, later scripts of that kind, and emoji. Beside a Latin letter, a Hangul syllable or a
/// Han character a joiner would only make two names out of one.
fn is_joining(c: char) -> bool {
    matches!(c,
        '\u{0590}'..='\u{109F}' | '\u{1200}'..='\u{1CFF}' | '\u{2190}'..='\u{2BFF}'
        | '\u{A840}'..='\u{ABFF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10A00}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}' | '\u{1F000}'..='\u{1FAFF}')
}

fn has_variant(base: char, selector: char, next: Option<char>) -> bool {
    match selector {
        // Emoji or text.
        '\u{FE0E}' | '\u{FE0F}' => match base {
            '#' | '*' | '0'..='9' => next == Some('\u{20E3}'),
            _ => matches!(base, '\u{A9}' | '\u{AE}' | '\u{203C}'..='\u{2BFF}'
                | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}'),
        },
        // Forms of Han characters, as Japanese names need them.
        '\u{FE00}'..='\u{FE02}' | '\u{E0100}'..='\u{E01EF}' => {
            matches!(base, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
        }
        '\u{180B}'..='\u{180D}' | '\u{180F}' => matches!(base, '\u{1820}'..='\u{18AF}'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_a_line_without_a_visible_character_is_rejected() {
        for text in ["", "   ", "\u{3000}\u{A0}", "\u{2800}", "\u{2800} \u{2800}"] {
            assert_eq!(check_line(text), Err(LineFault::Blank), "{text:?}");
        }
        for text in [
            "\u{200B}\u{200B}",
            "\u{3164}",
            "\u{FEFF}",
            "\u{115F}",
            "\u{1160}",
            "\u{FFA0}",
            "\u{061C}",
            "\u{E0041}",
            "\u{2062}",
            "\u{00AD}",
            "\u{FE0F}",
            "\u{E0100}",
            "\u{200D}",
        ] {
            assert_eq!(check_line(text), Err(LineFault::Invisible), "{text:?}");
        }
    }

    #[test]
    fn g17_a_line_that_reads_as_another_is_rejected() {
        for text in [
            "Ki\u{200D}m",
            "Ki\u{200C}m",
            "Kim\u{200B}",
            "\u{FEFF}Kim",
            "K\u{00AD}im",
            "김\u{200D}민수",
            "김민수\u{FE0F}",
            "Kim\u{E0100}",
            "金\u{200D}民",
            "1\u{FE0F}",
            "Kim\u{202E}",
            "a\u{2066}b",
            "a\u{200F}b",
            "👩\u{200D}",
            "\u{200D}👩",
            "❤\u{FE0F}\u{FE0F}",
        ] {
            assert_eq!(check_line(text), Err(LineFault::Invisible), "{text:?}");
        }
        for text in ["a\nb", "a\u{0}", "a\u{85}", "a\u{2028}b"] {
            assert_eq!(check_line(text), Err(LineFault::Control), "{text:?}");
        }
    }

    #[test]
    fn a_line_in_any_script_is_accepted() {
        for text in [
            "Kim",
            "김 민수",
            "홍길동 (1차)",
            "👩\u{200D}👩\u{200D}👧",
            "❤\u{FE0F}\u{200D}🔥",
            "☎\u{FE0E}",
            "1\u{FE0F}\u{20E3}",
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "葛\u{E0100}飾区",
            "e\u{301}",
            "각",
            "\u{1100}\u{1161}\u{11A8}",
            "Ünïcödé",
            "🇰🇷",
            "§ 3 – “x”",
            "©\u{FE0F} 2026",
        ] {
            assert_eq!(check_line(text), Ok(()), "{text:?}");
        }
    }
}
