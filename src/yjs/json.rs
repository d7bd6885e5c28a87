//! JSON from clients: well-formed, and nested less deeply than a parser's stack allows.

use std::fmt::{Formatter, Result as Formatted};

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use galley_domain::limits::NESTING_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    TooDeep,
    Invalid,
}

pub(crate) fn check(text: &str) -> Result<(), JsonFault> {
    check_depth(text)?;
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|_| JsonFault::Invalid)
}

/// Checks a value that `yrs` parses. `yrs` rejects some numbers and escapes that other parsers accept,
/// and a rejected value makes the document unreadable.
pub(crate) fn check_for_yrs(text: &str) -> Result<(), JsonFault> {
    check_depth(text)?;
    serde_json::from_str::<ReadByYrs>(text).map(|_| ()).map_err(|_| JsonFault::Invalid)
}

/// A value of `yrs::Any`, not stored: its integers fit into an `i64`, and its strings are Unicode.
struct ReadByYrs;

impl<'de> Deserialize<'de> for ReadByYrs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for ReadByYrs {
    type Value = Self;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Formatted {
        formatter.write_str("a value that yrs reads")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self, E> {
        i64::try_from(value).map(|_| self).map_err(E::custom)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _value: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
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
        if depth > NESTING_MAX {
            return Err(JsonFault::TooDeep);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::tests::runner;

    /// Fragments of JSON at the borders of what parsers accept.
    const PIECES: [&str; 48] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\n",
        "\u{b}",
        "null",
        "true",
        "false",
        "nul",
        "NaN",
        "-",
        "+",
        "0",
        "00",
        "1",
        "-0",
        "1.",
        ".5",
        "1.5",
        "e",
        "1e5",
        "1E-400",
        "1e308",
        "1e309",
        "-1e999",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "\"",
        "\\",
        "\"a\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\\udc00\"",
        "\"\\x\"",
        "\"\u{1}\"",
        "\u{feff}",
        "\"$serde_json::private::RawValue\":",
        "\"$serde_json::private::Number\":",
        "가",
    ];

    /// A well-formed value, whose strings and numbers may be such as `yrs` rejects.
    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            proptest::sample::select(&PIECES[9..48]).prop_map(str::to_owned),
            any::<u64>().prop_map(|number| number.to_string()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| format!("{number:e}")),
            "[0-9]{1,25}(\\.[0-9]{1,3})?(e[0-9]{1,3})?",
            any::<String>().prop_map(|text| serde_json::to_string(&text).expect("JSON")),
            any::<u16>().prop_map(|unit| format!("\"\\u{unit:04x}\"")),
        ];
        leaf.prop_recursive(6, 32, 4, |inner| {
            let list = |values: Vec<String>| format!("[{}]", values.join(","));
            let key = proptest::sample::select(&PIECES[35..48]);
            let entry = (key, inner.clone());
            let entry =
                entry.prop_map(|(key, value)| format!("{}:{value}", key.trim_end_matches(':')));
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(list),
                proptest::collection::vec(entry, 0..4)
                    .prop_map(|entries| format!("{{{}}}", entries.join(","))),
            ]
        })
    }

    #[test]
    fn the_check_accepts_a_value_if_and_only_if_yrs_does() {
        let text = prop_oneof![
            value(),
            proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..10)
                .prop_map(|pieces| pieces.concat()),
            any::<String>(),
        ];
        let (accepted, rejected) = (Cell::new(0), Cell::new(0));
        let judged = runner(8_192).run(&text, |text| {
            let is_read = yrs::Any::from_json(&text).is_ok();
            prop_assert_eq!(check_for_yrs(&text).is_ok(), is_read);
            let count = if is_read { &accepted } else { &rejected };
            count.set(count.get() + 1);
            Ok(())
        });
        judged.unwrap();
        assert!(accepted.get() > 500 && rejected.get() > 500, "{accepted:?} {rejected:?}");
    }

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
