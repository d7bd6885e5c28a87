//! Known faults of outside crates: `Cargo.lock` against `tests/data/advisories.json`.
//!
//! The file holds the advisories of rustsec/advisory-db at one commit that name a crate of ours.
//! `tests/tidy/advisories.mjs` writes it from a clone. The report prints the age of that commit: faults
//! that became known later are not in the file.

use std::collections::BTreeMap;
use std::io::Write as _;

use chrono::{NaiveDate, Utc};
use serde::Deserialize;

use crate::tree::{assert_none, one};

const FILE: &str = "tests/data/advisories.json";

#[derive(Deserialize)]
struct List {
    source: String,
    commit: String,
    date: NaiveDate,
    /// Advisories that do not apply to our use of the crate, with the reason.
    accepted: BTreeMap<String, String>,
    /// The names that were looked up.
    crates: String,
    advisories: Vec<Advisory>,
}

#[derive(Deserialize)]
struct Advisory {
    id: String,
    #[serde(rename = "crate")]
    name: String,
    /// Safe ranges: the first version, and the first one after the range.
    safe: Vec<(String, Option<String>)>,
}

impl Advisory {
    fn applies_to(&self, version: &str) -> bool {
        let version = parts(version);
        !self.safe.iter().any(|(first, end)| {
            parts(first) <= version && end.as_deref().is_none_or(|end| version < parts(end))
        })
    }
}

/// The numbers of a version. A pre-release or build suffix does not count.
fn parts(version: &str) -> [u64; 3] {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = plain.split('.').map(|part| part.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().unwrap_or_default())
}

/// Name and version of each locked crate.
fn locked(path: &str) -> Vec<(String, String)> {
    let text = one(path).text;
    let packages = text.split("[[package]]\n").skip(1);
    let value = |package: &str, key: &str| {
        let row = package.lines().find_map(|line| line.strip_prefix(key));
        row.expect("a field").trim_matches('"').to_owned()
    };
    packages.map(|it| (value(it, "name = "), value(it, "version = "))).collect()
}

#[test]
fn no_locked_crate_has_a_reported_fault() {
    let list: List = serde_json::from_str(&one(FILE).text).expect("the list");
    let crates = ["Cargo.lock", "tests/guide/Cargo.lock"].map(locked).concat();
    let in_force: Vec<_> = list
        .advisories
        .iter()
        .flat_map(|advisory| crates.iter().map(move |it| (advisory, it)))
        .filter(|(advisory, (name, version))| {
            advisory.name == *name && advisory.applies_to(version)
        })
        .collect();
    let mut complaints: Vec<_> = in_force
        .iter()
        .filter(|(advisory, _)| !list.accepted.contains_key(&advisory.id))
        .map(|(advisory, (name, version))| format!("{name} {version}: {}", advisory.id))
        .collect();
    for id in list.accepted.keys() {
        if !in_force.iter().any(|(advisory, _)| advisory.id == *id) {
            complaints.push(format!("{FILE}: {id} is accepted and does not apply"));
        }
    }
    let looked_up: Vec<_> = list.crates.split(' ').collect();
    let newer = crates.iter().filter(|(name, _)| !looked_up.contains(&name.as_str())).count();
    let days = (Utc::now().date_naive() - list.date).num_days();
    let (commit, source) = (&list.commit[..7], &list.source);
    let report = format!(
        "advisories: {days} days old ({commit} of {source}); {newer} crates are not looked up\n"
    );
    // Not by `println!`, which the runner hides for a test that passes.
    let _closed = std::io::stdout().write_all(report.as_bytes());
    assert_none(&complaints, "update the crate, or accept the advisory with its reason");
}

#[test]
fn an_advisory_applies_outside_its_safe_ranges() {
    let safe = [("1.2", Some("1.3")), ("1.4.1", None)];
    let safe = safe.map(|(first, end)| (first.to_owned(), end.map(str::to_owned)));
    let advisory = Advisory { id: String::new(), name: String::new(), safe: safe.into() };
    let applies = |version: &&str| advisory.applies_to(version);
    assert!(["0.9.9", "1.1.10", "1.3.0", "1.4.0", "1.4.0+2"].iter().all(applies));
    assert!(!["1.2.0", "1.2.9-rc.1", "1.4.1", "1.10.0", "2.0.0"].iter().any(applies));
}
