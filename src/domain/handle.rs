//! Handles: the names under which users find each other.
//!
//! A handle is exact: the server offers no search, so a user must know the whole handle. Its alphabet
//! has no two characters that look alike in most fonts, apart from `0` and `o`, and `1` and `l`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::limits::{HANDLE_CHARS_MAX, HANDLE_CHARS_MIN};

/// A handle, without the `@` before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Handle(String);

/// The text cannot be a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a handle has {HANDLE_CHARS_MIN} to {HANDLE_CHARS_MAX} characters: letters from a to z, digits, \
     underscores and Hangul syllables"
)]
pub struct InvalidHandle;

impl Handle {
    /// The handle as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Handle {
    type Err = InvalidHandle;

    /// Reads a handle. An upper-case letter of ASCII becomes lower-case.
    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        // Bounded first: the text comes from outside.
        let is_bounded = text.len() <= 4 * HANDLE_CHARS_MAX
            && (HANDLE_CHARS_MIN..=HANDLE_CHARS_MAX).contains(&text.chars().count());
        let folded = is_bounded.then(|| text.to_ascii_lowercase()).ok_or(InvalidHandle)?;
        let is_allowed =
            |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '\u{AC00}'..='\u{D7A3}');
        folded.chars().all(is_allowed).then_some(Self(folded)).ok_or(InvalidHandle)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_has_letters_digits_underscores_and_hangul_syllables() {
        for (text, handle) in [
            ("kim", "kim"),
            ("Kim_2", "kim_2"),
            ("김하나", "김하나"),
            ("가힣", "가힣"),
            ("__", "__"),
        ] {
            assert_eq!(text.parse::<Handle>().map(|handle| handle.to_string()), Ok(handle.into()));
        }
        assert!("a".repeat(30).parse::<Handle>().is_ok());
        assert!("힣".repeat(30).parse::<Handle>().is_ok());
    }

    #[test]
    fn a_text_that_is_no_handle_is_refused() {
        let (long, huge) = ("a".repeat(31), "김".repeat(100_000));
        for text in [
            "",
            "a",
            "힣",
            &long,
            &huge,
            "a b",
            "@kim",
            "kim!",
            "kim-2",
            "ㅋㅋ",
            "kím",
            "ＫＩＭ",
            "a\u{0}b",
            "\u{1100}\u{1161}",
            "a\u{200D}b",
            "\u{130}x",
        ] {
            assert_eq!(text.parse::<Handle>(), Err(InvalidHandle), "{text}");
        }
    }
}
