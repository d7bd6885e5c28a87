//! A section of the settings is a struct of `serde`: its fields are the keys, with type and range.
//!
//! Each feature has its own; [`config`](crate::config) has those of the core and reads them all. This module
//! has the forms of values that a type alone does not tell: ranges, lists, and secrets that are never
//! shown. A fault states the expected form and never the value, which may be a secret in the wrong place.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

use humantime::format_duration;
pub use humantime::parse_duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds, for the ranges of [`Lasting`].
pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

const HIDDEN: &str = "***";

/// The faults, one a key: the first one.
#[derive(Default)]
pub(crate) struct FoundFaults(pub(crate) BTreeMap<String, String>);

impl FoundFaults {
    /// Records a fault of the first of `keys`, unless `holds`. The rule does not apply if one of them has
    /// a fault already.
    pub(crate) fn unless(&mut self, holds: bool, keys: &[&str], fault: &str) {
        let is_readable = !keys.iter().any(|key| self.0.contains_key(*key));
        if let (false, true, Some(key)) = (holds, is_readable, keys.first()) {
            self.0.insert((*key).to_owned(), fault.to_owned());
        }
    }
}

/// A duration from `LEAST` to `MOST` milliseconds, as text with a unit.
#[derive(Clone, Copy)]
pub struct Lasting<const LEAST: u64, const MOST: u64>(Duration);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Lasting<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from).unwrap_or_default();
        let (least, most) = (Duration::from_millis(LEAST), Duration::from_millis(MOST));
        let duration = parse_duration(&text).ok().filter(|it| (least..=most).contains(it));
        duration.map(Self).ok_or_else(|| {
            let (least, most) = (shown(least), shown(most));
            let fault = "must be a duration with its unit, like \"250ms\", \"12s\" or \"30m\"";
            D::Error::custom(format!("{fault}, from {least} to {most}"))
        })
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Lasting<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&shown(self.0))
    }
}

impl<const LEAST: u64, const MOST: u64> Deref for Lasting<LEAST, MOST> {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

/// Whole days stay days: `3650d` rather than years and months.
fn shown(duration: Duration) -> String {
    let (millis, day) = (duration.as_millis(), u128::from(DAY));
    if day <= millis && millis % day == 0 {
        return format!("{}d", millis / day);
    }
    format_duration(duration).to_string()
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Serialize)]
pub struct Whole<const LEAST: u64, const MOST: u64, T = u32>(T);

impl<'de, const LEAST: u64, const MOST: u64, T> Deserialize<'de> for Whole<LEAST, MOST, T>
where
    T: TryFrom<u64>,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(from).ok().filter(|it| (LEAST..=MOST).contains(it));
        number.and_then(|number| T::try_from(number).ok()).map(Self).ok_or_else(|| {
            D::Error::custom(format!("must be a whole number from {LEAST} to {MOST}"))
        })
    }
}

impl<const LEAST: u64, const MOST: u64, T> Deref for Whole<LEAST, MOST, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a list of texts, or a text separated by commas")]
enum List {
    Texts(Vec<String>),
    Text(String),
}

/// Reads a list of texts, or one text that separates them by commas: the environment has only text.
pub(crate) fn list<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    separated(from, |separator| separator == ',')
}

/// Reads the same, with commas or spaces between the texts.
pub(crate) fn words<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    separated(from, |separator| separator == ',' || separator.is_whitespace())
}

fn separated<'de, T, D>(from: D, separates: fn(char) -> bool) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let texts = match List::deserialize(from)? {
        List::Texts(texts) => texts,
        List::Text(text) => text.split(separates).map(str::to_owned).collect(),
    };
    let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    texts.map(str::parse).collect::<Result<_, _>>().map_err(D::Error::custom)
}

pub(crate) fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(crate) fn hidden<T, S: Serializer>(_secret: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(HIDDEN)
}

/// Shows a URL with its password, if any, replaced by `***`.
pub(crate) fn without_password<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&with_password(url, &format!(":{HIDDEN}")))
}

/// Replaces a URL's password, if any, and the colon before it.
pub(crate) fn with_password(url: &str, replacement: &str) -> String {
    let shown = url.split_once("://").and_then(|(scheme, rest)| {
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_end);
        let (account, host) = authority.rsplit_once('@')?;
        let (user, _password) = account.split_once(':')?;
        Some(format!("{scheme}://{user}{replacement}@{host}{path}"))
    });
    shown.unwrap_or_else(|| url.to_owned())
}

/// Adds a password to a URL without one. The password is percent-encoded.
pub(crate) fn add_password(url: &str, password: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (user, host) = rest.split_once('@').unwrap_or(("", rest));
    let encode = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let password: String = password.bytes().map(encode).collect();
    format!("{scheme}://{user}:{password}@{host}")
}

/// Shows a URL with its query, if any, replaced by `***`.
pub(crate) fn without_query<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    match url.split_once(['?', '#']) {
        Some((address, _)) => to.collect_str(&format_args!("{address}?{HIDDEN}")),
        None => to.serialize_str(url),
    }
}
