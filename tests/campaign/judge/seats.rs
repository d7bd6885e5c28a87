//! G1–G6: the holder of a seat, and the time at which a seat becomes free.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{How, What};
use crate::judge::{End, Socket, Story, Violation};

/// A fresh tab acquires a seat and has its edit saved within this after the last fault, on a busy
/// machine: one lease, one client timeout, a back-off of the lock connection, and a margin.
const RECOVERY_MS: u64 = 45_000;
/// The seat of a socket that closed cleanly is free after this.
const CLEAN_MS: u64 = 3_000;
/// The seat of a socket that was dropped is free after this: resume grace, client timeout, a tick.
const DROPPED_MS: u64 = 15_000;
/// A quiet stretch of this length stands before a loss or refusal that is judged.
const QUIET_MS: u64 = 15_000;
/// The servers end the session of a client after a silence of this length.
const SILENT_MS: u64 = 2_000;
/// The database may ratify the successor's fence this long after the loss was observed.
const RATIFIED_LATER_MS: u64 = 3_000;
/// A waiter that a claim overtook is granted within this, if another release followed.
const PASSED_OVER_MS: u64 = 3_000;

pub(super) fn judge(story: &Story<'_>) -> Vec<Violation> {
    let mut violations = fences_rise(story);
    for socket in story.sockets.values() {
        violations.extend(grant_is_ratified(story, socket));
        violations.extend(granted_beside_a_holder(story, socket));
        violations.extend(no_success_after_a_newer_grant(story, socket));
        violations.extend(refused_with_reason(story, socket));
        violations.extend(passed_over(story, socket));
        violations.extend(lost_with_reason(story, socket));
    }
    violations.extend(sessions_recover(story));
    violations
}

/// G1: the database ratifies rising fences for each seat, so that no two sessions share one.
fn fences_rise(story: &Story<'_>) -> Vec<Violation> {
    let mut last = BTreeMap::new();
    let mut violations = Vec::new();
    for ratified in &story.ratified {
        let before = last.insert(ratified.seat, (ratified.fence, ratified.session));
        let Some((fence, session)) = before else { continue };
        let is_repeat = fence == ratified.fence && session == ratified.session;
        if ratified.fence <= fence && !is_repeat {
            let why = format!("fence {} is ratified after {fence} on one seat", ratified.fence);
            let about = vec![session.to_owned(), ratified.session.to_owned()];
            violations.push(Violation { law: "G1", why, about });
        }
    }
    violations
}

/// G1: a client receives no grant that the database did not ratify.
fn grant_is_ratified(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let grant = socket.grant?;
    let is_it = story.ratified.iter().any(|ratified| {
        ratified.seat == (socket.link, socket.role)
            && ratified.session == grant.session
            && u64::try_from(ratified.fence) == Ok(grant.fence)
    });
    let why = format!("session {} was granted a seat without a ratified fence", grant.session);
    (!is_it).then(|| Violation { law: "G1", why, about: vec![grant.session.to_owned()] })
}

/// G1: without faults a claim without takeover is granted only after the previous session left, or
/// while its client is silent. A stalled campaign would look like a silent client.
fn granted_beside_a_holder(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let grant = socket.grant.filter(|_| matches!(socket.how, How::Plain | How::Wait))?;
    let before = story.predecessor(socket)?;
    let held = before.grant?;
    let is_over = match before.end {
        Some((_, End::Closed { code: 4410, .. })) => false,
        Some((end, _)) => end <= grant.at + CLEAN_MS,
        None => false,
    };
    let since = grant.at.saturating_sub(SILENT_MS);
    let quiet = story.is_quiet(grant.at.saturating_sub(QUIET_MS), grant.at);
    let why = format!("session {} was granted the seat that {} held", grant.session, held.session);
    let about = [grant.session, held.session, socket.link].map(ToOwned::to_owned).to_vec();
    let broken = !is_over && quiet && story.is_awake(since, grant.at);
    broken.then_some(Violation { law: "G1", why, about })
}

/// G3: `document.saved` never names an edit that the session types after a newer grant completed.
fn no_success_after_a_newer_grant(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let grant = socket.grant?;
    let newer = story.sockets.values().filter(|other| socket.shares_seat(other));
    let newer = newer.filter_map(|other| other.grant).filter(|other| grant.fence < other.fence);
    let newer = newer.min_by_key(|other| other.at)?;
    let late = |mark: &str| socket.typed.iter().any(|(at, typed)| *typed == mark && newer.at < *at);
    let (_, mark) = socket.saved.iter().find(|(_, mark)| late(mark))?;
    let why = format!(
        "{mark} was typed in session {} after session {} was granted, and saved",
        grant.session, newer.session
    );
    let about = [mark, grant.session, newer.session].map(ToOwned::to_owned).to_vec();
    Some(Violation { law: "G3", why, about })
}

