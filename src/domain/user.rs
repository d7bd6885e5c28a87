//! Who is asking.

use serde::{Deserialize, Serialize};

use crate::domain::ids::UserId;
use crate::domain::limits::NAME_CHARS_MAX;

/// A person, as others see them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// Opaque and stable.
    pub id: UserId,
    /// What they are called. May contain anything printable.
    pub name: String,
}

/// The text cannot be somebody's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing but white space.
    #[error("a name may not be empty")]
    Empty,
    /// Longer than [`NAME_CHARS_MAX`].
    #[error("a name has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    /// Control characters, or marks that turn the writing direction of what follows.
    #[error("a name may not contain control characters")]
    Control,
}

/// Trims and checks a name.
///
/// # Errors
///
/// [`InvalidName`] when it is empty, too long or has control or bidi-override characters.
pub fn parse_name(text: &str) -> Result<String, InvalidName> {
    let name = text.trim();
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if NAME_CHARS_MAX < name.chars().count() {
        return Err(InvalidName::TooLong);
    }
    let turns = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    if name.chars().any(|c| c.is_control() || turns(c)) {
        return Err(InvalidName::Control);
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_kept_in_any_script() {
        assert_eq!(parse_name("  김민수 "), Ok("김민수".to_owned()));
        assert_eq!(parse_name("👩‍👩‍👧"), Ok("👩‍👩‍👧".to_owned()));
    }

    #[test]
    fn a_name_that_would_disturb_the_page_is_refused() {
        assert_eq!(parse_name(" \n "), Err(InvalidName::Empty));
        assert_eq!(parse_name("a\u{0}b"), Err(InvalidName::Control));
        assert_eq!(parse_name("a\u{202E}b"), Err(InvalidName::Control));
        assert_eq!(parse_name(&"x".repeat(81)), Err(InvalidName::TooLong));
    }
}
