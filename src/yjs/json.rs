//! JSON from clients: well-formed, and nested less deeply than a parser's stack allows.

use serde::de::IgnoredAny;

use crate::domain::limits::NESTING_MAX;

/// Why a JSON value is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// Nested deeper than [`NESTING_MAX`].
    TooDeep,
    /// Not JSON.
    Invalid,
}

/// Checks a value that the server relays as text.
pub(crate) fn check(text: &str) -> Result<(), JsonFault> {
    check_depth(text)?;
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|_| JsonFault::Invalid)
}

/// Checks a value that `yrs` parses, with the parser of `yrs`. That parser rejects some numbers and
/// escapes that others accept, and a rejected value makes the document unreadable.
pub(crate) fn check_for_yrs(text: &str) -> Result<(), JsonFault> {
    check_depth(text)?;
    yrs::Any::from_json(text).map(|_| ()).map_err(|_| JsonFault::Invalid)
}

/// Counts brackets outside of strings before a parser reads the value.
fn check_depth(text: &str) -> Result<(), JsonFault> {
    let mut depth: u32 = 0;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if NESTING_MAX < depth {
            return Err(JsonFault::TooDeep);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn g13_nesting_has_a_bound() {
        assert_eq!(check(&nested(64)), Ok(()));
        assert_eq!(check(&nested(65)), Err(JsonFault::TooDeep));
        assert_eq!(check(&"[".repeat(100_000)), Err(JsonFault::TooDeep));
        assert_eq!(check_for_yrs(&nested(64)), Ok(()));
        assert_eq!(check_for_yrs(&nested(65)), Err(JsonFault::TooDeep));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = format!(r#"{{"a\"":"{}"}}"#, "[{".repeat(200));
        assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in ["", "nul", "{", "[1,]", "1 2", "\"\n\"", "NaN", "{a:1}"] {
            assert_eq!(check(text), Err(JsonFault::Invalid), "{text}");
            assert_eq!(check_for_yrs(text), Err(JsonFault::Invalid), "{text}");
        }
        // Browsers accept these, and yrs rejects them.
        for text in ["18446744073709551615", "1e999", r#""\ud800""#] {
            assert_eq!(check_for_yrs(text), Err(JsonFault::Invalid), "{text}");
        }
    }
}
