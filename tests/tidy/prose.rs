//! One word, one meaning: comments, papers and names use the terms of the glossary (`domain/lib.rs`,
//! `locks/lib.rs`), and a component of the system is the subject of each comment.

use std::collections::HashMap;

use crate::tree::{self, Source, assert_none};

/// Kinds of files whose comments and names follow the rules.
const KINDS: &[&str] = &["js", "lua", "mjs", "rs", "sh", "sql", "ts"];

/// Words that begin a comment without a component as its subject.
const OPENINGS: &[&str] = &["Who", "What", "Whatever"];

/// Each row: words, and the terms in their place.
const TERMS: &[(&str, &str)] = &[
    ("anybody everybody nobody somebody whoever", "name the component"),
    ("asker wish", "request, requester"),
    ("bell chime farewell", "notify, broadcast, close"),
    ("chair lodger sits sitter", "seat, session, holder"),
    ("chore conductor errand", "maintenance, actor, batch call"),
    ("debt lent owed", "pending, unsaved, permit"),
    ("door knock lobby", "access, claim, probe, wait queue"),
    ("agenda patience", "schedule, deadline, time-out"),
    ("belief grip house keeper", "view, hold, server, backend"),
];

/// What stands before a name that a line declares.
const DECLARES: &[&str] = &[
    "class",
    "const",
    "enum",
    "fn",
    "function",
    "interface",
    "let",
    "mod",
    "mut",
    "static",
    "struct",
    "trait",
    "type",
];

#[test]
fn comments_and_names_use_the_terms_of_the_glossary() {
    let terms = TERMS.iter().flat_map(|(words, term)| words.split(' ').map(move |it| (it, *term)));
    let terms: HashMap<_, _> = terms.collect();
    let mut complaints = Vec::new();
    for source in prose() {
        for (number, line) in source.lines() {
            let comment = comment(&source, line);
            let first = comment.and_then(|it| it.split(|c: char| !c.is_alphabetic()).next());
            let is_vague = line.contains("fn who_") || line.contains("fn what_");
            if is_vague || first.is_some_and(|first| OPENINGS.contains(&first)) {
                complaints.push(source.complaint(number, "begins without a component"));
            }
            let words: Vec<_> = match comment {
                // Without what stands in backticks.
                Some(comment) => comment.split('`').step_by(2).flat_map(words).collect(),
                None => declared(line).into_iter().flat_map(words).collect(),
            };
            let found = words.iter().find_map(|word| {
                let one = word.strip_suffix('s').unwrap_or(word);
                Some((word, terms.get(word.as_str()).or_else(|| terms.get(one))?))
            });
            complaints.extend(
                found.map(|(word, term)| source.complaint(number, &format!("`{word}`: {term}"))),
            );
        }
    }
    assert_none(
        &complaints,
        "begin with the component that acts; domain/lib.rs and locks/lib.rs have the terms",
    );
}

/// A reader expects that a predicate changes nothing. (A change through an atomic is invisible here.)
#[test]
fn predicates_return_a_value_and_change_nothing() {
    let mut complaints = Vec::new();
    for source in tree::of_kind(&["rs"]).into_iter().filter(|source| source.is_in("src")) {
        for (number, line) in source.lines().filter(|(_, line)| line.trim_end().ends_with('{')) {
            let is_predicate = ["fn is_", "fn has_", "fn was_"].iter().any(|it| line.contains(it));
            let is_method = line.contains("self)") || line.contains("self,");
            if is_predicate && is_method && (line.contains("&mut self") || !line.contains("->")) {
                complaints.push(source.complaint(number, line.trim()));
            }
        }
    }
    assert_none(&complaints, "call it by a verb, as in `set_error`, or let it only read");
}

#[test]
fn the_words_of_comments_and_of_declared_names_are_read() {
    assert_eq!(words("askHim_NOW"), ["ask", "him", "now"]);
    assert_eq!(declared("    pub fn seat_of(mut taken: u8) { f(\"x\") }"), ["seat_of", "taken"]);
}

/// Migrations keep their text: databases hold its checksum. This file names the words itself.
fn prose() -> Vec<Source> {
    let mut sources = tree::of_kind(KINDS);
    sources.retain(|source| {
        !source.path.contains("/migrations/") && source.path != "tests/tidy/prose.rs"
    });
    sources
}

/// The comment of a line that has nothing else.
fn comment<'a>(source: &Source, line: &'a str) -> Option<&'a str> {
    let marks: &[&str] = match source.kind() {
        "rs" => &["//!", "///", "//"],
        "lua" | "sql" => &["--"],
        "js" | "mjs" | "ts" => &["//", "/**", "*"],
        _ => &["#"],
    };
    let line = line.trim_start();
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// The names that a line declares.
fn declared(line: &str) -> Vec<&str> {
    let is_end = |c: char| c != '_' && !c.is_ascii_alphanumeric();
    let names = || line.split(is_end).filter(|name| !name.is_empty());
    let pairs = names().zip(names().skip(1)).filter(|(before, _)| DECLARES.contains(before));
    pairs.map(|(_, name)| name).filter(|name| !DECLARES.contains(name)).collect()
}

/// The words of a text or of a name, in lower case.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_upper = true;
    for c in text.chars() {
        words.extend((!c.is_alphabetic() || c.is_uppercase() && !was_upper).then(String::new));
        was_upper = !c.is_alphabetic() || c.is_uppercase();
        let word = words.last_mut().expect("a word");
        word.extend(c.to_lowercase().filter(|c| c.is_alphabetic()));
    }
    words.retain(|word| !word.is_empty());
    words
}