/// G4: without faults a claim is refused only while another session may hold the seat.
fn refused_with_reason(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let (at, End::Closed { code: 4409, .. }) = socket.end? else { return None };
    let quiet = story.is_quiet(at.saturating_sub(QUIET_MS), at);
    if !quiet || socket.grant.is_some() {
        return None;
    }
    let may_hold = |other: &&Socket<'_>| {
        let until = match other.end {
            None => u64::MAX,
            Some((end, End::Left { clean: true })) => end + CLEAN_MS,
            Some((end, _)) => end + DROPPED_MS,
        };
        socket.shares_seat(other) && other.claimed_at <= at && socket.claimed_at <= until
    };
    if story.sockets.values().any(|other| may_hold(&other)) {
        return None;
    }
    let why = format!("socket {} was refused a seat that no session held", socket.id);
    Some(Violation { law: "G4", why, about: vec![socket.link.to_owned()] })
}

/// G5: without faults a release hands the seat over to the first waiter. A dropped socket has
/// released nothing: its user reconnects ahead of the queue.
fn passed_over(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let grant = socket.grant.filter(|_| socket.how == How::Wait)?;
    let (_, End::Left { clean: true }) = story.predecessor(socket)?.end? else { return None };
    let overtakes = |other: &&Socket<'_>| {
        let until = grant.at + PASSED_OVER_MS;
        socket.shares_seat(other)
            && other.waits_since.is_some_and(|since| since + 1_000 < socket.claimed_at)
            && other.is_open_at(until)
            && other.grant.is_none_or(|granted| until < granted.at)
    };
    let first = story.sockets.values().find(overtakes)?;
    let since = first.claimed_at.saturating_sub(QUIET_MS);
    let why =
        format!("socket {} was granted before socket {}, which waited first", socket.id, first.id);
    let about = vec![socket.link.to_owned()];
    story.is_quiet(since, grant.at).then_some(Violation { law: "G5", why, about })
}

/// G6: without faults, and after a Redis restart with old state, a session loses its seat only to
/// a later grant. The database ratifies no grant on a link that has ended meanwhile.
fn lost_with_reason(story: &Story<'_>, socket: &Socket<'_>) -> Option<Violation> {
    let grant = socket.grant?;
    let (at, End::Closed { code: 4410, reason }) = socket.end? else { return None };
    let judged = matches!(reason, "expired" | "taken_over");
    if !judged || !story.is_quiet(at.saturating_sub(QUIET_MS), at) {
        return None;
    }
    let succeeded = story.ratified.iter().any(|ratified| {
        ratified.seat == (socket.link, socket.role)
            && ratified.at <= at + RATIFIED_LATER_MS
            && u64::try_from(ratified.fence).is_ok_and(|fence| grant.fence < fence)
    });
    let has_ended = story.events.iter().any(|event| {
        let is_of = match &event.what {
            What::Revoked { link } => link == socket.link,
            What::Deleted { document } => document == socket.document,
            _ => false,
        };
        is_of && event.at <= at + RATIFIED_LATER_MS
    });
    let why = format!("session {} lost its seat ({reason}) without a later grant", grant.session);
    let about = vec![grant.session.to_owned(), socket.link.to_owned()];
    (!succeeded && !has_ended).then_some(Violation { law: "G6", why, about })
}

/// G4: after a fault a fresh tab acquires a seat and saves its edit in time; after the last fault it
/// does so in each document.
fn sessions_recover(story: &Story<'_>) -> Vec<Violation> {
    let mut recovered = BTreeSet::new();
    let mut violations = Vec::new();
    let mut complain = |document: &str, why: String| {
        violations.push(Violation { law: "G4", why, about: vec![document.to_owned()] });
    };
    for event in story.events {
        match &event.what {
            What::Fault { .. } => recovered.clear(),
            What::Recovered { document, after_ms } => {
                if RECOVERY_MS < *after_ms {
                    complain(document, format!("a seat was free after {after_ms} ms only"));
                }
                recovered.insert(document);
            }
            What::Reads { document, .. } if recovered.insert(document) => {
                let why = "no fresh tab had a seat and its edit saved after the last fault";
                complain(document, why.to_owned());
            }
            _ => {}
        }
    }
    violations
}
