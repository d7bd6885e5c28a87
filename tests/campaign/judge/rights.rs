//! G14 and G15: rights end when they are revoked, and the effect of a commit is delivered.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::What;
use crate::judge::{Socket, Story, Violation};

/// A replica of this age at the due time of an effect is synchronised, and contains it.
const SYNCED_MS: u64 = 3_000;

pub(super) fn judge(story: &Story<'_>) -> Vec<Violation> {
    let ended = Ended::of(story);
    let mut violations = nothing_ratified_after_the_end(story, &ended);
    violations.extend(sockets_end_in_time(story, &ended));
    violations.extend(accepted_suggestions_are_shown(story));
    violations
}

/// When the database ended links and documents.
struct Ended<'a>(BTreeMap<&'a str, u64>);

impl<'a> Ended<'a> {
    fn of(story: &Story<'a>) -> Self {
        let ended = story.events.iter().filter_map(|event| match &event.what {
            What::Revoked { link: subject } | What::Deleted { document: subject } => {
                Some((subject.as_str(), event.at))
            }
            _ => None,
        });
        Self(ended.collect())
    }

    fn at(&self, socket: &Socket<'_>) -> Option<u64> {
        let times = [socket.link, socket.document].map(|subject| self.0.get(subject));
        times.into_iter().flatten().min().copied()
    }
}

/// G14: the database ratifies no grant on a revoked link.
fn nothing_ratified_after_the_end(story: &Story<'_>, ended: &Ended<'_>) -> Vec<Violation> {
    let late = story.ratified.iter().filter(|ratified| {
        ended.0.get(ratified.seat.0).is_some_and(|revoked| *revoked < ratified.at)
    });
    let violation = |session: &str, link: &str| Violation {
        law: "G14",
        why: format!("session {session} was granted a seat on the revoked link {link}"),
        about: vec![link.to_owned()],
    };
    late.map(|ratified| violation(ratified.session, ratified.seat.0)).collect()
}

/// G14, G15: when the effects of a revocation or a deletion are due, no socket of it is open.
fn sockets_end_in_time(story: &Story<'_>, ended: &Ended<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for event in story.events {
        let What::Due { subject } = &event.what else { continue };
        let open = story.sockets.values().filter(|socket| {
            let is_of = socket.link == subject || socket.document == subject;
            let is_ended = ended.at(socket).is_some_and(|at| at <= event.at);
            is_of && is_ended && socket.is_open_at(event.at) && socket.claimed_at < event.at
        });
        violations.extend(open.map(|socket| Violation {
            law: "G14",
            why: format!("socket {} ({}) outlives the end of {subject}", socket.id, socket.role),
            about: vec![subject.clone(), socket.link.to_owned()],
        }));
    }
    violations
}

/// G15: when the effects of an acceptance are due, every replica that is open shows the suggestion.
fn accepted_suggestions_are_shown(story: &Story<'_>) -> Vec<Violation> {
    let accepted: BTreeMap<_, _> = story
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Accepted { document, mark } => Some((mark, (document, event.at))),
            _ => None,
        })
        .collect();
    let written: BTreeSet<_> = story.rows.iter().flat_map(|row| row.marks).collect();
    let mut violations = Vec::new();
    for (mark, (document, at)) in &accepted {
        if !written.contains(mark) {
            let why = format!("{mark} is accepted and in no row of {document}");
            violations.push(Violation { law: "G15", why, about: vec![(*mark).clone()] });
        }
        let is_due = |what: &What| matches!(what, What::Due { subject } if subject == *mark);
        let Some(due) = story.events.iter().find(|event| is_due(&event.what)) else { continue };
        let blind = story.sockets.values().filter(|socket| {
            let granted = socket.grant.is_some_and(|grant| grant.at + SYNCED_MS < due.at);
            socket.document == document.as_str()
                && granted
                && socket.is_open_at(due.at)
                && !socket.seen.contains(mark.as_str())
        });
        violations.extend(blind.map(|socket| Violation {
            law: "G15",
            why: format!("{mark} was accepted at {at} ms; socket {} does not show it", socket.id),
            about: vec![(*mark).clone()],
        }));
    }
    violations
}
