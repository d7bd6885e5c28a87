//! Users and their names.

use serde::{Deserialize, Serialize};

use crate::domain::ids::UserId;
use crate::domain::limits::NAME_CHARS_MAX;
use crate::domain::printable::{Unprintable, check_line};

/// A user, as other users see them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// Opaque and stable.
    pub id: UserId,
    /// Display name. May contain every printable character.
    pub name: String,
}

/// The reason why a text cannot be a user's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has no visible character.
    #[error("a name needs a visible character")]
    Empty,
    /// Longer than [`NAME_CHARS_MAX`].
    #[error("a name has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    /// It has control characters.
    #[error("a name may not contain control characters")]
    Control,
    /// It has invisible characters, or marks that change the writing direction.
    #[error("a name may not contain invisible characters or marks of writing direction")]
    Invisible,
}

/// Trims and checks a name.
///
/// # Errors
///
/// [`InvalidName`] when it is empty, too long, or has characters that a page draws as nothing.
pub fn parse_name(text: &str) -> Result<String, InvalidName> {
    let name = text.trim();
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if NAME_CHARS_MAX < name.chars().count() {
        return Err(InvalidName::TooLong);
    }
    match check_line(name) {
        Ok(()) => Ok(name.to_owned()),
        Err(Unprintable::Control) => Err(InvalidName::Control),
        Err(Unprintable::Invisible) => Err(InvalidName::Invisible),
        Err(Unprintable::Blank) => Err(InvalidName::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_accepted_in_any_script() {
        assert_eq!(parse_name("  김민수 "), Ok("김민수".to_owned()));
        assert_eq!(parse_name("👩‍👩‍👧"), Ok("👩‍👩‍👧".to_owned()));
    }

    #[test]
    fn a_name_that_would_disturb_the_page_is_rejected() {
        assert_eq!(parse_name(" \n "), Err(InvalidName::Empty));
        assert_eq!(parse_name("a\u{0}b"), Err(InvalidName::Control));
        assert_eq!(parse_name("a\u{202E}b"), Err(InvalidName::Invisible));
        assert_eq!(parse_name("\u{3164}"), Err(InvalidName::Invisible));
        assert_eq!(parse_name(&"x".repeat(81)), Err(InvalidName::TooLong));
    }
}
