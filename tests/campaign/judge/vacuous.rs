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

/// The length of a round. From this length on a run plays each round's whole deck.
pub(crate) const ROUND_SECONDS: u64 = 90;

/// The least of a round, on a machine with other load.
const IN_ROUND: [(&str, u64); 17] = [
    ("grants", 600),
    ("saved", 1_500),
    ("rows", 1_500),
    ("take-overs", 200),
    ("waits", 40),
    ("resumes", 5),
    ("denied", 100),
    ("faults", 32),
    ("accepted", 50),
    ("effects judged", 50),
    ("acknowledged", 100),
    ("typed and accepted", 10),
    ("lists judged", 20),
    ("recovered", 20),
    ("revocations", 5),
    ("deletions", 2),
    ("set-back and held", 1),
];

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
                What::Accepted { mark, .. } => self.count(accepted(mark)),
                What::Acknowledged { .. } => self.count("acknowledged"),
                What::Listed { suggestions, .. } if !suggestions.is_empty() => {
                    self.count("lists judged");
                }
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

fn accepted(mark: &str) -> &'static str {
    if mark.starts_with("typed.s") { "typed and accepted" } else { "accepted" }
}

/// The events that a run of this length lacks; empty if the run is conclusive.
pub(crate) fn complaints(counts: &Counts, seconds: u64) -> Vec<String> {
    let is_whole = ROUND_SECONDS <= seconds;
    let kinds = KINDS.iter().map(|kind| (*kind, 2)).filter(|_| is_whole);
    // A shorter run plays a part of its deck.
    let share = if is_whole { ROUND_SECONDS } else { 2 * ROUND_SECONDS };
    let least = IN_ROUND.iter().copied().chain(kinds);
    let least = least.map(|(name, least)| (name, least * seconds / share));
    let missing = least.filter(|(name, least)| (counts.of(name) as u64) < *least);
    missing.map(|(name, least)| format!("{name}: {} and not {least}", counts.of(name))).collect()
}
