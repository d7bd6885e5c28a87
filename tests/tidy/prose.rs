//! The one rule of prose, as far as a program checks it: a component of the system is the subject of each
//! comment, and the verb is an operation of the field.

use crate::tree::{self, Source, assert_none};

/// Kinds of files whose comments follow the rule.
const KINDS: &[&str] = &["js", "lua", "mjs", "rs", "sh", "sql", "ts"];

/// Words that begin a comment without a component as its subject.
const OPENINGS: &[&str] = &["Who", "Whoever", "What", "Whatever", "Nobody", "Somebody", "Anybody"];

/// Words with a term of the glossary in their place.
const WORDS: &[(&str, &str)] = &[
    ("anybody", "name the component"),
    ("chores", "maintenance"),
    ("errand", "batch call"),
    ("given back", "released"),
    ("is told", "is notified, receives"),
    ("keeper", "backend"),
    ("knocks", "claims, probes"),
    ("nobody", "no session, no server …"),
    ("of late", "recently"),
    ("sits", "holds the seat"),
    ("somebody", "name the component"),
    ("whoever", "name the component"),
];

/// Parts of names of tests that name no component.
const VAGUE: &[&str] = &["anybody", "nobody", "somebody", "whoever"];

#[test]
fn comments_have_a_component_as_their_subject() {
    let mut complaints = Vec::new();
    for source in prose() {
        for (number, comment) in comments(&source) {
            let first = comment.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            if OPENINGS.contains(&first) {
                complaints.push(source.complaint(number, &format!("begins with `{first}`")));
            }
        }
    }
    assert_none(&complaints, "begin with the component that acts");
}

#[test]
fn comments_use_the_terms_of_the_glossary() {
    let mut complaints = Vec::new();
    for source in prose() {
        for (number, comment) in comments(&source) {
            let text = without_code(comment).to_lowercase();
            let found = WORDS.iter().filter(|(word, _)| has_word(&text, word));
            complaints.extend(
                found.map(|(word, term)| source.complaint(number, &format!("`{word}`: {term}"))),
            );
        }
    }
    assert_none(&complaints, "domain/lib.rs and locks/lib.rs have the terms");
}

#[test]
fn names_of_tests_name_components() {
    let mut complaints = Vec::new();
    for source in tree::of_kind(&["rs"]) {
        for (number, line) in source.lines() {
            let Some((_, rest)) = line.split_once("fn ") else { continue };
            let name = rest.split('(').next().unwrap_or_default();
            let sentence = name.split_once('_').filter(|(prefix, _)| is_promise(prefix));
            let sentence = sentence.map_or(name, |(_, sentence)| sentence);
            let is_vague = ["who_", "what_"].iter().any(|start| sentence.starts_with(start))
                || VAGUE.iter().any(|word| name.split('_').any(|part| part == *word));
            if is_vague {
                complaints.push(source.complaint(number, &format!("`{name}`")));
            }
        }
    }
    assert_none(&complaints, "name the component and the term that a reader searches for");
}

/// Whether a name begins with the letter and number of an invariant, as in `g7_`.
fn is_promise(prefix: &str) -> bool {
    let mut letters = prefix.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_lowercase())
        && !letters.as_str().is_empty()
        && letters.all(|digit| digit.is_ascii_digit())
}

/// Migrations keep their text: databases hold its checksum. This file names the words itself.
fn prose() -> Vec<Source> {
    let mut sources = tree::of_kind(KINDS);
    sources.retain(|source| {
        !source.path.contains("/migrations/") && source.path != "tests/tidy/prose.rs"
    });
    sources
}

/// The comments of a file that stand on lines of their own.
fn comments(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let marks: &[&str] = match source.kind() {
        "rs" => &["//!", "///", "//"],
        "lua" | "sql" => &["--"],
        "js" | "mjs" | "ts" => &["//", "/**", "*"],
        _ => &["#"],
    };
    source.lines().filter_map(move |(number, line)| {
        let line = line.trim_start();
        let text = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
        Some((number, text.trim()))
    })
}

/// The comment without what stands in backticks.
fn without_code(comment: &str) -> String {
    comment.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + word.len()..].chars().next())
    })
}
