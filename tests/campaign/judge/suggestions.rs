//! G7, G8 and G10 of typed suggestions: what was acknowledged is listed, and the page of its author shows what is
//! not listed as refused or unsent; all servers list the same; no suggested text is in the log before its acceptance.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Listed, What};
use crate::judge::text::DATABASE;
use crate::judge::{Story, Violation};

pub(super) fn judge(story: &Story<'_>) -> Vec<Violation> {
    let lists = lists_of(story);
    let mut violations = acknowledged_versions_are_listed(story, &lists);
    violations.extend(unlisted_words_are_refused_or_unsent(story, &lists));
    violations.extend(servers_agree(&lists));
    violations.extend(texts_are_accepted_before_they_are_stored(story));
    violations.extend(parts_are_put_in_together(story));
    violations
}

/// The last list of each server, by link.
type Lists<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a [Listed]>>;

fn lists_of<'a>(story: &Story<'a>) -> Lists<'a> {
    let mut lists = Lists::new();
    for event in story.events {
        if let What::Listed { link, source, suggestions } = &event.what {
            lists.entry(link).or_default().insert(source, suggestions);
        }
    }
    lists
}

/// G7: a suggestion is listed in the acknowledged version, or in a later one with words that its author sent.
fn acknowledged_versions_are_listed(story: &Story<'_>, lists: &Lists<'_>) -> Vec<Violation> {
    let mut sent = BTreeMap::<_, BTreeSet<_>>::new();
    let mut acknowledged = BTreeMap::new();
    for event in story.events {
        match &event.what {
            What::Suggested { suggestion, marks, .. } => {
                sent.entry(suggestion).or_default().insert(marks);
            }
            What::Acknowledged { link, suggestion, version, marks } => {
                acknowledged.insert(suggestion, (link, *version, marks));
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for (id, (link, version, marks)) in &acknowledged {
        for (source, list) in lists.get(link.as_str()).into_iter().flatten() {
            let why = match list.iter().find(|listed| listed.id == **id) {
                None => format!("{source} does not list {id}, acknowledged in version {version}"),
                Some(listed) if listed.version < *version => {
                    format!("{source} lists {id} in version {}, not {version}", listed.version)
                }
                Some(listed) if listed.version == *version && listed.marks != **marks => {
                    format!("{source} lists {id} with {:?}, not {marks:?}", listed.marks)
                }
                Some(listed) if !sent[id].contains(&listed.marks) => {
                    format!("{source} lists {id} with {:?}, which was not sent", listed.marks)
                }
                Some(_) => continue,
            };
            violations.push(Violation { law: "G7", why, about: vec![(*id).clone()] });
        }
    }
    violations
}

/// G7: the last words of each suggestion are listed, or its author's page calls them refused or unsent.
fn unlisted_words_are_refused_or_unsent(story: &Story<'_>, lists: &Lists<'_>) -> Vec<Violation> {
    let mut last = BTreeMap::new();
    let mut noted = BTreeSet::new();
    for event in story.events {
        match &event.what {
            What::Suggested { link, suggestion, marks } => {
                last.insert(suggestion, (link, marks));
            }
            // Another law judges what was acknowledged.
            What::Acknowledged { suggestion, marks, .. }
            | What::Refused { suggestion, marks }
            | What::Unsent { suggestion, marks } => {
                noted.insert((suggestion, marks));
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for (id, (link, marks)) in last {
        for (source, list) in lists.get(link.as_str()).into_iter().flatten() {
            let is_listed = list.iter().any(|listed| listed.id == *id && listed.marks == *marks);
            if !is_listed && !noted.contains(&(id, marks)) {
                let why = format!(
                    "{source} does not list {marks:?} of {id}, and its author's page has not called it unsent"
                );
                violations.push(Violation { law: "G7", why, about: vec![id.clone()] });
            }
        }
    }
    violations
}

/// G8: at rest all servers list the same suggestions at the same positions.
fn servers_agree(lists: &Lists<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (link, sources) in lists {
        let mut sources = sources.iter();
        let Some((first, list)) = sources.next() else { continue };
        for (source, other) in sources.filter(|(_, other)| *other != list) {
            let differing = other.iter().find(|listed| !list.contains(listed));
            let why = format!("{source} lists {differing:?}, and {first} does not, of {link}");
            violations.push(Violation { law: "G8", why, about: vec![(*link).to_owned()] });
        }
    }
    violations
}

/// G10: a row with a suggested text is written with its acceptance.
fn texts_are_accepted_before_they_are_stored(story: &Story<'_>) -> Vec<Violation> {
    let accepted: BTreeSet<_> = story
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Accepted { mark, .. } => Some(suggestion_of(mark)),
            _ => None,
        })
        .collect();
    let stored: BTreeSet<_> = story.rows.iter().flat_map(|row| row.marks).collect();
    let stray = stored
        .into_iter()
        .filter(|mark| mark.starts_with("typed.s") && !accepted.contains(suggestion_of(mark)));
    stray
        .map(|mark| Violation {
            law: "G10",
            why: format!("{mark} is in the log and was not accepted"),
            about: vec![mark.clone()],
        })
        .collect()
}

/// G10: the text has all parts of a suggestion, or none.
fn parts_are_put_in_together(story: &Story<'_>) -> Vec<Violation> {
    let mut texts = BTreeMap::new();
    for event in story.events {
        if let What::Reads { document, source, marks } = &event.what
            && source == DATABASE
        {
            texts.insert(document, marks.iter().collect::<BTreeSet<_>>());
        }
    }
    let mut violations = Vec::new();
    for event in story.events {
        let What::Suggested { marks, .. } = &event.what else { continue };
        for there in texts.values() {
            let present = marks.iter().filter(|mark| there.contains(mark)).count();
            if present != 0 && present != marks.len() {
                let why = format!("{present} of {marks:?} are in the text");
                violations.push(Violation { law: "G10", why, about: marks.clone() });
            }
        }
    }
    violations
}

/// The marks of a suggestion differ in the number of their part.
fn suggestion_of(mark: &str) -> &str {
    mark.rsplit_once('.').map_or(mark, |(suggestion, _)| suggestion)
}
