//! Rejects a run in which too little happened to prove anything.

use std::collections::BTreeMap;

use crate::history::{Event, How, What};

/// Every kind of fault that the acts inject.
pub(crate) const KINDS: &[&str] = &[
    "server-frozen",
    "server-killed",
    "server-restarted",
    "redis-frozen",
    "redis-restarted",
    "redis-old",
    "redis-cut",
    "redis-swallowed",
    "redis-flushed",
    "redis-clock",
    "scripts-flushed",
    "postgres-cut",
    "postgres-swallowed",
    "postgres-restarted",
    "backends-terminated",
    "set-back",
];

/// From this length on each kind of fault must have happened.
const WHOLE_SECONDS: u64 = 720;
/// From this length on two thirds of the kinds must have happened.
const MOST_SECONDS: u64 = 200;

/// Counts of the events of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(pub(crate) BTreeMap<String, usize>);

impl Counts {
    pub(crate) fn add(&mut self, events: &[Event]) {
        let mut how = BTreeMap::new();
        for Event { what, .. } in events {
            match what {
                What::Claim { socket, how: way, .. } => drop(how.insert(*socket, *way)),
                What::Granted { socket, .. } => {
                    self.count("grants");
                    self.count(match how.get(socket) {
                        Some(How::TakeOver) => "take-overs",
                        Some(How::Resume) => "resumes",
                        Some(How::Wait) => "waits",
                        Some(How::Plain) | None => "plain claims",
                    });
                }
                What::Saved { .. } => self.count("saved"),
                What::Denied { .. } => self.count("denied"),
                What::Row { .. } => self.count("rows"),
                What::Revoked { .. } => self.count("revocations"),
                What::Deleted { .. } => self.count("deletions"),
                What::Accepted { .. } => self.count("accepted"),
                What::Due { .. } => self.count("effects judged"),
                What::Recovered { .. } => self.count("recovered"),
                What::Fault { kind, .. } => {
                    self.count("faults");
                    self.count(kind);
                }
                What::SetBack { held, .. } if !held.is_empty() => self.count("set-back and held"),
                _ => {}
            }
        }
    }

    fn count(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn of(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// The events that a run of this length lacks; empty if the run is conclusive.
pub(crate) fn complaints(counts: &Counts, seconds: u64) -> Vec<String> {
    let seconds = usize::try_from(seconds).expect("a campaign ends");
    // One in this many seconds, on a machine with other load.
    let mut least = vec![
        ("grants", seconds / 2),
        ("saved", seconds * 2),
        ("rows", seconds),
        ("take-overs", seconds / 10),
        ("waits", seconds / 30),
        ("resumes", seconds / 120),
        ("denied", seconds / 20),
        ("faults", seconds / 30),
        ("revocations", 1),
        ("effects judged", 1),
        ("recovered", 1),
    ];
    if WHOLE_SECONDS <= seconds as u64 {
        least.extend([("accepted", 1), ("deletions", 1), ("set-back and held", 1)]);
        least.extend(KINDS.iter().map(|kind| (*kind, 1)));
    }
    let kinds = KINDS.iter().filter(|kind| 0 < counts.of(kind)).count();
    let too_few = MOST_SECONDS <= seconds as u64 && 3 * kinds < 2 * KINDS.len();
    let missing = least.into_iter().filter(|(name, least)| counts.of(name) < *least);
    let missing =
        missing.map(|(name, least)| format!("{name}: {} and not {least}", counts.of(name)));
    missing.chain(too_few.then(|| format!("only {kinds} kinds of faults"))).collect()
}
