//! G2, G7, G8 and G10: which edits are in the database and in replicas.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::What;
use crate::judge::{Row, Socket, Story, Violation};

/// The place of a [`What::Reads`] that was read without any server.
pub(crate) const DATABASE: &str = "database";

pub(super) fn judge(story: &Story<'_>) -> Vec<Violation> {
    let texts = Texts::of(story);
    let mut violations = rows_are_under_their_fence(story);
    violations.extend(saved_marks_are_there(story, &texts));
    violations.extend(set_back_marks_come_back(story));
    violations.extend(replicas_agree(&texts));
    violations.extend(marks_were_typed_once(story, &texts));
    violations.extend(no_intruded_mark(story, &texts));
    violations
}

/// The content at rest: by document, by place.
struct Texts<'a>(BTreeMap<&'a str, BTreeMap<&'a str, &'a [String]>>);

impl<'a> Texts<'a> {
    fn of(story: &Story<'a>) -> Self {
        let mut texts = BTreeMap::<_, BTreeMap<_, _>>::new();
        for event in story.events {
            if let What::Reads { document, source, marks } = &event.what {
                let sources = texts.entry(document.as_str()).or_default();
                sources.insert(source.as_str(), marks.as_slice());
            }
        }
        Self(texts)
    }

    fn in_database(&self, document: &str) -> Option<&'a [String]> {
        self.0.get(document)?.get(DATABASE).copied()
    }
}

/// G2: each row is written under a ratified grant, by the session that typed its marks or had them
/// in its replica when it connected.
fn rows_are_under_their_fence(story: &Story<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut earlier = BTreeSet::new();
    for row in &story.rows {
        let is_ratified = story.ratified.iter().any(|ratified| {
            Some(ratified.session) == row.session && Some(ratified.fence) == row.fence
        });
        if !is_ratified {
            let why = format!("a row under {:?}, which no session was granted", row.fence);
            violations.push(Violation { law: "G2", why, about: row.marks.to_vec() });
        }
        let news = row.marks.iter().filter(|mark| earlier.insert((row.document, mark.as_str())));
        let strays = news.filter(|mark| !may_write(story, row, mark));
        violations.extend(strays.map(|mark| Violation {
            law: "G2",
            why: format!("{mark} is in a row of session {:?}, which did not send it", row.session),
            about: vec![mark.clone(), row.session.unwrap_or_default().to_owned()],
        }));
    }
    violations
}

fn may_write(story: &Story<'_>, row: &Row<'_>, mark: &str) -> bool {
    let sends = |socket: &Socket<'_>| {
        socket.brings.contains(mark) || socket.typed.iter().any(|(_, typed)| *typed == mark)
    };
    let of_session = |socket: &&Socket<'_>| {
        let session = socket.grant.map(|grant| grant.session);
        // A socket that ended early may not have observed its own grant.
        session == row.session || (session.is_none() && socket.document == row.document)
    };
    is_suggestion(mark) || story.sockets.values().filter(of_session).any(sends)
}

/// Whether the server inserted the mark, on the acceptance of a suggestion.
pub(crate) fn is_suggestion(mark: &str) -> bool {
    mark.contains(".s")
}

/// G7: a mark that `document.saved` named is in the database, unless the database was set back
/// behind it.
fn saved_marks_are_there(story: &Story<'_>, texts: &Texts<'_>) -> Vec<Violation> {
    let mut taken_back = BTreeSet::new();
    for event in story.events {
        if let What::SetBack { document, lost, .. } = &event.what {
            taken_back.extend(lost.iter().map(|mark| (document.as_str(), mark.as_str())));
        }
    }
    let deleted = story.deleted();
    let mut violations = Vec::new();
    for socket in story.sockets.values() {
        let there = texts.in_database(socket.document);
        let Some(there) = there.filter(|_| !deleted.contains(socket.document)) else { continue };
        let there: BTreeSet<_> = there.iter().map(String::as_str).collect();
        for (_, mark) in &socket.saved {
            if !there.contains(mark) && !taken_back.contains(&(socket.document, *mark)) {
                let why = format!("{mark} was called saved and is not in the database");
                violations.push(Violation { law: "G7", why, about: vec![(*mark).to_owned()] });
            }
        }
    }
    violations
}

/// G7: after a set-back a seated writer's replica restores its marks.
fn set_back_marks_come_back(story: &Story<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, event) in story.events.iter().enumerate() {
        let What::SetBack { document, held, .. } = &event.what else { continue };
        let later = story.events[at..].iter().find_map(|event| match &event.what {
            What::CameBack { document: of, marks } if of == document => Some(marks),
            _ => None,
        });
        let Some(back) = later else { continue };
        let missing: Vec<_> = held.iter().filter(|mark| !back.contains(mark)).cloned().collect();
        if !missing.is_empty() {
            let why = format!("{missing:?} were saved and set back; a seated writer had them");
            violations.push(Violation { law: "G7", why, about: missing });
        }
    }
    violations
}

/// G8: at rest every replica and the database have the same text.
fn replicas_agree(texts: &Texts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (document, sources) in &texts.0 {
        let Some(there) = texts.in_database(document) else { continue };
        for (source, marks) in sources.iter().filter(|(_, marks)| **marks != there) {
            let only = |one: &[String], other: &[String]| -> Vec<String> {
                one.iter().filter(|mark| !other.contains(mark)).cloned().collect()
            };
            let (more, less) = (only(marks, there), only(there, marks));
            let why = format!("{source} has {more:?} more and {less:?} less than the database");
            violations.push(Violation { law: "G8", why, about: [more, less].concat() });
        }
    }
    violations
}

/// G8: the database has each mark once, and only marks that a client sent.
fn marks_were_typed_once(story: &Story<'_>, texts: &Texts<'_>) -> Vec<Violation> {
    let typed: BTreeSet<_> =
        story.sockets.values().flat_map(|socket| &socket.typed).map(|(_, mark)| *mark).collect();
    let mut violations = Vec::new();
    for document in texts.0.keys() {
        let mut once = BTreeSet::new();
        for mark in texts.in_database(document).unwrap_or_default() {
            let why = if !once.insert(mark) {
                format!("{mark} stands in the text twice")
            } else if !is_suggestion(mark) && !typed.contains(mark.as_str()) {
                format!("{mark} was typed in no session")
            } else {
                continue;
            };
            violations.push(Violation { law: "G8", why, about: vec![mark.clone()] });
        }
    }
    violations
}

/// G10: a reviewer's edit is in no row and in no replica.
fn no_intruded_mark(story: &Story<'_>, texts: &Texts<'_>) -> Vec<Violation> {
    let mut sources = BTreeMap::new();
    for (source, marks) in texts.0.values().flatten() {
        sources.extend(marks.iter().map(|mark| (mark.as_str(), (*source).to_owned())));
    }
    for row in &story.rows {
        sources.extend(row.marks.iter().map(|mark| (mark.as_str(), "the log".to_owned())));
    }
    for socket in story.sockets.values() {
        let source = format!("the replica of socket {}", socket.id);
        sources.extend(socket.seen.iter().map(|mark| (*mark, source.clone())));
    }
    let intruded = story.events.iter().filter_map(|event| match &event.what {
        What::Intruded { mark, .. } => Some(mark),
        _ => None,
    });
    let found = intruded.filter_map(|mark| {
        let why = format!("the reviewer's edit {mark} is in {}", sources.get(mark.as_str())?);
        Some(Violation { law: "G10", why, about: vec![mark.clone()] })
    });
    found.collect()
}
