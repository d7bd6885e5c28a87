//! One word, one meaning: identifiers use the terms of the glossary (`domain/lib.rs`, `locks/lib.rs`)
//! and none of the words that the terms replaced.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::tree::{self, assert_none};

/// The words, each row with the terms in their place. A word is one part of an identifier.
const WORDS: &[(&str, &str)] = &[
    ("session, holder, member", "holding holdings sitter sitting sits sat company nobody somebody"),
    ("server", "house houses whoever anybody everybody"),
    ("backend, renewal, stored", "keeper keepers keeping kept"),
    ("seat, occupancy, session", "chair chairs tenant tenants tenancy lodger lodgers"),
    ("pending, unsaved", "owed owes owing debt debts"),
    ("query, request, requester", "ask asks asked asker askers wish wishes"),
    ("notify, broadcast, receive", "tell tells told hear hears hearing ear bell chime farewell"),
    ("batch, coalesce, maintenance", "gather gathered errand errands conductor chore chores"),
    ("probe, access", "knock knocks knocking door doors gate lobby"),
    ("position, permit, path, offset", "place places standing"),
    ("time-out, due", "patience agenda horizon"),
    ("flush, finish, complete", "settle settled settles settling"),
    ("a term of the glossary", "lent parcel fitness ails reach known chatter grip belief"),
];

/// The redirect and the command of a Redis Cluster, fields of `GET /api/admin/explain`, the algorithm of
/// `similar`, and functions of `aws_lc_rs` and `url`.
const ALLOWED: &str = "Ask Asking asking kept_until told_by Patience seal_in_place_append_tag open_in_place \
                       port_or_known_default";

#[test]
fn identifiers_use_the_terms_of_the_glossary() {
    let (mut complaints, mut terms) = (Vec::new(), HashMap::new());
    let mut sources = tree::of_kind(&["js", "lua", "rs", "ts"]);
    let tops = ["src", "tests", "static/client", "static/js"];
    sources.retain(|source| tops.iter().any(|top| source.is_in(top)));
    for source in sources {
        let code = code(&source.text, source.kind());
        for (number, line) in (1..).zip(code.lines()) {
            let names = line.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            for name in names.filter(|name| !name.is_empty()) {
                // Most names stand in many lines.
                let term = match terms.get(name) {
                    Some(term) => *term,
                    None => *terms.entry(name.to_owned()).or_insert(term_for(name)),
                };
                let complaint = |term| source.complaint(number, &format!("`{name}`: {term}"));
                complaints.extend(term.map(complaint));
            }
        }
    }
    assert_none(&complaints, "rename it by the glossary");
}

/// A reader expects that a predicate changes nothing. (A change through an atomic is invisible here.)
#[test]
fn predicates_return_a_value_and_change_nothing() {
    let mut complaints = Vec::new();
    for source in tree::of_kind(&["rs"]).into_iter().filter(|source| source.is_in("src")) {
        let code = code(&source.text, "rs");
        let starts = ["fn is_", "fn has_", "fn was_"];
        let at = starts.iter().flat_map(|start| code.match_indices(start)).map(|(at, _)| at);
        let changing = at.filter_map(|at| Some((at, changing_method(&code[at..])?)));
        complaints.extend(
            changing.map(|(at, name)| {
                source.complaint(code[..at].lines().count(), &format!("`{name}`"))
            }),
        );
    }
    assert_none(&complaints, "call it by a verb, as in `set_error`, or let it only read");
}

#[test]
fn a_predicate_that_changes_something_is_found() {
    assert_eq!(changing_method("fn is_up(&mut self) -> bool {"), Some("is_up"));
    assert_eq!(changing_method("fn has_waited(&self) {"), Some("has_waited"));
    assert_eq!(changing_method("fn is_up(\n    &self,\n) -> bool {"), None);
    assert_eq!(changing_method("fn is_fit(all: &[u8]) {"), None);
}

/// The name of the method that begins here, if it takes `&mut self` or returns nothing.
fn changing_method(code: &str) -> Option<&str> {
    let signature = code.split(['{', ';']).next()?;
    let is_method = signature.contains("self,") || signature.contains("self)");
    let changes = signature.contains("&mut self") || !signature.contains("->");
    (is_method && changes).then_some(signature[3..].split(['(', '<']).next()?)
}

#[test]
fn only_the_parts_of_identifiers_count() {
    let text = "let askHim = r#\"x\"y\"#; // told\nf('\"', \"kept\\\"\", 'a'); /* owed */ NOBODY";
    assert_eq!(code(text, "rs"), "let askHim = ; \nf(, , );  NOBODY");
    assert_eq!(code("x(/told/, `kept`) // owed", "js"), "x(, ) ");
    assert_eq!(parts("askHim_NOW"), ["ask", "him", "now"]);
}

/// The term in place of a word of that identifier.
fn term_for(name: &str) -> Option<&'static str> {
    static TERMS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let rows = WORDS.iter();
        rows.flat_map(|(term, words)| words.split(' ').map(move |word| (word, *term))).collect()
    });
    let term = parts(name).iter().find_map(|part| TERMS.get(part.as_str()))?;
    ALLOWED.split(' ').all(|word| word != name).then_some(*term)
}

/// The words of an identifier in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_upper = true;
    for c in name.chars() {
        parts.extend((c == '_' || c.is_ascii_uppercase() && !was_upper).then(String::new));
        was_upper = c == '_' || c.is_ascii_uppercase();
        parts.last_mut().expect("a part").extend((c != '_').then_some(c.to_ascii_lowercase()));
    }
    parts
}

/// The text without comments and literals. Line breaks stay.
fn code(text: &str, kind: &str) -> String {
    let (mut code, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['-', '/', 'r', '\'', '"', '`']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = not_code(rest, kind, code.trim_end().chars().last());
        let (skipped, after) = rest.split_at(length.unwrap_or(1));
        code.extend(skipped.chars().filter(|c| length.is_none() || *c == '\n'));
        rest = after;
    }
    code + rest
}

/// The length of the comment or literal at the start of `rest`, after the character `before`.
fn not_code(rest: &str, kind: &str, before: Option<char>) -> Option<usize> {
    let up_to = |end: &str, from: usize| {
        Some(rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len()))
    };
    let is_js = ["js", "ts"].contains(&kind);
    match rest.as_bytes() {
        [b'-', b'-', ..] if kind == "lua" => Some(rest.find('\n').unwrap_or(rest.len())),
        [b'/', b'/', ..] if kind != "lua" => Some(rest.find('\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] if kind != "lua" => up_to("*/", 2),
        [b'/', ..] if is_js && before.is_none_or(|c| "(,=:[!&|?{};>".contains(c)) => quoted(rest),
        [b'r', b'"' | b'#', ..] if kind == "rs" => {
            let hashes = rest[1..].bytes().take_while(|b| *b == b'#').count();
            let is_raw = rest[1 + hashes..].starts_with('"');
            is_raw.then(|| up_to(&format!("\"{}", "#".repeat(hashes)), 2 + hashes)).flatten()
        }
        // A lifetime is no literal.
        [b'\'', second, ..] if kind == "rs" && *second != b'\\' => {
            rest.char_indices().nth(2).filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
        }
        [b'"' | b'\'' | b'`', ..] => quoted(rest),
        _ => None,
    }
}

/// The length of a literal that ends with its first character, unescaped.
fn quoted(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices();
    let (_, mark) = chars.next()?;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            c if c == mark => return Some(at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}
