//! The history checker: plain code over one history, without servers.
//!
//! [`seats`] judges G1–G6, [`text`] judges G2, G7, G8 and G10, [`rights`] judges G14 and G15.
//! [`suggestions`] judges the same of typed suggestions. [`vacuous`] rejects a history in which too little happened. `examples` holds histories written by
//! hand, of which each breaks one law.

#[cfg(test)]
mod examples;
mod rights;
mod seats;
mod suggestions;
mod text;
pub(crate) mod vacuous;

pub(crate) use text::DATABASE;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::{Event, How, What};

/// A campaign without an observation for so long was stalled by other work of the machine.
const STALL_MS: u64 = 500;

/// One broken law with the events that break it.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) law: &'static str,
    pub(crate) why: String,
    /// Texts that select the events to print: a mark, a session, a link.
    pub(crate) about: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.why)
    }
}

/// All laws over one history.
pub(crate) fn judge(events: &[Event]) -> Vec<Violation> {
    let story = Story::of(events);
    let mut violations = seats::judge(&story);
    violations.extend(text::judge(&story));
    violations.extend(rights::judge(&story));
    violations.extend(suggestions::judge(&story));
    violations
}

/// How a socket ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<'a> {
    Left { clean: bool },
    Closed { code: u16, reason: &'a str },
}

/// A grant as its client received it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant<'a> {
    pub(super) at: u64,
    pub(super) session: &'a str,
    pub(super) fence: u64,
}

/// One websocket from its claim to its end.
#[derive(Debug)]
pub(super) struct Socket<'a> {
    pub(super) id: u32,
    pub(super) document: &'a str,
    pub(super) link: &'a str,
    pub(super) role: &'a str,
    pub(super) how: How,
    pub(super) brings: BTreeSet<&'a str>,
    pub(super) claimed_at: u64,
    pub(super) waits_since: Option<u64>,
    pub(super) grant: Option<Grant<'a>>,
    pub(super) typed: Vec<(u64, &'a str)>,
    pub(super) saved: Vec<(u64, &'a str)>,
    pub(super) seen: BTreeSet<&'a str>,
    pub(super) end: Option<(u64, End<'a>)>,
}

impl Socket<'_> {
    /// Whether both claim one seat.
    pub(super) fn shares_seat(&self, other: &Self) -> bool {
        self.id != other.id && self.link == other.link && self.role == other.role
    }

    pub(super) fn is_open_at(&self, at: u64) -> bool {
        self.claimed_at <= at && self.end.is_none_or(|(end, _)| at < end)
    }
}

/// A row of the database's log.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) document: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) fence: Option<i64>,
    pub(super) marks: &'a [String],
}

/// A fence that the database ratified.
#[derive(Debug)]
pub(super) struct Ratified<'a> {
    pub(super) at: u64,
    pub(super) seat: (&'a str, &'a str),
    pub(super) fence: i64,
    pub(super) session: &'a str,
}

/// A fault from its beginning to its end.
#[derive(Debug)]
pub(super) struct Fault<'a> {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) kind: &'a str,
    target: &'a str,
}

/// A history, sorted by subject.
#[derive(Debug, Default)]
pub(super) struct Story<'a> {
    pub(super) events: &'a [Event],
    pub(super) sockets: BTreeMap<u32, Socket<'a>>,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) ratified: Vec<Ratified<'a>>,
    pub(super) faults: Vec<Fault<'a>>,
    /// From when to when only faults of one kind happen.
    calms: Vec<(u64, u64, &'a str)>,
}

impl<'a> Story<'a> {
    pub(super) fn of(events: &'a [Event]) -> Self {
        let mut story = Self { events, ..Self::default() };
        for event in events {
            story.take(event.at, &event.what);
        }
        story
    }

    fn take(&mut self, at: u64, what: &'a What) {
        match what {
            What::Fault { kind, target } => {
                self.faults.push(Fault { from: at, to: u64::MAX, kind, target });
            }
            What::Healed { kind, target } => {
                let is_it = |fault: &&mut Fault<'_>| fault.kind == kind && fault.target == target;
                if let Some(fault) = self.faults.iter_mut().rev().find(is_it) {
                    fault.to = at;
                }
            }
            What::Calm { only } => self.calms.push((at, u64::MAX, only)),
            What::CalmEnds => {
                if let Some(calm) = self.calms.last_mut() {
                    calm.1 = at;
                }
            }
            What::Row { document, session, fence, marks, .. } => {
                self.rows.push(Row { document, session: session.as_deref(), fence: *fence, marks });
            }
            What::Ratified { link, role, fence, session } => {
                self.ratified.push(Ratified { at, seat: (link, role), fence: *fence, session });
            }
            _ => self.take_of_socket(at, what),
        }
    }

