//! Reads single keys from the merged sources and collects every fault.
//!
//! The reader continues after a fault, so that one failed start reports all of them. A key with a fault
//! reads as `None`. Checks between keys run only where all of them were read.
//! all of them could be read.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use ::config::{Value, ValueKind};

use crate::config::duration;
use crate::domain::handle::{Handle, InvalidHandle};

/// The merged sources as `section.key`, and the faults found so far.
pub(super) struct Reader {
    values: BTreeMap<String, Value>,
    faults: Vec<String>,
}

impl Reader {
    /// Splits the merged sources into keys. A value outside a section is a fault.
    pub(super) fn new(root: &Value) -> Self {
        let mut reader = Self { values: BTreeMap::new(), faults: Vec::new() };
        let ValueKind::Table(sections) = &root.kind else { return reader };
        for (section, content) in sections {
            match &content.kind {
                ValueKind::Table(keys) => reader.values.extend(
                    keys.iter().map(|(key, value)| (format!("{section}.{key}"), value.clone())),
                ),
                ValueKind::Nil
                | ValueKind::Boolean(_)
                | ValueKind::I64(_)
                | ValueKind::I128(_)
                | ValueKind::U64(_)
                | ValueKind::U128(_)
                | ValueKind::Float(_)
                | ValueKind::String(_)
                | ValueKind::Array(_) => reader.stray(section, content),
            }
        }
        reader
    }

    /// Reads a text, if it is set.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.values.remove(key)?;
        match &value.kind {
            ValueKind::String(text) => Some(text.clone()),
            _ => self.wrong(key, &value, "must be a text"),
        }
    }

    /// Reads a text that must be set.
    pub(super) fn required(&mut self, key: &str) -> Option<String> {
        self.present(key)?;
        let text = self.text(key)?;
        if text.trim().is_empty() {
            self.fault(key, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// Reads one of these words.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.required(key)?;
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let words = Vec::from_iter(choices.iter().map(|(word, _)| *word));
            self.fault(key, &format!("must be {}", words.join(" or ")));
        }
        chosen.map(|(_, value)| *value)
    }

    /// Reads a list of texts, or one text that separates them by commas.
    pub(super) fn list(&mut self, key: &str) -> Option<Vec<String>> {
        let Some(value) = self.values.remove(key) else { return Some(Vec::new()) };
        let texts = match &value.kind {
            // The environment has only text.
            ValueKind::String(text) => text.split(',').map(|it| Some(it.to_owned())).collect(),
            ValueKind::Array(texts) => {
                texts.iter().map(|it| it.clone().into_string().ok()).collect()
            }
            _ => None,
        };
        let Some(texts) = texts else {
            return self.wrong(
                key,
                &value,
                "must be a list of texts, or a text separated by commas",
            );
        };
        let texts: Vec<String> = texts;
        let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        Some(texts.map(str::to_owned).collect())
    }

    /// Reads a list of handles.
    pub(super) fn handles(&mut self, key: &str) -> Option<Vec<Handle>> {
        let texts = self.list(key)?;
        let handles = texts.iter().map(|text| text.parse()).collect::<Result<_, InvalidHandle>>();
        handles.map_err(|error| self.fault(key, &format!("must be handles: {error}"))).ok()
    }

    /// Takes a value of any form, if it is set.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.values.remove(key)
    }

    /// Reads `true` or `false`.
    pub(super) fn switch(&mut self, key: &str) -> Option<bool> {
        self.present(key)?;
        let value = self.values.remove(key)?;
        match &value.kind {
            ValueKind::Boolean(on) => Some(*on),
            ValueKind::String(text) if text == "true" => Some(true),
            ValueKind::String(text) if text == "false" => Some(false),
            _ => self.wrong(key, &value, "must be true or false"),
        }
    }

    /// Reads a whole number within `range`.
    pub(super) fn number(&mut self, key: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        self.large_number(key, range).and_then(|number| u32::try_from(number).ok())
    }

    /// Reads a whole number within `range`, which may exceed 32 bits.
    pub(super) fn large_number(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        self.present(key)?;
        let value = self.values.remove(key)?;
        let number = match &value.kind {
            ValueKind::I64(number) => u64::try_from(*number).ok(),
            ValueKind::U64(number) => Some(*number),
            // The environment has only text.
            ValueKind::String(text) => text.parse().ok(),
            _ => None,
        };
        let (least, most) = (range.start(), range.end());
        let within = number.filter(|number| range.contains(number));
        within.or_else(|| {
            self.wrong(key, &value, &format!("must be a whole number from {least} to {most}"))
        })
    }

    /// Reads a duration within `range`.
    pub(super) fn duration(
        &mut self,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        self.present(key)?;
        let value = self.values.remove(key)?;
        let parsed = match &value.kind {
            ValueKind::String(text) => duration::parse(text),
            _ => None,
        };
        let Some(parsed) = parsed else {
            return self.wrong(key, &value, &format!("must be {}", duration::EXPECTED));
        };
        if !range.contains(&parsed) {
            let (least, most) = (duration::show(*range.start()), duration::show(*range.end()));
            return self.wrong(key, &value, &format!("must be from {least} to {most}"));
        }
        Some(parsed)
    }

    /// Records a fault of `key`.
    pub(super) fn fault(&mut self, key: &str, what: &str) {
        self.faults.push(format!("{key}: {what}"));
    }

    /// All faults, including each key that no check read.
    pub(super) fn finish(mut self) -> Vec<String> {
        for (key, value) in std::mem::take(&mut self.values) {
            let origin = origin_of(&value);
            self.faults.push(format!("{key}: there is no such setting{origin}"));
        }
        self.faults
    }

    /// Records a value outside any section.
    fn stray(&mut self, name: &str, value: &Value) {
        let origin = origin_of(value);
        self.faults.push(format!("{name}: must be a section, [{name}]{origin}"));
    }

    /// The defaults name every key that has a default, so only an empty value makes it missing.
    fn present(&mut self, key: &str) -> Option<()> {
        if self.values.contains_key(key) {
            return Some(());
        }
        self.fault(key, "is missing");
        None
    }

    fn wrong<T>(&mut self, key: &str, value: &Value, what: &str) -> Option<T> {
        let origin = origin_of(value);
        self.faults.push(format!("{key}: {what}{origin}"));
        None
    }
}

/// The source of a value, for the end of a line. The value itself may be a secret.
fn origin_of(value: &Value) -> String {
    value.origin().map(|origin| format!(" (from {origin})")).unwrap_or_default()
}
