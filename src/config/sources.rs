//! Merges the sources of the settings, and reads them with every fault.
//!
//! `serde` ends at the first fault. The reader then puts the default in the place of the faulty value and
//! reads again, so that one failed start reports all of them.

use std::path::Path;

use serde_path_to_error::Segment;
use toml::{Table, Value};

use crate::config::{Faults, Settings, checks};
use crate::setting::FoundFaults;

pub(super) struct Source {
    name: String,
    sections: Table,
}

impl Source {
    /// Parses a settings file. An error names the position and quotes nothing: the line at fault may
    /// contain a secret.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let sections = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let message = error.message().replace('\n', " ");
            format!("{name}: line {line}, column {column}: {message}")
        })?;
        Ok(Self { name: name.to_owned(), sections })
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&name, &text)
    }

    pub(super) fn of_texts(name: &str, settings: impl Iterator<Item = [String; 3]>) -> Self {
        let mut sections = Table::new();
        for [section, key, text] in settings {
            let keys = sections.entry(section).or_insert_with(|| Value::Table(Table::new()));
            keys.as_table_mut().map(|keys| keys.insert(key, Value::String(text)));
        }
        Self { name: name.to_owned(), sections }
    }
}

/// Reads and checks the sources, of which a later one wins. The first one holds the defaults.
pub(super) fn settings(sources: &[Source]) -> Result<Settings, Faults> {
    let mut merged = Table::new();
    for source in sources {
        merge(&mut merged, &source.sections);
    }
    let defaults = sources.first().map(|defaults| Value::Table(defaults.sections.clone()));
    let mut faults = FoundFaults::default();
    let read = read(Value::Table(merged), defaults.as_ref(), &mut faults);
    if let Some(settings) = &read {
        checks::check(settings, &mut faults);
    }
    let line = |(key, fault): (&String, &String)| {
        let origin = origin_of(sources, key).map(|source| format!(" (from {})", source.name));
        format!("{key}: {fault}{}", origin.unwrap_or_default())
    };
    let faults = Faults(faults.0.iter().map(line).collect());
    read.filter(|_| faults.0.is_empty()).ok_or(faults)
}

/// Adds the keys of `source`. A text becomes what its default is: a number or a switch.
fn merge(merged: &mut Table, source: &Table) {
    for (name, content) in source {
        let (Some(Value::Table(section)), Value::Table(keys)) = (merged.get_mut(name), content)
        else {
            merged.insert(name.clone(), content.clone());
            continue;
        };
        for (key, value) in keys {
            let text = value.as_str();
            let read = match section.get(key) {
                Some(Value::Integer(_)) => text.and_then(|it| it.parse().ok()).map(Value::Integer),
                Some(Value::Boolean(_)) => text.and_then(|it| it.parse().ok()).map(Value::Boolean),
                // The environment has JSON.
                _ if ["webhooks", "token_secrets", "oidc"].contains(&key.as_str()) => {
                    text.and_then(|it| serde_json::from_str(it).ok())
                }
                _ => None,
            };
            section.insert(key.clone(), read.unwrap_or_else(|| value.clone()));
        }
    }
}

/// Reads the settings. A value with a fault is replaced by its default, so that the others are read.
fn read(mut merged: Value, defaults: Option<&Value>, faults: &mut FoundFaults) -> Option<Settings> {
    loop {
        let error = match serde_path_to_error::deserialize::<_, Settings>(merged.clone()) {
            Ok(settings) => return Some(settings),
            Err(error) => error,
        };
        let path: Vec<_> = error.path().iter().cloned().collect();
        // Within a list of texts the key is that of the list.
        let is_key = |segment: &Segment| matches!(segment, Segment::Map { .. });
        let path = path.get(..=path.iter().rposition(is_key)?)?;
        let key = path.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
        let key = key.replace(".[", "[");
        let is_new = !faults.0.contains_key(&key);
        faults.unless(false, &[&key], &fault(&key, error.inner().message()));
        reset(&mut merged, defaults, path).filter(|()| is_new)?;
    }
}

/// Puts the default, if there is one, in the place of a value.
fn reset(value: &mut Value, default: Option<&Value>, path: &[Segment]) -> Option<()> {
    match path {
        [Segment::Map { key }] => {
            let keys = value.as_table_mut()?;
            match default.and_then(|default| default.get(key)) {
                Some(default) => keys.insert(key.clone(), default.clone()),
                None => keys.remove(key),
            };
            Some(())
        }
        [Segment::Map { key }, rest @ ..] => {
            reset(value.get_mut(key)?, default.and_then(|default| default.get(key)), rest)
        }
        [Segment::Seq { index }, rest @ ..] => reset(value.get_mut(*index)?, None, rest),
        _ => None,
    }
}

/// The text of a fault. That of `serde` quotes the value before the form that it expects.
fn fault(key: &str, message: &str) -> String {
    let fixed = match key {
        "server.listen" => "must be an address and a port, like 127.0.0.1:8080 or [::]:8080",
        "server.assets" => {
            "must be `bundle`; for a developer `node static/vendor/build.mjs --watch` serves the sources"
        }
        "auth.token_secrets" => {
            "must be [{ kid = …, file = … }]; in the environment a JSON array of such objects"
        }
        "auth.oidc" => {
            "must be { issuer = …, client_id = … }; in the environment a JSON object of these"
        }
        "notify.webhooks" => {
            "must be [[notify.webhooks]] with url, secret and events; in the environment a JSON array \
             of such objects"
        }
        section if !section.contains('.') => "must be a section of config/default.toml",
        _ if message.starts_with("unknown field") => "there is no such setting",
        _ => match message.rsplit_once(", expected ") {
            Some((_value, expected)) => return format!("must be {expected}"),
            // A text of our own types.
            None => message,
        },
    };
    fixed.to_owned()
}

fn origin_of<'a>(sources: &'a [Source], key: &str) -> Option<&'a Source> {
    let mut names = key.split(['.', '[']);
    let (section, key) = (names.next()?, names.next());
    sources.iter().rev().find(|source| {
        let keys = source.sections.get(section);
        keys.is_some_and(|keys| key.is_none_or(|key| keys.get(key).is_some()))
    })
}