    fn take_of_socket(&mut self, at: u64, what: &'a What) {
        if let What::Claim { socket, document, link, role, how, brings, .. } = what {
            let brings = brings.iter().map(String::as_str).collect();
            let new = Socket {
                id: *socket,
                document,
                link,
                role,
                how: *how,
                brings,
                claimed_at: at,
                waits_since: None,
                grant: None,
                typed: Vec::new(),
                saved: Vec::new(),
                seen: BTreeSet::new(),
                end: None,
            };
            self.sockets.insert(*socket, new);
            return;
        }
        let (What::Granted { socket: id, .. }
        | What::Waiting { socket: id, .. }
        | What::Typed { socket: id, .. }
        | What::Saved { socket: id, .. }
        | What::Seen { socket: id, .. }
        | What::Left { socket: id, .. }
        | What::Closed { socket: id, .. }) = what
        else {
            return;
        };
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match what {
            What::Granted { session, fence, .. } => {
                socket.grant = Some(Grant { at, session, fence: *fence });
            }
            What::Waiting { .. } => socket.waits_since = socket.waits_since.or(Some(at)),
            What::Typed { mark, .. } => socket.typed.push((at, mark)),
            What::Saved { mark, .. } => socket.saved.push((at, mark)),
            What::Seen { mark, .. } => drop(socket.seen.insert(mark)),
            What::Left { clean, .. } => socket.end = Some((at, End::Left { clean: *clean })),
            What::Closed { code, reason, .. } => {
                socket.end = Some((at, End::Closed { code: *code, reason }));
            }
            _ => {}
        }
    }

    /// Whether no fault happened in that time, other than the named fault of a calm. Faults before
    /// a calm do not count in it: a calm begins when their effects are over.
    pub(super) fn is_quiet(&self, from: u64, to: u64) -> bool {
        let calm = self.calms.iter().find(|(began, ended, _)| *began <= to && to <= *ended);
        let from = calm.map_or(from, |(began, ..)| from.max(*began));
        let expected = |fault: &Fault<'_>| {
            let within = |(began, ended, only): &(u64, u64, &str)| {
                *began <= fault.from && fault.from <= *ended && *only == fault.kind
            };
            self.calms.iter().any(within)
        };
        let strikes = |fault: &&Fault<'_>| fault.from <= to && from <= fault.to;
        self.faults.iter().filter(strikes).all(expected)
    }

    /// The socket with the previous grant of the same seat.
    pub(super) fn predecessor(&self, socket: &Socket<'a>) -> Option<&Socket<'a>> {
        let fence = socket.grant?.fence;
        let shares = self.sockets.values().filter(|other| socket.shares_seat(other));
        let fence_of = |other: &&Socket<'_>| other.grant.map(|grant| grant.fence);
        shares.filter(|other| fence_of(other).is_some_and(|it| it < fence)).max_by_key(fence_of)
    }

    /// Whether the campaign itself observed something at least every half second in that time.
    pub(super) fn is_awake(&self, from: u64, to: u64) -> bool {
        let times = self.events.iter().map(|event| event.at);
        let times = times.filter(|at| from <= *at && *at <= to);
        let (last, longest) =
            times.fold((from, 0), |(last, longest), at| (at, longest.max(at.saturating_sub(last))));
        longest.max(to - last) <= STALL_MS
    }

    /// Names of documents that the owner deleted.
    pub(super) fn deleted(&self) -> BTreeSet<&'a str> {
        let deleted = self.events.iter().filter_map(|event| match &event.what {
            What::Deleted { document } => Some(document.as_str()),
            _ => None,
        });
        deleted.collect()
    }
}

/// The events that mention one of these texts, for the report of a violation.
pub(crate) fn mentions<'a>(events: &'a [Event], about: &[String]) -> Vec<&'a Event> {
    let mentioned = |event: &&Event| {
        let line = serde_json::to_string(event).expect("JSON");
        about.iter().any(|text| line.contains(&format!("\"{text}\"")))
    };
    events.iter().filter(mentioned).collect()
}
